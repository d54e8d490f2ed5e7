"""Ranking on the device: a public model, a private history, and nothing sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import Refused
from tacit.keys import Key, Keys
from tacit.method import Candidates, Clients, Method, Scores
from tacit.serving.topk import top_k
from tacit.transport.messages import Cast


@dataclass(frozen=True)
class Recommendation:
    """One line of a person's list."""

    id: str
    title: str
    score: float


@dataclass(frozen=True)
class Reason:
    """Something a person has, and its share in a recommendation."""

    id: str
    title: str
    share: float


@dataclass(frozen=True, eq=False)
class Recommender:
    """A trained model as a device holds it."""

    method: Method
    cast: Cast
    catalog: Catalog

    def __post_init__(self) -> None:
        if self.method.ranks_on != "device":
            raise Refused(
                f"{type(self.method).__name__} ranks on the server; ask it with a query"
            )

    def recommend(self, history: Sequence[str], k: int = 10) -> list[Recommendation]:
        """The best `k` items for someone with this history, without what they have.

        The history is given as item ids and stays in this process.
        """
        check.at_least(1, k=k)
        held = self.catalog.indices(list(history))
        shard = Shards.of_history(held, n_items=len(self.catalog))
        scores = self.score(shard, stranger(self.method, self.cast, len(shard)))
        best = top_k(scores, shard.histories, k=k)[0]
        return [
            Recommendation(self.catalog.ids[i], self.catalog.titles[i], s)
            for i, s in zip(best.items.tolist(), best.scores.tolist(), strict=True)
        ]

    def because(self, history: Sequence[str], item: str, *, n: int = 3) -> list[Reason]:
        """What in this history speaks most for an item, the strongest first.

        Shares are of all that speaks for it. Empty where only popularity does.
        """
        check.at_least(1, n=n)
        held = self.catalog.indices(list(dict.fromkeys(history)))
        shard = Shards.of_history(held, n_items=len(self.catalog))
        target = int(self.catalog.indices([item])[0])
        speaks = np.maximum(self.method.reasons(self.cast, shard, target), 0.0)
        total = speaks.sum()
        best = np.argsort(-speaks, kind="stable")[:n]
        return [
            Reason(self.catalog.ids[i], self.catalog.titles[i], speaks[row] / total)
            for row, i in ((row, int(shard.items[row])) for row in best.tolist())
            if speaks[row] > 0
        ]

    def score(
        self, shards: Shards, clients: Clients, keys: Keys | None = None
    ) -> Scores:
        """A score for each person and item of the catalog."""
        own = keys or Key.from_os().each(np.arange(len(shards)))
        tastes = self.method.represent(self.cast, clients, shards, own)
        return self.method.score(self.cast, tastes, Candidates.all_of(self.catalog))


def stranger(method: Method, cast: Cast, n: int = 1) -> Clients:
    """Devices that have never taken part: enrolled now, with nothing told of them."""
    nobody = Profiles(Strings.of(str(i) for i in range(n)))
    keys = Key.from_os().each(np.arange(n))
    zeros = np.zeros(n, np.int64)
    state = method.enrol(nobody, keys.at("enrol"))
    return Clients(cast.plan_digest, np.arange(n), zeros, state)
