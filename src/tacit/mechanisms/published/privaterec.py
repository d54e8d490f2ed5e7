"""PrivateRec (Liu et al. 2022): noisy attention and permuted labels, as printed."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from tacit import check
from tacit.data.ragged import Ragged
from tacit.keys import Keys
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

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class PublishedAttention:
    """Attention weights with the noise that PrivateRec prints; Laplace if delta is 0.

    Guarantee: `event`, at the user level. The claimed `epsilon`, at the item level,
        rests on a sensitivity of theta: "attention scores are always positive".
    Assumes: line 8 clips to theta, as section 3.2.1 does. As printed it clips to 1,
        which changes nothing, and vectors are sqrt(2) apart for any theta.
    Source: Liu et al. 2022, Algorithm 2, lines 7 to 10.
    """

    epsilon: float
    interests: int
    _: KW_ONLY
    theta: float
    delta: float
    padding: float = 0.0

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, theta=self.theta)
        check.count(interests=self.interests)
        check.at_least(2, interests=self.interests)
        check.not_negative(delta=self.delta, padding=self.padding)
        if self.padding:
            check.fraction(padding=self.padding)

    @property
    def noise(self) -> float:
        """The standard deviation of Gaussian noise, or the mean size of Laplace noise.

        Line 9; section 3.2.1 for Laplace.
        """
        eps0 = self.epsilon
        if self.padding:
            eps0 = Padding(self.padding).inner_epsilon(self.epsilon)
        if not self.delta:
            # The paper's sensitivity; it is larger, see `event`.
            return self.theta / eps0
        delta0 = self.delta / (1.0 - self.padding)
        return classic_sigma(eps0, delta=delta0, sensitivity=self.theta)

    @property
    def event(self) -> DpEvent:
        """The event of its actual noise, for a whole user under replace_one."""
        from tacit.accounting.events import local_gaussian, pure_local

        if self.delta:
            return local_gaussian(self.noise, diameter=l2_sensitivity(self.theta))
        apart = l1_sensitivity(self.theta, interests=self.interests)
        return pure_local(apart / self.noise)

    def privatize(self, attention: Attention, keys: Keys) -> Weights:
        """One noisy distribution over the interests per client."""
        clipped = clip_attention(attention, theta=self.theta)
        key, n = keys.at("noise"), self.interests
        drawn = key.normal(n) if self.delta else laplace(key, n)
        return to_weights(clipped + self.noise * drawn)


@dataclass(frozen=True)
class PublishedLabels:
    """PrivateRec's label permutation: randomised response among sampled candidates.

    Guarantee: none. The candidates are the click and `negatives` other items, so an
        item that is missing from them was certainly not clicked: the loss is infinite.
    Assumes: every impression has more than `negatives` items.
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
        beta = np.maximum(0.0, math.log(self.negatives) + self.epsilon - np.log(others))
        return 1.0 / (1.0 + self.negatives * np.exp(-beta))

    def privatize(self, clicks: ArrayLike, keys: Keys, *, sizes: ArrayLike) -> Ragged:
        """Positions in each client's impression: the drawn label, then the rest."""
        size = impression_sizes(sizes, len(keys))
        check.at_least(self.negatives + 1, smallest_impression=int(size.min()))
        clicked = one_of_each(clicks, size)
        others = negatives(
            clicked, keys.at("negatives"), sizes=size, count=self.negatives
        )
        shown = with_labels(clicked, others).values.reshape(len(keys), -1)
        lies = keys.at("lie").uniform(1)[:, 0] >= self.keep(size)
        drawn = keys.at("another").integers(1, below=self.negatives)[:, 0] + 1
        label, row = np.where(lies, drawn, 0), np.arange(len(keys))
        # The drawn label changes places with the click, so that it stands first.
        first = shown[row, label]
        shown[row, label], shown[:, 0] = shown[:, 0].copy(), first
        return Ragged.of_lengths(np.full(len(keys), shown.shape[1]), shown.ravel())
