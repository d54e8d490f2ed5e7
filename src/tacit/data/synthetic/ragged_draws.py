"""Draws in rows of different lengths: how many, which rank, in which order."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import ndtri

from tacit.data.ragged import Ragged, offsets_of

Numbers = Float64[np.ndarray, "total"]
Places = Int64[np.ndarray, "total"]


def log_normal(uniform: Numbers, mean: float, *, spread: float, least: int) -> Places:
    """Whole numbers around a mean, log-normal before rounding; one for each draw."""
    factor = np.exp(spread * ndtri(uniform) - spread**2 / 2)  # of mean 1
    return np.maximum(np.rint(mean * factor), least).astype(np.int64)


def gumbel(uniform: Numbers) -> Numbers:
    """Noise such that the largest of log-weight plus noise is a draw by weight."""
    return -np.log(-np.log1p(-uniform))


def within(lengths: Int64[np.ndarray, "rows"]) -> Places:
    """The position of each value in its row.

    >>> within(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)


def heaviest_first(weights: Numbers, rows: Ragged) -> Places:
    """The rank each value would have if its row were sorted by falling weight."""
    place = np.empty(len(weights), np.int64)
    place[np.lexsort((-weights, rows.owners))] = within(rows.lengths)
    return place
