"""Columns that describe items or users: categories, a number, a vector, or text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.data.ragged import Ragged
from tacit.data.strings import Strings
from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Category:
    """One label per row; a code of -1 means unknown."""

    codes: Int32[np.ndarray, "rows"]
    labels: Strings

    def __post_init__(self) -> None:
        arrays.integers(self.codes, "codes", least=-1, below=len(self.labels))

    @classmethod
    def of(cls, values: Sequence[str]) -> Category:
        """Number the distinct values in sorted order; an empty string is unknown."""
        # Sorted, so that codes do not depend on the order of the rows.
        labels = sorted(set(values) - {""})
        number = {label: i for i, label in enumerate(labels)} | {"": -1}  # unknown
        return cls(np.array([number[v] for v in values], np.int32), Strings.of(labels))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> str:
        code = int(self.codes[row])
        return "" if code < 0 else self.labels[code]

    def take(self, rows: ArrayLike) -> Category:
        """The same column for some of the rows, in the order given."""
        return Category(self.codes[arrays.rows(rows, len(self))], self.labels)


@dataclass(frozen=True, eq=False)
class Categories:
    """Any number of labels per row, such as genres."""

    codes: Ragged
    labels: Strings

    def __post_init__(self) -> None:
        arrays.integers(self.codes.values, "codes", below=len(self.labels))

    @classmethod
    def of(cls, rows: Iterable[Sequence[str]]) -> Categories:
        """Number the distinct labels in sorted order; empty strings are no labels."""
        values = [[label for label in row if label != ""] for row in rows]
        labels = sorted({label for row in values for label in row})
        number = {label: i for i, label in enumerate(labels)}
        flat = np.array([number[v] for row in values for v in row], np.int32)
        return cls(
            Ragged.of_lengths([len(r) for r in values], flat), Strings.of(labels)
        )

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> tuple[str, ...]:
        return tuple(self.labels[int(code)] for code in self.codes[row])

    def take(self, rows: ArrayLike) -> Categories:
        """The same column for some of the rows, in the order given."""
        return Categories(self.codes.take(rows), self.labels)

    def indicator(self) -> Float32[np.ndarray, "rows labels"]:
        """A dense matrix, rows × labels: 1.0 where a row has a label."""
        out = np.zeros((len(self), len(self.labels)), np.float32)
        out[self.codes.owners, self.codes.values] = 1.0  # a repeated label counts once
        return out


@dataclass(frozen=True, eq=False)
class Numeric:
    """One number per row; NaN means unknown."""

    values: Float32[np.ndarray, "rows"]

    def __post_init__(self) -> None:
        arrays.typed(np.float32, values=self.values)
        if np.isinf(self.values).any():  # NaN is legal: it means unknown
            raise BadValue("a number is infinite; write NaN where it is unknown")

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> float:
        return float(self.values[row])

    def take(self, rows: ArrayLike) -> Numeric:
        """The same column for some of the rows, in the order given."""
        return Numeric(self.values[arrays.rows(rows, len(self))])


@dataclass(frozen=True, eq=False)
class Vectors:
    """One vector per row, such as the embedding of a text; zeros mean unknown.

    Any similarity of items can be given as one: rows whose products it is.
    """

    values: Float32[np.ndarray, "rows axes"]

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.dtype != np.float32:
            raise BadValue(
                f"vectors are {self.values.dtype} of shape {self.values.shape}; needed "
                "is float32, one vector per row"
            )
        if not np.isfinite(self.values).all():
            raise BadValue("a vector is not finite; write zeros where it is unknown")

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Float32[np.ndarray, "axes"]:
        return self.values[row]

    def take(self, rows: ArrayLike) -> Vectors:
        """The same column for some of the rows, in the order given."""
        return Vectors(self.values[arrays.rows(rows, len(self))])


@dataclass(frozen=True, eq=False)
class Text:
    """Free text for each row; an empty string means unknown."""

    texts: Strings

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, row: int) -> str:
        return self.texts[row]

    def take(self, rows: ArrayLike) -> Text:
        """The same column for some of the rows, in the order given."""
        return Text(self.texts.take(rows))


Feature = Category | Categories | Numeric | Vectors | Text  # what `columns` can keep
Features = Mapping[str, Feature]


def take(features: Features, rows: ArrayLike) -> dict[str, Feature]:
    """The same columns for some of the rows."""
    return {name: feature.take(rows) for name, feature in features.items()}
