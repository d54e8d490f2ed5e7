"""NRMS: self-attention over the words of a title, then over the news that were read.

    r = attention(self-attention(words of the title))         news vector
    u = attention(self-attention(r of what was read))         user vector
    s = u · r                                                 score

At random, values of the self-attention over news are a random matrix, and u points
nowhere near the r of what was read. Started at content they are the identity: before
training u is a mean of these r, and a score says how alike titles are.

Source: Wu et al. 2019, "Neural News Recommendation with Multi-Head Self-Attention",
with queries and keys of their own for each head (Vaswani et al. 2017) and no dropout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.text_vectors import TITLE
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_encoders import word_encoder
from tacit.models.news_encoders.layers import (
    Ops,
    Values,
    additive_attention,
    self_attention,
)
from tacit.models.news_encoders.word_model import WordModel
from tacit.models.news_encoders.words import Vocabulary, text_of
from tacit.tree import Array, Arrays


@dataclass(frozen=True)
class Nrms(WordModel):
    """Multi-head self-attention over words and over news."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    title: int = 20  # words of a title that are read
    heads: int = 8
    width: int = 64  # of all heads together, and of a news vector
    attention: int = 32  # hidden units of additive attention
    starts_at: Literal["content", "random"] = "random"

    def __post_init__(self) -> None:
        check.one_of(("content", "random"), starts_at=self.starts_at)
        check.count(title=self.title, heads=self.heads, attention=self.attention)
        check.count(width=self.width)
        if self.width % self.heads:
            raise BadValue(
                f"width={self.width} must be a multiple of heads={self.heads}: every "
                "head has as many columns"
            )

    @property
    def texts(self) -> Mapping[str, int]:
        """The title, and how many of its words are read."""
        return {TITLE: self.title}

    @property
    def columns(self) -> tuple[str, ...]:
        """The words of the title."""
        return (TITLE,)

    def inputs(self, catalog: Catalog) -> dict[str, Array]:
        """The words of the titles as numbers, and their vectors if a file has them."""
        texts = text_of(catalog, TITLE, reader="NRMS")
        return self.vocabulary.inputs({TITLE: (texts, self.title)})

    def start(
        self, key: Key, inputs: Arrays, *, interests: int = 0, dtype: str = "float64"
    ) -> dict[str, Array]:
        """Weights at random or at content; a basis if there are interests."""
        check.one_of(("float32", "float64"), dtype=dtype)
        width, units = self.width, self.attention
        weights = {
            **word_encoder.start_words(key, self.vocabulary, inputs, self.columns),
            **_start_heads(key, "news", self.vocabulary.width, width),
            **word_encoder.start_attention(key, "news", width=width, units=units),
            **_start_heads(key, "user", width, width),
            **word_encoder.start_attention(key, "user", width=width, units=units),
            **word_encoder.start_basis(key, interests, width),
        }
        if self.starts_at == "content":
            weights["user.values"] = np.eye(width)
        return {name: value.astype(dtype) for name, value in weights.items()}

    def encode(
        self,
        ops: Ops,
        weights: Mapping[str, Values],
        words: Values,
        columns: Mapping[str, Values],
    ) -> Values:
        """The vectors of news, from the words of their titles."""
        rows = words[columns[TITLE]]  # padding tokens count as words
        mixed = self_attention(ops, weights, "news", rows, heads=self.heads)
        return additive_attention(ops, weights, "news", mixed)

    def pool(
        self, ops: Ops, weights: Mapping[str, Values], read: Values, is_there: Values
    ) -> Values:
        """Vectors of users; zeros for who has read nothing."""
        mixed = self_attention(ops, weights, "user", read, is_there, heads=self.heads)
        return additive_attention(ops, weights, "user", mixed, is_there)


def _start_heads(key: Key, name: str, inputs: int, width: int) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for kind in ("queries", "keys", "values"):
        found |= word_encoder.start_matrix(key, f"{name}.{kind}", (inputs, width))
    return found
