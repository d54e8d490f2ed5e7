"""What is promised against each group of observers, as data for cards on a page.

It says what the account says, sorted for a reader: a figure that may be called epsilon,
what it means, and the terms on which it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tacit.release import EVERYONE, Standing, Unit, View
from tacit.reporting.guarantees import rounded_up, sentence, terms
from tacit.reporting.plain_words import meaning, paper_claim, without_figure
from tacit.reporting.tables import merged
from tacit.statement import Statement

_OBSERVERS = {
    (View.RELEASE, View.SERVER): "The server, and everyone who sees the model",
    (View.RELEASE,): "Everyone who sees the model",
    (View.SERVER,): "The server",
    (View.COLLUSION,): "The server together with whoever relays or adds reports",
    (View.SERVER, View.COLLUSION): "The server, also together with whoever relays",
    (View.RELEASE, View.COLLUSION): "Everyone who sees the model, and who colludes",
    (View.RELEASE, View.SERVER, View.COLLUSION): "Everyone, whoever works together",
}
_UNITS = {
    (Unit.USER,): "a user's whole history",
    (Unit.ITEM,): "one item of a history",
    (Unit.USER, Unit.ITEM): "a user's whole history",  # and so also any item of it
}


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
        return f"ε {rounded_up(self.epsilon)}"


def promises(statements: Sequence[Statement]) -> Iterator[Promise]:
    """One promise per group of observers that are told the same; about users first."""
    found = [*merged(statements)]
    for said, units, views in sorted(found, key=lambda one: Unit.USER not in one[1]):
        # In the order of the tables above, however a document lists them.
        ordered = tuple(unit for unit in Unit if unit in units)
        yield _promise(said, ordered, tuple(view for view in View if view in views))


def largest(statements: Sequence[Statement]) -> Promise | None:
    """The weakest promise that is proven for a user's whole history, if there is one.

    Whoever is not covered by a proof is named by the other promises, not by this one.
    """
    mine = [said for said in statements if said.unit is Unit.USER]
    proven = [one for one in promises(mine) if one.epsilon is not None]
    return max(proven, key=lambda one: one.epsilon or 0.0, default=None)


def _promise(
    said: Statement, units: tuple[Unit, ...], views: tuple[View, ...]
) -> Promise:
    observers = _OBSERVERS[views]
    if said.group != EVERYONE:
        observers += f", about users of group '{said.group}'"
    unit = _UNITS[units]
    claim = paper_claim(said)
    if not said.standing.has_epsilon or said.epsilon is None:
        reason = f"{said.reason}; {claim}" if claim else said.reason
        return Promise(observers, said.standing, None, sentence(reason))
    about = f"For {terms(said, unit)}."
    assumed = "" if said.assumes == "nothing" else f" Assumes: {said.assumes}."
    grounds = f"Rests on: {said.reason}.{assumed}"
    means = sentence(meaning(said))
    below = (about, grounds, *([sentence(claim)] if claim else []))
    return Promise(observers, said.standing, said.epsilon, means, below)
