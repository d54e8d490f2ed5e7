"""Interests of a user as noisy attention weights over public basis vectors.

Attention a is non-negative and sums to one. It is clipped to norm theta, made noisy,
made positive and normalised again:

    c = a / max(1, |a|₂ / theta),   w = softplus(c + noise),   w / sum w

Two clipped vectors can be orthogonal, so they are apart by up to

    Δ2 = sqrt(2) min(theta, 1)
    Δ1 = max over m1 + m2 = B of  min(1, theta sqrt(m1)) + min(1, theta sqrt(m2))

Δ1 is reached by attention spread evenly over m1 interests, against even attention over
the m2 others. Both bounds hold for any two histories: the guarantees are for a whole
user, under replace_one.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64, Int64

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms import true_normal
from tacit.mechanisms.gaussian import least_multiplier, normals

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Attention = Float[np.ndarray, "clients interests"]
Weights = Float64[np.ndarray, "clients interests"]


@dataclass(frozen=True)
class GaussianAttention:
    """Attention weights with Gaussian noise.

    Guarantee: (`epsilon`, `delta`) local DP for the whole history, for one release.
    Assumes: basis vectors are public. What is not a distribution over the interests is
        made one first. A release is cached and reused; a fresh one is a new event.
        Noise is float64, so its low bits are not covered (Mironov 2012).
    Source: Balle and Wang 2018 for the noise; Liu et al. 2022, Algorithm 2, with the
        sensitivity of this module.
    """

    epsilon: float
    interests: int
    _: KW_ONLY
    theta: float
    delta: float

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, theta=self.theta)
        check.count(interests=self.interests)
        check.at_least(2, interests=self.interests)
        check.fraction(delta=self.delta, remedy="for delta 0 use LaplaceAttention")

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on each weight."""
        noise = least_multiplier(self.epsilon, self.delta)
        return l2_sensitivity(self.theta) * noise

    @property
    def event(self) -> DpEvent:
        """The event of one release, under replace_one."""
        from tacit.accounting.events import local_gaussian

        return local_gaussian(self.sigma, diameter=l2_sensitivity(self.theta))

    @property
    def variance(self) -> float:
        """The variance of the noise on each weight."""
        return self.sigma**2

    def privatize(self, attention: Attention, keys: Keys) -> Weights:
        """One noisy distribution over the interests per client."""
        return to_weights(self.noisy(attention, keys))

    def noisy(self, attention: Attention, keys: Keys) -> Weights:
        """The clipped attention with its noise; what follows is post-processing."""
        _check_shape(attention, (len(keys), self.interests))
        noise = self.sigma * normals(keys.at("noise"), self.interests)
        return clip_attention(attention, theta=self.theta) + noise


@dataclass(frozen=True)
class LaplaceAttention:
    """Attention weights with Laplace noise.

    Guarantee: `epsilon` pure local DP for the whole history, for one release.
    Assumes: as `GaussianAttention`.
    Source: Dwork et al. 2006 for the noise; Liu et al. 2022, Algorithm 2, with the
        sensitivity of this module.
    """

    epsilon: float
    interests: int
    _: KW_ONLY
    theta: float

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, theta=self.theta)
        check.count(interests=self.interests)
        check.at_least(2, interests=self.interests)

    @property
    def scale(self) -> float:
        """The mean size of the noise on each weight."""
        return l1_sensitivity(self.theta, interests=self.interests) / self.epsilon

    @property
    def event(self) -> DpEvent:
        """The event of one release: that of any mechanism of this pure epsilon."""
        from tacit.accounting.events import pure_local

        return pure_local(self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of the noise on each weight."""
        return 2.0 * self.scale**2

    def privatize(self, attention: Attention, keys: Keys) -> Weights:
        """One noisy distribution over the interests per client."""
        return to_weights(self.noisy(attention, keys))

    def noisy(self, attention: Attention, keys: Keys) -> Weights:
        """The clipped attention with its noise; what follows is post-processing."""
        _check_shape(attention, (len(keys), self.interests))
        noise = self.scale * laplace(keys.at("noise"), self.interests)
        return clip_attention(attention, theta=self.theta) + noise


def l2_sensitivity(theta: float) -> float:
    """The largest L2 distance between two clipped attention vectors."""
    return math.sqrt(2) * min(theta, 1.0)


def l1_sensitivity(theta: float, *, interests: int) -> float:
    """The largest L1 distance between two clipped attention vectors."""
    m = np.arange(1, interests)
    share = np.minimum(1.0, theta * np.sqrt(m))  # L1 norm of m equal weights, clipped
    return float((share + share[::-1]).max())


def clip_attention(attention: Attention, *, theta: float) -> Weights:
    """Distributions over the interests, cut to a length of at most `theta`."""
    whole = normalized(attention.astype(np.float64))
    norm = np.linalg.norm(whole, axis=1, keepdims=True)
    return whole / np.maximum(1.0, norm / theta)


def to_weights(noisy: Weights) -> Weights:
    """Positive weights that sum to one, from any numbers."""
    return normalized(np.logaddexp(0.0, noisy))  # softplus, stable for large numbers


def normalized(weights: Weights) -> Weights:
    """Rows made distributions: what is no positive number is 0, all-zero is uniform."""
    known = np.where(np.isfinite(weights) & (weights > 0), weights, 0.0)
    peak = known.max(axis=1, keepdims=True)
    # Over the peak first: sums of huge weights would overflow.
    known = np.where(peak > 0, known / np.where(peak > 0, peak, 1.0), 1.0)
    return known / known.sum(axis=1, keepdims=True)


def laplace(keys: Keys, n: int) -> Float64[np.ndarray, "clients n"]:
    """Standard Laplace noise, `n` draws per client; only a seed's draws have an end."""
    if keys.secret is not None:
        return true_normal.laplace(keys, n)
    # An exponential by inversion, and a fair sign; log1p keeps small draws exact.
    size = -np.log1p(-keys.at("size").uniform(n))
    return np.where(keys.at("sign").uniform(n) < 0.5, size, -size)


def draw_interest(attention: Attention, keys: Keys) -> Int64[np.ndarray, "clients"]:
    """One interest per client, as likely as its attention; for randomised response."""
    ends = np.cumsum(normalized(attention.astype(np.float64)), axis=1)
    return (keys.uniform(1) >= ends[:, :-1]).sum(axis=1)


def _check_shape(attention: Attention, needed: tuple[int, int]) -> None:
    if attention.shape != needed:
        raise BadValue(
            f"attention of shape {attention.shape}; needed is {needed}: a weight for "
            "each client and interest"
        )
