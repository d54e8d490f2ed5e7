"""On which data sets, for how many epochs and with which curves Figure 1 is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from tacit.data import sources
from tacit.data.dataset import Dataset
from tacit.data.splits import Split, new_users
from tacit.errors import MissingData
from tacit.evaluation.paper_protocols import named
from tacit.keys import Key
from tacit.reproduction import Scale
from tacit.reproduction.fedvae.published import EPOCHS, GAMMAS, TABLE_2
from tacit.reproduction.tables import Row

SMALL_WORLD = "synthetic"  # stands in where no archive is at hand
_HELD_OUT = 200  # of the small world
_QUICK_EPOCHS = {"lastfm": 4, "filmtrust": 20}


@dataclass(frozen=True)
class Bench:
    """A data set, the people of a round, and how long and how often to look."""

    source: str
    cohort: int  # R
    epochs: int = EPOCHS
    every: int = 2  # epochs between two looks
    gammas: tuple[float, ...] = GAMMAS[-1:]  # with decay and without
    has_literal: bool = False  # first weights from N(0, 1) too
    seed: int = 0

    @property
    def key(self) -> Key:
        """What decides the split and every run."""
        return Key.from_seed(self.seed).at("fedvae")

    @property
    def metrics(self) -> tuple[str, str]:
        """NDCG, then recall, cut where the paper cuts them."""
        if self.source == SMALL_WORLD:
            return "ndcg@100", "recall@100"
        ndcg, recall = named("fedvae", self.source).metrics
        return ndcg, recall

    @property
    def rounds_an_epoch(self) -> int:
        """M, the least with M R at least the number of people who train."""
        return math.ceil(len(self.split().users) / self.cohort)

    def kept(self) -> Dataset:
        """The data set as the paper filters it."""
        return _kept(self.source)

    def split(self) -> Split:
        """The data set, divided."""
        return _split(self.source, self.seed)


@cache
def benches(scale: Scale) -> tuple[Bench, ...]:
    """Quick: the two smallest sets, or a small world. Full: all that are at hand.

    At the paper's size a round costs in proportion to the number of items, so only
    FilmTrust gets every curve; elsewhere gamma is 5, the paper's own choice.
    """
    here = [source for source in TABLE_2 if is_here(source)]
    full = [_full(source) for source in here]
    if scale == "full":
        return tuple(full)
    quick = [_quick(bench) for bench in full if bench.source in _QUICK_EPOCHS]
    world = Bench(SMALL_WORLD, cohort=150, epochs=20, has_literal=True)
    return tuple(quick) or (world,)


def is_here(source: str) -> bool:
    """Whether the archive can be found."""
    try:
        _kept(source)
    except MissingData:
        return False
    return True


def missing(source: str) -> Row:
    """A row for a data set whose archive is not at hand."""
    remedy = f"`tacit data describe {source}` says where it is published"
    reason = f"the archive is not at hand; {remedy}"
    return Row(source, None, None, None, False, reason=reason)


def left_out(scale: Scale) -> tuple[Row, ...]:
    """A row for each data set of the paper that the scale does not use."""
    used = {bench.source for bench in benches(scale)}
    later = "not run at this scale; use --scale full"
    return tuple(
        Row(source, None, None, None, False, reason=later)
        if is_here(source)
        else missing(source)
        for source in TABLE_2
        if source not in used
    )


def _full(source: str) -> Bench:
    bench = Bench(source, TABLE_2[source].cohort)
    if source == "filmtrust":
        return replace(bench, gammas=GAMMAS, has_literal=True)
    return bench


def _quick(bench: Bench) -> Bench:
    epochs = _QUICK_EPOCHS[bench.source]
    return replace(bench, epochs=epochs, gammas=GAMMAS[-1:])


@lru_cache(maxsize=2)
def _kept(source: str) -> Dataset:
    whole = sources.load(source)
    return whole if source == SMALL_WORLD else named("fedvae", source).kept(whole)


@lru_cache(maxsize=2)
def _split(source: str, seed: int) -> Split:
    key = Key.from_seed(seed).at("fedvae", "split")
    if source != SMALL_WORLD:
        return named("fedvae", source).divide(_kept(source), key=key)
    half = _HELD_OUT // 2
    dataset = _kept(source)
    return new_users(
        dataset, n_validation=half, n_test=half, catalog="training", key=key
    )
