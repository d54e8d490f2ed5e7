"""What all leaves store: plain arrays whose axis 0 is the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Shaped
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Change = Callable[[Array], Array]


def as_float(factors: Array, like: Array) -> Array:
    """Factors in the type of the floats they scale; float64 for integers."""
    return factors.astype(np.float64 if is_whole(like.dtype) else like.dtype)


def flat_rank(factor: Shaped[np.ndarray, "clients rank n"]) -> Array:
    """All ranks of all clients, one after another."""
    clients, rank, n = factor.shape
    return factor.reshape(clients * rank, n)


def is_whole(dtype: np.dtype[Any]) -> bool:
    """Whether the numbers are integers or truth values."""
    return dtype.kind in "iub"
