"""Train a contender of Tables 1 and 2 and judge it: the paper's way, and all items.

    federated   on devices, by its own plan
    central     PrivRec's network on everybody's examples, then adapted on the device
    counted     its features without a network: likes of each kind of item
    ranked      a baseline that sees everybody's history

A trial is made once in a process. People are judged whom nothing was chosen on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int64

from tacit.baselines.ease import Ease
from tacit.baselines.ials import Ials
from tacit.baselines.popularity import Popularity
from tacit.baselines.ranker import FactorFitted, Ranker
from tacit.data.shards import Shards
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.protocols import EachTargetAlone, FullRanking
from tacit.evaluation.ranking import Factors, Personal, Scorer
from tacit.method import Method, Scores, Server, enrol
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.privrec import PrivRec
from tacit.models.feature_mlp.central import CentralTraining
from tacit.plan import Plan
from tacit.reproduction.kept import kept
from tacit.reproduction.privrec.benches import Bench
from tacit.reproduction.privrec.published import DEPTHS
from tacit.reproduction.privrec.settings import AsPublished, AsWeWould
from tacit.results import Evaluation, Json
from tacit.runtime.simulate import Simulation
from tacit.serving.device import Recommender

_LOG = logging.getLogger("tacit.reproduction")
_ALONE = tuple(f"{kind}_each@{k}" for kind in ("hr", "ndcg") for k in DEPTHS)
_FULL = ("ndcg@10", "recall@20")

Users = Int64[np.ndarray, "people"]
Trained = Callable[[Bench], Scorer]


@dataclass(frozen=True)
class Judged:
    """One contender on one bench."""

    alone: Evaluation  # each target alone, as in the paper
    full: Evaluation  # among all items that the person does not have

    def mean(self, metric: str, k: int) -> float:
        """Of the paper's `hr` or `ndcg`."""
        return self.alone.metrics()[f"{metric}_each@{k}"].mean

    def se(self, metric: str, k: int) -> float | None:
        """Its standard error over people."""
        return self.alone.metrics()[f"{metric}_each@{k}"].se

    def beside(self) -> dict[str, float]:
        """The full ranking, by the metrics that are usual there."""
        found = self.full.metrics()
        return {f"{name}, all items": found[name].mean for name in _FULL}

    def to_json(self) -> Json:
        """Both, with every person's numbers."""
        return {"alone": self.alone.to_json(), "full": self.full.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> Judged:
        """What `to_json` wrote."""
        return cls(
            **{name: Evaluation.from_json(one) for name, one in document.items()}
        )


@kept(Judged.to_json, Judged.from_json)
def trial(name: str, bench: Bench) -> Judged:
    """The contender of this name, trained and judged on the test people."""
    _LOG.info("%s on %s", name, bench.source)
    score, people = CONTENDERS[name](bench), bench.split().test
    alone = evaluate(score, people, metrics=_ALONE, protocol=EachTargetAlone())
    full = evaluate(score, people, metrics=_FULL, protocol=FullRanking())
    return Judged(alone, full)


def federated(method: Method, plan: Plan, bench: Bench) -> Scorer:
    """After the last round of a simulation."""
    split, own = bench.split(), method.calibrated(plan)
    people = split.profiles.take(split.users)
    simulation = Simulation(
        own, plan, split.catalog, people, split.train, bench.key.at("run")
    )
    *_, (state, _) = simulation.run(simulation.start())
    return _on_devices(own, state.server, bench)


def central(method: PrivRec, bench: Bench) -> Scorer:
    """The network of `method` on pooled examples; devices adapt it as they would."""
    split, plan = bench.split(), Plan(len(bench.split().users))
    key = bench.key.at("central")
    keys = key.each(split.users)
    server = method.start(plan, split.catalog, key)
    clients = enrol(method, plan, split.profiles.take(split.users), keys)
    device = method.devices(method.broadcast(server))
    examples = device.examples(clients.state, split.train, keys.at("negatives"))
    learnt = CentralTraining().learnt(
        device.network, device.weights, examples, key=key.at("order")
    )
    after = replace(server, weights={**server.weights, **learnt})
    return _on_devices(method, after, bench)


def ranked(ranker: Ranker, bench: Bench) -> Scorer:
    """Fitted on what training people have."""
    fitted = ranker.fit(bench.split().train, key=bench.key.at("ranker"))
    if isinstance(fitted, FactorFitted):
        return Factors(lambda _, history: fitted.represent(history), fitted.items)
    return fitted.score


def counted(method: PrivRec, bench: Bench) -> Scorer:
    """Kinds of items by how many likes one of the kind has: one list for everybody.

    What a model of the same features can know of items without knowing people.
    """
    split, plan = bench.split(), Plan(len(bench.split().users))
    server = method.start(plan, split.catalog, bench.key)
    kind_of = method.devices(method.broadcast(server)).items.kind_of
    liked = split.train.items[split.train.values >= method.liked]
    likes = np.bincount(liked, minlength=len(kind_of))
    mean = np.bincount(kind_of, weights=likes) / np.bincount(kind_of)
    scores = mean[kind_of].astype(np.float32)
    return lambda history: np.broadcast_to(scores, (len(history), len(scores)))


def _on_devices(method: Method, server: Server, bench: Bench) -> Personal:
    """Scores of strangers: each device enrols with its profile and adapts."""
    split, key = bench.split(), bench.key.at("serve")
    recommender = Recommender(method, method.broadcast(server), split.catalog)

    def score(users: Users, history: Shards) -> Scores:
        people = split.profiles.take(users)
        clients = enrol(method, server.plan, people, key.each(users))
        return recommender.score(history, clients, key.each(users).at("represent"))

    return Personal(score)


def _people(bench: Bench) -> int:
    return len(bench.split().users)


def _published(bench: Bench, method: Method) -> Scorer:
    return federated(method, AsPublished(bench).plan(_people(bench)), bench)


def _ours(bench: Bench, method: Method) -> Scorer:
    return federated(method, AsWeWould(bench).plan(_people(bench)), bench)


PUBLISHED = ", as published"
COUNTED = "its features, counted"
CONTENDERS: Mapping[str, Trained] = {
    f"PrivRec{PUBLISHED}": lambda b: _published(b, AsPublished(b).privrec),
    "PrivRec": lambda b: _ours(b, AsWeWould(b).privrec),
    f"DP-PrivRec{PUBLISHED}": lambda b: _published(b, AsPublished(b).dp_privrec),
    "DP-PrivRec": lambda b: federated(
        AsWeWould(b).dp_privrec, AsWeWould(b).dp_plan(_people(b)), b
    ),
    f"PrivRec-CEN{PUBLISHED}": lambda b: central(AsPublished(b).privrec, b),
    "PrivRec-CEN": lambda b: central(replace(AsWeWould(b).privrec, adapt_rate=0.02), b),
    f"NN-SELF{PUBLISHED}": lambda b: _published(b, AsPublished(b).nn_self),
    "NN-SELF": lambda b: _ours(b, AsWeWould(b).nn_self),
    f"FOFL-SELF{PUBLISHED}": lambda b: _published(b, AsPublished(b).fofl),
    "FOFL-SELF": lambda b: _ours(b, AsWeWould(b).fofl),
    "FCF": lambda b: federated(FmfLdp(privacy="none"), Plan(_people(b), rounds=10), b),
    COUNTED: lambda b: counted(AsPublished(b).privrec, b),
    "popularity": lambda b: ranked(Popularity(), b),
    "EASE": lambda b: ranked(Ease(), b),
    "iALS": lambda b: ranked(Ials(), b),
}
