"""How alike two items are by what is publicly known of them.

The cosine of their labels (genres, topics) times exp(-|difference| / scale) for each
number (a year). A feature that an item lacks takes no side: an item without labels is
alike to none, an unknown number is taken as the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Numeric
from tacit.errors import BadValue

Matrix = Float[np.ndarray, "rows columns"]

_AT_ONCE = 2**22  # numbers of a block of similarities


@dataclass(frozen=True, eq=False)
class Content:
    """Items as rows of labels, each of norm 1 or 0, and of numbers in their scale."""

    labels: Float32[np.ndarray, "items labels"]
    numbers: Float32[np.ndarray, "items numbers"]

    @classmethod
    def of(cls, catalog: Catalog, names: Sequence[str], *, scale: float) -> Content:
        """The features of these names; numbers are divided by `scale`."""
        labels = [np.zeros((len(catalog), 0), np.float32)]
        numbers = [np.zeros((len(catalog), 0), np.float32)]
        for name in names:
            check.one_of(catalog.features, content=name)
            column = catalog.features[name]
            if isinstance(column, Numeric):
                numbers.append(_known(column.values, scale)[:, None])
            elif isinstance(column, Category | Categories):
                labels.append(_indicator(column))
            else:
                raise BadValue(
                    f"content='{name}' is text; name categories or numbers, or give "
                    "vectors of the text as numbers"
                )
        joined = np.concatenate(labels, axis=1)
        norms = np.linalg.norm(joined, axis=1, keepdims=True)
        return cls(joined / np.maximum(norms, 1.0), np.concatenate(numbers, axis=1))

    def between(
        self, rows: Int[np.ndarray, "rows"], columns: Int[np.ndarray, "columns"]
    ) -> Matrix:
        """The similarity of some items to some others, in [0, 1]."""
        apart = np.zeros((len(rows), len(columns)), np.float32)
        for number in self.numbers.T:
            apart += np.abs(number[rows][:, None] - number[columns])
        alike = np.exp(-apart)
        if self.labels.shape[1]:
            alike *= self.labels[rows] @ self.labels[columns].T
        return alike

    def spread(self, x: Matrix) -> Matrix:
        """Each row's items told on to those alike to them: x K, in blocks."""
        held, everything = np.flatnonzero(x.any(axis=0)), np.arange(len(self.labels))
        out, step = np.zeros(x.shape), max(1, _AT_ONCE // max(1, len(held)))
        for start in range(0, len(everything), step):
            block = everything[start : start + step]
            out[:, block] = x[:, held] @ self.between(held, block)
        return out

    def smoothing(
        self, items: Int[np.ndarray, "rows"], share: float
    ) -> Float[np.ndarray, "rows rows"]:
        """(1 - share) I + share D^-1/2 K D^-1/2 over some items."""
        alike = self.between(items, items).astype(np.float64)
        root = np.sqrt(np.maximum(alike.sum(axis=1), 1e-12))
        alike *= share / root[:, None] / root
        alike[np.diag_indices_from(alike)] += 1 - share
        return alike


def _indicator(column: Category | Categories) -> Float32[np.ndarray, "items labels"]:
    if isinstance(column, Categories):
        return column.indicator()
    known = column.codes >= 0
    out = np.zeros((len(column), len(column.labels)), np.float32)
    out[known, column.codes[known]] = 1.0
    return out


def _known(
    values: Float32[np.ndarray, "items"], scale: float
) -> Float32[np.ndarray, "items"]:
    unknown = np.isnan(values)
    middle = 0.0 if unknown.all() else float(np.median(values[~unknown]))
    return (np.where(unknown, middle, values) / scale).astype(np.float32)
