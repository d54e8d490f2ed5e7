"""Train a contender of Tables 1 and 2 and judge it: the paper's way, and all items.

    federated   on devices, by its own plan
    central     PrivRec's network on everybody's examples, then adapted on the device
    counted     its features without a network: likes of each kind of item
    foretold    its features, put in order by one who knows what each person will take
    ranked      a baseline that sees everybody's history

A trial is made once in a process. People are judged whom nothing was chosen on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from tacit.baselines.ease import Ease
from tacit.baselines.ials import Ials
from tacit.baselines.item_knn import ItemKnn
from tacit.baselines.popularity import Popularity
from tacit.baselines.ranker import FactorFitted, Ranker
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.candidate_sets import EachTargetAlone, FullRanking
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import Factors, Personal, Scorer
from tacit.method import Method, Scores, Server, Unprotected, enrol
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.privrec import PrivRec
from tacit.models.feature_mlp.central import CentralTraining
from tacit.plan import Plan
from tacit.reproduction.kept import kept
from tacit.reproduction.privrec.benches import Bench
from tacit.reproduction.privrec.published import DEPTHS
from tacit.reproduction.privrec.settings import AsPublished, AsWeWould
from tacit.results import Evaluation, Groups, Json, pool
from tacit.runtime.simulate import Simulation
from tacit.serving.recommender import Recommender

_LOG = logging.getLogger("tacit.reproduction")
_ALONE = tuple(f"{kind}_each@{k}" for kind in ("hr", "ndcg") for k in DEPTHS)
_FULL = ("ndcg@10", "recall@20")

Users = Int64[np.ndarray, "people"]
Trained = Callable[[Bench], Scorer]


@dataclass(frozen=True)
class Judged:
    """One contender on one bench; an evaluation a seed."""

    alone: tuple[Evaluation, ...]  # each target alone, as in the paper
    full: tuple[Evaluation, ...]  # among all items that the person does not have

    @classmethod
    def joined(cls, seeds: Sequence[Judged]) -> Judged:
        """Several seeds as one."""
        return cls(
            tuple(one for judged in seeds for one in judged.alone),
            tuple(one for judged in seeds for one in judged.full),
        )

    def mean(self, metric: str, k: int) -> float:
        """Of the paper's `hr` or `ndcg`."""
        return pool(self.alone)[f"{metric}_each@{k}"].mean

    def se(self, metric: str, k: int) -> float | None:
        """Its standard error: over seeds, of one seed over people."""
        return pool(self.alone)[f"{metric}_each@{k}"].se

    def beside(self) -> dict[str, float]:
        """The full ranking, by the metrics that are usual there."""
        found = pool(self.full)
        return {f"{name}, all items": found[name].mean for name in _FULL}

    def to_json(self) -> Json:
        """Both, with every person's numbers."""
        alone, full = ([one.to_json() for one in of] for of in (self.alone, self.full))
        return {"alone": alone, "full": full}

    @classmethod
    def from_json(cls, document: Json) -> Judged:
        """What `to_json` wrote."""
        read = Evaluation.from_json
        return cls(**{n: tuple(read(one) for one in of) for n, of in document.items()})


def trials(name: str, bench: Bench) -> Judged:
    """The same trial with each seed of the scale; another seed has other people."""
    return Judged.joined([trial(name, one) for one in bench.each_seed()])


@kept(Judged.to_json, Judged.from_json)
def trial(name: str, bench: Bench) -> Judged:
    """The contender of this name, trained and judged on the test people."""
    _LOG.info("%s on %s, seed %d", name, bench.source, bench.seed)
    return judge(CONTENDERS[name](bench), bench.split().test)


def judge(score: Scorer, people: Heldout, *, groups: Groups | None = None) -> Judged:
    """The paper's way, and among all items; one seed."""
    protocols = (_ALONE, EachTargetAlone()), (_FULL, FullRanking())
    alone, full = (
        evaluate(score, people, metrics=metrics, protocol=protocol, groups=groups)
        for metrics, protocol in protocols
    )
    return Judged((alone,), (full,))


def federated(method: Method, plan: Plan, bench: Bench) -> Scorer:
    """After the last round of a simulation."""
    (_, scorer), *_ = course(method, plan, bench, rounds=(plan.rounds,))
    return scorer


def course(
    method: Method, plan: Plan, bench: Bench, *, rounds: Sequence[int]
) -> Iterator[tuple[int, Scorer]]:
    """After each of these rounds of one simulation."""
    own = method.calibrated(plan)
    for server in servers(own, plan, bench):
        if server.round in rounds:
            yield server.round, on_devices(own, server, bench)


def servers(
    method: Method, plan: Plan, bench: Bench, *, train: Shards | None = None
) -> Iterator[Server]:
    """What the server holds after each round of one simulation.

    `train` is in place of what the bench's training people have.
    """
    split = bench.split()
    people, key = split.profiles.take(split.users), bench.key.at("run")
    shards = split.train if train is None else train
    simulation = Simulation(method, plan, split.catalog, people, shards, key)
    for state, _ in simulation.run(simulation.start()):
        yield state.server


def central(method: PrivRec, bench: Bench) -> Scorer:
    """The network of `method` on pooled examples; devices adapt it as they would."""
    split, plan = bench.split(), Plan(len(bench.split().users))
    key = bench.key.at("central")
    keys = key.each(split.users)
    server = method.start(plan, split.catalog, key)
    clients = enrol(method, plan, split.profiles.take(split.users), keys)
    device = method.cohort(method.broadcast(server))
    examples = device.examples(clients.state, split.train, keys.at("negatives"))
    own = CentralTraining().learnt(
        device.network, device.weights, examples, key=key.at("order")
    )
    after = replace(server, weights={**server.weights, **own})
    return on_devices(method, after, bench)


def ranked(ranker: Ranker, bench: Bench) -> Scorer:
    """Fitted on what training people have."""
    fitted = ranker.fit(bench.split().train, key=bench.key.at("ranker"))
    if isinstance(fitted, FactorFitted):
        return Factors(lambda _, history: fitted.represent(history), fitted.items)
    return fitted.score


def counted(
    method: PrivRec, bench: Bench, *, known: Bool[np.ndarray, "items"] | None = None
) -> Scorer:
    """Kinds of items by how many likes one of the kind has: one list for everybody.

    What a model of the same features can know of items without knowing people. Where
    not all items are `known`, a kind is judged by those that are.
    """
    split, kind_of = bench.split(), kinds_of(method, bench)
    liked = split.train.items[split.train.values >= method.liked]
    likes = np.bincount(liked, minlength=len(kind_of))
    sizes = np.maximum(1, np.bincount(kind_of, weights=known))
    mean = np.bincount(kind_of, weights=likes) / sizes
    scores = mean[kind_of].astype(np.float32)
    return lambda history: np.broadcast_to(scores, (len(history), len(scores)))


def foretold(method: PrivRec, bench: Bench) -> Personal:
    """Kinds by the share of their items that the person will take, which it knows.

    No model of the same features can do much better, however it adapts.
    """
    people, kind_of = bench.split().test, kinds_of(method, bench)
    n_kinds = int(kind_of.max()) + 1

    def of(rows: Users, shards: Shards) -> Float64[np.ndarray, "people kinds"]:
        places = rows[shards.owners] * n_kinds + kind_of[shards.items]
        found = np.bincount(places, minlength=len(rows) * n_kinds)
        return found.reshape(len(rows), n_kinds).astype(float)

    def score(users: Users, history: Shards) -> Scores:
        row_of = {user: row for row, user in enumerate(people.users.tolist())}
        targets = people.targets.take([row_of[user] for user in users.tolist()])
        rows = np.arange(len(users))
        wanted, had = of(rows, targets), of(rows, history)
        others = np.bincount(kind_of, minlength=n_kinds) - had - wanted
        return (wanted / (1 + np.maximum(0, others)))[:, kind_of].astype(np.float32)

    return Personal(score)


def kinds_of(method: PrivRec, bench: Bench) -> Int32[np.ndarray, "items"]:
    """The kind of each item; a network over its features cannot tell two of a kind."""
    split = bench.split()
    server = method.start(Plan(len(split.users)), split.catalog, bench.key)
    return method.cohort(method.broadcast(server)).items.kind_of


def on_devices(method: Method, server: Server, bench: Bench) -> Personal:
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
FORETOLD = "its features, foretold"
QUIET = "DP-PrivRec, noise off"
CONTENDERS: Mapping[str, Trained] = {
    f"PrivRec{PUBLISHED}": lambda b: _published(b, AsPublished(b).privrec),
    "PrivRec": lambda b: _ours(b, AsWeWould(b).privrec),
    "PrivRec, counting": lambda b: _ours(b, AsWeWould(b).counting),
    f"DP-PrivRec{PUBLISHED}": lambda b: _published(b, AsPublished(b).dp_privrec),
    "DP-PrivRec": lambda b: federated(
        AsWeWould(b).dp_privrec, AsWeWould(b).dp_plan(_people(b)), b
    ),
    QUIET: lambda b: federated(
        replace(AsWeWould(b).dp_privrec, privacy=Unprotected()),
        replace(AsWeWould(b).dp_plan(_people(b)), target_epsilon=None),
        b,
    ),
    f"PrivRec-CEN{PUBLISHED}": lambda b: central(AsPublished(b).privrec, b),
    "PrivRec-CEN": lambda b: central(replace(AsWeWould(b).privrec, adapt_rate=0.02), b),
    f"NN-SELF{PUBLISHED}": lambda b: _published(b, AsPublished(b).nn_self),
    "NN-SELF": lambda b: _ours(b, AsWeWould(b).nn_self),
    f"FOFL-SELF{PUBLISHED}": lambda b: _published(b, AsPublished(b).fofl),
    "FOFL-SELF": lambda b: _ours(b, AsWeWould(b).fofl),
    "FCF": lambda b: federated(FmfLdp(), Plan(_people(b), rounds=10), b),
    COUNTED: lambda b: counted(AsPublished(b).privrec, b),
    FORETOLD: lambda b: foretold(AsPublished(b).privrec, b),
    "popularity": lambda b: ranked(Popularity(), b),
    "item-kNN": lambda b: ranked(ItemKnn(), b),
    "EASE": lambda b: ranked(Ease(), b),
    "iALS": lambda b: ranked(Ials(), b),
}
