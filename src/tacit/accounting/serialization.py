"""Events and releases as plain data, and back; only what an accountant knows is read.

An event is a table with one key, its name: `{"GaussianDpEvent": {"noise_multiplier":
5.0}}`. Clients' ledgers, the ledger of a run and whatever a later run reads of it are
all written here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import check
from tacit.codes import Code, earlier_assumptions
from tacit.errors import BadValue, TacitError
from tacit.release import Adjacency, Cell, Part, Release, Standing, Unit, View

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Json = dict[str, Any]


# Of a release: for readers, and in no agreement.
_PROSE = {"what", "seen_by", "when", "channel", "parts"}


def release_to_json(release: Release) -> Json:
    """A release as tables, lists and numbers, its events included."""
    cells = [
        {"unit": str(unit), "view": str(view), **_cell_to_json(cell)}
        for (unit, view), cell in release.cells.items()
    ]
    rounds = release.rounds
    return {
        **vars(release),
        "cells": cells,
        "rounds": None if rounds is None else [rounds.start, rounds.stop],
        "parts": [vars(part) for part in release.parts],
    }


def agreed_release(release: Release) -> Json:
    """What clients agree to of a release: events, numbers and codes, and no prose."""
    document = release_to_json(release)
    cells = [
        {key: value for key, value in cell.items() if key != "reason"}
        | {"assumes": sorted(cell["assumes"], key=str)}  # their order says nothing
        for cell in document["cells"]
    ]
    kept = {key: value for key, value in document.items() if key not in _PROSE}
    return kept | {"cells": cells}


def release_from_json(document: Mapping[str, Any]) -> Release:
    """The release of what `release_to_json` gave; BadValue for anything else."""
    with _only_documents("release"):
        return _release(document)


def _release(document: Mapping[str, Any]) -> Release:
    cells = {
        (Unit(one["unit"]), View(one["view"])): _cell_from_json(one)
        for one in document["cells"]
    }
    rounds = document.get("rounds")
    made = None if rounds is None else range(*rounds)
    parts = tuple(Part(**one) for one in document.get("parts", ()))
    return Release(**{**document, "cells": cells, "rounds": made, "parts": parts})


def _cell_to_json(cell: Cell) -> Json:
    return {
        **vars(cell),
        "standing": str(cell.standing),
        "adjacency": str(cell.adjacency),
        "assumes": [code.to_json() for code in cell.assumes],
        "why_none": None if cell.why_none is None else cell.why_none.to_json(),
        "event": event_to_json(cell.event),
        "each": event_to_json(cell.each),
    }


def _cell_from_json(document: Mapping[str, Any]) -> Cell:
    own = {key: v for key, v in document.items() if key not in ("unit", "view")}
    assumes, why = own["assumes"], own.get("why_none")
    if isinstance(assumes, str):  # as an earlier version wrote it
        codes = earlier_assumptions(assumes)
        why = ["earlier_reason"] if own["event"] is None else None
    else:
        codes = tuple(map(Code.from_json, assumes))
    # Whether it is ASSUMED follows from the codes, as they are understood now.
    standing = Standing(own["standing"])
    standing = Standing.PROVEN if standing is Standing.ASSUMED else standing
    return Cell(
        **{
            **own,
            "standing": standing,
            "adjacency": Adjacency(own["adjacency"]),
            "assumes": codes,
            "why_none": None if why is None else Code.from_json(why),
            "event": _event(own["event"]),
            "each": _event(own["each"]),
        }
    )


def event_to_json(event: DpEvent | None) -> Json | None:
    """The event as tables, lists and numbers."""
    if event is None:
        return None
    name = type(event).__name__
    _kind(name)  # refuses what `event_from_json` could not read back
    return {name: {key: _plain(value) for key, value in _fields(event).items()}}


def event_from_json(document: Json | None) -> DpEvent | None:
    """The event of what `event_to_json` gave; BadValue for anything else."""
    with _only_documents("event"):
        return _event(document)


@contextmanager
def _only_documents(what: str) -> Iterator[None]:
    """Refuse what is no document of ours; it may come from a damaged file."""
    try:
        yield
    except TacitError:
        raise
    except Exception as error:  # of whatever kind: the document may hold anything
        raise BadValue(f"is not the document of a {what}: {error!r}") from error


def _event(document: Json | None) -> DpEvent | None:
    if document is None:
        return None
    [(name, fields)] = document.items()  # exactly one key: the kind of the event
    return _kind(name)(**{key: _read(value) for key, value in fields.items()})


def event_in_short(event: DpEvent | None) -> str:
    """The event in a few words, for readers who know the field.

    >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    >>> event_in_short(SelfComposedDpEvent(GaussianDpEvent(5.0), 3))
    '3 × Gaussian 5'
    """
    if event is None:
        return "nothing"
    name, fields = type(event).__name__.removesuffix("DpEvent"), _fields(event)
    if name == "SelfComposed":
        return f"{fields['count']} × {event_in_short(fields['event'])}"
    if name == "Composed":
        return " + ".join(map(event_in_short, fields["events"]))
    shown = (
        f"({event_in_short(value)})"
        if hasattr(value, "__attrs_attrs__")
        else f"{value:g}"
        for value in fields.values()
    )
    return " ".join((name, *shown))


def _fields(event: DpEvent) -> dict[str, Any]:
    import attr

    return attr.asdict(event, recurse=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "__attrs_attrs__"):
        return event_to_json(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    # JSON has no numpy numbers.
    return value.item() if isinstance(value, np.generic) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(one) for one in value]
    return _event(value) if isinstance(value, dict) else value


def _kind(name: str) -> type:
    if name not in _kinds():
        raise BadValue(f"event {check.unknown(name, _kinds())}")
    return _kinds()[name]


@cache
def _kinds() -> dict[str, type]:
    from tacit.accounting import dp_events as dp
    from tacit.accounting import events

    kinds = (
        *(dp.NonPrivateDpEvent, dp.NoOpDpEvent, dp.GaussianDpEvent, dp.LaplaceDpEvent),
        *(dp.RandomizedResponseDpEvent, dp.SelfComposedDpEvent, dp.ComposedDpEvent),
        *(dp.PoissonSampledDpEvent, dp.TruncatedSubsampledGaussianDpEvent),
        *(dp.SampledWithoutReplacementDpEvent, dp.RepeatAndSelectDpEvent),
        dp.ZCDpEvent,
        *(events.PureDpEvent, events.PaddedDpEvent),
        *(events.ShuffledDpEvent, events.SkellamDpEvent, events.FailureDpEvent),
    )
    return {kind.__name__: kind for kind in kinds}
