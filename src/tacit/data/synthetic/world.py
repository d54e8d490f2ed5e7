"""An invented world with a known answer: who likes what, and how much, is a formula.

A user's taste is a direction, partly given by who they are and partly their own. An
item has a direction near those of its topics, and a popularity that falls with its
rank. Users pick items without replacement with probability proportional to

    exp(strength * taste · direction) * popularity

so `World.oracle` can say how good a ranking could possibly be. Everything follows from
the seed; a user's draws depend on nobody else.

A world is made some users at a time: memory holds the finished columns and little
more. Time grows with users × items, for every weight is computed once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike

from tacit import arrays, check
from tacit.data import cache as cached
from tacit.data.archives import Stamp
from tacit.data.dataset import Dataset
from tacit.data.sources.source import Generated
from tacit.data.strings import Strings
from tacit.data.synthetic.checkerboard import checkerboard
from tacit.data.synthetic.ground_truth import Oracle
from tacit.data.synthetic.user_activity import Activity
from tacit.data.synthetic.users_and_items import Items, Users
from tacit.errors import BadValue
from tacit.keys import Key

__all__ = [
    "LIKE_MOVIELENS_1M",
    "LIKE_MOVIELENS_20M",
    "SOURCES",
    "World",
    "checkerboard",
]

_KEPT_FROM = 10**8  # weights, which take some seconds to compute
_VERSION = 1  # raise it when the same fields give another world


@dataclass(frozen=True)
class World:
    """The size and nature of an invented world; `dataset` is what happens in it."""

    users: int = 1500
    items: int = 400
    events_per_user: float = 40.0  # the mean, before repeats
    rank: int = 8
    strength: float = 5.0  # how much taste counts beside popularity
    popularity_exponent: float = 0.7
    popularity_decay: float = 0.0  # cuts the tail off: exp(-decay) at the last rank
    topics: int = 8
    demographics: float = 0.4  # share of a taste that follows from who a user is
    repeats: float = 0.05  # share of all ratings that are second ones
    fewest_events: int = 5  # anybody has
    activity_spread: float = 0.6  # of the logarithm of how many events users have
    seed: int = 0

    def __post_init__(self) -> None:
        check.at_least(1, users=self.users, rank=self.rank, topics=self.topics)
        check.at_least(1, fewest_events=self.fewest_events)
        check.at_least(2 * self.fewest_events, items=self.items)
        check.at_least(self.fewest_events, events_per_user=self.events_per_user)
        check.not_negative(
            popularity_exponent=self.popularity_exponent,
            popularity_decay=self.popularity_decay,
            strength=self.strength,
            demographics=self.demographics,
            repeats=self.repeats,
            activity_spread=self.activity_spread,
        )
        if self.demographics > 1:
            raise BadValue(f"demographics={self.demographics} must be <= 1")
        if self.repeats > 0.5:
            raise BadValue(
                f"repeats={self.repeats} must be <= 0.5: nothing is rated three times"
            )
        if self.events_per_user > self.items / 2:
            raise BadValue(
                f"events_per_user={self.events_per_user} must be at most half of "
                f"items={self.items}"
            )

    def dataset(self, name: str = "synthetic") -> Dataset:
        """The log, the catalog and the users of this world."""
        log, catalog = self._activity.log(), self._items.catalog()
        return Dataset(name, log, catalog, self._users.profiles(), listed=catalog)

    def load(self, name: str = "synthetic", *, cache: Path | None = None) -> Dataset:
        """As `dataset`; a large world is made once and then read from the cache."""
        if not self.is_large:
            return self.dataset(name)
        text = repr((name, self)).encode()
        digest = hashlib.blake2b(text, digest_size=8).hexdigest()
        place = cached.entry(cached.folder(cache), f"world-{digest}")
        build = partial(self.dataset, name)
        return cached.through(place, stamp=lambda: self.stamp, build=build)

    @property
    def is_large(self) -> bool:
        """Whether it takes so long to make that it is kept in the cache."""
        return self.users * self.items >= _KEPT_FROM

    @property
    def stamp(self) -> Stamp:
        """The settings and the version that this world follows from."""
        return {"world": repr(self), "version": _VERSION}

    def oracle(self, of: Dataset) -> Oracle:
        """The best ranker for a data set of this world, filtered or not."""
        users = _places(of.profiles.ids, self._users.ids)
        items = _places(of.catalog.ids, self._items.ids)
        return Oracle(self._oracle.users[users], self._oracle.items[items])

    def truth(self, of: Dataset | ArrayLike) -> Float64[np.ndarray, "users items"]:
        """The probability that an item is the next pick of someone who has none yet.

        `of` is a data set of this world, filtered or not, or the numbers of some users;
        columns are the data set's items, or all items. Users × items at once: of a
        large world ask for some users, or the `oracle`.
        """
        if not isinstance(of, Dataset):
            return self._oracle.first_pick(arrays.rows(of, self.users))
        users = _places(of.profiles.ids, self._users.ids)
        items = _places(of.catalog.ids, self._items.ids)
        return self._oracle.first_pick(users)[:, items]

    @cached_property
    def _users(self) -> Users:
        return Users(self._key, self.users, self.rank, self.demographics)

    @cached_property
    def _items(self) -> Items:
        popularity = self.popularity_exponent, self.popularity_decay
        return Items(self._key, self.items, self.rank, self.topics, *popularity)

    @property
    def _activity(self) -> Activity:
        return Activity(
            users=self._users,
            items=self._items,
            oracle=self._oracle,
            mean=self.events_per_user,
            spread=self.activity_spread,
            fewest=self.fewest_events,
            repeats=self.repeats,
        )

    @cached_property
    def _oracle(self) -> Oracle:
        tastes, ones = self.strength * self._users.tastes, np.ones((self.users, 1))
        popularity = self._items.log_popularity[:, None]
        return Oracle(
            np.concatenate([tastes, ones], axis=1),
            np.concatenate([self._items.directions, popularity], axis=1),
        )

    @property
    def _key(self) -> Key:
        return Key.from_seed(self.seed).at("world")


def _places(ids: Strings, world: Strings) -> Int64[np.ndarray, "ids"]:
    """The indices of a data set's ids in the world they come from."""
    strange = [i for i in ids if i not in world.positions]
    if strange:
        raise BadValue(f"{strange[0]!r} is not of this world; ask the one that made it")
    return np.array([world.positions[i] for i in ids], np.int64)


def _source(name: str, title: str, world: World) -> Generated:
    return Generated(
        name=name,
        title=title,
        home="made by this package from a seed",
        terms="None: no real user is in it.",
        citation="None needed.",
        make=partial(world.dataset, name),
        stamp=world.stamp if world.is_large else None,
    )


# Activity and popularity follow MovieLens: docs/data.md says how closely.
LIKE_MOVIELENS_1M = World(
    users=6_040,
    items=3_706,
    events_per_user=167.5,
    popularity_exponent=0.45,
    popularity_decay=5.5,
    topics=12,
    repeats=0.0,
    fewest_events=20,
    activity_spread=1.06,
)
LIKE_MOVIELENS_20M = replace(
    LIKE_MOVIELENS_1M,
    users=138_000,
    items=27_000,
    events_per_user=142.5,
    popularity_exponent=0.7,
    popularity_decay=4.0,
    activity_spread=1.215,
)

SOURCES = {
    source.name: source
    for source in (
        _source("synthetic", "An invented world with a known answer", World()),
        _source(
            "synthetic-1m", "An invented world the size of ML-1M", LIKE_MOVIELENS_1M
        ),
        _source(
            "synthetic-20m", "An invented world the size of ML-20M", LIKE_MOVIELENS_20M
        ),
    )
}
