"""The news of an invented world: what they are about and how it is put into words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64

from tacit.data.features import Category, Features, Text
from tacit.data.strings import Strings
from tacit.data.synthetic import news_words as words
from tacit.keys import Key

_NEAR_TOPIC = 0.8  # how close a subtopic's direction is to that of its topic
_NEAR_SUBTOPIC = 0.9  # a noun's to that of its subtopic
_NEAR_NOUNS = 0.9  # a news' to the mean of its nouns
_HAS_ABSTRACT = 0.9  # share of news with one; as in MIND, some have none

Directions = Float64[np.ndarray, "rows rank"]


@dataclass(frozen=True)
class Newsroom:
    """As many news as asked for: topics, nouns, directions, texts."""

    news: int
    topics: int
    rank: int
    key: Key

    @cached_property
    def subtopics(self) -> Int64[np.ndarray, "news"]:
        """What each news is about; subtopics are counted over all topics."""
        draw = self.key.at("subtopics").generator()
        return draw.integers(self.topics * words.SUBTOPICS, size=self.news)

    @cached_property
    def directions(self) -> Directions:
        """One unit vector per news: the mean of its nouns', and some of its own."""
        of_nouns = self._noun_directions
        said = of_nouns[self._title_nouns].sum(axis=1)
        said += self._has_abstract[:, None] * of_nouns[self._abstract_nouns].sum(axis=1)
        return _near(_unit(said), _NEAR_NOUNS, self.key.at("news"))

    def titles(self) -> list[str]:
        """One headline per news."""
        return self._texts(words.TITLES, self._title_nouns, "titles")

    def features(self) -> Features:
        """Category, subcategory and abstract, as MIND has them."""
        topics, subtopics = (
            np.array(names)
            for names in (
                words.categories(self.topics),
                words.subcategories(self.topics),
            )
        )
        texts = self._texts(words.ABSTRACTS, self._abstract_nouns, "abstracts")
        has_one = self._has_abstract.tolist()
        abstracts = [t if h else "" for t, h in zip(texts, has_one, strict=True)]
        return {
            "category": Category.of(topics[self.subtopics // words.SUBTOPICS].tolist()),
            "subcategory": Category.of(subtopics[self.subtopics].tolist()),
            "abstract": Text(Strings.of(abstracts)),
        }

    @cached_property
    def _title_nouns(self) -> Int64[np.ndarray, "news three"]:
        return self._nouns(self.key.at("title nouns"))

    @cached_property
    def _abstract_nouns(self) -> Int64[np.ndarray, "news three"]:
        return self._nouns(self.key.at("abstract nouns"))

    @cached_property
    def _has_abstract(self) -> Bool[np.ndarray, "news"]:
        return self.key.at("has abstract").generator().random(self.news) < _HAS_ABSTRACT

    def _nouns(self, key: Key) -> Int64[np.ndarray, "news three"]:
        """Two different nouns of the subtopic and one of anywhere in the topic."""
        draw = key.generator()
        first = draw.integers(words.EACH, size=self.news)
        # A step of 1 … EACH - 1 around the circle: never the first noun again.
        other = (first + draw.integers(1, words.EACH, size=self.news)) % words.EACH
        of_topic = words.SUBTOPICS * words.EACH
        any_noun = draw.integers(of_topic, size=self.news)
        start = self.subtopics * words.EACH
        topic_start = start // of_topic * of_topic  # the topic's first noun
        return np.stack([start + first, start + other, topic_start + any_noun], axis=1)

    @cached_property
    def _noun_directions(self) -> Directions:
        draw = self.key.at("topics").generator()
        topics = _unit(draw.standard_normal((self.topics, self.rank)))
        each = np.repeat(topics, words.SUBTOPICS, axis=0)
        subtopics = _near(each, _NEAR_TOPIC, self.key.at("subtopic directions"))
        each = np.repeat(subtopics, words.EACH, axis=0)
        return _near(each, _NEAR_SUBTOPIC, self.key.at("nouns"))

    def _texts(
        self,
        templates: tuple[str, ...],
        nouns: Int64[np.ndarray, "news three"],
        purpose: str,
    ) -> list[str]:
        draw = self.key.at("words", purpose).generator()
        which = draw.integers(len(templates), size=self.news).tolist()
        return [
            words.sentence(templates[t], three)
            for t, three in zip(which, nouns.tolist(), strict=True)
        ]


def _near(centers: Directions, share: float, key: Key) -> Directions:
    """Directions with this cosine to their centers, or nearly so."""
    own = _unit(key.generator().standard_normal(centers.shape))
    return _unit(share * centers + (1 - share**2) ** 0.5 * own)


def _unit(rows: Directions) -> Directions:
    """Rows of length one; opposite nouns may cancel."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)
