"""Rows and claims from trials: budgets, what stands beside, paired differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from tacit.accounting.epsilon import epsilon
from tacit.evaluation.significance import Difference, paired_bootstrap
from tacit.keys import Key
from tacit.release import Adjacency, Unit, View
from tacit.reproduction.fmf_ldp.benches import Bench
from tacit.reproduction.fmf_ldp.subsets import Subset
from tacit.reproduction.fmf_ldp.trials import (
    DELTA,
    MF_NP,
    POPULARITY,
    RANDOM,
    Contender,
    Judged,
    Paper,
    Sound,
    trials,
)
from tacit.reproduction.tables import Claim, Line, Row
from tacit.results import Evaluation, Groups

_EXCHANGED = Adjacency.REPLACE_ONE
_GRID = 1e-3  # of losses; rounded up, so no figure is too small
CLOSE = 0.03  # of HR@10; seeds and people move it by .01
RIVALS: Mapping[str, Contender] = {
    "popularity": POPULARITY,
    "MF-NP": MF_NP,
    "random": RANDOM,
}


@dataclass(frozen=True)
class Judge:
    """Makes rows and claims about the cells of one bench."""

    bench: Bench

    def of(self, contender: Contender, subset: Subset) -> Judged:
        """The trial, with all seeds and people of the bench."""
        return trials(contender, subset, most=self.bench.most, seeds=self.bench.seeds)

    def row(
        self,
        label: str,
        paper: Paper,
        subset: Subset,
        *,
        published: float | None = None,
        sound: Sound | None = None,
        others: Mapping[str, Contender] = RIVALS,
    ) -> Row:
        """HR@10 of a cell with all that stands beside it."""
        found = self.of(paper, subset)
        beside = {name: self.of(rival, subset).hr() for name, rival in others.items()}
        beside["full ranking"] = found.hr_of_all()
        popularity = self.of(POPULARITY, subset).hr_of_all()
        beside["popularity, full ranking"] = popularity
        close = published is None or abs(found.hr() - published) <= CLOSE
        return Row(
            label,
            published,
            paper=found.hr(),
            sound=None if sound is None else self.of(sound, subset).hr(),
            ok=close,
            note="" if sound is None else f"sound: {sound.total:g} in all, local",
            reason="" if close else why(subset, beside),
            budget=budget(paper, len(subset.split().users)),
            beside=beside,
            se=found.se(),
        )

    def rises(
        self,
        text: str,
        less: tuple[Contender, Subset],
        more: tuple[Contender, Subset],
    ) -> Claim:
        """That HR@10 of `more` is above that of `less`, on the same people."""
        found = difference(self.of(*more), self.of(*less))
        return Claim(f"{self.bench.source}: {text}", found.low > 0, said(found))

    def reaches(
        self, text: str, one: tuple[Contender, Subset], other: tuple[Contender, Subset]
    ) -> Claim:
        """That one is at most `CLOSE` below another, with all of the interval."""
        found = difference(self.of(*one), self.of(*other))
        return Claim(f"{self.bench.source}: {text}", found.low >= -CLOSE, said(found))


def why(subset: Subset, beside: Mapping[str, float]) -> str:
    """Why a figure on other data is not the published one."""
    return (
        f"published on MovieLens 20M, measured on {subset.source}, where popularity "
        f"has {beside['popularity']:.2f} and MF-NP {beside['MF-NP']:.2f} under the "
        "same protocol; docs/reproduction/fmf_ldp.md"
    )


def said(found: Difference) -> str:
    """A difference with its interval."""
    return (
        f"HR@10 {found.mean:+.3f}, 95 % interval {found.low:+.3f} to "
        f"{found.high:+.3f}, {found.n:,} people"
    )


def difference(a: Judged, b: Judged) -> Difference:
    """A - b over the people whom both judged."""
    seeds = zip(a.sampled, b.sampled, strict=True)
    ours, others = zip(*(_both(one, other) for one, other in seeds), strict=True)
    key = Key.from_seed(0).at("bootstrap")
    return paired_bootstrap(ours, others, key=key, resamples=2_000)["hr@10"]


def _both(a: Evaluation, b: Evaluation) -> tuple[Evaluation, Evaluation]:
    users = np.intersect1d(a.users, b.users)
    return _only(a, users), _only(b, users)


def _only(evaluation: Evaluation, users: np.ndarray) -> Evaluation:
    rows = np.searchsorted(evaluation.users, users)
    values = {"hr@10": evaluation.values["hr@10"][rows]}
    return Evaluation(evaluation.protocol, users, values, Groups.everyone(len(users)))


@cache
def budget(paper: Paper, people: int) -> str:
    """What a person spends in a run, from the releases of the plan that was run."""
    plan = paper.plan(people)
    (release,) = paper.method.releases(plan)
    seen = {view: release.cells[Unit.USER, view].event for view in View}
    local = epsilon(seen[View.COLLUSION], delta=0.0, adjacency=_EXCHANGED)
    with np.errstate(over="ignore"):  # where losses are so large that local is less
        mixed = epsilon(
            seen[View.SERVER], delta=DELTA, adjacency=_EXCHANGED, finest=_GRID
        )
    return f"{local.value:,.0f} local, {mixed.value:,.4g} shuffled"


def line(points: Mapping[float, Judged], *, k: int = 10) -> Line:
    """A line of a chart."""
    judged = points.values()
    return Line(
        tuple(points), tuple(j.hr(k) for j in judged), tuple(j.se(k) for j in judged)
    )
