"""Events to epsilon, by privacy loss distribution.

    epsilon(event, delta=1e-6, adjacency="zero_out")
    compose([(training, "zero_out"), (ratings, "replace_one")], delta=1e-6)

Figures are upper bounds. A finer grid lowers them a little and costs time, so the grid
is refined only until it no longer matters: a 1e-4 step for epsilons of everyday size,
coarser ones where epsilon is in the hundreds and means nothing anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import check
from tacit.accounting.decomposition import (
    REPLACE_ONE,
    ZERO_OUT,
    Part,
    Parts,
    delta_left,
    distance,
    take_apart,
    without_failures,
)
from tacit.accounting.pld import has_loss, largest_loss, loss
from tacit.accounting.profiles import gaussian_epsilon
from tacit.accounting.rdp import parts_rdp_epsilon
from tacit.errors import BadValue, Refused

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

GRID = 1e-4  # the finest step between losses; the library's own default
LEAST_DELTA = 1e-10  # below it the rounding errors of a convolution are no longer small
_LEAST_LEFT = 0.99 * LEAST_DELTA  # of it, after what a cipher takes (`proven`)

# A grid is fine enough once epsilon is above this many of its steps.
_STEPS_ENOUGH = 1e5
_MOST_POINTS = 3e6  # of the grid of one release; more take too long to convolve
_MOST_ANSWERS = 4096  # kept in memory; then all are forgotten
_answers: dict[object, Epsilon] = {}  # to the questions of `compose_once`
# Tried from the coarsest, until one is fine enough for the epsilon it gives.
_GRIDS = (100.0, 10.0, 1.0, 1e-1, 1e-2, 1e-3, GRID)


@dataclass(frozen=True)
class Epsilon:
    """A provable figure and how it was reached; None where nothing is provable."""

    value: float | None
    accountant: str  # "PLD", "RDP", "basic composition" or "none"
    adjacency: str


def epsilon(
    event: DpEvent, *, delta: float, adjacency: str = ZERO_OUT, finest: float = GRID
) -> Epsilon:
    """The tightest epsilon we can prove for an event; `delta=0` asks for a pure one.

    An event that cannot be accounted for under this adjacency is refused, with the
    reason; it is never approximated.
    """
    return compose(
        [(event, adjacency)], delta=delta, adjacency=adjacency, finest=finest
    )


def compose(
    releases: Iterable[tuple[DpEvent, str]],
    *,
    delta: float,
    adjacency: str | None = None,
    finest: float = GRID,
) -> Epsilon:
    """The epsilon of several releases about the same user, each with its adjacency.

    A local release under `replace_one` counts in a `zero_out` total as it is: an empty
    contribution is one of those it could be exchanged for. Not the reverse, and not for
    samples of fixed size. Without `adjacency`, the total's is the strongest that holds.
    """
    releases = list(releases)
    _check_delta(delta)
    held = {str(one) for _, one in releases}
    total = _total_adjacency(held, adjacency)
    parts = take_apart(releases)
    if parts is None:
        return Epsilon(None, "none", total)
    if total == ZERO_OUT:
        _refuse_central_exchanges(parts)
    value, accountant = _best(parts, delta, finest)
    if value == math.inf:
        return Epsilon(None, "none", total)
    return Epsilon(value, accountant, total)


def compose_once(releases: Iterable[tuple[DpEvent, str]], *, delta: float) -> Epsilon:
    """`compose`, but each distinct question is answered once in a process.

    Plans, cards and ledgers repeat their questions: a view that has the events of
    another, a total of one release, a round that costs what the last one did.
    """
    releases = list(releases)
    parts = take_apart(releases)
    held = frozenset(str(adjacency) for _, adjacency in releases)
    if not delta and parts and any(pure_epsilon(part) == math.inf for part in parts):
        return Epsilon(None, "none", _total_adjacency({*held}, None))
    question = None if parts is None else frozenset(parts.items()), held, delta
    if question not in _answers:
        if len(_answers) >= _MOST_ANSWERS:
            _answers.clear()
        _answers[question] = compose(releases, delta=delta)
    return _answers[question]


def _check_delta(delta: float) -> None:
    if delta == 0:
        return
    check.fraction(delta=delta, remedy="use 0 for pure epsilon")
    if delta < _LEAST_LEFT:
        raise BadValue(
            f"delta={delta} must be 0 or >= {LEAST_DELTA}; smaller ones are lost in "
            "rounding errors"
        )


def _total_adjacency(held: set[str], wanted: str | None) -> str:
    for one in held:
        check.one_of((ZERO_OUT, REPLACE_ONE), adjacency=one)
    if wanted is None:
        return REPLACE_ONE if held == {REPLACE_ONE} else ZERO_OUT
    check.one_of((ZERO_OUT, REPLACE_ONE), adjacency=wanted)
    if wanted == REPLACE_ONE and ZERO_OUT in held:
        raise Refused(
            "a zero_out release says nothing of an exchange, so it cannot be part of a "
            "replace_one total; ask for a zero_out total"
        )
    return str(wanted)


def _refuse_central_exchanges(parts: Parts) -> None:
    """Only what a client releases by itself has zero among its inputs for sure."""
    from tacit.accounting import dp_events as dp
    from tacit.accounting.events import PaddedDpEvent, PureDpEvent, ShuffledDpEvent

    local = (
        *(dp.GaussianDpEvent, dp.LaplaceDpEvent),  # Gaussians are merged by now
        dp.ZCDpEvent,
        *(PureDpEvent, PaddedDpEvent, ShuffledDpEvent),
    )
    for part in parts:
        if part.adjacency == REPLACE_ONE and not isinstance(part.event, local):
            raise Refused(
                f"{type(part.event).__name__} under replace_one is not local, so it "
                "cannot be part of a zero_out total; state it under zero_out"
            )


def _best(parts: Parts, delta: float, finest: float) -> tuple[float, str]:
    """The least of the bounds that hold, and its name."""
    if delta:
        parts, failure = without_failures(parts)
        delta = delta_left(delta, failure)
    # Basic composition: pure epsilons add (Dwork et al. 2006).
    simple = sum(count * pure_epsilon(part) for part, count in parts.items())
    if delta < _LEAST_LEFT or not parts:
        return simple, "basic composition"
    if all(map(has_loss, parts)):
        value, accountant = _by_loss(tuple(parts.items()), delta, finest), "PLD"
    else:
        value, accountant = parts_rdp_epsilon(parts, delta=delta), "RDP"
    return (simple, "basic composition") if simple < value else (value, accountant)


def pure_epsilon(part: Part) -> float:
    """The epsilon of one release at delta 0; infinite for Gaussian noise."""
    from tacit.accounting import dp_events as dp
    from tacit.accounting.events import PureDpEvent, ShuffledDpEvent

    event: Any = part.event
    if isinstance(event, PureDpEvent | ShuffledDpEvent):  # shuffling never hurts
        return float(event.epsilon)
    if isinstance(event, dp.LaplaceDpEvent):
        return distance(part.adjacency) / float(event.noise_multiplier)
    return math.inf


@lru_cache(maxsize=512)  # units and views of a plan share most of their events
def _by_loss(items: tuple[tuple[Part, int], ...], delta: float, finest: float) -> float:
    from tacit.accounting import dp_events as dp

    parts = dict(items)
    [*events] = (part.event for part in parts)
    if len(events) == 1 and isinstance(events[0], dp.GaussianDpEvent):
        return gaussian_epsilon(float(events[0].noise_multiplier), delta=delta)
    value, most = math.inf, max(map(largest_loss, parts), default=0.0)
    for grid in _GRIDS:
        coarser, value = value, min(value, _on_grid(parts, delta, grid))
        if (
            grid <= finest
            or _is_fine_enough(grid, coarser=coarser, value=value)
            or most > _MOST_POINTS * grid / 10
        ):
            break
    return value


def _is_fine_enough(grid: float, *, coarser: float, value: float) -> bool:
    """Whether a grid ten times finer would change the figure by next to nothing."""
    if value in (0.0, math.inf):
        return value == 0
    if value > _STEPS_ENOUGH * grid:
        return True
    return grid <= 1e-3 and coarser - value < 1e-3  # the next gain is at most a tenth


def _on_grid(parts: Parts, delta: float, grid: float) -> float:
    # A ratio beyond all floats is infinite: then basic composition has the last word.
    with np.errstate(over="ignore"):
        return float(loss(parts, grid=grid).get_epsilon_for_delta(delta))
