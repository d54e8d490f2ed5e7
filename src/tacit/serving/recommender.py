"""Ranking on the device: a public model, a private history, and nothing sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue, Refused
from tacit.keys import Key, Keys
from tacit.method import (
    Candidates,
    Clients,
    Explainable,
    ListFor,
    Method,
    Scores,
    Tastes,
    ranking_for,
)
from tacit.plans import Plan
from tacit.records import Records
from tacit.serving.taste import Taste, model_digest, origin, read_or_make
from tacit.serving.topk import top_k
from tacit.transport.messages import Broadcast

History = Iterable[str]  # the ids of the items that somebody likes
OneOfMany = list[str] | tuple[str, ...]  # a text is no history of texts

_USERS_AT_ONCE = 256  # users scored together: a taste may be a whole network


@dataclass(frozen=True)
class Recommendation:
    """One line of a user's list."""

    id: str
    title: str
    score: float


@dataclass(frozen=True)
class Reason:
    """An item of a user's history, and its share in a recommendation."""

    id: str
    title: str
    share: float


@dataclass(frozen=True, eq=False)
class Holding:
    """What one client holds of its user: events in their order, and a profile."""

    shard: Shards  # of one user, over the model's catalog
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
    list_for: ListFor = "any"  # what `method` ranks for: see `ranking_for`

    @overload
    def recommend(
        self, history: History | Holding | Taste, n: int = 10
    ) -> Records[Recommendation]: ...

    @overload
    def recommend(
        self, history: Iterable[OneOfMany], n: int = 10
    ) -> list[Records[Recommendation]]: ...

    def recommend(
        self, history: History | Iterable[OneOfMany] | Holding | Taste, n: int = 10
    ) -> Records[Recommendation] | list[Records[Recommendation]]:
        """The best `n` items for somebody with this history, without what they have.

        A history is a list of item ids, all of them liked; or all that a client holds;
        or the `taste` that was made of either. A list of histories gives one list of
        recommendations per history. Whichever it is stays in this process.
        """
        check.at_least(1, n=n)
        if isinstance(history, Taste):
            self._refuse_others(history)
            return self._best(history.tastes, history.histories, n)[0]
        if isinstance(history, Holding):
            return self._ranked(history, n)[0]
        given = _listed(history)
        if not _are_histories(given):
            return self._ranked(self.holding(_ids(given)), n)[0]
        found: list[Records[Recommendation]] = []
        for first in range(0, len(given), _USERS_AT_ONCE):
            some = [_ids(_listed(one)) for one in given[first : first + _USERS_AT_ONCE]]
            found += self._ranked(self._holdings(some), n)
        return found

    def taste(self, history: History | Holding, *, keep: Path | None = None) -> Taste:
        """The taste that `recommend` computes first, for many lists from one taste.

        It is worth it where the method adapts on the device. `keep` is a file of this
        client: if it has the taste of this model and history, that one is read; else it
        is computed and replaces what was there.
        """
        held = self.holding(history)
        tastes = self._represent(held) if keep is None else self._stored(keep, held)
        return Taste(tastes, held.shard.histories, self.digest)

    @cached_property
    def digest(self) -> str:
        """A digest that tells this model from others; a taste is of one model."""
        return model_digest(self.method, self.broadcast)

    def ranking_for(self, list_for: ListFor) -> Recommender:
        """The same model, ranking for a `session` or the next `visit`; or for `any`.

        A session is read off the order of the history, and off its times where there
        are any; a visit off times, if there are any. Refuses a method that cannot.
        """
        own = ranking_for(self.method, list_for)
        return replace(self, method=own, list_for=list_for)

    def why(
        self, history: History | Holding, item: str, *, n: int = 3
    ) -> Records[Reason]:
        """The items of this history that add most to an item's score.

        The strongest comes first. Shares are of everything that raises the score; the
        list is empty where only popularity does.
        """
        check.at_least(1, n=n)
        shard = _once(self.holding(history).shard)
        target = int(self.catalog.indices(_ids([item]))[0])
        if not isinstance(self.method, Explainable):
            name = type(self.method).__name__
            raise Refused(f"{name} cannot say why it recommends an item")
        speaks = np.maximum(self.method.reasons(self.broadcast, shard, target), 0.0)
        total = speaks.sum()
        best = np.argsort(-speaks, kind="stable")[:n]
        return Records(
            Reason(
                self.catalog.ids[i], self.catalog.titles[i], float(speaks[row] / total)
            )
            for row, i in ((row, int(shard.items[row])) for row in best.tolist())
            if speaks[row] > 0
        )

    def score(
        self,
        shards: Shards,
        clients: Clients,
        keys: Keys | None = None,
        *,
        items: Int64[np.ndarray, "items"] | None = None,
    ) -> Scores:
        """A score for each user and item, of shape (users, items); by default all."""
        own = keys or Key.from_os().each(np.arange(len(shards)))
        every, found = Candidates.all_of(self.catalog), []
        if items is not None:
            every = Candidates(items, self.catalog)
        for first in range(0, max(1, len(shards)), _USERS_AT_ONCE):
            rows = np.arange(first, min(first + _USERS_AT_ONCE, len(shards)))
            block = clients.take(rows), shards.take(rows), own[rows]
            tastes = self.method.represent(self.broadcast, *block)
            found.append(self.method.score(self.broadcast, tastes, every))
        return np.concatenate(found)

    def holding(self, history: History | Holding) -> Holding:
        """What a client holds; a list of items has neither a profile nor values."""
        if isinstance(history, Holding):
            return history
        return self._holdings([_ids(_listed(history))])

    def _holdings(self, histories: Sequence[Sequence[str]]) -> Holding:
        """The same for several clients, who are ranked for together."""
        held = [self.catalog.indices(history) for history in histories]
        return Holding(self._shard(held), _nobody(len(held)))

    def _represent(self, held: Holding) -> Tastes:
        who = stranger(self.method, profiles=held.profile)
        key = Key.from_os().each(np.arange(len(held.profile)))
        return self.method.represent(self.broadcast, who, held.shard, key)

    def _ranked(self, held: Holding, n: int) -> list[Records[Recommendation]]:
        return self._best(self._represent(held), held.shard.histories, n)

    def _stored(self, path: Path, held: Holding) -> Tastes:
        own = origin(self.digest, held.shard, profile=held.profile)
        return read_or_make(path, own, make=lambda: self._represent(held))

    def _best(
        self, tastes: Tastes, held: Ragged, n: int
    ) -> list[Records[Recommendation]]:
        every = Candidates.all_of(self.catalog)
        best = top_k(self.method.score(self.broadcast, tastes, every), held, k=n)
        ids, titles = self.catalog.ids, self.catalog.titles
        return [
            Records(
                Recommendation(ids[item], titles[item], score)
                for item, score in zip(
                    one.items.tolist(), one.scores.tolist(), strict=True
                )
            )
            for one in (best[row] for row in range(len(best)))
        ]

    def _refuse_others(self, taste: Taste) -> None:
        if taste.model != self.digest:
            raise Refused(
                "this taste is of another model; make one with this model's `taste`"
            )

    def _shard(self, held: Sequence[Int64[np.ndarray, "_"]]) -> Shards:
        """The histories of users who like these items and have no other events."""
        liked, n_items = self.method.liked, len(self.catalog)
        return Shards.of_histories(held, n_items=n_items, value=liked)


def _once(shard: Shards) -> Shards:
    """One user's items, each at its latest event."""
    latest = {item: place for place, item in enumerate(shard.items.tolist())}
    is_latest = np.isin(np.arange(len(shard.items)), [*latest.values()])
    return Shards.of(shard.log.keep(is_latest), shard.impressions)


def stranger(
    method: Method, n: int = 1, *, profiles: Profiles | None = None
) -> Clients:
    """Clients that have never taken part, enrolled now; by default without profiles."""
    profiles = _nobody(n) if profiles is None else profiles
    keys = Key.from_os().each(np.arange(len(profiles)))
    zeros = np.zeros(len(profiles), np.int64)
    state = method.enrol(profiles, keys.at("enrol"))
    nobodys = Plan(len(profiles))  # they agreed to none, and are asked for nothing
    return Clients(nobodys, np.arange(len(profiles)), zeros, state)


def _nobody(n: int) -> Profiles:
    return Profiles(Strings.of(str(i) for i in range(n)))


def _listed(history: object) -> list[object]:
    """A history as a list; refuses what is no list at all."""
    if isinstance(history, str | bytes):
        raise BadValue(
            f"history={history!r} is one text; give a list of item ids, such as "
            f"[{_text(history)!r}]"
        )
    if isinstance(history, Mapping) or not isinstance(history, Iterable):
        raise BadValue(
            f"history={history!r} must be a list of item ids, such as ['item-1']; "
            "for several users give a list of such lists"
        )
    return list(history)


def _are_histories(given: Sequence[object]) -> bool:
    """Whether these are histories of several users, and not the items of one."""
    first = next(iter(given), None)
    return isinstance(first, Iterable) and not isinstance(first, str | bytes)


def _ids(items: Iterable[object]) -> list[str]:
    """Item ids, all of them texts; refuses numbers, which no catalog has."""
    found = []
    for item in items:
        if not isinstance(item, str):
            raise BadValue(
                f"item {item!r} is of type {type(item).__name__}; ids are texts, also "
                f"where a table has numbers: write {_text(item)!r}"
            )
        found.append(item)
    return found


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
