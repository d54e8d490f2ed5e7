"""NAML: attention over the views of a news: title, abstract, category, subcategory.

    r = attention(title, abstract, category, subcategory)     news vector
        title, abstract      attention(ReLU(filters over three words))
        the other two        ReLU(vector of the label × matrix)
    u = attention(r of what was read)                         user vector
    s = u · r                                                 score

Source: Wu et al. 2019, "Neural News Recommendation with Attentive Multi-View Learning",
without dropout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.text_vectors import TITLE
from tacit.keys import Key
from tacit.models.news_encoders import word_encoder
from tacit.models.news_encoders.layers import (
    Ops,
    Values,
    additive_attention,
    convolution,
)
from tacit.models.news_encoders.word_model import WordModel
from tacit.models.news_encoders.words import Vocabulary, label_of, text_of
from tacit.tree import Array, Arrays

ABSTRACT, LABELS = "abstract", ("category", "subcategory")


@dataclass(frozen=True)
class Naml(WordModel):
    """Filters over words, vectors of labels, and attention over these views."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    title: int = 20  # words of a title that are read
    abstract: int = 40
    width: int = 64  # filters, and the width of a news vector
    label_width: int = 16
    attention: int = 32  # hidden units of additive attention

    def __post_init__(self) -> None:
        check.count(title=self.title, abstract=self.abstract, width=self.width)
        check.count(label_width=self.label_width, attention=self.attention)

    @property
    def texts(self) -> Mapping[str, int]:
        """The title and the abstract, and how many words of each are read."""
        return {TITLE: self.title, ABSTRACT: self.abstract}

    @property
    def columns(self) -> tuple[str, ...]:
        """The words of both texts, and both labels."""
        return (TITLE, ABSTRACT, *LABELS)

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """Words and labels as numbers, and vectors of the words if a file has them."""
        texts = {
            name: (text_of(catalog, name, reader="NAML"), most)
            for name, most in self.texts.items()
        }
        labels = {name: label_of(catalog, name, reader="NAML") for name in LABELS}
        return {**self.vocabulary.inputs(texts), **labels}

    def start(
        self, key: Key, inputs: Arrays, *, interests: int = 0, dtype: str = "float64"
    ) -> dict[str, Array]:
        """Random weights; a basis if there are interests."""
        check.one_of(("float32", "float64"), dtype=dtype)
        weights = word_encoder.start_words(key, self.vocabulary, inputs, self.texts)
        for name in self.texts:
            weights |= self._start_text(key, name)
        for name in LABELS:
            weights |= self._start_label(
                key, name, 1 + int(inputs[name].max(initial=0))
            )
        for name in ("news", "user"):
            weights |= self._start_attention(key, name)
        weights |= word_encoder.start_basis(key, interests, self.width)
        return {name: value.astype(dtype) for name, value in weights.items()}

    def encode(
        self,
        ops: Ops,
        weights: Mapping[str, Values],
        words: Values,
        columns: Mapping[str, Values],
    ) -> Values:
        """The vectors of news, from all their views."""
        views = []
        for name in self.texts:
            rows = convolution(ops, weights, _of_news(name), words[columns[name]])
            views.append(additive_attention(ops, weights, _of_news(name), rows))
        for name in LABELS:
            own = weights[f"{_of_news(name)}.table"][columns[name]]
            dense = own @ weights[f"{_of_news(name)}.dense"]
            views.append(ops.relu(dense + weights[f"{_of_news(name)}.bias"]))
        stacked = ops.concatenate([view[..., None, :] for view in views], -2)
        return additive_attention(ops, weights, "news", stacked)

    def pool(
        self, ops: Ops, weights: Mapping[str, Values], read: Values, is_there: Values
    ) -> Values:
        """Vectors of users; zeros for who has read nothing."""
        return additive_attention(ops, weights, "user", read, is_there)

    def _start_text(self, key: Key, name: str) -> dict[str, Array]:
        own, shape = _of_news(name), (3 * self.vocabulary.width, self.width)
        return {
            **word_encoder.start_matrix(key, f"{own}.filters", shape),
            f"{own}.bias": np.zeros(self.width),
            **self._start_attention(key, own),
        }

    def _start_label(self, key: Key, name: str, count: int) -> dict[str, Array]:
        own, size = _of_news(name), self.label_width
        return {
            **word_encoder.start_matrix(key, f"{own}.table", (count, size)),
            **word_encoder.start_matrix(key, f"{own}.dense", (size, self.width)),
            f"{own}.bias": np.zeros(self.width),
        }

    def _start_attention(self, key: Key, name: str) -> dict[str, Array]:
        width, units = self.width, self.attention
        return word_encoder.start_attention(key, name, width=width, units=units)


def _of_news(view: str) -> str:
    return f"news.{view}"
