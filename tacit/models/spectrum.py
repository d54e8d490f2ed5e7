"""Directions of a symmetric matrix that noise did not make.

A matrix of side H whose entries carry independent normal noise, of deviation s on the
diagonal and s / sqrt(2) beside it, has noise eigenvalues up to an edge of s sqrt(2 H).
What stands out beyond the edge was there before, and is longer than it was: it is
shrunk to what it would have been.

    v = s sqrt(H / 2)                     half the edge
    eta(L) = sqrt(L^2 - 4 v^2)            the best estimate of an eigenvalue seen at L

Source: Gavish and Donoho 2017, optimal shrinkage (Frobenius norm) of a spiked matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.linalg import eigh


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Directions, the strongest first, and how strong each is without the noise."""

    vectors: Float64[np.ndarray, "side rank"]
    strengths: Float64[np.ndarray, "rank"]


def noise_edge(side: int, deviation: float) -> float:
    """The largest eigenvalue that noise alone makes.

    >>> noise_edge(200, 3.0)
    60.0
    """
    return deviation * math.sqrt(2 * side)


def cleaned(
    matrix: Float64[np.ndarray, "side side"], *, deviation: float, rank: int
) -> Spectrum:
    """The `rank` strongest directions beyond the noise, or as many as there are.

    `deviation` is that of the noise on the diagonal; zero where there is none.
    """
    side = len(matrix)
    first = max(0, side - rank)
    values, vectors = eigh(matrix, subset_by_index=(first, side - 1), driver="evr")
    edge = noise_edge(side, deviation)
    beyond = values > max(edge, 1e-9 * max(values[-1], 0.0))
    strengths = np.sqrt(values[beyond] ** 2 - edge**2)
    return Spectrum(vectors[:, beyond][:, ::-1].copy(), strengths[::-1].copy())
