"""The users and the items of an invented world: tastes, directions, popularity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Categories, Category, Features, Numeric
from tacit.data.strings import Strings
from tacit.data.synthetic.titles import TOPICS, title, topic_name
from tacit.keys import Key, Keys

_GROUPS = {
    "age_group": ("Under 18", "18-24", "25-34", "35-49", "50+"),
    "gender": ("F", "M", "X"),
    "occupation": ("artist", "engineer", "farmer", "nurse", "student", "teacher"),
}
_NEAR_TOPIC = 0.8  # how close an item's direction is to that of its topics
_SECOND_TOPIC = 0.3  # share of items with two topics

Directions = Float64[np.ndarray, "rows rank"]


@dataclass(frozen=True)
class Users:
    """Users with tastes, of which `demographics` is the share that groups explain."""

    key: Key
    n: int
    rank: int
    demographics: float

    @cached_property
    def keys(self) -> Keys:
        """One stream of random numbers per user."""
        return self.key.at("people").each(np.arange(self.n))

    @cached_property
    def ids(self) -> Strings:
        """The user ids `u0000`, `u0001`, …, all of the same length."""
        return _ids("u", self.n)

    @cached_property
    def groups(self) -> dict[str, Int64[np.ndarray, "users"]]:
        """The label of each user, for each of the things users tell."""
        return {
            name: self.keys.at(name).integers(1, below=len(labels))[:, 0]
            for name, labels in _GROUPS.items()
        }

    @cached_property
    def tastes(self) -> Directions:
        """One unit vector per user: the direction of items that the user likes."""
        shared = np.zeros((self.n, self.rank))
        for name, labels in _GROUPS.items():
            of_label = _directions(self.key.at("labels", name), len(labels), self.rank)
            shared += of_label[self.groups[name]]
        own = _unit(self.keys.at("taste").normal(self.rank))
        share = self.demographics
        # Square roots: the two parts are nearly orthogonal, and their squares add.
        return _unit(share**0.5 * _unit(shared) + (1 - share) ** 0.5 * own)

    def profiles(self) -> Profiles:
        """The profiles: the labels that each user tells."""
        features = {
            name: Category(self.groups[name].astype(np.int32), Strings.of(labels))
            for name, labels in _GROUPS.items()
        }
        return Profiles(self.ids, features)


@dataclass(frozen=True)
class Items:
    """Items near their topics, with a popularity that falls with a random rank.

    It falls as a power with an exponential cut-off: rank ** -exponent * exp(-decay *
    rank / n).
    """

    key: Key
    n: int
    rank: int
    topics: int
    exponent: float
    decay: float

    @cached_property
    def ids(self) -> Strings:
        """The item ids `i000`, `i001`, …, all of the same length."""
        return _ids("i", self.n)

    @cached_property
    def pairs(self) -> Int64[np.ndarray, "items two"]:
        """Each item's first and second topic; they are the same for most items."""
        draw = self.key.at("topics").generator()
        first, other = draw.integers(self.topics, size=(2, self.n))
        has_second = draw.random(self.n) < _SECOND_TOPIC
        return np.stack([first, np.where(has_second, other, first)], axis=1)

    @cached_property
    def directions(self) -> Directions:
        """One unit vector per item, near those of its topics."""
        centers = _directions(self.key.at("centers"), self.topics, self.rank)
        own = _directions(self.key.at("items"), self.n, self.rank)
        near = _unit(centers[self.pairs].mean(axis=1))
        return _unit(_NEAR_TOPIC * near + (1 - _NEAR_TOPIC**2) ** 0.5 * own)

    @cached_property
    def log_popularity(self) -> Float64[np.ndarray, "items"]:
        """The logarithm of what an item's weight is beside the taste for it."""
        rank = 1 + self.key.at("popularity").generator().permutation(self.n)
        return -self.exponent * np.log(rank) - self.decay * rank / self.n

    def catalog(self) -> Catalog:
        """Titles with a noun of the first topic, the topics, and years."""
        names = [topic_name(number) for number in range(self.topics)]
        seen = [0] * len(TOPICS)  # items with the nouns of each topic so far
        titles = []
        for topic in self.pairs[:, 0] % len(TOPICS):
            titles.append(title(TOPICS[topic], seen[topic]))
            seen[topic] += 1
        topics = [[names[t] for t in dict.fromkeys(pair)] for pair in self.pairs]
        # Most items are recent: the mean age is 15 years.
        age = self.key.at("years").generator().exponential(15.0, self.n)
        year = np.maximum(1950, 2022 - np.floor(age)).astype(np.float32)
        features: Features = {"topics": Categories.of(topics), "year": Numeric(year)}
        return Catalog(self.ids, Strings.of(titles), features)


def _ids(prefix: str, n: int) -> Strings:
    """`u000`, `u001`, …, all of the same length."""
    return Strings.of(f"{prefix}{number:0{len(str(n - 1))}}" for number in range(n))


def _directions(key: Key, n: int, rank: int) -> Directions:
    return _unit(key.generator().standard_normal((n, rank)))


def _unit(rows: Directions) -> Directions:
    """Each row divided by its L2 norm."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)  # opposite topics may cancel
