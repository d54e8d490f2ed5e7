"""The result of an attack as plain data: scores, attempts and findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tacit.plans import Plan
from tacit.release import Cells, Release, Unit, View
from tacit.statement import Statement, account


@dataclass(frozen=True)
class Score:
    """How well an attack did, between 0 and 1."""

    mean: float
    se: float | None
    chance: float  # what an attacker gets who sees nothing
    most: float | None = None  # what none can pass under the guarantee, where we know


@dataclass(frozen=True)
class Attempt:
    """One attack on what leaves under one mechanism."""

    mechanism: str
    statement: Statement  # who is promised what; may be nothing
    scores: Mapping[str, Score]  # by what they count

    @property
    def is_protected(self) -> bool:
        """Whether the mechanism is on: its statement is proven."""
        return self.statement.standing.has_epsilon

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data."""
        return {**asdict(self), "is_protected": self.is_protected}


@dataclass(frozen=True)
class Finding:
    """One leak: the question, the world, and each attempt, unprotected ones first."""

    name: str
    question: str
    source: str
    users: int
    items: int
    seed: int
    attempts: tuple[Attempt, ...]

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data; everything here is simulation."""
        attempts = [attempt.to_json() for attempt in self.attempts]
        return {**vars(self), "attempts": attempts, "simulation": True}


def stated(
    plan: Plan, cells: Cells, *, what: str, seen_by: str, view: View
) -> Statement:
    """What is promised to a user, against whoever has this view."""
    release = Release(what, seen_by, "once", cells)
    lines = account(plan, (release,)).releases
    [line] = [s for s in lines if (s.unit, s.view) == (Unit.USER, view)]
    return line
