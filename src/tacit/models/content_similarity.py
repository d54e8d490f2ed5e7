"""How alike two items are by what is publicly known of them.

The cosine of their labels (genres, topics), vectors and words, at least zero, times
exp(-|difference| / scale) for each number (a year). A feature that an item lacks takes
no side: an item without labels is alike to none, an unknown number is taken as the
median. A word weighs -log(the fraction of items that have it), as in TF-IDF, and words
are hashed into a few hundred columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from jaxtyping import Float, Float32, Int

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Numeric, Text, Vectors
from tacit.models.onnx_graph import Formula
from tacit.transport.messages import PublicSlot

Matrix = Float[np.ndarray, "rows columns"]

_AT_ONCE = 2**22  # numbers of a block of similarities: 16 MiB of float32
_WORD_COLUMNS = 512  # a public broadcast carries items × columns; some words collide
_WORD = re.compile(r"\w{2,}")


@dataclass(frozen=True, eq=False)
class Content:
    """Items as rows of labels, each of norm 1 or 0, and of numbers over their scale.

    Vectors and words stand among the labels, each feature with norm 1.
    """

    labels: Float32[np.ndarray, "items labels"]
    numbers: Float32[np.ndarray, "items numbers"]

    @classmethod
    def of(cls, catalog: Catalog, names: Sequence[str], *, scale: float) -> Content:
        """The features of these names; numbers are divided by `scale`."""
        return _content(catalog, tuple(names), scale)

    def between(
        self, rows: Int[np.ndarray, "rows"], columns: Int[np.ndarray, "columns"]
    ) -> Matrix:
        """The similarity of some items to some others, in [0, 1]."""
        apart = np.zeros((len(rows), len(columns)), np.float32)
        for number in self.numbers.T:
            apart += np.abs(number[rows][:, None] - number[columns])
        alike = np.exp(-apart)
        if self.labels.shape[1]:
            alike *= np.maximum(self.labels[rows] @ self.labels[columns].T, 0.0)
        return alike

    def spread(self, x: Matrix) -> Matrix:
        """The product x K in blocks: each row's items spread to the items alike."""
        # Only items that somebody in the batch has can add anything.
        held, everything = np.flatnonzero(x.any(axis=0)), np.arange(len(self.labels))
        out, step = np.zeros(x.shape), max(1, _AT_ONCE // max(1, len(held)))
        for start in range(0, len(everything), step):
            block = everything[start : start + step]
            out[:, block] = x[:, held] @ self.between(held, block)
        return out

    def spread_formula(self, x: Formula) -> Formula:
        """`spread` as a graph; it too compares only the items of a batch with all."""
        held = x.any_row()
        apart = Formula.constant(np.zeros((1, len(self.labels))))
        for number in self.numbers.T:
            own = Formula.constant(number[:, None]).rows(held)
            apart = apart - (own - number).absolute()
        alike = apart.exp()
        if self.labels.shape[1]:
            labels = Formula.constant(self.labels)
            common = labels.rows(held) @ labels.transposed()
            alike = alike * common.maximum(0.0)
        return x.columns(held) @ alike

    def smoothing(
        self, items: Int[np.ndarray, "rows"], share: float
    ) -> Float[np.ndarray, "rows rows"]:
        """The matrix (1 - share) I + share D^-1/2 K D^-1/2 over some items."""
        alike = self.between(items, items).astype(np.float64)
        root = np.sqrt(np.maximum(alike.sum(axis=1), 1e-12))
        alike *= share / root[:, None] / root
        alike[np.diag_indices_from(alike)] += 1 - share
        return alike

    def correlation(
        self, items: Int[np.ndarray, "rows"], share: float
    ) -> Float[np.ndarray, "rows rows"]:
        """The matrix (1 - share) I + share K, K centred and with ones on its diagonal.

        Centred, because what all items have in common says nothing about one of them.
        """
        alike = self.between(items, items).astype(np.float64)
        means = alike.mean(axis=1)
        alike += means.mean() - means[:, None] - means
        root = np.sqrt(np.maximum(np.diag(alike), 1e-12))
        alike *= share / root[:, None] / root
        alike[np.diag_indices_from(alike)] = 1.0
        return alike


@lru_cache(maxsize=1)  # the layout of a broadcast needs it as well as the weights
def _content(catalog: Catalog, names: tuple[str, ...], scale: float) -> Content:
    labels = [np.zeros((len(catalog), 0), np.float32)]
    numbers = [np.zeros((len(catalog), 0), np.float32)]
    for name in names:
        check.one_of(catalog.features, content=name)
        column = catalog.features[name]
        if isinstance(column, Numeric):
            numbers.append(_known(column.values, scale)[:, None])
        elif isinstance(column, Category | Categories):
            labels.append(indicator(column))
        else:
            labels.append(unit_rows(_vectors(column)))
    joined = unit_rows(np.concatenate(labels, axis=1))
    return Content(joined, np.concatenate(numbers, axis=1))


def public_content(known: Content) -> dict[str, PublicSlot]:
    """The layout of a catalog's content in a broadcast."""
    return {
        "labels": PublicSlot("float32", known.labels.shape),
        "numbers": PublicSlot("float32", known.numbers.shape),
    }


def indicator(column: Category | Categories) -> Float32[np.ndarray, "items labels"]:
    """One row per item, with a 1 for each of its labels."""
    if isinstance(column, Categories):
        return column.indicator()
    known = column.codes >= 0
    out = np.zeros((len(column), len(column.labels)), np.float32)
    out[known, column.codes[known]] = 1.0
    return out


def _vectors(column: Vectors | Text) -> Float32[np.ndarray, "items axes"]:
    return column.values if isinstance(column, Vectors) else bag_of_words(column)


def bag_of_words(column: Text) -> Float32[np.ndarray, "items words"]:
    """One row per item with the weights of its distinct words, hashed into columns."""
    words = [_WORD.findall(column[row].lower()) for row in range(len(column))]
    having = Counter(word for row in words for word in set(row))
    out = np.zeros((len(words), _WORD_COLUMNS), np.float32)
    for item, row in enumerate(words):
        for word in sorted(set(row)):  # sums of float32 depend on their order
            out[item, _column(word)] += np.log(len(words) / having[word])
    return out


def _column(word: str) -> int:
    # Python's own hash differs from process to process; this one never changes.
    digest = blake2b(word.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % _WORD_COLUMNS


def unit_rows(
    rows: Float32[np.ndarray, "items axes"],
) -> Float32[np.ndarray, "items axes"]:
    """Each row over its norm; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0).astype(np.float32)


def _known(
    values: Float32[np.ndarray, "items"], scale: float
) -> Float32[np.ndarray, "items"]:
    unknown = np.isnan(values)
    middle = 0.0 if unknown.all() else float(np.median(values[~unknown]))
    return (np.where(unknown, middle, values) / scale).astype(np.float32)
