"""What a run is going to do, fixed before anything is trained, and what it will reveal.

A `Plan` is agreed with every device at enrolment by its digest. A `Release` is one
thing that somebody gets to see, with a `Cell` for each unit and view that says under
which guarantee. A `Statement` is one printed line of the account, all fields or none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from tacit import check
from tacit.errors import BadValue
from tacit.sampling import EVERYONE, Everyone, Groups, Sampler

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class Unit(StrEnum):
    """What one person's guarantee covers."""

    USER = "user"
    ITEM = "item"  # one interaction


class View(StrEnum):
    """Whose eyes: the published models, the server, the server with the relay."""

    RELEASE = "release"
    SERVER = "server"
    COLLUSION = "collusion"


class Adjacency(StrEnum):
    """What a neighbouring data set is: a contribution removed, or exchanged."""

    ZERO_OUT = "zero_out"
    REPLACE_ONE = "replace_one"


class Standing(StrEnum):
    """How much a figure is worth."""

    PROVEN = "PROVEN"  # a theorem or test is cited
    CLAIMED = "CLAIMED"  # a paper says so, we have not shown it
    NONE = "NONE"  # no guarantee


@dataclass(frozen=True)
class Cell:
    """The guarantee of one release for one unit and view."""

    standing: Standing
    reason: str  # the theorem or test cited, or why there is no guarantee
    event: DpEvent | None = None
    adjacency: Adjacency = Adjacency.ZERO_OUT
    assumes: str = "nothing"

    def __post_init__(self) -> None:
        if (self.event is None) != (self.standing is Standing.NONE):
            raise BadValue(
                f"standing={self.standing} with event={self.event}: a guarantee needs "
                "an event, and no guarantee has none"
            )

    @classmethod
    def none(cls, reason: str) -> Cell:
        """No guarantee, and why."""
        return cls(Standing.NONE, reason)


Cells = Mapping[tuple[Unit, View], Cell]


@dataclass(frozen=True)
class Release:
    """One thing that leaves devices or is published."""

    what: str
    seen_by: str
    when: str
    cells: Cells
    group: str = EVERYONE

    def __post_init__(self) -> None:
        missing = [f"{u}/{v}" for u in Unit for v in View if (u, v) not in self.cells]
        if missing:
            raise BadValue(
                f"release '{self.what}' says nothing for {', '.join(missing)}"
            )


def unprotected(reason: str) -> Cells:
    """Cells that promise nothing, for every unit and view."""
    return {(unit, view): Cell.none(reason) for unit in Unit for view in View}


@dataclass(frozen=True)
class Plan:
    """Population, sampler, rounds and channel of a run."""

    population: int
    rounds: int = 1
    sampler: Sampler = field(default_factory=Everyone)
    channel: str = "direct"
    delta: float | None = None  # None: nothing in the plan needs one
    target_epsilon: float | None = None
    groups: Groups = field(default_factory=dict)  # public groups and their sizes
    min_contributors: int = 1  # a shuffler delivers nothing below this

    def __post_init__(self) -> None:
        check.count(population=self.population, rounds=self.rounds)
        if not self.groups:
            object.__setattr__(self, "groups", {EVERYONE: self.population})
        for group, size in self.groups.items():
            check.not_negative(remedy="", **{f"groups[{group}]": size})
        if sum(self.groups.values()) != self.population:
            raise BadValue(
                f"groups {dict(self.groups)} must add up to "
                f"population={self.population}"
            )
        check.at_least(1, min_contributors=self.min_contributors)
        if self.delta is not None:
            check.fraction(delta=self.delta)
        if self.target_epsilon is not None:
            check.positive(
                target_epsilon=self.target_epsilon,
                remedy="leave it out to train without a target",
            )
        self.sampler.expected(self)  # refuses what does not fit the population

    @property
    def cohort_size(self) -> float:
        """The planned cohort size; sums are divided by it, whoever turns up."""
        return self.sampler.expected(self)

    @property
    def digest(self) -> bytes:
        """16 bytes that change with any field; devices compare it with theirs."""
        fields = asdict(self) | {
            "sampler": [type(self.sampler).__name__, self.sampler],
            "groups": [*self.groups.items()],  # their order is what codes refer to
        }
        text = json.dumps(fields, sort_keys=True, default=_plain)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


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


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else vars(value)
