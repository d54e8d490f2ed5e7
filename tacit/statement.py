"""The account of a plan in printed lines: all fields of a figure, or no figure.

An unprovable number is None with the reason; a paper's own stands under
`published_epsilon` and is never called epsilon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tacit import check
from tacit.errors import BadValue
from tacit.plan import Plan
from tacit.release import Adjacency, Cell, Release, Standing, Unit, View
from tacit.sampling import EVERYONE


@dataclass(frozen=True)
class Statement:
    """One line of the account; `epsilon` is None where nothing is provable."""

    what: str
    seen_by: str
    group: str
    unit: Unit
    adjacency: Adjacency
    view: View
    delta: float | None
    horizon: str
    accountant: str
    standing: Standing
    assumes: str
    epsilon: float | None
    reason: str


@dataclass(frozen=True)
class Account:
    """Every release and every total of a plan."""

    releases: tuple[Statement, ...]
    totals: tuple[Statement, ...]


def account(plan: Plan, releases: tuple[Release, ...], *, runs: int = 1) -> Account:
    """Say what each release and all of them together reveal.

    The total of a cell is unprotected as soon as one of its releases is. Where some
    releases concern one group only, each group's total has them and the common ones.
    """
    check.at_least(1, runs=runs)
    groups = _groups(plan, releases)
    lines = [
        _statement(plan, release, cell, unit=unit, view=view, runs=runs)
        for release in releases
        for (unit, view), cell in release.cells.items()
    ]
    totals = [
        _total(group, [s for s in lines if (s.unit, s.view) == (unit, view)])
        for group in groups
        for unit in Unit
        for view in View
    ]
    return Account(tuple(lines), tuple(totals))


def _groups(plan: Plan, releases: tuple[Release, ...]) -> list[str]:
    """The groups that have a total: the plan's own if a release names one."""
    named = dict.fromkeys(release.group for release in releases)
    if named.keys() <= {EVERYONE}:
        return [*named]
    for group in named:
        if group not in (EVERYONE, *plan.groups):
            raise BadValue(f"group {check.unknown(group, plan.groups)}")
    return [g for g in plan.groups if g in named or EVERYONE in named]


def _statement(
    plan: Plan, release: Release, cell: Cell, *, unit: Unit, view: View, runs: int
) -> Statement:
    if cell.event is not None:
        raise BadValue(
            f"release '{release.what}' carries an event, and this version has no "
            "accountant to turn it into an epsilon; declare it unprotected"
        )
    again = "" if runs == 1 else f", {runs} runs"
    return Statement(
        what=release.what,
        seen_by=release.seen_by,
        group=release.group,
        unit=unit,
        adjacency=cell.adjacency,
        view=view,
        delta=plan.delta,
        horizon=f"{release.when}, {plan.rounds} rounds planned{again}",
        accountant="none",
        standing=cell.standing,
        assumes=cell.assumes,
        epsilon=None,
        reason=cell.reason,
    )


def _total(group: str, lines: list[Statement]) -> Statement:
    """All lines of one unit and view that concern a group, as one."""
    mine = [line for line in lines if line.group in (group, EVERYONE)]
    return replace(
        mine[0],
        what="everything",
        group=group,
        seen_by=_joined(line.seen_by for line in mine),
        horizon=_joined(line.horizon for line in mine),
        assumes=_joined(line.assumes for line in mine),
        reason=_joined(line.reason for line in mine),
    )


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
