"""An invented week of news with a known answer, in the same types as MIND.

Nouns have directions near those of their subtopic. A news has the mean direction of the
nouns in its title and abstract, and some of its own that no text tells. Whoever is
shown candidates picks them one after the other with probability proportional to

    exp(strength * taste · direction) * popularity * rank ** -position_bias

so `NewsWorld.truth` can say how good a ranking of an impression could possibly be. News
are numbered in order of publication, and candidates are drawn from the latest ones.
Histories are picks of the four weeks before. Everything follows from the seed; a
user's draws depend on nobody else, and nothing is users × news.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Int64
from numpy.typing import NDArray

from tacit import check
from tacit.data import cache as cached
from tacit.data.archives import Stamp
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.impressions import Impressions, Slates, clicks
from tacit.data.ragged import Ragged
from tacit.data.sources.source import Generated
from tacit.data.strings import Strings
from tacit.data.synthetic.news_articles import Newsroom
from tacit.data.synthetic.ragged_draws import gumbel, heaviest_first, log_normal, within
from tacit.data.synthetic.titles import TOPICS
from tacit.errors import BadValue
from tacit.keys import Key, Keys

_STRENGTH = 5.0  # how much taste counts beside popularity
_SPREAD = 0.6  # of the logarithm of how much users read and are shown
_CLICKS = (0.7, 0.9)  # one click up to the first share, two up to the second, or three
_FEWEST_SHOWN = 3
_RECENT = 0.05  # share of all news that candidates are drawn from
_START = 1_672_617_600  # 2 January 2023
_SPAN = 35 * 86_400  # seconds: four weeks of reading and one of impressions
_WEEKS_READ = 0.8  # share of the span before the first impression
_BLOCK = 500_000  # candidates drawn at a time
_KEPT_FROM = 10**7  # candidates that are drawn, which takes some seconds
_VERSION = 1  # raise it when the same world would come out differently

Users = Int64[np.ndarray, "users"]
Moments = Float64[np.ndarray, "moments"]  # shares of the span
Column = NDArray[Any]


@dataclass(frozen=True)
class NewsWorld:
    """The size and nature of an invented world of news."""

    users: int = 1000
    news: int = 2000
    impressions_per_user: float = 4.0  # means, here and in the next two
    shown: float = 20.0  # candidates per impression, before repeats are dropped
    history: float = 20.0
    topics: int = 12
    rank: int = 8
    popularity_exponent: float = 0.7
    position_bias: float = 0.0  # 0: the rank in the list does not matter, as in MIND
    cold: float = 0.02  # share of users without a history
    seed: int = 0

    def __post_init__(self) -> None:
        check.count(users=self.users, news=self.news, rank=self.rank)
        check.count(topics=self.topics)
        check.at_least(1, impressions_per_user=self.impressions_per_user)
        check.at_least(_FEWEST_SHOWN, shown=self.shown)
        check.positive(history=self.history)
        check.not_negative(
            popularity_exponent=self.popularity_exponent,
            position_bias=self.position_bias,
            cold=self.cold,
        )
        if self.topics > len(TOPICS):
            raise BadValue(f"topics={self.topics} must be <= {len(TOPICS)}")
        if self.cold > 1:
            raise BadValue(f"cold={self.cold} must be <= 1")
        if self.news < 5 * self.shown:
            raise BadValue(f"news={self.news} must be at least 5 × shown={self.shown}")

    def dataset(self, name: str = "synthetic-news") -> Dataset:
        """The log, the catalog, the users and the impressions of this world."""
        impressions, catalog = self._impressions(), self._catalog()
        profiles = Profiles(_ids("U", self.users))
        log = clicks(impressions)
        return Dataset(name, log, catalog, profiles, impressions, listed=catalog)

    def load(
        self, name: str = "synthetic-news", *, cache: Path | None = None
    ) -> Dataset:
        """As `dataset`; a large world is made once and then read from the cache."""
        if not self.is_large:
            return self.dataset(name)
        text = repr((name, self)).encode()
        digest = hashlib.blake2b(text, digest_size=8).hexdigest()
        place = cached.entry(cached.folder(cache), f"news-world-{digest}")
        build = partial(self.dataset, name)
        return cached.through(place, stamp=lambda: self.stamp, build=build)

    @property
    def is_large(self) -> bool:
        """Whether it takes so long to make that it is kept in the cache."""
        each = self.shown * (self.impressions_per_user + self.history)
        return self.users * each >= _KEPT_FROM

    @property
    def stamp(self) -> Stamp:
        """The settings and the version that this world follows from."""
        return {"world": repr(self), "version": _VERSION}

    def truth(self, slates: Slates) -> Float64[np.ndarray, "candidates"]:
        """The probability that a candidate is the first its reader picks.

        No order of the shown has a better expected AUC, MRR or nDCG. Slates must have
        the numbering of `dataset()`: any part of it that was not renumbered will do.
        """
        if (slates.n_users, slates.n_items) != (self.users, self.news):
            raise BadValue(
                f"slates of {slates.n_users} users and {slates.n_items} news are not "
                f"numbered like this world's {self.users} and {self.news}"
            )
        owners = slates.shown.owners
        weight = np.exp(
            self._utility(slates.users[owners], slates.shown.values)
            - self.position_bias * np.log1p(within(slates.shown.lengths))
        )
        return weight / np.bincount(owners, weight, minlength=len(slates))[owners]

    def _utility(
        self, users: Int[np.ndarray, "n"], news: Int[np.ndarray, "n"]
    ) -> Float64[np.ndarray, "n"]:
        liking = np.einsum("ij,ij->i", self._tastes[users], self._room.directions[news])
        return _STRENGTH * liking + self._log_popularity[news]

    @property
    def _key(self) -> Key:
        return Key.from_seed(self.seed).at("news world")

    @cached_property
    def _room(self) -> Newsroom:
        return Newsroom(self.news, self.topics, self.rank, self._key.at("newsroom"))

    @cached_property
    def _user_keys(self) -> Keys:
        return self._key.at("people").each(np.arange(self.users))

    @cached_property
    def _tastes(self) -> Float64[np.ndarray, "users rank"]:
        drawn = self._user_keys.at("taste").normal(self.rank)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    @cached_property
    def _log_popularity(self) -> Float64[np.ndarray, "news"]:
        rank = 1 + self._key.at("popularity").generator().permutation(self.news)
        return -self.popularity_exponent * np.log(rank)

    @property
    def _n_recent(self) -> int:
        return max(int(_RECENT * self.news), int(2 * self.shown))

    def _catalog(self) -> Catalog:
        room = self._room
        return Catalog(_ids("N", self.news), Strings.of(room.titles()), room.features())

    def _impressions(self) -> Impressions:
        shown = _joined([self._shown_to(users) for users in self._blocks()])
        read = _joined([self._read_by(users) for users in self._blocks()])
        users, times, lengths, items, clicked = shown
        return Impressions.of_columns(
            users,
            Ragged.of_lengths(lengths, items),
            clicked=clicked,
            histories=Ragged.of_lengths(*read),
            history_of=users,
            times=times,
            n_users=self.users,
            n_items=self.news,
        )

    def _blocks(self) -> Iterator[Users]:
        """Some users at a time, so that memory holds a bounded number of draws."""
        each = self.shown * max(self.impressions_per_user, self.history)
        size = max(1, int(_BLOCK / each))
        yield from np.split(np.arange(self.users), range(size, self.users, size))

    def _shown_to(self, users: Users) -> tuple[Column, ...]:
        """Users, times and lengths of impressions; candidates and their clicks."""
        keys = self._user_keys[users]
        uniform = keys.at("impressions").uniform(1)[:, 0]
        n = _around(uniform, self.impressions_per_user, least=1)
        when = keys.at("when").uniform_ragged(n)
        moments = _WEEKS_READ + (1 - _WEEKS_READ) * when
        uniform = keys.at("shown").uniform_ragged(n)
        lengths = np.minimum(
            _around(uniform, self.shown, least=_FEWEST_SHOWN), self._n_recent
        )
        candidates, noise = self._candidates(keys, n, lengths=lengths, moments=moments)
        who = np.repeat(users, n)
        weight = noise + self._utility(who[candidates.owners], candidates.values)
        weight -= self.position_bias * np.log1p(within(candidates.lengths))
        more = keys.at("clicks").uniform_ragged(n)
        n_clicks = 1 + sum((more > share).astype(np.int64) for share in _CLICKS)
        n_clicks = np.minimum(n_clicks, np.maximum(1, candidates.lengths - 1))
        clicked = heaviest_first(weight, candidates) < n_clicks[candidates.owners]
        times = _START + (_SPAN * moments).astype(np.int64)
        items = candidates.values.astype(np.int32)
        return who, times, candidates.lengths, items, clicked

    def _candidates(
        self,
        keys: Keys,
        n: Users,
        *,
        lengths: Int64[np.ndarray, "moments"],
        moments: Moments,
    ) -> tuple[Ragged, Float64[np.ndarray, "candidates"]]:
        """Distinct recent news for each impression, and Gumbel noise for each."""
        owner = np.repeat(np.arange(len(keys)), n)
        per_user = np.bincount(owner, lengths, minlength=len(keys)).astype(np.int64)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        drawn = keys.at("candidates").uniform_ragged(per_user)
        age = (drawn * self._n_recent).astype(np.int64)  # in news published since
        items = self._latest(moments)[owners] - age
        noise = gumbel(keys.at("picks").uniform_ragged(per_user))
        first = np.sort(np.unique(owners * self.news + items, return_index=True)[1])
        left = np.bincount(owners[first], minlength=len(lengths))
        return Ragged.of_lengths(left, items[first]), noise[first]

    def _read_by(self, users: Users) -> tuple[Column, Column]:
        """How much each has read, and what: each time one of some recent news."""
        keys, n_each = self._user_keys[users], int(self.shown)
        uniform = keys.at("history").uniform(2)
        counts = _around(uniform[:, 0], self.history, least=1)
        counts[uniform[:, 1] < self.cold] = 0
        who = np.repeat(users, counts)
        first = (self._n_recent + 1) / self.news  # before, there is too little to read
        when = keys.at("when read").uniform_ragged(counts)
        moments = first + (_WEEKS_READ - first) * when[np.lexsort((when, who))]
        drawn = keys.at("read").uniform_ragged(counts * n_each).reshape(-1, n_each)
        latest = self._latest(moments)[:, None]
        items = latest - (drawn * self._n_recent).astype(np.int64)
        utility = self._utility(np.repeat(who, n_each), items.ravel())
        chance = np.cumsum(np.exp(utility).reshape(-1, n_each), axis=1)
        level = keys.at("picked").uniform_ragged(counts) * chance[:, -1]
        picked = (chance > level[:, None]).argmax(axis=1)
        return counts, items[np.arange(len(items)), picked].astype(np.int32)

    def _latest(self, moments: Moments) -> Int64[np.ndarray, "moments"]:
        """The number of the latest news at each moment."""
        published = (moments * self.news).astype(np.int64)
        return np.clip(published, self._n_recent, self.news) - 1


_around = partial(log_normal, spread=_SPREAD)


def _joined(parts: Sequence[tuple[Column, ...]]) -> list[Column]:
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _ids(prefix: str, n: int) -> Strings:
    """`U000`, `U001`, …, all of the same length."""
    return Strings.of(f"{prefix}{number:0{len(str(n - 1))}}" for number in range(n))


def _source(name: str, title: str, world: NewsWorld, *, kept: bool) -> Generated:
    return Generated(
        name=name,
        title=title,
        home="made by this package from a seed",
        terms="None: no real user is in it.",
        citation="None needed.",
        make=partial(world.dataset, name),
        stamp=world.stamp if kept else None,
    )


# As many users, news, impressions and candidates as MIND-small's training part.
LIKE_MIND_SMALL = NewsWorld(
    users=50_000, news=65_000, impressions_per_user=3.14, shown=37.2, history=32.5
)
SOURCES = {
    source.name: source
    for source in (
        _source("synthetic-news", "An invented week of news", NewsWorld(), kept=False),
        _source(
            "synthetic-news-50k",
            "An invented week of news the size of MIND-small",
            LIKE_MIND_SMALL,
            kept=True,
        ),
    )
}
