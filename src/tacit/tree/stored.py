"""What all leaves store: plain arrays whose axis 0 is the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped
from numpy.typing import NDArray

from tacit.kernels import dispatch

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Change = Callable[[Array], Array]
Stored = Mapping[str, tuple[str, tuple[int, ...]]]  # type, and shape of one client's


def described(parts: Arrays) -> Stored:
    """The types of stored arrays, and their shapes without the client axis."""
    return {name: (str(part.dtype), part.shape[1:]) for name, part in parts.items()}


def as_float(factors: Array, like: Array) -> Array:
    """Factors in the type of the floats they scale; float64 for integers."""
    return factors.astype(np.float64 if is_whole(like.dtype) else like.dtype)


def squared_rows(
    rows: Shaped[np.ndarray, "clients n"],
) -> Float64[np.ndarray, "clients"]:
    """The squared norm of each row, in float64.

    How it is computed follows from the layout of a row, never from how many there are:
    a client's clip does not depend on who else is there.
    """
    is_short = not dispatch.pays("squares.squared_rows", rows.shape[1])
    if is_short or rows.dtype.kind != "f" or rows.dtype.itemsize < 4:
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    from tacit.kernels.squares import squared_rows as compiled  # loads numba

    return np.asarray(compiled(rows))


def flat_rank(factor: Shaped[np.ndarray, "clients rank n"]) -> Array:
    """The factor as (clients * rank, n): a sum over both is then one product."""
    clients, rank, n = factor.shape
    return factor.reshape(clients * rank, n)


def is_whole(dtype: np.dtype[Any]) -> bool:
    """Whether the numbers are integers or truth values."""
    return dtype.kind in "iub"
