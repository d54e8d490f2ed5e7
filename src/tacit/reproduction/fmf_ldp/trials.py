"""Train a contender on a cell and judge it: 99 drawn candidates, and all of them.

    Paper, Sound   FMF-LDP as printed, and within the budget that the paper names
    Neighbors      DPLCF
    Central        a ranker that sees everybody's history: MF-NP, popularity, random

A trial is made once in a process, whichever figures ask for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int64

from tacit.baselines.ials import Ials
from tacit.baselines.popularity import Popularity
from tacit.baselines.random import Random
from tacit.baselines.ranker import FactorFitted, Ranker
from tacit.data.shards import Shards
from tacit.data.splits import Heldout, Split
from tacit.evaluation.candidate_sets import FullRanking, SampledCandidates
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import Factors, Personal, Scorer
from tacit.method import Candidates, Method, Scores
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.rivals.dplcf import Dplcf
from tacit.plan import Plan
from tacit.privacy import LocalBits, LocalFlips, PublishedVotes
from tacit.reproduction.fmf_ldp.subsets import Subset, first
from tacit.reproduction.kept import kept
from tacit.results import Evaluation, Json, pool
from tacit.runtime.rounds import State
from tacit.runtime.simulate import Simulation

EPOCHS = 20
NEGATIVES = 99
METRICS = ("hr@2", "hr@5", "hr@10")
DELTA = 1e-6
RATE = 1e-4  # a tenth of the printed one: docs/reproduction/fmf_ldp.md

log = logging.getLogger("tacit.reproduction")

Users = Int64[np.ndarray, "people"]


class Contender(Protocol):
    """Anything that can be trained on a cell; hashable, so that it is trained once."""

    def trained(self, split: Split, subset: Subset) -> Scorer:
        """Scores for everyone."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Judged:
    """One contender on one cell; an evaluation a seed."""

    sampled: tuple[Evaluation, ...]  # among 99 drawn items, as in the paper
    full: tuple[Evaluation, ...]  # among all items the person does not have

    def hr(self, k: int = 10) -> float:
        """The paper's metric."""
        return pool(self.sampled)[f"hr@{k}"].mean

    def hr_of_all(self, k: int = 10) -> float:
        """The same among all items."""
        return pool(self.full)[f"hr@{k}"].mean

    def se(self, k: int = 10) -> float:
        """The standard error of `hr`: over seeds, of one seed over people."""
        return pool(self.sampled)[f"hr@{k}"].se or 0.0

    def to_json(self) -> Json:
        """Both, with every person's numbers."""
        sampled, full = ([one.to_json() for one in of] for of in _parts(self))
        return {"sampled": sampled, "full": full}

    @classmethod
    def from_json(cls, document: Json) -> Judged:
        """What `to_json` wrote."""
        read = Evaluation.from_json
        return cls(**{n: tuple(read(one) for one in of) for n, of in document.items()})


def trials(contender: Contender, subset: Subset, *, most: int, seeds: int) -> Judged:
    """The same trial with seeds 0, 1, …; everyone's item to find is drawn anew."""
    made = [
        trial(contender, replace(subset, seed=seed), most=most) for seed in range(seeds)
    ]
    return Judged(*(sum(parts, ()) for parts in zip(*map(_parts, made), strict=True)))


def _parts(judged: Judged) -> tuple[tuple[Evaluation, ...], tuple[Evaluation, ...]]:
    return judged.sampled, judged.full


@kept(Judged.to_json, Judged.from_json)
def trial(contender: Contender, subset: Subset, *, most: int) -> Judged:
    """The contender on at most `most` people of the cell, who lack 99 items to draw."""
    split = subset.split()
    log.info("%s, seed %d: %s", subset, subset.seed, contender)
    people = first(split.test, most, free=NEGATIVES)
    return judge(contender.trained(split, subset), people, subset)


def judge(score: Scorer, people: Heldout, subset: Subset) -> Judged:
    """Ranked twice: among 99 drawn items and among all."""
    drawn = SampledCandidates(NEGATIVES, subset.key.at("candidates"))
    made = (
        (evaluate(score, people, metrics=METRICS, protocol=protocol),)
        for protocol in (drawn, FullRanking())
    )
    return Judged(*made)


@dataclass(frozen=True)
class Central:
    """A ranker that sees everybody's history."""

    ranker: Ranker

    def trained(self, split: Split, subset: Subset) -> Scorer:
        """Fitted on what everyone has."""
        fitted = self.ranker.fit(split.train, key=subset.key.at("central"))
        if isinstance(fitted, FactorFitted):
            return Factors(lambda _, history: fitted.represent(history), fitted.items)
        return fitted.score


RANDOM = Central(Random())
POPULARITY = Central(Popularity())
# As many factors as the paper has. On validation people of ML-1M nine settings differ
# by .007, but for one that regularizes too much.
MF_NP = Central(Ials(factors=5, confidence=5.0, regularization=20.0))


@dataclass(frozen=True)
class Paper:
    """FMF-LDP as printed."""

    votes: int = 100  # k
    epsilon: float = 2.5  # of one vote
    epochs: int = EPOCHS
    rate: float = RATE  # gamma; printed is 1e-3

    @property
    def method(self) -> FmfLdp:
        """What the paper leaves open was chosen on validation people of ML-1M."""
        return FmfLdp(
            mode="paper",
            learning_rate=self.rate,
            user_ridge=1.0,
            init_deviation=0.03,
            privacy=PublishedVotes(epsilon=self.epsilon, votes=self.votes),
        )

    def plan(self, people: int) -> Plan:
        """Everyone in every epoch, through a relay that waits for all."""
        return Plan(
            people,
            rounds=self.epochs,
            channel="shuffle",
            delta=DELTA,
            min_contributors=people,
        )

    def trained(self, split: Split, subset: Subset) -> Scorer:
        """After the last epoch."""
        plan = self.plan(len(split.users))
        *_, state = states(self.method, plan, split, subset)
        return factor_scorer(self.method, state, subset)

    def curve(self, subset: Subset, *, most: int, every: int) -> dict[int, Evaluation]:
        """On validation people, after every few epochs."""
        log.info("%s: %s, a curve", subset, self)
        split = subset.split()
        plan = self.plan(len(split.users))
        people = first(split.validation, most, free=NEGATIVES)
        drawn = SampledCandidates(NEGATIVES, subset.key.at("validation"))
        return {
            state.server.round: evaluate(
                factor_scorer(self.method, state, subset),
                people,
                metrics=METRICS,
                protocol=drawn,
            )
            for state in states(self.method, plan, split, subset)
            if state.server.round % every == 0
        }


PRINTED = Paper(rate=1e-3)  # with the learning rate that the paper prints


@dataclass(frozen=True)
class Sound:
    """FMF-LDP in sound mode; a whole run costs `total`, pure and local."""

    total: float = 250.0  # what the paper names for k = 100 and 2.5 a vote
    epochs: int = EPOCHS

    def plan(self, people: int) -> Plan:
        """Everyone in every epoch."""
        return Plan(people, rounds=self.epochs, target_epsilon=self.total)

    def method(self, people: int) -> FmfLdp:
        """With as many votes as the total allows; as `Paper`, and a rate of its own."""
        chosen = FmfLdp(
            learning_rate=3e-3,
            user_ridge=1.0,
            init_deviation=0.03,
            privacy=LocalBits(),
        )
        return chosen.calibrated(self.plan(people))

    def trained(self, split: Split, subset: Subset) -> Scorer:
        """After the last epoch."""
        people = len(split.users)
        method = self.method(people)
        *_, state = states(method, self.plan(people), split, subset)
        return factor_scorer(method, state, subset)


@dataclass(frozen=True)
class Neighbors:
    """DPLCF with `each` for one bit: items × `each` for a person."""

    each: float = 2.5

    def trained(self, split: Split, subset: Subset) -> Scorer:
        """After its only round."""
        method = Dplcf(privacy=LocalFlips(self.each * len(split.catalog)))
        *_, state = states(method, Plan(len(split.users)), split, subset)
        broadcast, key = method.broadcast(state.server), subset.key.at("serve")
        everything = Candidates.all_of(split.catalog)

        def score(users: Users, history: Shards) -> Scores:
            tastes = method.represent(
                broadcast, state.clients, history, key.each(users)
            )
            return method.score(broadcast, tastes, everything)

        return Personal(score)


def states(method: Method, plan: Plan, split: Split, subset: Subset) -> Iterator[State]:
    """Every state of a run, from the first epoch to the last."""
    people = split.profiles.take(split.users)
    simulation = Simulation(
        method, plan, split.catalog, people, split.train, subset.key.at("run")
    )
    return (state for state, _ in simulation.run(simulation.start()))


def factor_scorer(method: FmfLdp, state: State, subset: Subset) -> Factors:
    """Inner products with the factors that each device computes for itself."""
    broadcast, key = method.broadcast(state.server), subset.key.at("serve")

    def person(users: Users, history: Shards) -> Float[np.ndarray, "people factors"]:
        tastes = method.represent(broadcast, state.clients, history, key.each(users))
        return np.asarray(tastes.tree["person"])

    return Factors(person, broadcast.weights["items"])
