"""PrivateRec (Liu et al. 2022): noisy attention, permuted labels, noisy gradients.

All three as printed: the first two are PrivateRec's, the last is its rival DP-FedRec's.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from tacit import check
from tacit.data.ragged import Ragged
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import normals
from tacit.mechanisms.label_choice import impression_sizes, negatives, with_labels
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.private_attention import (
    Attention,
    Weights,
    clip_attention,
    l1_sensitivity,
    l2_sensitivity,
    laplace,
    to_weights,
)
from tacit.mechanisms.published.classic import classic_sigma
from tacit.mechanisms.randomized_response import one_of_each
from tacit.tree import Array, Dense, Tree

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class PublishedAttention:
    """Attention weights with the noise that PrivateRec prints; Laplace if delta is 0.

    Guarantee: `event`, at the user level. The claimed `epsilon`, at the item level,
        rests on a sensitivity of theta: "attention scores are always positive".
    Assumes: line 8 clips to theta, as section 3.2.1 does, unless `clip` is given. As
        printed it is 1, which changes nothing, and vectors are sqrt(2) apart for any
        theta.
    Source: Liu et al. 2022, Algorithm 2, lines 7 to 10.
    """

    epsilon: float
    interests: int
    _: KW_ONLY
    theta: float
    delta: float
    padding: float = 0.0
    clip: float | None = None  # of line 8; None: theta

    def __post_init__(self) -> None:
        if not math.isinf(self.epsilon):
            check.positive(epsilon=self.epsilon)
        check.positive(theta=self.theta, clip=self.bound)
        check.count(interests=self.interests)
        check.at_least(2, interests=self.interests)
        check.not_negative(delta=self.delta, padding=self.padding)
        if self.padding:
            check.fraction(padding=self.padding)

    @property
    def noise(self) -> float:
        """The standard deviation of Gaussian noise, or the mean size of Laplace noise.

        Line 9; section 3.2.1 for Laplace. At an infinite epsilon there is none.
        """
        if math.isinf(self.epsilon):
            return 0.0
        eps0 = self.epsilon
        if self.padding:
            eps0 = Padding(self.padding).inner_epsilon(self.epsilon)
        if not self.delta:
            # The paper's sensitivity; it is larger, see `event`.
            return self.theta / eps0
        delta0 = self.delta / (1.0 - self.padding)
        return classic_sigma(eps0, delta=delta0, sensitivity=self.theta)

    @property
    def bound(self) -> float:
        """The largest length of an attention vector after line 8."""
        return self.theta if self.clip is None else self.clip

    @property
    def event(self) -> DpEvent:
        """The event of its actual noise, for a whole user under replace_one."""
        from tacit.accounting.dp_events import NonPrivateDpEvent
        from tacit.accounting.events import local_gaussian, pure_local

        if not self.noise:
            return NonPrivateDpEvent()
        if self.delta:
            return local_gaussian(self.noise, diameter=l2_sensitivity(self.bound))
        apart = l1_sensitivity(self.bound, interests=self.interests)
        return pure_local(apart / self.noise)

    def drawn(self, keys: Keys) -> Weights:
        """Line 9: the noise on each weight of each client."""
        key, n = keys.at("noise"), self.interests
        return self.noise * (normals(key, n) if self.delta else laplace(key, n))

    @property
    def variance(self) -> float:
        """The variance of the noise on each weight."""
        return self.noise**2 * (1.0 if self.delta else 2.0)

    def noisy(self, attention: Attention, keys: Keys) -> Weights:
        """The clipped attention with its noise; what follows is post-processing."""
        return clip_attention(attention, theta=self.bound) + self.drawn(keys)

    def privatize(self, attention: Attention, keys: Keys) -> Weights:
        """One noisy distribution over the interests per client."""
        return to_weights(self.noisy(attention, keys))


@dataclass(frozen=True)
class PublishedLabels:
    """PrivateRec's label permutation: randomised response among sampled candidates.

    Guarantee: none. The candidates are the click and `negatives` other items, so an
        item that is missing from them was certainly not clicked: the loss is infinite.
    Assumes: every impression has two items or more. Where fewer than `negatives` were
        not clicked, all of them are candidates, and k is their number: the paper does
        not say what happens then.
    Source: Liu et al. 2022, Algorithm 3, lines 16 to 18.
    """

    epsilon: float
    negatives: int  # k

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(negatives=self.negatives)

    @property
    def event(self) -> DpEvent:
        """The event of a release that protects nothing."""
        from tacit.accounting.dp_events import NonPrivateDpEvent

        return NonPrivateDpEvent()

    def keep(self, sizes: ArrayLike) -> Float64[np.ndarray, "clients"]:
        """The chance that the label stays, e^b / (k + e^b); C is the impression's size.

        b = max(0, log(k e^epsilon / (C - 1))).
        """
        others = np.maximum(np.asarray(sizes, np.float64) - 1.0, 1.0)
        drawn = np.minimum(self.negatives, others)
        beta = np.maximum(0.0, np.log(drawn) + self.epsilon - np.log(others))
        return 1.0 / (1.0 + drawn * np.exp(-beta))

    def privatize(self, clicks: ArrayLike, keys: Keys, *, sizes: ArrayLike) -> Ragged:
        """Positions in each client's impression: the drawn label, then the rest."""
        size = impression_sizes(sizes, len(keys))
        if len(size):
            check.at_least(2, smallest_impression=int(size.min()))
        clicked = one_of_each(clicks, size)
        others = negatives(
            clicked, keys.at("negatives"), sizes=size, count=self.negatives
        )
        shown = with_labels(clicked, others)
        lies = keys.at("lie").uniform(1)[:, 0] >= self.keep(size)
        share = keys.at("another").uniform(1)[:, 0]
        drawn = 1 + (share * others.lengths).astype(np.int64)
        # The drawn label changes places with the click, so that it stands first.
        first = shown.offsets[:-1]
        label = first + np.where(lies, drawn, 0)
        values = shown.values.copy()
        values[first], values[label] = shown.values[label], shown.values[first]
        return Ragged(shown.offsets, values)


@dataclass(frozen=True)
class PublishedGradient:
    """DP-FedRec's gradient: clipped to length theta, with noise on every number.

    Laplace noise of scale 2 theta / epsilon, or Gaussian noise if delta is above 0. The
    same is done with a user vector to be served (`PublishedVector`).

    Guarantee: `event` for the whole user, whatever the number d of weights. Laplace
        noise would need an L1 sensitivity, which after a clip in L2 is
        2 theta sqrt(d): at delta 0 the epsilon is sqrt(d) times the claimed one. With a
        delta it is smaller: number i of the gradient moves by t_i times the scale, so
        that it is t_i-DP and t_i² / 2-zCDP (Bun and Steinke 2016, Proposition 3.3), and
        the t_i² add up to epsilon² at the most.
    Assumes: nothing of the gradient. Noise is float64, so its low bits are not covered
        (Mironov 2012).
    Source: Liu et al. 2022, Section 4, with the mechanism of Section 3.2.1.
    """

    epsilon: float
    _: KW_ONLY
    theta: float = 0.005
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not math.isinf(self.epsilon):
            check.positive(epsilon=self.epsilon)
        check.positive(theta=self.theta)
        check.not_negative(delta=self.delta)

    @property
    def noise(self) -> float:
        """The mean size of Laplace noise, or the deviation of Gaussian noise."""
        if math.isinf(self.epsilon):
            return 0.0
        if not self.delta:
            return 2 * self.theta / self.epsilon
        return classic_sigma(self.epsilon, delta=self.delta, sensitivity=2 * self.theta)

    @property
    def event(self) -> DpEvent:
        """The event of one gradient, for a whole user under replace_one."""
        from tacit.accounting.dp_events import NonPrivateDpEvent, ZCDpEvent
        from tacit.accounting.events import local_gaussian

        if not self.noise:
            return NonPrivateDpEvent()
        if self.delta:
            return local_gaussian(self.noise, diameter=2 * self.theta)
        return ZCDpEvent(self.epsilon**2 / 2)

    def privatize(self, tree: Tree, keys: Keys) -> Tree:
        """Each client's whole gradient clipped jointly, then noise; dense."""
        clipped = clip_by_norm(tree, self.theta)
        return Tree(
            {
                name: Dense(self._noisy(leaf.dense().values, keys.at(name)))
                for name, leaf in clipped.leaves.items()
            }
        )

    def _noisy(self, values: Array, keys: Keys) -> Array:
        flat = values.reshape(len(values), -1)
        n = flat.shape[1]
        drawn = normals(keys, n) if self.delta else laplace(keys, n)
        return (flat + self.noise * drawn).reshape(values.shape)


@dataclass(frozen=True)
class PublishedVector:
    """VDP: a user vector clipped to length theta, with noise on each of its numbers.

    Guarantee: that of `PublishedGradient`, whose noise it is, for the whole user. Of
        Laplace noise the event is epsilon sqrt(d), pure, where that is less at a delta
        of 1e-6, and else epsilon² / 2-zCDP: both hold.
    Source: Liu et al. 2022, Section 3.2.1; theta in serving is .001 (Section 4).
    """

    epsilon: float
    width: int
    _: KW_ONLY
    theta: float = 0.001
    delta: float = 0.0

    def __post_init__(self) -> None:
        check.count(width=self.width)
        _ = self._printed  # refuses what cannot be

    @property
    def variance(self) -> float:
        """The variance of the noise on each number."""
        return self._printed.noise**2 * (1.0 if self.delta else 2.0)

    @property
    def event(self) -> DpEvent:
        """The event of one vector, for a whole user under replace_one."""
        from tacit.accounting.events import pure_local

        if self.delta or math.isinf(self.epsilon):
            return self._printed.event
        # rho-zCDP is rho + 2 sqrt(rho log(1/delta)), with rho half of epsilon².
        root, least = math.sqrt(self.width), math.sqrt(2 * math.log(1e6))
        if root <= self.epsilon / 2 + least:
            return pure_local(self.epsilon * root)
        return self._printed.event

    def noisy(
        self, vectors: Float[np.ndarray, "clients numbers"], keys: Keys
    ) -> Float64[np.ndarray, "clients numbers"]:
        """Each client's vector, clipped and made noisy."""
        if vectors.shape != (len(keys), self.width):
            raise BadValue(
                f"vectors of shape {vectors.shape}; needed is "
                f"{(len(keys), self.width)}: {self.width} numbers for each client"
            )
        raw = Tree.dense(user=vectors.astype(np.float64))
        return self._printed.privatize(raw, keys)["user"]

    @property
    def _printed(self) -> PublishedGradient:
        return PublishedGradient(self.epsilon, theta=self.theta, delta=self.delta)
