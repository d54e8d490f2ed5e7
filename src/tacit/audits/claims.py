"""What a method's own releases promise, read from their events.

The audit takes nothing from a method's settings: mu and epsilon come from the events
that the ledger composes, for a plan in which everyone is asked in every round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.accounting.decomposition import merged_multiplier
from tacit.accounting.epsilon import compose
from tacit.errors import Refused
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import EVERYONE, Adjacency, Cell, Unit, View

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class Claims:
    """What can be audited of a method under a plan, and what cannot."""

    mu: float | None  # of all noisy sums together: contributions over noise
    report_epsilon: float | None  # of one report that its client protects; pure
    report_mu: float | None  # the same, where the client adds Gaussian noise
    others: tuple[str, ...]  # releases that are not audited, each with the reason


def read_claims(method: Method, plan: Plan, *, group: str = EVERYONE) -> Claims:
    """The claims about a member of `group` who takes part in every round.

    Of reports that clients protect themselves, each costs the same.
    """
    releases = [r for r in method.releases(plan) if r.group in (group, EVERYONE)]
    cells = [(release, release.cells[Unit.USER, View.RELEASE]) for release in releases]
    others = tuple(f"{r.what}: {c.reason}" for r, c in cells if not _is_proven(c))
    proven = [(release, cell) for release, cell in cells if _is_proven(cell)]
    sums = [c.event for _, c in proven if c.adjacency is Adjacency.ZERO_OUT]
    reports = [(r, c) for r, c in proven if c.adjacency is Adjacency.REPLACE_ONE]
    if sums:
        beside = [f"{r.what}: stands beside noisy sums" for r, _ in reports]
        return Claims(_mu(sums), None, None, (*others, *beside))
    exchanged = [cell.event for _, cell in reports]
    epsilon = _pure(exchanged)
    if epsilon is not None:
        return Claims(None, epsilon / plan.rounds, None, others)
    # Under replace_one two contributions are up to two bounds apart.
    mu = 2 * _mu(exchanged) / math.sqrt(plan.rounds) if exchanged else None
    return Claims(None, None, mu, others)


def _is_proven(cell: Cell) -> bool:
    return cell.has_epsilon


def _mu(events: Sequence[DpEvent]) -> float:
    """The mu of Gaussian releases together; other noise has no audit here."""
    squares = [merged_multiplier(event, "an audit") ** -2 for event in events]
    return math.sqrt(sum(squares))


def _pure(events: Sequence[DpEvent]) -> float | None:
    if not events:
        return None
    try:
        exchanged = [(event, str(Adjacency.REPLACE_ONE)) for event in events]
        return compose(exchanged, delta=0.0).value
    except Refused:
        return None
