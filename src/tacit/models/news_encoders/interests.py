"""A user vector as a noisy mixture of public basis vectors, and the way back.

    u   user vector            b_i   basis vector, one per interest      n   noise
    d   its width              θ     clip of the attention               ũ   mixture

    α = softmax(u·b / sqrt d)                    attention
    c = α / max(1, |α|₂ / θ)                     clipped
    w = ReLU(c + n) / Σ ReLU(c + n),   ũ = Σ w_i b_i

Where no c + n is above zero, w is the same for all interests and does not depend on u:
no gradient reaches the user vector then, only the basis.

Source: Liu et al. 2022, Algorithm 2, lines 7-10, with ReLU for SoftPlus as in training
(Section 3.3). Line 8 prints no θ; its text does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from tacit.data.ragged import Ragged
from tacit.tree import Array

Rows = Float[np.ndarray, "clients axes"]
Shares = Float[np.ndarray, "clients interests"]
Basis = Float[np.ndarray, "interests axes"]


def attention(users: Rows, basis: Basis) -> Shares:
    """The softmax α over the interests, for each user vector."""
    return softmax(users @ basis.T / math.sqrt(basis.shape[1]))


def softmax(logits: Array) -> Array:
    """The softmax along the last axis; an axis of -inf alone gives zeros."""
    peak = logits.max(axis=-1, keepdims=True, initial=-np.inf)
    apart = np.exp(logits - np.where(np.isfinite(peak), peak, 0.0))
    total = apart.sum(axis=-1, keepdims=True)
    return apart / np.where(total > 0, total, 1.0)


def ragged_softmax(
    logits: Float[np.ndarray, "total"], rows: Ragged
) -> Float[np.ndarray, "total"]:
    """The softmax of the values of each row."""
    if not len(logits):
        return logits
    filled = np.flatnonzero(rows.lengths)  # `reduceat` has no empty row
    first, lengths = rows.offsets[filled], rows.lengths[filled]
    apart = np.exp(logits - np.repeat(np.maximum.reduceat(logits, first), lengths))
    return np.asarray(apart / np.repeat(np.add.reduceat(apart, first), lengths))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Mixtures of the basis, and what their gradients need."""

    users: Rows
    basis: Basis
    alpha: Shares
    noisy: Shares  # c + n
    theta: float

    @classmethod
    def of(cls, users: Rows, basis: Basis, *, noise: Shares, theta: float) -> Mixture:
        """The mixture of each user, with this noise."""
        alpha = attention(users, basis)
        norm = np.linalg.norm(alpha, axis=1, keepdims=True)
        clipped = alpha / np.maximum(1.0, norm / theta)
        noisy = clipped + noise.astype(alpha.dtype)
        return cls(users, basis, alpha, noisy, theta)

    @property
    def vectors(self) -> Rows:
        """The mixture ũ of each user."""
        return self.shares @ self.basis

    @property
    def shares(self) -> Shares:
        """The weights w of the interests, which sum to one."""
        even = 1.0 / len(self.basis)
        return np.where(self._is_lost, even, self._kept / self._total)

    def backward(
        self, slopes: Rows
    ) -> tuple[Rows, Float[np.ndarray, "clients interests axes"]]:
        """Gradients by the user vector and by the basis, from those by the mixture."""
        alpha, basis, root = self.alpha, self.basis, math.sqrt(self.basis.shape[1])
        by_share = slopes @ basis.T
        centred = by_share - (by_share * self.shares).sum(axis=1, keepdims=True)
        is_open = (self.noisy > 0) & ~self._is_lost
        by_clipped = np.where(is_open, centred / self._total, 0.0)
        norm = np.linalg.norm(alpha, axis=1, keepdims=True)
        along = (alpha * by_clipped).sum(axis=1, keepdims=True) / norm**2
        inside = self.theta / norm * (by_clipped - alpha * along)
        by_alpha = np.where(norm > self.theta, inside, by_clipped)
        mean = (alpha * by_alpha).sum(axis=1, keepdims=True)
        by_logit = alpha * (by_alpha - mean) / root
        by_basis = self.shares[:, :, None] * slopes[:, None]
        by_basis += by_logit[:, :, None] * self.users[:, None]
        return by_logit @ basis, by_basis

    @property
    def _kept(self) -> Shares:
        return np.maximum(self.noisy, 0.0)

    @property
    def _is_lost(self) -> Bool[np.ndarray, "clients one"]:
        return self._kept.sum(axis=1, keepdims=True) == 0

    @property
    def _total(self) -> Float[np.ndarray, "clients one"]:
        total = self._kept.sum(axis=1, keepdims=True)
        return np.where(total > 0, total, 1.0)
