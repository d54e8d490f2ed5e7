"""A symmetric matrix without its noise: directions, and the strength of each.

A matrix of side H whose entries carry independent normal noise, of deviation s on the
diagonal and s / sqrt(2) beside it, has noise eigenvalues up to an edge of s sqrt(2 H).
Noise turns eigenvectors and pushes eigenvalues apart. Along the eigenvector seen at L_i
the matrix without its noise has on average

    xi_i = L_i - s^2 sum over j != i of 1 / (L_i - L_j)

which is Stein's lemma on v_i . noise v_i, and no model of the matrix. Two eigenvalues
that nearly meet get two large and opposite terms; the best growing sequence through all
xi pools such neighbours, and their terms cancel. For one large eigenvalue in pure noise
this is sqrt(L^2 - edge^2), the optimal shrinkage of Gavish and Donoho (2017).

Source: Bun, Allez, Bouchaud and Potters 2016, rotationally invariant estimators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.linalg import eigh

Matrix = Float64[np.ndarray, "side side"]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Directions, the strongest first, and how strong each is without the noise.

    `rest` is the strength of a direction in the middle of the noise, the median of all.
    """

    vectors: Float64[np.ndarray, "side rank"]
    strengths: Float64[np.ndarray, "rank"]
    rest: float


def noise_edge(side: int, deviation: float) -> float:
    """The largest eigenvalue that noise alone makes.

    >>> noise_edge(200, 3.0)
    60.0
    """
    return deviation * math.sqrt(2 * side)


def certainty(
    strengths: Float64[np.ndarray, "some"], *, side: int, deviation: float
) -> Float64[np.ndarray, "some"]:
    """How much of each direction is true: the squared cosine to the one without noise.

    A true eigenvalue t beyond half of the edge, v, is seen along a direction of squared
    cosine 1 - (v / t)², where the matrix has t - v² / t, which is the strength.
    Source: Benaych-Georges and Nadakuditi 2011, low-rank perturbations.

    >>> certainty(np.array([0.0, 1.5, 1e9]), side=2, deviation=1.0).round(2).tolist()
    [0.0, 0.75, 1.0]
    """
    half = noise_edge(side, deviation) / 2
    true = (strengths + np.sqrt(strengths**2 + 4 * half**2)) / 2
    return 1 - (half / np.maximum(true, 1e-300)) ** 2 if half else np.ones(len(true))


def cleaned(
    matrix: Matrix,
    *,
    deviation: float,
    rank: int,
    within: Float64[np.ndarray, "side few"] | None = None,
) -> Spectrum:
    """The strongest directions, at most `rank`, that are stronger than the rest.

    `deviation` is that of the noise on the diagonal; zero where there is none. Where
    strong directions are likely to lie `within` a few columns (orthonormal), they are
    first looked for there: among fewer directions there is less noise.
    """
    likely = np.zeros_like(matrix)
    if within is not None:
        likely = _likely(matrix, within, deviation)
    values, vectors = eigh(matrix - likely, driver="evd")
    strengths = without_noise(values, deviation)
    rest = float(np.median(strengths))
    if within is not None:
        found = likely + (vectors * strengths) @ vectors.T
        strengths, vectors = eigh(found, driver="evd")
    return _strongest(strengths, vectors, rank=rank, rest=rest)


def without_noise(
    values: Float64[np.ndarray, "side"], deviation: float
) -> Float64[np.ndarray, "side"]:
    """What growing eigenvalues would be without the noise, at least zero."""
    if deviation == 0:
        return np.maximum(values, 0.0)
    apart = values[:, None] - values
    apart[apart == 0] = np.inf  # the sum leaves out j = i, and exact ties
    raw = values - deviation**2 * (1 / apart).sum(axis=1)
    from scipy.optimize import isotonic_regression  # a third of a second to load

    return np.maximum(isotonic_regression(raw).x, 0.0)


def _likely(
    matrix: Matrix, within: Float64[np.ndarray, "side few"], deviation: float
) -> Matrix:
    """The matrix restricted to `within`, without its noise and its weakest strength."""
    values, turned = eigh(within.T @ matrix @ within, driver="evd")
    strengths = without_noise(values, deviation)
    vectors = within @ turned
    # Every strength is lowered by the least: what noise leaves in each direction stays
    # in the rest of the matrix, where it is found again.
    return (vectors * (strengths - strengths[0])) @ vectors.T


def _strongest(
    strengths: Float64[np.ndarray, "some"],
    vectors: Float64[np.ndarray, "side some"],
    *,
    rank: int,
    rest: float,
) -> Spectrum:
    least = max(rest, 1e-9 * float(strengths[-1]))  # relative: less is rounding
    n = min(rank, int((strengths > least).sum()))
    last = len(strengths) - n
    return Spectrum(
        vectors[:, last:][:, ::-1].copy(), strengths[last:][::-1].copy(), rest
    )
