"""Terms and events as JSON text, and back; only what an accountant knows is read.

An event is a table with one key, its name: `{"GaussianDpEvent": {"noise_multiplier":
5.0}}`. Equal terms have equal texts.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import check
from tacit.errors import BadValue
from tacit.ledger.terms import Charge, Promise, Terms

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Json = dict[str, Any]


def write_terms(terms: Terms) -> str:
    """The one text of these terms."""
    document = vars(terms) | {"charges": [_charge(one) for one in terms.charges]}
    return json.dumps(document, sort_keys=True, ensure_ascii=False)


def read_terms(text: str) -> Terms:
    """The terms of a text that `write_terms` wrote."""
    document = json.loads(text)
    charges = tuple(_read_charge(one) for one in document.pop("charges"))
    return Terms(charges, **document)


def plain_promises(charge: Charge) -> list[Json]:
    """A table for each place, its event included."""
    return [
        {"unit": unit, "view": view, **vars(held), "event": plain_event(held.event)}
        for (unit, view), held in charge.promises.items()
    ]


def plain_event(event: DpEvent | None) -> Json | None:
    """The event as tables, lists and numbers."""
    if event is None:
        return None
    name = type(event).__name__
    _kind(name)
    return {name: {key: _plain(value) for key, value in _fields(event).items()}}


def read_event(document: Json | None) -> DpEvent | None:
    """The event of what `plain_event` gave."""
    if document is None:
        return None
    [(name, fields)] = document.items()
    return _kind(name)(**{key: _read(value) for key, value in fields.items()})


def in_short(event: DpEvent | None) -> str:
    """The event in a few words, for people who know the field.

    >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    >>> in_short(SelfComposedDpEvent(GaussianDpEvent(5.0), 3))
    '3 × Gaussian 5'
    """
    if event is None:
        return "nothing"
    name, fields = type(event).__name__.removesuffix("DpEvent"), _fields(event)
    if name == "SelfComposed":
        return f"{fields['count']} × {in_short(fields['event'])}"
    if name == "Composed":
        return " + ".join(map(in_short, fields["events"]))
    shown = (
        f"({in_short(value)})" if hasattr(value, "__attrs_attrs__") else f"{value:g}"
        for value in fields.values()
    )
    return " ".join((name, *shown))


def plain_rounds(rounds: range | None) -> list[int] | None:
    """The first round and the one after the last; None is every round."""
    return None if rounds is None else [rounds.start, rounds.stop]


def read_rounds(document: list[int] | None) -> range | None:
    """The rounds of what `plain_rounds` gave."""
    return None if document is None else range(*document)


def _charge(charge: Charge) -> Json:
    held: Json = {
        "what": charge.what,
        "seen_by": charge.seen_by,
        "promises": plain_promises(charge),
    }
    if charge.rounds is not None:  # else the text is what it always was
        held["rounds"] = plain_rounds(charge.rounds)
    return held


def _read_charge(document: Json) -> Charge:
    promises = {
        (held.pop("unit"), held.pop("view")): Promise(
            read_event(held.pop("event")), **held
        )
        for held in document["promises"]
    }
    rounds = read_rounds(document.get("rounds"))
    return Charge(document["what"], document["seen_by"], promises, rounds)


def _fields(event: DpEvent) -> dict[str, Any]:
    import attr

    return attr.asdict(event, recurse=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "__attrs_attrs__"):
        return plain_event(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(one) for one in value]
    return read_event(value) if isinstance(value, dict) else value


def _kind(name: str) -> type:
    if name not in _kinds():
        raise BadValue(f"event {check.unknown(name, _kinds())}")
    return _kinds()[name]


@cache
def _kinds() -> dict[str, type]:
    import dp_accounting as dp

    from tacit.accounting import events

    kinds = (
        *(dp.NonPrivateDpEvent, dp.NoOpDpEvent, dp.GaussianDpEvent, dp.LaplaceDpEvent),
        *(dp.RandomizedResponseDpEvent, dp.SelfComposedDpEvent, dp.ComposedDpEvent),
        *(dp.PoissonSampledDpEvent, dp.TruncatedSubsampledGaussianDpEvent),
        *(dp.SampledWithoutReplacementDpEvent, dp.dp_event.RepeatAndSelectDpEvent),
        *(events.PureDpEvent, events.PaddedDpEvent),
        *(events.ShuffledDpEvent, events.SkellamDpEvent),
    )
    return {kind.__name__: kind for kind in kinds}
