"""What a client agrees to for one run: its releases, when they are made, how often.

Terms are written as JSON text; equal terms have equal texts. Texts of the first format,
which had its own words for cells, are still read: what was said under them counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import check
from tacit.accounting.serialization import (
    agreed_release,
    event_from_json,
    release_from_json,
    release_to_json,
)
from tacit.codes import earlier_assumptions
from tacit.errors import BadData, BadValue
from tacit.release import (
    EVERYONE,
    Adjacency,
    Cell,
    Release,
    Standing,
    Unit,
    View,
    stretches,
)


@dataclass(frozen=True)
class Terms:
    """All that a client agrees to when it joins a run.

    Where a method chooses its phases as it goes, `total_multiplier` is the noise
    multiplier of the one Gaussian release that the whole run amounts to: whatever is
    chosen, the client answers only while the sum of 1/z² over its rounds stays below
    1/total_multiplier².
    """

    releases: tuple[Release, ...]
    rounds: int = 1  # planned; what is published was accounted for these and no more
    most: int = 1  # rounds one client takes part in at the most
    population: int = 1
    group: str = EVERYONE  # the client's public group
    total_multiplier: float | None = None
    agreement: str = (
        ""  # the digest of what broadcasts and method were agreed, if known
    )

    def __post_init__(self) -> None:
        check.count(rounds=self.rounds, most=self.most, population=self.population)
        if self.total_multiplier is not None:
            check.positive(total_multiplier=self.total_multiplier)
        names = [release.what for release in self.releases]
        if len(set(names)) < len(names):
            raise BadValue(f"two releases have one name: {', '.join(names)}")
        for part in stretches(self.rounds, (one.rounds for one in self.releases)):
            made = [one.is_made_in(part.start) for one in self.releases]
            if made and not any(made):
                raise BadValue(
                    f"round {part.start} has none of the releases: {', '.join(names)}; "
                    "what is said there would not be counted"
                )


def write_terms(terms: Terms) -> str:
    """The canonical JSON text of these terms; equal terms have equal texts."""
    return _text(terms, release_to_json)


def agreed_terms(terms: Terms) -> str:
    """A text that is equal where the same is agreed, whatever sentences say it."""
    return _text(terms, agreed_release)


def _text(terms: Terms, written: Callable[[Release], dict[str, Any]]) -> str:
    document = vars(terms) | {"releases": [written(one) for one in terms.releases]}
    return json.dumps(document, sort_keys=True, ensure_ascii=False)


def read_terms(text: str, *, file: Path | str = "terms") -> Terms:
    """The terms of a text that `write_terms` wrote, now or in its first format.

    `file` is where the text stands, for the message that refuses another one.
    """
    try:
        return _terms(json.loads(text))
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        said = f"the terms of a run cannot be read: {error!r}"
        raise BadData(file, None, said) from error


def _terms(document: dict[str, Any]) -> Terms:
    if "charges" in document:
        old = document.pop("charges")
        return Terms(tuple(_first_format(one) for one in old), **document)
    releases = tuple(release_from_json(one) for one in document.pop("releases"))
    return Terms(releases, **document)


def _first_format(document: Mapping[str, Any]) -> Release:
    cells = {
        (Unit(one["unit"]), View(one["view"])): _first_cell(one)
        for one in document["promises"]
    }
    rounds = document.get("rounds")
    made = None if rounds is None else range(*rounds)
    return Release(document["what"], document["seen_by"], "", cells, rounds=made)


def _first_cell(document: Mapping[str, Any]) -> Cell:
    event = event_from_json(document["event"])
    if event is None:
        return Cell.none("earlier_reason", document["reason"])
    return Cell(
        Standing.PROVEN,
        document["reason"],
        event,
        Adjacency(document["adjacency"]),
        earlier_assumptions(document["assumes"]),
        each=event if document["covers"] == "round" else None,
    )
