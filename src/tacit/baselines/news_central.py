"""NRMS, NAML and PLM-NR trained on everybody's impressions at once.

    slate      a click, and some candidates of its impression that were not clicked
    loss       cross-entropy of the click among its slate, mean over a batch
    step       Adam; each news of a batch is encoded once

The negatives of a click are drawn anew in every epoch. Histories are as they stood when
an impression was shown. NRMS and NAML need the extra `train`; all of them rank without.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np
from jaxtyping import Float, Int64

from tacit import check
from tacit.aggregation.server_optimizers import Adam
from tacit.baselines.ranker import Grid, Scores, Vectors
from tacit.data.catalog import Catalog
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.text_vectors import vector_name
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_encoders import (
    NO_NEWS,
    Batch,
    Naml,
    Nrms,
    PlmNr,
    Vocabulary,
    as_rows,
    last_read,
)
from tacit.tree import Array, Arrays


class NewsModel(Protocol):
    """What is trained: a news encoder, a user encoder and the gradient of both."""

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """What is publicly known of the news, as arrays."""

    def start(self, key: Key, inputs: Arrays, *, dtype: str) -> dict[str, Array]:
        """The weights before training."""

    def news(
        self, weights: Arrays, inputs: Arrays
    ) -> Float[np.ndarray, "news_and_padding axes"]:
        """The vectors of all news."""

    def users(
        self, weights: Arrays, news: Float[np.ndarray, "some axes"], histories: Ragged
    ) -> Float[np.ndarray, "users axes"]:
        """The vectors of histories."""

    def total(self, weights: Arrays, inputs: Arrays, batch: Batch) -> dict[str, Array]:
        """The summed gradient of a batch."""


@dataclass(frozen=True)
class Training:
    """Passes over the clicks, sizes of batches and slates, and Adam's rate."""

    epochs: int
    rate: float
    batch: int
    negatives: int
    most_read: int  # of a history, the last ones

    def __post_init__(self) -> None:
        check.count(batch=self.batch, negatives=self.negatives)
        check.count(most_read=self.most_read)
        check.at_least(0, epochs=self.epochs)
        check.positive(rate=self.rate)

    def batches(self, impressions: Impressions, draws: Key) -> Iterator[Batch]:
        """One epoch: every click once, in a random order."""
        clicks = _Clicks.of(impressions)
        slates = impressions.slates
        candidates = clicks.slates(self.negatives, draws.at("negatives"))
        read = as_rows(last_read(slates.histories, self.most_read), self.most_read)
        order = draws.at("order").permutation(len(clicks.clicked))
        for first in range(0, len(order), self.batch):
            some = order[first : first + self.batch]
            yield Batch(
                read[slates.history_of[clicks.owners[some]]],
                candidates[some, None],
                np.zeros((len(some), 1), np.int64),  # the click stands first
            )


@dataclass(frozen=True)
class PlmNrCentral:
    """PLM-NR over the vectors of one text; without an epoch, content similarity."""

    text: str = "title"
    starts_at: Literal["content", "random"] = "content"
    dimensions: int | None = None  # principal axes of the vectors; None: all
    scale: float = 20.0  # of the scores at the start
    epochs: int = 4
    rate: float = 3e-5  # steps are small beside the identity, where it starts
    batch: int = 64
    negatives: int = 4
    most_read: int = 50

    GRID: ClassVar[Grid] = {"epochs": (2, 4, 6), "rate": (1e-5, 3e-5, 1e-4)}

    def __post_init__(self) -> None:
        _ = self.model, self.training  # refuse what they refuse

    @property
    def model(self) -> PlmNr:
        """The heads that are trained."""
        content = (vector_name(self.text),)
        return PlmNr(
            content, self.dimensions, starts_at=self.starts_at, scale=self.scale
        )

    @property
    def training(self) -> Training:
        """The schedule of the training."""
        return Training(
            self.epochs, self.rate, self.batch, self.negatives, self.most_read
        )

    def reading(self, catalog: Catalog) -> ReadNews:
        """The ranker with the vectors of the text."""
        return ReadNews(self.model, self.model.inputs(catalog), self.training)

    def fit(self, train: Shards, *, key: Key) -> FittedNews:
        """Refused: shards say nothing of the items' texts."""
        raise _needs_a_catalog("plm_nr")


@dataclass(frozen=True)
class WordsCentral(ABC):
    """A network over words, with vectors of a file or learnt ones."""

    words: str | None = None  # the path of a file of word vectors, such as GloVe's
    word_width: int = 50
    trains_words: bool = True
    epochs: int = 3
    rate: float = 1e-3
    batch: int = 64
    negatives: int = 4
    most_read: int = 50

    NAME: ClassVar[str]
    EXTRAS: ClassVar[Mapping[str, str]] = {"torch": "train"}
    GRID: ClassVar[Grid] = {"epochs": (1, 2, 3, 5), "rate": (3e-4, 1e-3, 3e-3)}

    def __post_init__(self) -> None:
        _ = self.model, self.training  # refuse what they refuse

    @property
    @abstractmethod
    def model(self) -> Nrms | Naml:
        """The network that is trained."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that it knows."""
        return Vocabulary(self.words, self.word_width, self.trains_words)

    @property
    def training(self) -> Training:
        """The schedule of the training."""
        return Training(
            self.epochs, self.rate, self.batch, self.negatives, self.most_read
        )

    def reading(self, catalog: Catalog) -> ReadNews:
        """The ranker with what the network reads of the news."""
        return ReadNews(self.model, self.model.inputs(catalog), self.training)

    def fit(self, train: Shards, *, key: Key) -> FittedNews:
        """Refused: shards say nothing of the items' texts."""
        raise _needs_a_catalog(self.NAME)


@dataclass(frozen=True)
class NrmsCentral(WordsCentral):
    """NRMS over the words of titles."""

    NAME: ClassVar[str] = "nrms"

    @property
    def model(self) -> Nrms:
        """Self-attention over words and over news."""
        return Nrms(self.vocabulary)


@dataclass(frozen=True)
class NamlCentral(WordsCentral):
    """NAML over titles, abstracts and labels."""

    NAME: ClassVar[str] = "naml"

    @property
    def model(self) -> Naml:
        """Attention over the views of a news."""
        return Naml(self.vocabulary)


@dataclass(frozen=True, eq=False)
class ReadNews:
    """A model with what it reads of the catalog, ready to be trained."""

    model: NewsModel
    inputs: Arrays
    training: Training

    GRID: ClassVar[Grid] = {}

    def fit(self, train: Shards, *, key: Key) -> FittedNews:
        """The model after the last epoch."""
        *_, last = self.course(train, key=key)
        return last

    def course(self, train: Shards, *, key: Key) -> Iterator[FittedNews]:
        """The model before the first epoch, and after each of them."""
        impressions = train.known_impressions
        if not impressions.clicked.any():
            raise BadValue("news models learn from impressions; the data have none")
        adam = Adam(self.training.rate)
        weights = self.model.start(key.at("weights"), self.inputs, dtype="float32")
        memory = adam.start(weights)
        yield self._fitted(weights)
        for epoch in range(self.training.epochs):
            for batch in self.training.batches(impressions, key.at("epoch", epoch)):
                total = self.model.total(weights, self.inputs, batch)
                mean = {name: value / len(batch) for name, value in total.items()}
                weights, memory = adam.step(weights, memory, mean)
            yield self._fitted(weights)

    def _fitted(self, weights: Arrays) -> FittedNews:
        news = self.model.news(weights, self.inputs)
        return FittedNews(self.model, weights, news, self.training.most_read)


@dataclass(frozen=True, eq=False)
class FittedNews:
    """Vectors of all news, and the weights that make a user's of what was read."""

    model: NewsModel
    weights: Arrays
    news: Float[np.ndarray, "news_and_padding axes"]
    most_read: int

    @property
    def items(self) -> Float[np.ndarray, "news axes"]:
        """The vectors of the news; the padding news is no item."""
        return self.news[:-1]

    def represent(self, history: Shards) -> Vectors:
        """The user vector of each history."""
        read = last_read(history.histories, self.most_read)
        return self.model.users(self.weights, self.news, read)

    def score(self, history: Shards) -> Scores:
        """The inner products with all news."""
        return self.represent(history) @ self.items.T


@dataclass(frozen=True, eq=False)
class _Clicks:
    """Clicks of impressions that left something unclicked."""

    owners: Int64[np.ndarray, "clicks"]  # the impression
    clicked: Int64[np.ndarray, "clicks"]
    unclicked: Ragged  # one row per impression

    @classmethod
    def of(cls, impressions: Impressions) -> _Clicks:
        shown, clicked = impressions.slates.shown, impressions.clicked
        lengths = shown.lengths - impressions.n_clicked
        unclicked = Ragged.of_lengths(lengths, shown.values[~clicked])
        is_choice = clicked & (lengths[shown.owners] > 0)
        items = shown.values[is_choice].astype(np.int64)
        return cls(shown.owners[is_choice], items, unclicked)

    def slates(
        self, negatives: int, key: Key
    ) -> Int64[np.ndarray, "clicks one_and_negatives"]:
        """Each click, then so many of the unclicked, or fewer and empty places."""
        pool = self.unclicked.take(self.owners)
        draws = key.generator().random(len(pool.values))
        order = np.lexsort((draws, pool.owners))
        place = np.arange(len(order)) - pool.offsets[pool.owners]
        out = np.full((len(self.owners), 1 + negatives), NO_NEWS, np.int64)
        out[:, 0] = self.clicked
        kept = place < negatives
        out[pool.owners[kept], 1 + place[kept]] = pool.values[order][kept]
        return out


def _needs_a_catalog(name: str) -> BadValue:
    return BadValue(f"{name} reads the catalog: fit `reading(catalog)` instead")
