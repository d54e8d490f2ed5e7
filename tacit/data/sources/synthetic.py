"""An invented world with a known answer: who likes what, and how much, is a formula.

A person's taste is a direction, partly given by who they are and partly their own. An
item has a direction near those of its topics, and a popularity that falls as a power of
its rank. People pick items without replacement with probability proportional to

    exp(strength * taste · direction) * popularity

so `World.truth` can say how good a ranking could possibly be. Everything follows from
the seed; a person's draws depend on nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from tacit import arrays, check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Categories, Category, Features, Numeric
from tacit.data.interactions import Interactions
from tacit.data.sources.source import Generated
from tacit.data.sources.titles import TOPICS, title
from tacit.data.strings import Strings
from tacit.errors import BadValue
from tacit.keys import Key, Keys

_GROUPS = {
    "age_group": ("Under 18", "18-24", "25-34", "35-49", "50+"),
    "gender": ("F", "M", "X"),
    "occupation": ("artist", "engineer", "farmer", "nurse", "student", "teacher"),
}
_STRENGTH = 5.0  # how much taste counts beside popularity
_NEAR_TOPIC = 0.8  # how close an item's direction is to that of its topics
_SECOND_TOPIC = 0.3  # share of items with two topics
_SPREAD = 0.6  # of the logarithm of how many events people have
_START = 1_672_531_200  # 1 January 2023
_YEAR = 365 * 86_400
_FEWEST = 5  # events a person
_BLOCK = 4_000_000  # scores held at a time

Directions = Float64[np.ndarray, "rows rank"]


@dataclass(frozen=True)
class World:
    """The size and nature of an invented world; `dataset` is what happens in it."""

    users: int = 1500
    items: int = 400
    events_per_user: float = 40.0  # the mean, before repeats
    rank: int = 8
    popularity_exponent: float = 0.7
    topics: int = 8
    demographics: float = 0.4  # share of a taste that follows from who a person is
    repeats: float = 0.05  # share of all ratings that are second ones
    seed: int = 0

    def __post_init__(self) -> None:
        check.at_least(1, users=self.users, rank=self.rank, topics=self.topics)
        check.at_least(2 * _FEWEST, items=self.items)
        check.at_least(_FEWEST, events_per_user=self.events_per_user)
        check.not_negative(
            popularity_exponent=self.popularity_exponent,
            demographics=self.demographics,
            repeats=self.repeats,
        )
        if self.topics > len(TOPICS):
            raise BadValue(f"topics={self.topics} must be <= {len(TOPICS)}")
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
        """The log, the catalog and the people of this world."""
        return Dataset(name, self._log(), self._catalog(), self._profiles())

    def truth(self, of: Dataset | ArrayLike) -> Float64[np.ndarray, "people items"]:
        """The probability that an item is the next pick of someone who has none yet.

        `of` is a data set of this world, filtered or not, or the numbers of some users;
        columns are the data set's items, or all items.
        """
        if not isinstance(of, Dataset):
            return np.exp(self._log_chances(arrays.rows(of, self.users)))
        users = _places(of.profiles.ids, _ids("u", self.users))
        items = _places(of.catalog.ids, _ids("i", self.items))
        return np.exp(self._log_chances(users))[:, items]

    def _log_chances(
        self, users: Int64[np.ndarray, "people"]
    ) -> Float64[np.ndarray, "people items"]:
        """The logarithm of `truth`."""
        # Not a matrix product: its rounding depends on how many people are asked for.
        liking = np.einsum("ur,ir->ui", self._tastes[users], self._directions)
        return log_softmax(_STRENGTH * liking + self._log_popularity, axis=1)

    @property
    def _key(self) -> Key:
        return Key.from_seed(self.seed).at("world")

    @property
    def _people(self) -> Keys:
        return self._key.at("people").each(np.arange(self.users))

    @cached_property
    def _topics(self) -> Int64[np.ndarray, "items two"]:
        """Each item's first and second topic; they are the same for most items."""
        draw = self._key.at("topics").generator()
        first, other = draw.integers(self.topics, size=(2, self.items))
        has_second = draw.random(self.items) < _SECOND_TOPIC
        return np.stack([first, np.where(has_second, other, first)], axis=1)

    @cached_property
    def _directions(self) -> Directions:
        centers = _directions(self._key.at("centers"), self.topics, self.rank)
        own = _directions(self._key.at("items"), self.items, self.rank)
        near = _unit(centers[self._topics].mean(axis=1))
        return _unit(_NEAR_TOPIC * near + (1 - _NEAR_TOPIC**2) ** 0.5 * own)

    @cached_property
    def _log_popularity(self) -> Float64[np.ndarray, "items"]:
        rank = 1 + self._key.at("popularity").generator().permutation(self.items)
        return -self.popularity_exponent * np.log(rank)

    @cached_property
    def _groups(self) -> dict[str, Int64[np.ndarray, "users"]]:
        """The label of each person, for each of the things people tell."""
        return {
            name: self._people.at(name).integers(1, below=len(labels))[:, 0]
            for name, labels in _GROUPS.items()
        }

    @cached_property
    def _tastes(self) -> Directions:
        shared = np.zeros((self.users, self.rank))
        for name, labels in _GROUPS.items():
            of_label = _directions(self._key.at("labels", name), len(labels), self.rank)
            shared += of_label[self._groups[name]]
        own = _unit(self._people.at("taste").normal(self.rank))
        share = self.demographics
        return _unit(share**0.5 * _unit(shared) + (1 - share) ** 0.5 * own)

    def _catalog(self) -> Catalog:
        names = [topic.name for topic in TOPICS[: self.topics]]
        seen = [0] * self.topics  # items of each topic so far
        titles = []
        for topic in self._topics[:, 0]:
            titles.append(title(TOPICS[topic], seen[topic]))
            seen[topic] += 1
        topics = [[names[t] for t in dict.fromkeys(pair)] for pair in self._topics]
        age = self._key.at("years").generator().exponential(15.0, self.items)
        year = np.maximum(1950, 2022 - np.floor(age)).astype(np.float32)
        features: Features = {"topics": Categories.of(topics), "year": Numeric(year)}
        return Catalog(_ids("i", self.items), Strings.of(titles), features)

    def _profiles(self) -> Profiles:
        features = {
            name: Category(self._groups[name].astype(np.int32), Strings.of(labels))
            for name, labels in _GROUPS.items()
        }
        return Profiles(_ids("u", self.users), features)

    def _log(self) -> Interactions:
        counts = self._counts()
        users = np.repeat(np.arange(self.users), counts)
        items = self._picks(counts)
        draws = [
            self._people.at(what).uniform_ragged(counts)
            for what in ("time", "stars", "again", "later", "other stars")
        ]
        start, span = self._stays()
        times = start[users] + span[users] * draws[0]
        again = draws[2] * (1 - self.repeats) < self.repeats
        later = times[again] + (1 - times[again]) * draws[3][again]
        stars = self._stars(users, items, draws[1])
        other = self._stars(users[again], items[again], draws[4][again])
        return Interactions.of_columns(
            np.concatenate([users, users[again]]),
            np.concatenate([items, items[again]]),
            values=np.concatenate([stars, other]),
            times=_START + (_YEAR * np.concatenate([times, later])).astype(np.int64),
            n_users=self.users,
            n_items=self.items,
        )

    def _counts(self) -> Int64[np.ndarray, "users"]:
        """How many items each person picks: log-normal around the mean."""
        draw = self._people.at("count").normal(1)[:, 0]
        factor = np.exp(_SPREAD * draw - _SPREAD**2 / 2)
        counts = np.rint(self.events_per_user * factor).astype(np.int64)
        return np.clip(counts, _FEWEST, self.items // 2)

    def _picks(self, counts: Int64[np.ndarray, "users"]) -> Int64[np.ndarray, "events"]:
        """Items drawn without replacement: the largest of chance plus Gumbel noise."""
        size = max(1, _BLOCK // self.items)
        blocks = np.split(np.arange(self.users), range(size, self.users, size))
        picked = []
        for block in blocks:
            uniform = self._people[block].at("picks").uniform(self.items)
            noise = -np.log(-np.log1p(-uniform))
            order = np.argsort(-(self._log_chances(block) + noise), axis=1)
            picked.append(order[np.arange(self.items) < counts[block, None]])
        return np.concatenate(picked)

    def _stays(
        self,
    ) -> tuple[Float64[np.ndarray, "users"], Float64[np.ndarray, "users"]]:
        """When each person comes and how long they stay, in shares of the year."""
        draw = self._people.at("stay").uniform(2)
        start = 0.8 * draw[:, 0]
        return start, (1 - start) * (0.1 + 0.9 * draw[:, 1])

    def _stars(
        self,
        users: Int64[np.ndarray, "some"],
        items: Int64[np.ndarray, "some"],
        noise: Float64[np.ndarray, "some"],
    ) -> Float64[np.ndarray, "some"]:
        """One to five: more where taste and item agree, and some chance."""
        liking = np.einsum("ij,ij->i", self._tastes[users], self._directions[items])
        return np.clip(np.rint(3.2 + 2.0 * liking + 2.0 * (noise - 0.5)), 1, 5)


def checkerboard(users: int, items: int, groups: int) -> Dataset:
    """A world with an obvious answer: people of a group have exactly its items.

    User i and item j are of the groups `i % groups` and `j % groups`. A person takes
    the items in order of their number, a second apart.
    """
    check.at_least(1, groups=groups)
    check.at_least(groups, users=users, items=items)
    user_group, item_group = np.arange(users) % groups, np.arange(items) % groups
    who, what = np.nonzero(user_group[:, None] == item_group)
    log = Interactions.of_columns(who, what, times=what, n_users=users, n_items=items)
    labels = Strings.of(f"group {g}" for g in range(groups))
    item_ids = Strings.of(f"i{n}" for n in range(items))
    catalog = Catalog(
        item_ids, item_ids, {"group": Category(item_group.astype(np.int32), labels)}
    )
    profiles = Profiles(
        Strings.of(f"u{n}" for n in range(users)),
        {"group": Category(user_group.astype(np.int32), labels)},
    )
    return Dataset("checkerboard", log, catalog, profiles)


def _ids(prefix: str, n: int) -> Strings:
    """`u000`, `u001`, …, all of the same length."""
    return Strings.of(f"{prefix}{number:0{len(str(n - 1))}}" for number in range(n))


def _places(ids: Strings, world: Strings) -> Int64[np.ndarray, "ids"]:
    """Where a data set's ids stand in the world they come from."""
    strange = [i for i in ids if i not in world.positions]
    if strange:
        raise BadValue(f"{strange[0]!r} is not of this world; ask the one that made it")
    return np.array([world.positions[i] for i in ids], np.int64)


def _directions(key: Key, n: int, rank: int) -> Directions:
    return _unit(key.generator().standard_normal((n, rank)))


def _unit(rows: Directions) -> Directions:
    """Rows of length one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)  # opposite topics may cancel


SOURCES = {
    "synthetic": Generated(
        name="synthetic",
        title="An invented world with a known answer",
        home="made by this package from a seed",
        terms="None: no real person is in it.",
        citation="None needed.",
        make=World().dataset,
    )
}
