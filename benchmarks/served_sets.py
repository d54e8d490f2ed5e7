"""Data sets on which lists are served: who is served, and how good a list is.

    ml-1m        Gram without noise, head 900; NDCG@100 of new users
    ml-1m-at-4   Gram at epsilon 4, by its own rules
    mind         news by the vectors of their titles, nothing trained; AUC of what was
                 shown on one day
    smoke        an invented world of seconds

Interests drift, so that reuse is not flattered: an item of today's history is younger
than `age` days with probability 1 - exp(-age / 90), and where it is, the history had
an item of somebody else in its place when the query was made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.data.impressions import Impressions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.candidate_sets import FullRanking
from tacit.evaluation.impressions import evaluate_impressions, judged
from tacit.evaluation.metrics import parse
from tacit.evaluation.ranking import rank
from tacit.evaluation.slate_scores import history_shards
from tacit.experiment.assemble import Assembled, assemble
from tacit.experiment.settings import read_experiment
from tacit.keys import Key
from tacit.method import ItemSpace
from tacit.serving.population import invented_users
from tacit.serving.queryable import space_of, vectors_of
from tacit.serving.recommender import Recommender

_HERE = Path(__file__).parent
_USERS = 6000  # invented, for up to 300 interests
_DAYS = 90.0  # after so many, 1 - 1/e of a history is new

SETS: dict[str, tuple[Path, tuple[str, ...]]] = {
    "ml-1m": (_HERE / "serving-ml-1m.toml", ()),
    "ml-1m-at-4": (
        _HERE.parent / "experiments" / "ml-1m-gram.toml",
        ("privacy.target_epsilon=4",),
    ),
    "mind": (_HERE / "serving-mind.toml", ()),
    "smoke": (_HERE / "smoke-gram.toml", ()),
}

Values = np.ndarray  # the metric of each user or impression
Vectors = np.ndarray


@dataclass(frozen=True, eq=False)
class Part:
    """Users who are served, and what a list is worth to each of them."""

    recommender: Recommender
    histories: Shards
    values: Callable[[Vectors], Values]
    owners: np.ndarray  # the row of `histories` that each value belongs to

    @property
    def users(self) -> Vectors:
        """The user vectors of today's histories."""
        return vectors_of(self.recommender, self.histories)

    def users_at(self, age: float, key: Key) -> Vectors:
        """The user vectors of the histories as they were so many days ago."""
        if not age:
            return self.users
        return vectors_of(self.recommender, drifted(self.histories, age, key))


@dataclass(frozen=True, eq=False)
class ServedSet:
    """A model, whom a server invents for it, and two parts of users."""

    name: str
    metric: str
    recommender: Recommender
    space: ItemSpace
    invented: Vectors
    trained: Vectors  # of those who trained: private, for a release or to compare
    parts: dict[str, Part]
    held: dict[str, Heldout | Impressions]

    def values_with(self, space: ItemSpace, part: str) -> Callable[[Vectors], Values]:
        """What lists are worth that another table of item vectors ranks."""
        held = self.held[part]
        if isinstance(held, Heldout):
            return _ndcg(space, held)
        return _auc(space, held)


def served_set(name: str, *, seed: int = 0) -> ServedSet:
    """One of the sets, trained and ready."""
    path, changes = SETS[name]
    made = assemble(read_experiment(path, [*changes, f"run.seed={seed}"]))
    recommender = _trained(made, is_trained=name != "mind")
    space, split = space_of(recommender), made.split
    metric = "auc" if isinstance(split.test, Impressions) else "ndcg@100"
    held = {part: getattr(split, part) for part in ("validation", "test")}
    parts = {name: _part(recommender, space, one) for name, one in held.items()}
    invented = invented_users(recommender, Key.from_seed(24).at("users"), users=_USERS)
    trained = vectors_of(recommender, split.train)
    return ServedSet(name, metric, recommender, space, invented, trained, parts, held)


def drifted(histories: Shards, age: float, key: Key) -> Shards:
    """Histories as they were `age` days ago, if interests drift."""
    draw = key.generator()
    is_new = draw.random(len(histories.items)) < 1 - np.exp(-age / _DAYS)
    others = draw.choice(histories.items, size=len(histories.items))
    return replace(histories, items=np.where(is_new, others, histories.items))


def _trained(made: Assembled, *, is_trained: bool) -> Recommender:
    simulation = made.simulation
    state = simulation.start()
    while is_trained and not made.method.is_over(state.server):
        state, _ = simulation.step(state)
    broadcast = made.method.broadcast(state.server)
    return Recommender(made.method, broadcast, made.split.catalog)


def _part(
    recommender: Recommender, space: ItemSpace, held: Heldout | Impressions
) -> Part:
    if isinstance(held, Heldout):
        history = held.history
        values = _ndcg(space, held)
        return Part(recommender, history, values, np.arange(len(history)))
    slates = held.slates
    histories = history_shards(slates, np.arange(len(slates.histories)))
    owners = slates.history_of[judged(held)]
    return Part(recommender, histories, _auc(space, held), owners)


def _ndcg(space: ItemSpace, held: Heldout) -> Callable[[Vectors], Values]:
    single = ItemSpace(
        space.vectors.astype(np.float32), space.offsets.astype(np.float32)
    )

    def values(users: Vectors) -> Values:
        # Equal vectors are scored once: an index has few values.
        places: dict[bytes, int] = {}
        which = [places.setdefault(row.tobytes(), len(places)) for row in users]
        _, firsts = np.unique(which, return_index=True)
        scores = single.scores(users[firsts].astype(np.float32))[which]
        ranks = rank(lambda _: scores, held, candidates=FullRanking())
        return parse("ndcg@100")(ranks)

    return values


def _auc(space: ItemSpace, held: Impressions) -> Callable[[Vectors], Values]:
    def values(users: Vectors) -> Values:
        def score(slates: object) -> np.ndarray:
            shown, owners = slates.shown.values, slates.shown.owners  # type: ignore[attr-defined]
            own = users[slates.history_of[owners]]  # type: ignore[attr-defined]
            inner = np.einsum("ij,ij->i", own, space.vectors[shown])
            return inner + space.offsets[shown]

        return evaluate_impressions(score, held, metrics=["auc"]).values["auc"]

    return values
