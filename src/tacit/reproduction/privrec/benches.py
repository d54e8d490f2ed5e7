"""On which data, and how long, the tables are made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Self

from tacit.data import sources
from tacit.data.dataset import Dataset
from tacit.data.splits import Split
from tacit.evaluation.paper_protocols import named
from tacit.keys import Key
from tacit.reproduction import Scale

Source = Literal["movielens-1m", "frappe"]

_LENGTHS: Mapping[tuple[Source, Scale], tuple[int, int]] = {  # as published, ours
    ("movielens-1m", "quick"): (10, 60),
    ("movielens-1m", "full"): (40, 300),
    ("frappe", "quick"): (10, 30),
    ("frappe", "full"): (40, 60),
}


@dataclass(frozen=True)
class Bench:
    """A data set, a share of its people, and how long each contender trains."""

    source: Source
    scale: Scale
    seed: int = 0

    @property
    def key(self) -> Key:
        """Of its split and its runs."""
        return Key.from_seed(self.seed).at("privrec", self.source, self.scale)

    @property
    def share(self) -> float:
        """Of all people."""
        return 0.1 if self.scale == "quick" else 1.0

    @property
    def n_seeds(self) -> int:
        """How many seeds a table has, from `seed` on."""
        return 1 if self.scale == "quick" else 3

    def each_seed(self) -> list[Self]:
        """The bench with each of its seeds."""
        seeds = range(self.seed, self.seed + self.n_seeds)
        return [replace(self, seed=seed) for seed in seeds]

    @property
    def over(self) -> str:
        """What standard errors are over."""
        return "people" if self.n_seeds == 1 else "seeds"

    @property
    def published_rounds(self) -> int:
        """E1 of what runs as published: above 40 its Figure 2 is flat."""
        return _LENGTHS[self.source, self.scale][0]

    @property
    def rounds(self) -> int:
        """Of everything else."""
        return _LENGTHS[self.source, self.scale][1]

    @property
    def local_epochs(self) -> int:
        """E2 of what runs as published; the paper has about 100."""
        return 5 if self.scale == "quick" else 20

    def split(self) -> Split:
        """The paper's: a fifth of the people is new, half of their items adapts."""
        return _split(self)


@lru_cache(maxsize=2)
def _split(bench: Bench) -> Split:
    protocol = named("privrec", bench.source)
    dataset = protocol.kept(sources.load(bench.source))
    if bench.share < 1:
        dataset = some_people(dataset, bench.share, bench.key.at("people"))
    return protocol.divide(dataset, key=bench.key.at("split"))


def some_people(dataset: Dataset, share: float, key: Key) -> Dataset:
    """A share of the people, drawn at random, with all of the items."""
    n = dataset.interactions.n_users
    people = key.generator().permutation(n)[: int(share * n)]
    return Dataset(
        dataset.name,
        dataset.interactions.take_users(people),
        dataset.catalog,
        dataset.profiles.take(people),
    )
