"""A finished run that another one adds to: what its server kept and what it released.

The releases stand in its ledger as events, so that a later run can compose them without
the data, the plan or the method that made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.ledger.written import (
    plain_event,
    plain_rounds,
    read_event,
    read_rounds,
)
from tacit.release import Adjacency, Cell, Release, Standing, Unit, View
from tacit.statement import Past
from tacit.tree import Arrays

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Earlier:
    """What a run starts from instead of nothing."""

    weights: Arrays
    memory: Arrays
    spent: tuple[Past, ...]  # by the run itself, last, and by those before it


def plain_past(past: Past) -> Json:
    """As a ledger writes it down."""
    releases = [_plain_release(release) for release in past.releases]
    return {"population": past.population, "releases": releases}


def read_past(document: Mapping[str, Any]) -> Past:
    """What `plain_past` wrote down."""
    releases = tuple(_read_release(one) for one in document["releases"])
    return Past(int(document["population"]), releases)


def _plain_release(release: Release) -> Json:
    cells = [
        {"unit": str(unit), "view": str(view), **_plain_cell(cell)}
        for (unit, view), cell in release.cells.items()
    ]
    return {**vars(release), "cells": cells, "rounds": plain_rounds(release.rounds)}


def _plain_cell(cell: Cell) -> Json:
    return {
        **vars(cell),
        "standing": str(cell.standing),
        "adjacency": str(cell.adjacency),
        "event": plain_event(cell.event),
        "each": plain_event(cell.each),
    }


def _read_release(document: Mapping[str, Any]) -> Release:
    cells = {
        (Unit(one["unit"]), View(one["view"])): _read_cell(one)
        for one in document["cells"]
    }
    rounds = read_rounds(document.get("rounds"))
    return Release(**{**document, "cells": cells, "rounds": rounds})


def _read_cell(document: Mapping[str, Any]) -> Cell:
    own = {key: v for key, v in document.items() if key not in ("unit", "view")}
    return Cell(
        **{
            **own,
            "standing": Standing(own["standing"]),
            "adjacency": Adjacency(own["adjacency"]),
            "event": read_event(own["event"]),
            "each": read_event(own["each"]),
        }
    )
