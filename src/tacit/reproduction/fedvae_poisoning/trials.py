"""Train FedVAE among attackers and judge what comes out.

The world is the most popular items of MovieLens 1M (ratings of 4 and 5), or of invented
people where the archive is not at hand. The network is small, items -> 32 -> items and
nothing sampled, so that a run takes seconds. Settings were chosen on validation people
without attackers; test people are judged, and a trial is made once in a process.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache

import numpy as np
from jaxtyping import Int64

from tacit.attacks.poisoning import Infiltrated, exposure
from tacit.baselines.popularity import Popularity
from tacit.data import sources
from tacit.data.shards import Shards
from tacit.data.splits import Split, new_users
from tacit.errors import MissingData
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import Personal, Scorer
from tacit.keys import Key
from tacit.method import Candidates, Scores, enrol
from tacit.methods.fedvae import FedVae
from tacit.plan import Plan
from tacit.reproduction.fedvae_poisoning.attacks import ATTACKS
from tacit.reproduction.fmf_ldp.subsets import restricted
from tacit.reproduction.kept import kept
from tacit.results import Json, Metric
from tacit.runtime.rounds import State
from tacit.runtime.simulate import Simulation
from tacit.sampling import FixedSize, Poisson
from tacit.transport.channels import channel

_LOG = logging.getLogger("tacit.reproduction")

REAL, WORLD = "movielens-1m", "synthetic-1m"
NDCG = "ndcg@100"
EPSILON, DELTA, RATE = 8.0, 1e-6, 0.3  # of the private runs

Users = Int64[np.ndarray, "people"]


@dataclass(frozen=True)
class Bench:
    """Sizes of the world and of a run, and which cells are made."""

    source: str
    seeds: tuple[int, ...]
    shares: tuple[float, ...]  # of attackers in a cohort
    items: int = 300
    held_out: int = 500  # people to validate on, and as many to test on
    cohort: int = 250
    rounds: int = 100

    @property
    def middle(self) -> float:
        """The share that claims are about."""
        return self.shares[len(self.shares) // 2]

    def attackers(self, share: float) -> int:
        """How many of a cohort attack."""
        return round(share * self.cohort)

    def split(self, seed: int) -> Split:
        """The world, divided anew for every seed."""
        return _split(self.source, self.items, self.held_out, seed)

    def promoted(self, seed: int) -> int:
        """An item that nine in ten are more popular than."""
        split = self.split(seed)
        counts = np.bincount(split.train.items, minlength=len(split.catalog))
        return int(np.argsort(counts, kind="stable")[len(counts) // 10])


@dataclass(frozen=True)
class Outcome:
    """What test people get after training."""

    ndcg: Metric
    in_10: Metric  # are shown the promoted item though it is nothing to them
    in_20: Metric

    @classmethod
    def from_json(cls, document: Json) -> Outcome:
        """What `asdict` made of it."""
        return cls(**{name: Metric(**one) for name, one in document.items()})


@dataclass(frozen=True)
class Cell:
    """A method among attackers, if any."""

    method: FedVae
    attack: str | None = None
    share: float = 0.0

    def outcome(self, bench: Bench) -> Outcome:
        """Means over the seeds; errors are over them, or over people if one is all."""
        return _pooled([trial(bench, self, seed) for seed in bench.seeds])


@kept(asdict, Outcome.from_json)
def trial(bench: Bench, cell: Cell, seed: int) -> Outcome:
    """One run."""
    _LOG.info("poisoning: seed %d, %g %% %s", seed, 100 * cell.share, cell.attack)
    split, item = bench.split(seed), bench.promoted(seed)
    plan = _plan(bench, cell.method, len(split.users))
    method = cell.method.calibrated(plan)
    carrier = channel(plan.channel)
    if cell.attack is not None:
        carrier = Infiltrated(carrier, ATTACKS[cell.attack](item), cell.share)
    key = Key.from_seed(seed).at("poisoning")
    run = Simulation(
        method,
        plan,
        split.catalog,
        split.profiles.take(split.users),
        split.train,
        key.at("run"),
        channel=carrier,
    )
    *_, (state, _) = run.run(run.start())
    return judged(_scorer(method, state, split, key.at("serve")), bench, seed)


@cache
def popularity(bench: Bench) -> Outcome:
    """What counting gives the same people, over the same seeds."""
    seeds = []
    for seed in bench.seeds:
        train, key = bench.split(seed).train, Key.from_seed(seed).at("popularity")
        fitted = Popularity().fit(train, key=key)
        seeds.append(judged(fitted.score, bench, seed))
    return _pooled(seeds)


def judged(scorer: Scorer, bench: Bench, seed: int) -> Outcome:
    """On test people."""
    people, item = bench.split(seed).test, bench.promoted(seed)
    found = evaluate(scorer, people, metrics=(NDCG,)).metrics()[NDCG]
    shown = (exposure(scorer, people, item, k=k) for k in (10, 20))
    return Outcome(found, *shown)


def known_source() -> str:
    """The real data if they are at hand."""
    try:
        sources.load(REAL)
    except MissingData:
        return WORLD
    return REAL


def _pooled(seeds: Sequence[Outcome]) -> Outcome:
    return Outcome(
        _over([one.ndcg for one in seeds]),
        _over([one.in_10 for one in seeds]),
        _over([one.in_20 for one in seeds]),
    )


def _over(seeds: Sequence[Metric]) -> Metric:
    if len(seeds) == 1:
        return seeds[0]
    return Metric.of(np.array([metric.mean for metric in seeds]))


def _plan(bench: Bench, method: FedVae, people: int) -> Plan:
    """Cohorts of one size without privacy; by coins, and larger, with it."""
    if not method.privacy.is_private:
        return Plan(people, rounds=bench.rounds, sampler=FixedSize(bench.cohort))
    return Plan(
        people,
        rounds=bench.rounds,
        sampler=Poisson(RATE),
        channel="secure_sum",
        delta=DELTA,
        target_epsilon=EPSILON,
    )


@lru_cache(maxsize=4)
def _split(source: str, items: int, held_out: int, seed: int) -> Split:
    liked = sources.load(source).filtered(min_value=4, min_interactions=5)
    log = liked.interactions
    popular = np.sort(np.argsort(-log.per_item, kind="stable")[:items])
    kept = restricted(liked, np.arange(log.n_users), popular)
    key = Key.from_seed(seed).at("poisoning", "split")
    return new_users(
        kept.filtered(min_interactions=5),
        n_validation=held_out,
        n_test=held_out,
        key=key,
    )


def _scorer(method: FedVae, state: State, split: Split, key: Key) -> Personal:
    broadcast, everything = (
        method.broadcast(state.server),
        Candidates.all_of(split.catalog),
    )

    def score(users: Users, history: Shards) -> Scores:
        keys = key.each(users)
        people = enrol(method, state.server.plan, split.profiles.take(users), keys)
        tastes = method.represent(broadcast, people, history, keys.at("represent"))
        return method.score(broadcast, tastes, everything)

    return Personal(score)
