"""Ranking on the device: a public model, a private history, and nothing sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import Refused
from tacit.keys import Key, Keys
from tacit.method import Candidates, Clients, Explainable, Method, Scores, Tastes
from tacit.plan import Plan
from tacit.serving.taste import Taste, kept, model_digest, origin
from tacit.serving.topk import top_k
from tacit.transport.messages import Broadcast

_PEOPLE_AT_ONCE = 256


@dataclass(frozen=True)
class Recommendation:
    """One line of a user's list."""

    id: str
    title: str
    score: float


@dataclass(frozen=True)
class Reason:
    """Something a user has, and its share in a recommendation."""

    id: str
    title: str
    share: float


@dataclass(frozen=True, eq=False)
class Holding:
    """What one client holds of its user: events as they were, and a profile."""

    shard: Shards  # of one device, over the model's catalog
    profile: Profiles

    def ids(self, catalog: Catalog) -> list[str]:
        """The items held, each once, in the order they came."""
        return [catalog.ids[item] for item in dict.fromkeys(self.shard.items.tolist())]


@dataclass(frozen=True, eq=False)
class Recommender:
    """A trained model as a client holds it."""

    method: Method
    broadcast: Broadcast
    catalog: Catalog

    def recommend(
        self, history: Sequence[str] | Holding | Taste, k: int = 10
    ) -> list[Recommendation]:
        """The best `k` items for someone with this history, without what they have.

        Given as item ids, all of them liked and nothing known of the user; as all
        that a client holds; or as the `taste` that was made of either. Whichever it is
        stays in this process.
        """
        check.at_least(1, k=k)
        if isinstance(history, Taste):
            self._refuse_others(history)
            return self._best(history.tastes, history.histories, k)
        held = self._held(history)
        return self._best(self._represent(held), held.shard.histories, k)

    def taste(
        self, history: Sequence[str] | Holding, *, keep: Path | None = None
    ) -> Taste:
        """What `recommend` makes of a history first, to be made once for many lists.

        Worth it where the method adapts on the device. With `keep`, a file of this
        client: the taste in it if it is of this model and history, else it is made
        anew and replaces what was there.
        """
        held = self._held(history)
        tastes = self._represent(held) if keep is None else self._kept(keep, held)
        return Taste(tastes, held.shard.histories, self.digest)

    @cached_property
    def digest(self) -> str:
        """What tells this model from others; a taste is of one model."""
        return model_digest(self.method, self.broadcast)

    def because(self, history: Sequence[str], item: str, *, n: int = 3) -> list[Reason]:
        """What in this history speaks most for an item, the strongest first.

        Shares are of all that speaks for it. Empty where only popularity does.
        """
        check.at_least(1, n=n)
        held = self.catalog.indices(list(dict.fromkeys(history)))
        shard = self._shard(held)
        target = int(self.catalog.indices([item])[0])
        if not isinstance(self.method, Explainable):
            name = type(self.method).__name__
            raise Refused(f"{name} cannot say why it recommends an item")
        speaks = np.maximum(self.method.reasons(self.broadcast, shard, target), 0.0)
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
        """A score for each user and item of the catalog.

        A few hundred users at a time: a taste may be a whole network of its own.
        """
        own = keys or Key.from_os().each(np.arange(len(shards)))
        every, parts = Candidates.all_of(self.catalog), []
        for first in range(0, max(1, len(shards)), _PEOPLE_AT_ONCE):
            rows = np.arange(first, min(first + _PEOPLE_AT_ONCE, len(shards)))
            people = clients.take(rows), shards.take(rows), own[rows]
            tastes = self.method.represent(self.broadcast, *people)
            parts.append(self.method.score(self.broadcast, tastes, every))
        return np.concatenate(parts)

    def _held(self, history: Sequence[str] | Holding) -> Holding:
        """Of someone who names what they like nothing more is known."""
        if isinstance(history, Holding):
            return history
        return Holding(self._shard(self.catalog.indices(list(history))), _nobody(1))

    def _represent(self, held: Holding) -> Tastes:
        who = stranger(self.method, profiles=held.profile)
        key = Key.from_os().each(np.arange(1))
        return self.method.represent(self.broadcast, who, held.shard, key)

    def _kept(self, path: Path, held: Holding) -> Tastes:
        own = origin(self.digest, held.shard, profile=held.profile)
        return kept(path, own, make=lambda: self._represent(held))

    def _best(self, tastes: Tastes, held: Ragged, k: int) -> list[Recommendation]:
        every = Candidates.all_of(self.catalog)
        best = top_k(self.method.score(self.broadcast, tastes, every), held, k=k)[0]
        return [
            Recommendation(self.catalog.ids[i], self.catalog.titles[i], s)
            for i, s in zip(best.items.tolist(), best.scores.tolist(), strict=True)
        ]

    def _refuse_others(self, taste: Taste) -> None:
        if taste.model != self.digest:
            raise Refused(
                "this taste is of another model; make one with this model's `taste`"
            )

    def _shard(self, held: Int64[np.ndarray, "items"]) -> Shards:
        """A history of items that somebody likes."""
        liked = self.method.liked
        return Shards.of_history(held, n_items=len(self.catalog), value=liked)


def stranger(
    method: Method, n: int = 1, *, profiles: Profiles | None = None
) -> Clients:
    """Clients that have never taken part: enrolled now, by default told nothing."""
    people = _nobody(n) if profiles is None else profiles
    keys = Key.from_os().each(np.arange(len(people)))
    zeros = np.zeros(len(people), np.int64)
    state = method.enrol(people, keys.at("enrol"))
    nobodys = Plan(len(people))  # they agreed to none, and are asked for nothing
    return Clients(nobodys, np.arange(len(people)), zeros, state)


def _nobody(n: int) -> Profiles:
    return Profiles(Strings.of(str(i) for i in range(n)))
