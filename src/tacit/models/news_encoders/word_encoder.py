"""What models that read words have in common: tables, vectors for ranking, layouts.

An encoder says how columns of a news become a vector, and how vectors of what was read
become one of the user. Here it runs in numpy; `torch_gradients` has its gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
from jaxtyping import Float

from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.models.news_encoders.batch import NO_NEWS, as_rows
from tacit.models.news_encoders.layers import NUMPY, Ops, Values
from tacit.models.news_encoders.words import WORDS, Vocabulary
from tacit.transport.messages import Slot
from tacit.tree import Array, Arrays

PADDING, TABLE, BASIS = "news.padding", "news.words", "basis"
_AT_ONCE = 2**22  # numbers of a block of hidden values: 32 MiB of float64


class WordEncoder(Protocol):
    """Sizes of a model that reads words, and its two formulas."""

    @property
    def texts(self) -> Mapping[str, int]:
        """The columns of words, and how many words of each are read."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All inputs that have one row per news."""

    @property
    def width(self) -> int:
        """The width of a news vector."""

    def encode(
        self,
        ops: Ops,
        weights: Mapping[str, Values],
        words: Values,
        columns: Mapping[str, Values],
    ) -> Values:
        """Vectors of news, from the table of words and the numbers of some news."""

    def pool(
        self,
        ops: Ops,
        weights: Mapping[str, Values],
        read: Values,
        is_there: Values,
    ) -> Values:
        """Vectors of users, from the vectors of what was read."""


def start_words(
    key: Key, vocabulary: Vocabulary, inputs: Arrays, names: Iterable[str]
) -> dict[str, Array]:
    """The vector e_0 of the padding token, and the table of words if it is trained.

    Vectors that no file has are random, of length one on average, as those of a file.
    """
    root = math.sqrt(vocabulary.width)
    draws = key.at("words").generator()
    count = max(1, *(int(inputs[name].max(initial=0)) for name in names))
    padding, *learnt = draws.standard_normal((count + 1, vocabulary.width)) / root
    found = {PADDING: padding}
    if vocabulary.is_trained:
        found[TABLE] = inputs.get(WORDS, np.array(learnt))
    return found


def start_matrix(key: Key, name: str, shape: tuple[int, int]) -> dict[str, Array]:
    """A random matrix that keeps the size of what it is multiplied with."""
    rows, _ = shape
    return {name: key.at(name).generator().standard_normal(shape) / math.sqrt(rows)}


def start_attention(key: Key, name: str, *, width: int, units: int) -> dict[str, Array]:
    """Additive attention; its query is zero, so it starts as a mean."""
    return {
        **start_matrix(key, f"{name}.attention", (width, units)),
        f"{name}.offset": np.zeros(units),
        f"{name}.query": np.zeros(units),
    }


def start_basis(key: Key, interests: int, width: int) -> dict[str, Array]:
    """Random basis vectors, of length one on average; none for no interest."""
    if not interests:
        return {}
    draws = key.at(BASIS).generator().standard_normal((interests, width))
    return {BASIS: draws / math.sqrt(width)}


def slots(encoder: WordEncoder, weights: Arrays, *, most_news: int) -> dict[str, Slot]:
    """The layout of one client's gradient; of the words it has those it can touch."""
    layout = {n: Slot(str(v.dtype), v.shape) for n, v in weights.items()}
    if TABLE in weights:
        table, most = weights[TABLE], touched(encoder, weights, most_news=most_news)
        layout[TABLE] = Slot(str(table.dtype), table.shape, touched=most)
    return layout


def touched(encoder: WordEncoder, weights: Arrays, *, most_news: int) -> int:
    """How many words a client with so many news can have at the most."""
    return min(len(weights[TABLE]), most_news * sum(encoder.texts.values()))


def news(
    encoder: WordEncoder, weights: Arrays, inputs: Arrays
) -> Float[np.ndarray, "news_and_padding axes"]:
    """The vector of each news, and of the padding news last, in blocks."""
    n_news = len(inputs[encoder.columns[0]])
    widest = 3 * max(encoder.width, len(weights[PADDING]))  # queries, keys and values
    step = max(1, _AT_ONCE // (widest * max(encoder.texts.values())))
    blocks = []
    for first in range(0, n_news, step):
        some = {name: inputs[name][first : first + step] for name in encoder.columns}
        table, some = table_of(encoder, weights, inputs, some)
        words = np.concatenate([weights[PADDING][None], table])
        blocks.append(encoder.encode(NUMPY, weights, words, some))
    return np.concatenate(blocks)


def users(
    encoder: WordEncoder,
    weights: Arrays,
    news: Float[np.ndarray, "some axes"],
    histories: Ragged,
) -> Float[np.ndarray, "users axes"]:
    """The vector of each history, from the vectors of the news."""
    found = np.zeros((len(histories), encoder.width), news.dtype)
    longest = int(histories.lengths.max(initial=1))
    step = max(1, _AT_ONCE // (longest * (longest + 3 * encoder.width)))
    for first in range(0, len(histories), step):
        some = np.arange(first, min(first + step, len(histories)))
        rows = as_rows(histories.take(some), longest)
        read = news[np.maximum(rows, 0)]
        found[some] = encoder.pool(NUMPY, weights, read, rows != NO_NEWS)
    return found


def table_of(
    encoder: WordEncoder, weights: Arrays, inputs: Arrays, columns: Arrays
) -> tuple[Array, dict[str, Array]]:
    """The vectors of words, and columns of some news in which they have these numbers.

    Trained ones are all of them. Of those that are fixed, which may be as many as a
    language model has tokens, only the ones that these news have.
    """
    if TABLE in weights:
        return weights[TABLE], dict(columns)
    if WORDS not in inputs:
        raise BadValue("no vectors of words: neither weights nor inputs have any")
    met = np.unique(np.concatenate([columns[n].ravel() for n in encoder.texts]))
    met = met[met > 0]
    local = {
        name: np.where(columns[name] > 0, np.searchsorted(met, columns[name]) + 1, 0)
        for name in encoder.texts
    }
    return inputs[WORDS][met - 1].astype(weights[PADDING].dtype), {**columns, **local}
