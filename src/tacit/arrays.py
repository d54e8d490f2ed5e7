"""Whole numbers and rows from outside, taken only if they are what they claim to be.

numpy would cut 3.7 down to 3, wrap 2**32 + 1 around to 1 and read -1 as the last row.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from jaxtyping import Int64, Shaped
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tacit.errors import BadValue


def integer(value: object, name: str, *, least: int = 0, below: int) -> int:
    """The value as an int; refuses what is not a whole number in [least, below)."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise BadValue(f"{name}={value!r} must be a whole number") from None
    if not least <= number < below:
        raise BadValue(f"{name}={number} must be in [{least}, {below})")
    return number


def integers(
    values: ArrayLike, name: str, *, least: int = 0, below: int
) -> Shaped[np.ndarray, "n"]:
    """A list of whole numbers in [least, below), in the integer type they came in."""
    array = np.asarray(values)
    if array.shape == (0,):
        return np.zeros(0, np.int64)  # numpy takes an empty list for floats
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadValue(
            f"{name} must be a list of whole numbers, "
            f"not {array.dtype} of shape {array.shape}"
        )
    for extreme in (int(array.min()), int(array.max())):  # Python's: no wrap-around
        if not least <= extreme < below:
            raise BadValue(f"{name}: {extreme} is not in [{least}, {below})")
    return array


def rows(chosen: ArrayLike, n: int) -> Int64[np.ndarray, "rows"]:
    """Indices below `n`, in any order and as often as given, or those of a mask."""
    array = np.asarray(chosen)
    if array.dtype != np.bool_:
        return integers(array, "rows", below=n).astype(np.int64)
    if array.shape != (n,):
        raise BadValue(f"a mask of shape {array.shape} cannot choose among {n} rows")
    return np.flatnonzero(array)


def typed(dtype: DTypeLike, **columns: NDArray[Any]) -> None:
    """Refuse columns that are not one-dimensional arrays of this type."""
    for name, column in columns.items():
        if column.ndim != 1 or column.dtype != dtype:
            raise BadValue(
                f"{name} must be one-dimensional {np.dtype(dtype)}, "
                f"not {column.dtype} of shape {column.shape}"
            )
