"""Train a contender on a data set and judge it after every few epochs.

    Federated   FedVAE: gamma 0, with decay, or without (decay 1); usual first weights,
                or literally N(0, 1)
    Central     Mult-VAE, with batches of a round's size and the paper's settings

Judged on all people whom the paper holds out. Nothing is chosen on them: settings are
the paper's, and every curve runs to its last epoch. A curve is made once in a process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from jaxtyping import Int64

from tacit.baselines.mult_vae import MultVae
from tacit.baselines.popularity import Popularity
from tacit.data.shards import Shards
from tacit.data.splits import Split
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import Personal, Scorer
from tacit.method import Candidates, Scores, enrol
from tacit.methods.fedvae import FedVae
from tacit.models.mult_vae import Init
from tacit.plan import Plan
from tacit.reproduction.fedvae.benches import Bench
from tacit.reproduction.fedvae.published import DECAY
from tacit.reproduction.kept import kept, numbered, read_numbered
from tacit.results import Evaluation
from tacit.runtime.rounds import State
from tacit.runtime.simulate import Simulation
from tacit.sampling import FixedSize

_LOG = logging.getLogger("tacit.reproduction")

Users = Int64[np.ndarray, "people"]
Curve = dict[int, Evaluation]  # epoch -> what everyone held out got


class Contender(Protocol):
    """Anything that learns epoch by epoch; hashable, so that it is trained once."""

    def course(self, bench: Bench) -> Iterator[Scorer]:
        """Scores after each epoch; valid until the next is asked for."""
        ...

    def __hash__(self) -> int: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Federated:
    """FedVAE, to the letter but for the first weights."""

    gamma: float = 0.0
    decay: float = DECAY
    init: Init = "xavier"

    def __str__(self) -> str:
        if self.init == "normal":
            return "FedVAE, first weights N(0, 1)"
        if self.gamma == 0:
            return "FedVAE"
        return f"FedVAE{'_dec' if self.decay < 1 else ''}, gamma {self.gamma:g}"

    @property
    def method(self) -> FedVae:
        """With the paper's network and Adam."""
        return FedVae(mode="paper", init=self.init, boost=self.gamma, decay=self.decay)

    def course(self, bench: Bench) -> Iterator[Scorer]:
        """After each epoch of M rounds."""
        split, an_epoch = bench.split(), bench.rounds_an_epoch
        sampler = FixedSize(min(bench.cohort, len(split.users)))
        rounds = bench.epochs * an_epoch
        plan = Plan(len(split.users), rounds=rounds, sampler=sampler)
        profiles = split.profiles.take(split.users)
        key = bench.key.at("run")
        method = self.method
        run = Simulation(
            method,
            plan,
            split.catalog,
            profiles,
            split.train,
            key,
            chunk=bench.cohort,  # twice as fast with 17,000 items as in several parts
        )
        for state, _ in run.run(run.start()):
            if state.server.round % an_epoch == 0:
                yield _scorer(method, state, split, bench)


@dataclass(frozen=True)
class Central:
    """Mult-VAE as the paper sets it; the paper does not state the batch."""

    def __str__(self) -> str:
        return "Mult-VAE"

    def course(self, bench: Bench) -> Iterator[Scorer]:
        """After each pass over everyone."""
        ranker = MultVae(
            hidden=(600,),
            latent=200,
            epochs=bench.epochs,
            batch=bench.cohort,
            rate=1e-3,
            beta=0.2,
            beta_epochs=0,
            dropout=0.5,
        )
        train, key = bench.split().train, bench.key.at("central")
        return (fitted.score for fitted in ranker.course(train, key=key))


@kept(numbered, read_numbered)
def curve(contender: Contender, bench: Bench) -> Curve:
    """The contender after every few epochs, and after the last."""
    _LOG.info("%s: %s, %d epochs", bench.source, contender, bench.epochs)
    return {
        epoch: judged(scorer, bench)
        for epoch, scorer in enumerate(contender.course(bench), start=1)
        if epoch % bench.every == 0 or epoch == bench.epochs
    }


@cache
def popularity(bench: Bench) -> Evaluation:
    """What counting gives on the same people."""
    fitted = Popularity().fit(bench.split().train, key=bench.key.at("popularity"))
    return judged(fitted.score, bench)


def judged(scorer: Scorer, bench: Bench) -> Evaluation:
    """On everyone held out, both halves of them."""
    split, metrics = bench.split(), bench.metrics
    halves = (split.validation, split.test)
    return Evaluation.joined(
        [evaluate(scorer, half, metrics=metrics) for half in halves]
    )


def _scorer(method: FedVae, state: State, split: Split, bench: Bench) -> Personal:
    """People held out are new: they enrol with a profile and nothing else."""
    broadcast, key = method.broadcast(state.server), bench.key.at("serve")
    everything = Candidates.all_of(split.catalog)

    def score(users: Users, history: Shards) -> Scores:
        profiles, keys = split.profiles.take(users), key.each(users)
        newcomers = enrol(method, state.server.plan, profiles, keys)
        tastes = method.represent(broadcast, newcomers, history, keys.at("represent"))
        return method.score(broadcast, tastes, everything)

    return Personal(score)
