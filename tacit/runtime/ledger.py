"""A method's releases as terms of a ledger, and what a ledger has spent as statements.

terms_of(method, plan)     before: what a device agrees to
caps_of(plan, group)       the group's target, as a cap that devices keep
statements(ledger)         after: what a real device's releases amount to
run_statements(terms, …)   the same for a device that took part in these rounds
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tacit import check
from tacit.errors import BadValue
from tacit.ledger.budget import Cap, Spent, Taken, made, spent
from tacit.ledger.durable import DeviceLedger
from tacit.ledger.terms import Terms
from tacit.method import Method
from tacit.plan import Plan
from tacit.release import (
    CELLS,
    EVERYONE,
    Adjacency,
    CellName,
    Release,
    Standing,
    View,
)
from tacit.statement import MOST_CENTRAL_DELTA, MOST_LOCAL_DELTA, Statement

_NEARLY = 1.01  # a pure figure this close is worth more than one with a delta


def terms_of(
    method: Method,
    plan: Plan,
    *,
    group: str | None = None,
    releases: tuple[Release, ...] | None = None,
) -> Terms:
    """What a device of this public group agrees to; by default of the only group."""
    group = _group(plan, group)
    made = (*plan.before, *method.releases(plan)) if releases is None else releases
    return Terms(
        tuple(r for r in made if r.group in (group, EVERYONE)),
        rounds=plan.rounds,
        most=plan.sampler.most_participations(plan),
        population=plan.population,
        group=group,
        total_multiplier=method.total_multiplier(group),
    )


def caps_of(plan: Plan, group: str) -> tuple[Cap, ...]:
    """The group's target, as every device keeps it: for a user, in the release view."""
    target = plan.target_of(group)
    if target is None:
        return ()
    delta = 0.0 if plan.delta is None else plan.delta
    return (Cap(target, delta, view=View.RELEASE),)


def statements(ledger: DeviceLedger) -> tuple[Statement, ...]:
    """A line for each unit and view, at the delta of the owner's cap if any."""
    taken = ledger.taken()
    deltas = {cap.cell: cap.delta for cap in ledger.caps()}
    return tuple(_line(taken, name, delta=deltas.get(name)) for name in CELLS)


def run_statements(
    terms: Terms, rounds: Collection[int], *, delta: float | None
) -> list[Statement]:
    """The lines of a device that took part in these rounds of one run."""
    return [_line([(terms, rounds)], name, delta=delta) for name in CELLS]


def _group(plan: Plan, group: str | None) -> str:
    if group is None and len(plan.groups) == 1:
        return next(iter(plan.groups))
    if group is None or group not in plan.groups:
        raise BadValue(f"group {check.unknown(str(group), plan.groups)}")
    return group


def _line(taken: Taken, name: CellName, *, delta: float | None) -> Statement:
    taken = [(terms, rounds) for terms, rounds in taken if rounds]
    found, delta = _figure(taken, name, delta=_told_delta(taken, name, delta))
    counted = [*made(taken, found.cell)]
    held = [cell for _, cell, _ in counted]
    bare = [cell for cell in held if not cell.is_proven]
    assumed = [c.assumes for c in held if c.is_proven and c.assumes != "nothing"]
    unit, view = name
    return Statement(
        what="everything so far",
        seen_by=_joined(release.seen_by for release, _, _ in counted),
        group=_joined(terms.group for terms, _ in taken) or EVERYONE,
        unit=unit,
        adjacency=Adjacency(found.adjacency),
        view=view,
        delta=delta,
        horizon=_horizon(taken),
        accountant=found.accountant,
        standing=Standing.NONE if found.value is None else Standing.PROVEN,
        assumes=_joined(assumed) or "nothing",
        epsilon=found.value,
        reason=_joined(cell.reason for cell in bare or held) or "nothing was said",
    )


def _figure(taken: Taken, name: CellName, *, delta: float) -> tuple[Spent, float]:
    """What is spent, and at which delta: at none, where that costs next to nothing."""
    found, pure = (spent(taken, name, delta=d) for d in (delta, 0.0))
    if pure.value is not None and pure.value <= _NEARLY * (found.value or 0.0):
        return pure, 0.0
    return found, delta


def _told_delta(taken: Taken, name: CellName, wanted: float | None) -> float:
    """The delta wanted, if it is small enough to be called a guarantee."""
    held = [cell for _, cell, _ in made(taken, name) if cell.is_proven]
    is_central = any(cell.adjacency is Adjacency.ZERO_OUT for cell in held)
    shares = [0.1 / terms.population for terms, _ in taken]
    most = min([MOST_CENTRAL_DELTA, *shares]) if is_central else MOST_LOCAL_DELTA
    usual = min(most, MOST_LOCAL_DELTA)
    return usual if wanted is None or wanted > most else wanted


def _horizon(taken: Taken) -> str:
    """How much is covered: so far, and at the most by what was agreed."""
    so_far = sum(len(rounds) for _, rounds in taken)
    agreed = sum(terms.most for terms, _ in taken)
    runs = "1 run" if len(taken) == 1 else f"{len(taken)} runs"
    return f"{so_far} participations in {runs}, of at most {agreed} agreed"


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
