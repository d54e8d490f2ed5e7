"""A method's releases as terms of a ledger, and what a ledger has spent as statements.

releases_of(method, plan)  before: what will be seen, by two operators or by one
terms_of(method, plan)     what a client agrees to
caps_of(plan, group, …)    the group's target, as a cap that clients keep
statements(ledger)         after: what a real client's releases amount to
run_statements(terms, …)   the same for a client that took part in these rounds
statements_of(taken, …)    the same for several runs, such as training and serving
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.ledger.budget import Cap, Taken, counted, made
from tacit.ledger.durable import ClientLedger
from tacit.ledger.terms import Terms
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import (
    CELLS,
    EVERYONE,
    Adjacency,
    Cell,
    CellName,
    Release,
    Standing,
    View,
    of_one_operator,
)
from tacit.statement import (
    MOST_LOCAL_DELTA,
    Statement,
    figure,
    joined,
    most_delta,
    only_channel,
)


def releases_of(
    method: Method,
    plan: Plan,
    *,
    assumes: Collection[Code] = (),
    one_operator: str = "",
) -> tuple[Release, ...]:
    """What will be seen of a client, by whom, under which guarantee.

    `one_operator` is the code that says why one machine sees what two operators see
    together: simulation, invitation and client ask here, so that none forgets it.
    `assumes` are codes under which every release stands besides.
    """
    releases = (*plan.before, *method.releases(plan))
    if assumes:
        releases = tuple(one.assuming(*assumes) for one in releases)
    return of_one_operator(releases, one_operator) if one_operator else releases


def terms_of(
    method: Method,
    plan: Plan,
    *,
    group: str | None = None,
    releases: tuple[Release, ...] | None = None,
) -> Terms:
    """What a client of this public group agrees to; by default the only group."""
    group = _group(plan, group)
    made = releases_of(method, plan) if releases is None else releases
    return Terms(
        tuple(r for r in made if r.group in (group, EVERYONE)),
        rounds=plan.rounds,
        most=plan.sampler.most_participations(plan),
        population=plan.population,
        group=group,
        total_multiplier=method.total_multiplier(group),
    )


def caps_of(plan: Plan, group: str, *, one_operator: str = "") -> tuple[Cap, ...]:
    """The group's target, as every client keeps it: for a user, in the plan's view.

    A target in the server's view is for two operators. Where `one_operator` says why
    one of them sees what both see, nothing is promised in that view, and the target is
    kept in that of readers.
    """
    target = plan.target_of(group)
    if target is None:
        return ()
    delta = 0.0 if plan.delta is None else plan.delta
    view = View.RELEASE if one_operator else plan.calibrated_view
    return (Cap(target, delta, view=view),)


def statements(ledger: ClientLedger) -> tuple[Statement, ...]:
    """One statement per unit and view, at the delta of the owner's cap if any.

    Without a cap, or if its delta is too large for a guarantee, a usual delta is taken.
    A ledger in doubt proves nothing.
    """
    # What a doubtful file says may be less than what was sent: no figure is shown.
    if (doubt := ledger.doubt) is not None:
        reason = f"the ledger is in doubt: {doubt}"
        return tuple(_unproven(name, reason) for name in CELLS)
    taken = ledger.taken()
    deltas = {cap.cell: cap.delta for cap in ledger.caps()}
    return tuple(
        _line(
            taken,
            name,
            delta=_shown_delta(taken, name, deltas.get(name)),
            prefers_pure=False,
        )
        for name in CELLS
    )


def run_statements(
    terms: Terms, rounds: Collection[int], *, delta: float | None
) -> list[Statement]:
    """The statements of a client that took part in these rounds of one run.

    They are at the plan's delta and by the plan's rules: for a client that took part as
    often as any can, they are the plan's own.
    """
    return [_line([(terms, rounds)], name, delta=delta) for name in CELLS]


def statements_of(taken: Taken, *, what: str) -> tuple[Statement, ...]:
    """The statements of a client that took part in these rounds of several runs.

    They are at a usual delta, or without one where that costs next to nothing.
    """
    return tuple(
        replace(
            _line(
                taken,
                name,
                delta=_shown_delta(taken, name, None),
                prefers_pure=False,
            ),
            what=what,
        )
        for name in CELLS
    )


def _group(plan: Plan, group: str | None) -> str:
    if group is None and len(plan.groups) == 1:
        return next(iter(plan.groups))
    if group is None or group not in plan.groups:
        raise BadValue(f"group {check.unknown(str(group), plan.groups)}")
    return group


def _line(
    taken: Taken, name: CellName, *, delta: float | None, prefers_pure: bool = True
) -> Statement:
    taken = [(terms, rounds) for terms, rounds in taken if rounds]
    found = figure(
        lambda other: _cells(taken, other),
        name,
        delta=delta,
        n_users=_most_users(taken),
        prefers_pure=prefers_pure,
    )
    unit, view = name
    claims = [(cell.published_epsilon, n) for _, cell, n in made(taken, name)]
    return Statement(
        what="everything so far",
        seen_by=joined(release.seen_by for release, _, _ in made(taken, name)),
        group=_groups(taken),
        unit=unit,
        adjacency=found.adjacency,
        view=view,
        delta=found.delta,
        horizon=_horizon(taken),
        accountant=found.accountant,
        standing=found.standing,
        assumes=found.assumes,
        epsilon=found.epsilon,
        reason=found.reason,
        channel=only_channel(release for release, _, _ in made(taken, name)),
        # Of several releases together a paper claims nothing.
        published_epsilon=claims[0][0] if [n for _, n in claims] == [1] else None,
    )


def _groups(taken: Taken) -> str:
    """The public groups that a client was in; what is alike for all names none."""
    named = (terms.group for terms, _ in taken if terms.group != EVERYONE)
    return joined(named) or EVERYONE


def _unproven(name: CellName, reason: str) -> Statement:
    unit, view = name
    return Statement(
        what="everything so far",
        seen_by="not known",
        group=EVERYONE,
        unit=unit,
        adjacency=Adjacency.ZERO_OUT,
        view=view,
        delta=None,
        horizon="not known",
        accountant="none",
        standing=Standing.NONE,
        assumes="nothing",
        epsilon=None,
        reason=reason,
    )


def _cells(taken: Taken, name: CellName) -> list[Cell]:
    """The cell of each release so far, with the event of all its participations."""
    return [counted(cell, times) for _, cell, times in made(taken, name)]


def _shown_delta(taken: Taken, name: CellName, wanted: float | None) -> float:
    """The delta wanted, if it is small enough to be called a guarantee."""
    most = most_delta(_cells(taken, name), _most_users(taken))
    usual = min(most, MOST_LOCAL_DELTA)
    return usual if wanted is None or wanted > most else wanted


def _most_users(taken: Taken) -> int:
    # A delta is compared with 1 / users; the largest run makes the strictest demand.
    return max((terms.population for terms, _ in taken), default=1)


def _horizon(taken: Taken) -> str:
    """The messages so far, and the most that were agreed."""
    so_far = sum(len(rounds) for _, rounds in taken)
    agreed = sum(terms.most for terms, _ in taken)
    messages = "1 message" if so_far == 1 else f"{so_far} messages"
    runs = "1 run" if len(taken) == 1 else f"{len(taken)} runs"
    return f"for {messages} in {runs}, of at most {agreed} agreed"
