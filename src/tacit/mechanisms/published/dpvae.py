"""DP-VAE (Fang, Du and Wu 2022): clipping bound and priors, as printed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Float64

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.published.classic import classic_sigma

Gradients = Float[np.ndarray, "examples size"]
Numbers = Float64[np.ndarray, "clients size"]


def optimal_clip(gradients: Gradients, *, epsilon: float, delta: float) -> float:
    """DP-VAE's clipping bound of one user: the gradient norm that bisection hits.

    Guarantee: none. Bound and noise both grow with the user's own gradients, so the
        size of the noise tells them.
    Assumes: of lists of fewer than three, where the paper is silent, the best is taken.
    Source: Fang et al. 2022, Algorithm 2.
    """
    norms = np.linalg.norm(gradients, axis=1)
    if noise_decides(gradients.shape[1], epsilon=epsilon, delta=delta):
        return bisected(norms)

    def error(bound: float) -> float:
        return clip_error(gradients, bound, epsilon=epsilon, delta=delta)

    return bisected(norms, error)


def bisected(
    norms: Float[np.ndarray, "examples"], error: Callable[[float], float] = float
) -> float:
    """Algorithm 2 on the norms of a list; by default the error is the bound itself."""
    check.count(examples=len(norms))
    left = np.sort(norms)[::-1]
    while len(left) > 2:
        middle = len(left) // 2 - 1  # floor(l / 2), counted from one
        at = [max(middle - 1, 0), middle, middle + 1]
        before, here, after = (error(float(left[j])) for j in at)
        if here <= before and here <= after:
            return float(left[middle])
        # Falling towards smaller bounds: go on with those, else with larger ones.
        left = left[middle + 1 :] if after <= here <= before else left[:middle]
    return float(min(left[::-1], key=lambda bound: error(float(bound))))


def noise_decides(size: int, *, epsilon: float, delta: float) -> bool:
    """Whether H(S) grows with S whatever the gradients are, by its noise term alone.

    With S the noise term grows by size · sqrt(2 / pi) · sigma. A clipped gradient moves
    by at most 1, so its distance from the mean by at most 2, and what is cut by at most
    1; a sum of magnitudes is at most sqrt(size) times as long. Then the order of the
    errors is that of the bounds, and the best bound is zero.
    """
    noise = math.sqrt(2 / math.pi) * classic_sigma(epsilon, delta=delta)
    return size * noise > 3 * math.sqrt(size)


def clip_error(
    gradients: Gradients,
    bound: float,
    *,
    epsilon: float,
    delta: float,
) -> float:
    """H(S) of DP-VAE's Equation 20 for one user; |.| is the sum of magnitudes."""
    norms = np.linalg.norm(gradients, axis=1)
    kept = np.minimum(1.0, bound / np.maximum(norms, np.finfo(float).tiny))
    clipped = gradients * kept[:, None]
    # The mean of |N(0, 1)|, d times.
    noise = gradients.shape[1] * math.sqrt(2 / math.pi)
    noise *= classic_sigma(epsilon, delta=delta) * bound
    spread = np.abs(clipped - clipped.mean(axis=0)).sum(axis=1)
    cut = np.abs(gradients).sum(axis=1) * (1.0 - kept)  # |g| / ‖g‖ · max(0, ‖g‖ - S)
    return float(noise + (spread + cut).mean())


def noisy_prior(
    metadata: Float[np.ndarray, "clients kinds size"],
    means: Float[np.ndarray, "... kinds size"],
    keys: Keys,
    *,
    sigma: float | Float64[np.ndarray, "clients"],
) -> tuple[Numbers, Numbers]:
    """DP-VAE's prior of each user: means and variances, with noise on both.

    Guarantee: that of 2 · size numbers, each with this noise; the paper calibrates it
        for one and gives no sensitivity.
    Assumes: a KL term that takes negative variances.
    Source: Fang et al. 2022, Equation 11.
    """
    if len(metadata) != len(keys):
        raise BadValue(f"metadata of {len(metadata)} clients for {len(keys)} keys")
    check.positive(sigma=float(np.min(sigma)))
    scale, size = np.reshape(sigma, (-1, 1)), metadata.shape[2]
    mean = (metadata * means).sum(axis=1) + scale * keys.at("mean").normal(size)
    variance = ((metadata - mean[:, None]) ** 2).sum(axis=1)
    return mean, variance + scale * keys.at("variance").normal(size)
