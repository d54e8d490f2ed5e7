"""A method's releases as terms of a ledger, and what a ledger has spent as statements.

terms_of(method, plan)     before: what a device agrees to
caps_of(plan)              the plan's target, as a cap that devices keep
statements(ledger)         after: what a real device's releases amount to
run_statements(terms, …)   the same for a device that took part in these rounds
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tacit import check
from tacit.errors import BadValue
from tacit.ledger.durable import DeviceLedger
from tacit.ledger.spending import Cap, Spent, Taken, made, spent
from tacit.ledger.terms import PLACES, Charge, Place, Promise, Terms
from tacit.method import Method
from tacit.plan import Plan
from tacit.release import Adjacency, Cell, Release, Standing, Unit, View
from tacit.sampling import EVERYONE
from tacit.statement import MOST_CENTRAL_DELTA, MOST_LOCAL_DELTA, Statement

_NEARLY = 1.01  # a pure figure this close is worth more than one with a delta


def terms_of(method: Method, plan: Plan, *, group: str | None = None) -> Terms:
    """What a device of this public group agrees to; by default of the only group."""
    group = _group(plan, group)
    mine = [r for r in method.releases(plan) if r.group in (group, EVERYONE)]
    return Terms(
        tuple(_charge(release) for release in mine),
        rounds=plan.rounds,
        most=plan.sampler.most_participations(plan),
        population=plan.population,
        group=group,
    )


def caps_of(plan: Plan) -> tuple[Cap, ...]:
    """The plan's target, as every device keeps it: for a user, in the release view."""
    if plan.target_epsilon is None:
        return ()
    delta = 0.0 if plan.delta is None else plan.delta
    return (Cap(plan.target_epsilon, delta, view=View.RELEASE),)


def statements(ledger: DeviceLedger) -> tuple[Statement, ...]:
    """A line for each unit and view, at the delta of the owner's cap if any."""
    taken = ledger.taken()
    deltas = {cap.place: cap.delta for cap in ledger.caps()}
    return tuple(_line(taken, place, delta=deltas.get(place)) for place in PLACES)


def run_statements(
    terms: Terms, rounds: Collection[int], *, delta: float | None
) -> list[Statement]:
    """The lines of a device that took part in these rounds of one run."""
    return [_line([(terms, rounds)], place, delta=delta) for place in PLACES]


def _group(plan: Plan, group: str | None) -> str:
    if group is None and len(plan.groups) == 1:
        return next(iter(plan.groups))
    if group is None or group not in plan.groups:
        raise BadValue(f"group {check.unknown(str(group), plan.groups)}")
    return group


def _charge(release: Release) -> Charge:
    cells = release.cells.items()
    promises = {(str(u), str(v)): _promise(cell) for (u, v), cell in cells}
    return Charge(release.what, release.seen_by, promises, release.rounds)


def _promise(cell: Cell) -> Promise:
    """A claim that was not shown promises nothing here."""
    if cell.standing is not Standing.PROVEN:
        return Promise.nothing(cell.reason)
    return Promise(
        cell.event if cell.each is None else cell.each,
        str(cell.adjacency),
        "run" if cell.each is None else "round",
        cell.assumes,
        cell.reason,
    )


def _line(taken: Taken, place: Place, *, delta: float | None) -> Statement:
    taken = [(terms, rounds) for terms, rounds in taken if rounds]
    found, delta = _figure(taken, place, delta=_told_delta(taken, place, delta))
    counted = [*made(taken, found.place)]
    held = [promise for _, promise, _ in counted]
    bare = [promise for promise in held if promise.event is None]
    assumed = [p.assumes for p in held if p.assumes != "nothing"]
    return Statement(
        what="everything so far",
        seen_by=_joined(charge.seen_by for charge, _, _ in counted),
        group=_joined(terms.group for terms, _ in taken) or EVERYONE,
        unit=Unit(place[0]),
        adjacency=Adjacency(found.adjacency),
        view=View(place[1]),
        delta=delta,
        horizon=_horizon(taken),
        accountant=found.accountant,
        standing=Standing.NONE if found.value is None else Standing.PROVEN,
        assumes=_joined(assumed) or "nothing",
        epsilon=found.value,
        reason=_joined(p.reason for p in bare or held) or "nothing was said",
    )


def _figure(taken: Taken, place: Place, *, delta: float) -> tuple[Spent, float]:
    """What is spent, and at which delta: at none, where that costs next to nothing."""
    found, pure = (spent(taken, place, delta=d) for d in (delta, 0.0))
    if pure.value is not None and pure.value <= _NEARLY * (found.value or 0.0):
        return pure, 0.0
    return found, delta


def _told_delta(taken: Taken, place: Place, wanted: float | None) -> float:
    """The delta wanted, if it is small enough to be called a guarantee."""
    held = [promise for _, promise, _ in made(taken, place)]
    is_central = any(p.event and p.adjacency == Adjacency.ZERO_OUT for p in held)
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
