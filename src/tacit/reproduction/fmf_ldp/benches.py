"""On which data, and at which sizes, the figures are made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from tacit.errors import MissingData
from tacit.reproduction import Scale
from tacit.reproduction.fmf_ldp.published import FULL_SET
from tacit.reproduction.fmf_ldp.subsets import Subset, Which, kept
from tacit.reproduction.tables import Reproduction

REAL, WORLD, SMALL_WORLD = (
    "movielens-1m",
    "synthetic-fmf-ldp",
    "synthetic-fmf-ldp-small",
)


@dataclass(frozen=True)
class Bench:
    """A data set and the sizes of its cells, the smallest first; None is all."""

    source: str
    people: tuple[int | None, ...]
    items: tuple[int | None, ...]
    whole: tuple[int | None, int | None]  # of Figure 5
    epsilons: tuple[float, ...]
    every: int  # epochs between two looks, in Figure 3
    most: int  # people judged
    seeds: int = 1

    def cell(
        self, people: int | None, items: int | None, *, which: Which = "random"
    ) -> Subset:
        """One of its cells."""
        return Subset(self.source, people, items, which=which)

    @property
    def few(self) -> Subset:
        """Fewest people, fewest items."""
        return self.cell(self.people[0], self.items[0])

    @property
    def many(self) -> Subset:
        """Most people, fewest items: where most can be learnt."""
        return self.cell(self.people[-1], self.items[0])

    @property
    def popular(self) -> Subset:
        """As `many`, of the most popular items and of anybody."""
        return replace(self.many, choice="popular", is_filtered=False)


_ML_1M = Bench(
    REAL,
    people=(1_000, None),
    items=(1_000, None),
    whole=(None, None),
    epsilons=(0.5, 2.5, 5.0),
    every=5,
    most=4_000,
    seeds=3,
)
_FROZEN = Bench(
    WORLD,
    people=(1_000, 10_000, 50_000),
    items=(1_000, 5_000, FULL_SET[1]),
    whole=FULL_SET,
    epsilons=(0.5, 1.0, 2.5, 5.0),
    every=5,
    most=10_000,
)


@cache
def benches(scale: Scale) -> tuple[Bench, ...]:
    """Quick: real data, or a small world without them. Full: the large world too."""
    real = (_ML_1M,) if _is_here(REAL) else ()
    if scale == "full":
        return (*real, _FROZEN)
    return real or (replace(_ML_1M, source=SMALL_WORLD, seeds=1),)


def for_each(scale: Scale, make: Callable[[Bench], Reproduction]) -> Reproduction:
    """A figure on every bench of the scale."""
    return Reproduction.joined([make(bench) for bench in benches(scale)])


def _is_here(source: str) -> bool:
    try:
        kept(source, True)
    except MissingData:
        return False
    return True
