"""What is known of users, situations or items, as a network reads it.

    a category        a row of the table of embeddings
    several           the mean of their rows
    a number          itself
    unknown           zeros instead of the embedding, or of the number

The inputs of a thing are the embeddings of its fields side by side, then its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int32, Int64
from numpy.typing import ArrayLike, DTypeLike

from tacit import check
from tacit.data.features import Categories, Category, Feature, Features, Numeric
from tacit.errors import BadValue
from tacit.tree import Array

Column = Feature | Array | None  # an array as a client keeps it: `Fields.columns`


@dataclass(frozen=True, eq=False)
class Encoded:
    """The inputs of some things: weights of the table's rows, and numbers."""

    shares: sp.csr_array  # things × fields, by thing; columns are the table's rows
    numbers: Float[np.ndarray, "things numbers"]
    n_fields: int  # fields that have embeddings

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, places: ArrayLike) -> Encoded:
        """Some of the things, in the order given."""
        chosen, fields = np.asarray(places, np.int64), self.n_fields
        rows = (chosen[:, None] * fields + np.arange(fields)).ravel()
        return Encoded(self.shares[rows], self.numbers[chosen], fields)

    def cut(self, things: slice) -> Encoded:
        """A contiguous run of the things; faster than `take`."""
        held, numbers = self.shares, self.numbers[things]
        first = things.start * self.n_fields
        ends = held.indptr[first : first + len(numbers) * self.n_fields + 1]
        some = slice(ends[0], ends[-1])
        # The three arrays of a CSR matrix, cut by hand: scipy's slicing is slower.
        parts = held.data[some], held.indices[some], ends - ends[0]
        shape = (len(ends) - 1, held.shape[1])
        return Encoded(sp.csr_array(parts, shape=shape), numbers, self.n_fields)


@dataclass(frozen=True)
class Fields:
    """Named fields in order, each with its number of labels (0 for a number)."""

    labels: Mapping[str, int]
    first: int = 0  # row of the embedding table at which their labels begin

    def __post_init__(self) -> None:
        for name, n in self.labels.items():
            check.not_negative(remedy="0 is a number", **{f"labels of {name}": n})

    @classmethod
    def of(cls, features: Features, names: tuple[str, ...], *, first: int) -> Fields:
        """Fields of the features of these names, with all the labels they list."""
        for name in names:
            check.one_of(features, feature=name)
        return cls({name: _n_labels(name, features[name]) for name in names}, first)

    @cached_property
    def categories(self) -> dict[str, int]:
        """The fields with labels, and the row of the first label of each."""
        sizes = {name: n for name, n in self.labels.items() if n}
        starts = self.first + np.cumsum([0, *sizes.values()])
        return dict(zip(sizes, starts.tolist(), strict=False))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The names of the fields that are numbers and have no labels."""
        return tuple(name for name, n in self.labels.items() if not n)

    @property
    def n_rows(self) -> int:
        """The number of rows that these fields have in the embedding table."""
        return sum(self.labels.values())

    def width(self, embedding: int) -> int:
        """The number of inputs of one thing, with embeddings of this size."""
        return embedding * len(self.categories) + len(self.numbers)

    def columns(self, features: Features, n: int) -> dict[str, Array]:
        """Features as a client keeps them: codes, 0/1 rows over labels, or numbers.

        A feature that is not there is unknown for all `n`.
        """
        return {
            name: _stored(name, features.get(name), labels, n)
            for name, labels in self.labels.items()
        }

    def encode(
        self, columns: Mapping[str, Column], n: int, *, rows: int, dtype: DTypeLike
    ) -> Encoded:
        """The inputs of `n` things; the table has `rows` rows in all."""
        found = [
            _shares(name, columns.get(name), self.labels[name])
            for name in self.categories
        ]
        fields = len(found)
        # Row thing * fields + field of the matrix: one row per thing and field.
        at = [owners * fields + f for f, (owners, _, _) in enumerate(found)]
        starts = self.categories.values()
        codes = [c + start for start, (_, c, _) in zip(starts, found, strict=True)]
        weights = [np.asarray(share, dtype) for _, _, share in found]
        shares = sp.csr_array(
            (_joined(weights, dtype), (_joined(at), _joined(codes))),
            shape=(n * fields, rows),
        )
        numbers = np.zeros((n, len(self.numbers)), dtype)
        for place, name in enumerate(self.numbers):
            numbers[:, place] = _values(name, columns.get(name))
        return Encoded(shares, numbers, fields)


Shares = tuple[
    Int64[np.ndarray, "held"], Int64[np.ndarray, "held"], Float[np.ndarray, "held"]
]


def _n_labels(name: str, feature: Feature) -> int:
    if isinstance(feature, Numeric):
        return 0
    if isinstance(feature, Category | Categories):
        return len(feature.labels)
    raise BadValue(
        f"feature '{name}' is text; name categories or numbers, or give its words as "
        "categories"
    )


def _stored(name: str, feature: Feature | None, labels: int, n: int) -> Array:
    if feature is None:  # unknown for all
        return np.full(n, -1, np.int32) if labels else np.zeros(n, np.float32)
    _check_labels(name, feature, labels)
    if isinstance(feature, Category):
        return feature.codes
    if isinstance(feature, Categories):
        return feature.indicator().astype(np.uint8)
    return np.asarray(_values(name, feature), np.float32)


def _check_labels(name: str, feature: Feature, labels: int) -> None:
    found = _n_labels(name, feature)
    if found != labels:
        raise BadValue(
            f"feature '{name}' has {found} labels, {labels} were agreed on (a number "
            "has 0); everybody must know the same labels: state how many there are"
        )


def _shares(name: str, column: Column, labels: int) -> Shares:
    """Owners, labels, and the weight of each label in its owner's embedding."""
    if column is None:
        return _shares_of_array(np.zeros(0, np.int32))
    if isinstance(column, np.ndarray):
        return _shares_of_array(column)
    _check_labels(name, column, labels)
    if isinstance(column, Category):
        return _shares_of_array(column.codes)
    assert isinstance(column, Categories)  # numbers have no labels
    held = column.codes
    owners = held.owners
    return owners, held.values.astype(np.int64), 1.0 / held.lengths[owners]


def _shares_of_array(stored: Array) -> Shares:
    if stored.ndim == 2:  # 0/1 rows over labels: the mean of the embeddings
        owners, codes = np.nonzero(stored)
        return owners, codes, 1.0 / stored.sum(axis=1, dtype=np.int64)[owners]
    owners = np.flatnonzero(stored >= 0)  # codes; -1 is unknown
    return owners, stored[owners].astype(np.int64), np.ones(len(owners))


def _values(name: str, column: Column) -> Float[np.ndarray, "things"] | float:
    """The numbers of a column; unknown ones are zero."""
    if column is None:
        return 0.0
    if isinstance(column, np.ndarray):
        return column
    _check_labels(name, column, 0)
    assert isinstance(column, Numeric)
    return np.nan_to_num(column.values)


def _joined(parts: list[Array], dtype: DTypeLike = np.int64) -> Array:
    return np.concatenate([np.zeros(0, dtype), *parts])


def kinds(
    encoded: Encoded,
) -> tuple[Int32[np.ndarray, "things"], Int64[np.ndarray, "kinds"]]:
    """The kind of each thing, and one thing of each kind: equal inputs are one kind.

    A network then scores once per kind, not once per item.
    """
    held, fields = encoded.shares, encoded.n_fields
    ends = held.indptr[::fields] if fields else np.zeros(len(encoded) + 1, np.int64)
    known: dict[tuple[bytes, ...], int] = {}
    of = np.empty(len(encoded), np.int32)
    for i in range(len(encoded)):
        some = slice(ends[i], ends[i + 1])
        lengths = np.diff(held.indptr[i * fields : (i + 1) * fields + 1])
        parts = (lengths, held.indices[some], held.data[some], encoded.numbers[i])
        of[i] = known.setdefault(tuple(p.tobytes() for p in parts), len(known))
    return of, np.unique(of, return_index=True)[1].astype(np.int64)
