"""How items load on a few known directions: a third sum, and what it corrects.

    V, ξ   directions of the head and their strengths, from a noisy sum of z zᵀ
    S      the sum of q tᵀ, with noise: q a history over more items than the head, t its
           taste along the first k directions, both of norm 1
    C_j    V_j · S_j on the head: how much taste goes along direction j
    W      S / C, one column per direction: on the head it estimates V, beyond the head
           it says where V would go on

On the head, V and W are two noisy views of the same loadings and are averaged by their
variances. Every loading is then shrunk by what an item of its count can be expected to
have (Wiener); with public content, towards what items alike to it have. Shrunken
columns are neither orthogonal nor of norm 1, so W diag(ξ) Wᵀ is decomposed again.
Directions beyond the first k stay as they were.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.linalg import solve

from tacit.models.eigenvalue_shrinkage import Spectrum

Loadings = Float64[np.ndarray, "items few"]

_LEAST = 1e-3  # of the strongest direction: weaker ones are not lifted any further
_LIFT = -0.25  # weak directions speak a little louder in a taste; 0 to -1/2 is flat


def taste_directions(found: Spectrum, k: int) -> Float64[np.ndarray, "head few"]:
    """The first `k` directions, lifted: a taste is what a history has along them.

    Columns that a spectrum does not have are zero, so that the shape is public.
    """
    lifted = np.zeros((len(found.vectors), k))
    n = min(k, len(found.strengths))
    if n:
        above = found.strengths[:n] - found.rest
        lift = np.maximum(above / max(above[0], 1e-300), _LEAST) ** _LIFT
        lifted[:, :n] = found.vectors[:, :n] * lift
    return lifted


def with_loadings(
    found: Spectrum,
    loads: Loadings,
    *,
    deviation: float,
    load_deviation: float,
    lengths: Float64[np.ndarray, "items"],
    alike: Float64[np.ndarray, "items items"] | None = None,
) -> Spectrum:
    """The spectrum with its first directions corrected and carried on beyond the head.

    `deviation` is that of the noise on the diagonal of the matrix that was decomposed,
    `load_deviation` that of the noise on the loads; `lengths` is how much of a history
    each item can be expected to hold, up to a factor; `alike` is how much the loadings
    of two items can be expected to agree, 1 on the diagonal.
    """
    side, n = len(found.vectors), min(loads.shape[1], len(found.strengths))
    if n == 0:
        return _carried_on(found, len(loads))
    vectors, strengths = found.vectors[:, :n], found.strengths[:n]
    along = np.einsum("hk,hk->k", vectors, loads[:side, :n])
    # A direction without any taste along it has no loadings; its own stay.
    is_known = along > load_deviation
    along = np.where(is_known, along, np.inf)
    told = loads[:, :n] / along
    variance = np.broadcast_to((load_deviation / along) ** 2, told.shape).copy()
    variance[:, ~is_known] = np.inf
    own = deviation**2 / (2 * strengths**2)
    told[:side], variance[:side] = _averaged(vectors, own, told[:side], variance[:side])
    expected = lengths / lengths[:side].sum()
    if alike is None or load_deviation == 0:
        told *= expected[:, None] / (expected[:, None] + variance)
    else:
        told = _posterior(told, variance, expected, alike)
    basis, triangle = np.linalg.qr(told)
    values, turned = np.linalg.eigh((triangle * strengths) @ triangle.T)
    strongest = np.argsort(-values)
    others = _carried_on(found, len(loads))
    return Spectrum(
        np.hstack([basis @ turned[:, strongest], others.vectors[:, n:]]),
        np.concatenate([values[strongest], found.strengths[n:]]),
        found.rest,
    )


def _posterior(
    told: Loadings,
    variance: Loadings,
    expected: Float64[np.ndarray, "items"],
    alike: Float64[np.ndarray, "items items"],
) -> Loadings:
    """The expected loadings, if those of items that are alike agree beforehand."""
    root = np.sqrt(expected)
    prior = root[:, None] * alike * root
    found = np.zeros_like(told)
    for j in range(told.shape[1]):
        seen = np.isfinite(variance[:, j])  # of the others nothing but alikeness speaks
        noisy = prior[np.ix_(seen, seen)]
        noisy[np.diag_indices_from(noisy)] += variance[seen, j]
        found[:, j] = prior[:, seen] @ solve(noisy, told[seen, j], assume_a="sym")
    return found


def _averaged(
    one: Loadings,
    variance: Float64[np.ndarray, "few"],
    other: Loadings,
    others: Loadings,
) -> tuple[Loadings, Loadings]:
    """The mean of two views, weighted by their precision, and its variance.

    Without noise, `one` is exact.
    """
    if not variance.any():
        return one, np.zeros_like(others)
    # 1 where the other view has no precision at all, an infinite variance.
    share = 1 / (1 + variance / np.maximum(others, 1e-300))
    return share * one + (1 - share) * other, share * variance


def _carried_on(found: Spectrum, n_items: int) -> Spectrum:
    """The same directions over more items, on which they are zero."""
    more = np.zeros((n_items - len(found.vectors), found.vectors.shape[1]))
    return Spectrum(np.vstack([found.vectors, more]), found.strengths, found.rest)
