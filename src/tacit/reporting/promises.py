"""What is promised against each group of observers, for terminals and cards alike.

It says what the account says, sorted for a reader: a figure that may be called epsilon,
what it means, and the terms on which it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tacit.release import Standing, Unit, View
from tacit.reporting.plain_words import (
    about,
    meaning,
    observers,
    paper_claim,
    rounded_up,
    without_figure,
)
from tacit.reporting.tables import merged
from tacit.statement import Statement


@dataclass(frozen=True)
class Promise:
    """What some observers can learn at most; `epsilon` is None if nothing is proven."""

    observers: str
    standing: Standing
    epsilon: float | None
    meaning: str  # for a line that is not proven, the reason
    terms: tuple[str, ...] = ()

    @property
    def figure(self) -> str:
        """The epsilon, rounded up, or that there is none."""
        if self.epsilon is None:
            return without_figure(self.standing)
        return f"epsilon {rounded_up(self.epsilon)}"

    @property
    def worth(self) -> str:
        """The standing, where the figure does not say it already."""
        says_it = self.standing in (Standing.NONE, Standing.NOTHING)
        return "" if says_it else str(self.standing)


def promises(statements: Sequence[Statement]) -> Iterator[Promise]:
    """One promise per group of observers with the same figure; about users first."""
    found = [*merged(statements)]
    for line, _, views in sorted(found, key=lambda one: Unit.USER not in one[1]):
        yield _promise(line, [view for view in View if view in views])


def largest(statements: Sequence[Statement]) -> Promise | None:
    """The weakest promise that is proven for a user's whole history, if there is one.

    Observers without a proof are named by the other promises, not by this one.
    """
    mine = [line for line in statements if line.unit is Unit.USER]
    proven = [one for one in promises(mine) if one.epsilon is not None]
    return max(proven, key=lambda one: one.epsilon or 0.0, default=None)


def _promise(line: Statement, views: Sequence[View]) -> Promise:
    seen, claim = observers(views, line), paper_claim(line)
    claims = () if claim is None else (claim,)
    if not line.standing.has_epsilon or line.epsilon is None:
        return Promise(seen, line.standing, None, line.reason, claims)
    assumed = () if line.assumes == "nothing" else (f"assumes: {line.assumes}",)
    # What holds for a whole history holds for each item, so the unit is that of `line`.
    terms = (_terms(line), f"rests on: {line.reason}", *assumed, *claims)
    return Promise(seen, line.standing, line.epsilon, meaning(line), terms)


def _terms(line: Statement) -> str:
    """What a proven figure is about: the unit, its neighbors, delta and horizon."""
    return f"{about(line)}; delta {line.delta or 0:g}; {line.horizon}"
