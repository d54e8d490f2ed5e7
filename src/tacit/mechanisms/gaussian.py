"""Gaussian noise: on a trusted sum, or on one client's report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, UInt64

from tacit import check
from tacit.accounting.calibration import gaussian_noise
from tacit.kernels import dispatch
from tacit.keys import Key, Keys
from tacit.mechanisms import true_normal
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.sum_mechanism import AddTo, Bounded, Fill, add_noise, filled
from tacit.tree import Array, Arrays, Dense, Tree
from tacit.wire_names import register

if TYPE_CHECKING:
    from tacit.accounting.dp_events import GaussianDpEvent

_REMEDY = "use mechanism = 'none' to train without protection"


@register("gaussian_sum")
@dataclass(frozen=True)
class GaussianSum:
    """The sum of clipped updates with normal noise on every coordinate.

    Guarantee: one round is a Gaussian release of `noise_multiplier` for a whole user,
        under zero_out; replace_one moves the sum by two clips.
    Assumes: a trusted sum; `clip` is public; the sum is divided by the planned size.
        Here sums and noise are floats, for simulation: what rounding tells in the
        low bits is not covered (Mironov 2012). A release has both in whole numbers.
    Source: Dwork and Roth 2014, Appendix A; McMahan et al. 2018, Algorithm 1.
    """

    clip: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        check.positive(clip=self.clip)
        check.positive(noise_multiplier=self.noise_multiplier, remedy=_REMEDY)

    @classmethod
    def calibrated(cls, clip: float, *, epsilon: float, delta: float) -> GaussianSum:
        """The least noise for one release; the classic formula is no bound above 1.

        >>> round(GaussianSum.calibrated(1.0, epsilon=4, delta=1e-6).scale("V"), 4)
        1.1935
        """
        return cls(clip, least_multiplier(epsilon, delta))

    def bound(self, tree: Tree) -> Tree:
        """Each client's whole tree, clipped jointly."""
        return clip_by_norm(tree, self.clip)

    def enforce(self, tree: Tree) -> Tree:
        """Reports clipped once more as they arrive: a client may lie."""
        return self.bound(tree)

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The noisy total, computed in float64; float32 if the total is."""
        return add_noise(total, key, draw=standard_normal, scale=self.scale)

    def scale(self, leaf: str) -> float:
        """The standard deviation of the noise, the same for every leaf."""
        return self.noise_multiplier * self.clip

    def bounded(self, leaves: Sequence[str]) -> tuple[Bounded, ...]:
        """One bound, the clip, for all leaves together."""
        return (Bounded(tuple(leaves), self.clip, self.scale("")),)

    @property
    def sensitivity(self) -> float:
        """The clip: what zeroing one client out moves the sum by, at the most."""
        return self.clip

    @property
    def event(self) -> GaussianDpEvent:
        """The event of one noisy total, for a whole user."""
        return gaussian_event(self.noise_multiplier)


@dataclass(frozen=True)
class LocalGaussian:
    """A clipped update with normal noise of the client's own.

    Guarantee: each report is a Gaussian release of `noise_multiplier` = sigma / clip
        for a whole user, whoever sees it: server and relay too. Under replace_one two
        legal updates are two clips apart; the accountant knows.
    Assumes: `clip` is public; nothing of the server. Noise is in floats: what their
        low bits tell is not covered (Mironov 2012).
    Source: Dwork and Roth 2014, Appendix A.
    """

    clip: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        check.positive(clip=self.clip)
        check.positive(noise_multiplier=self.noise_multiplier, remedy=_REMEDY)

    def privatize(self, tree: Tree, keys: Keys) -> Tree:
        """Each client's clipped tree with that client's noise; dense float64."""
        clipped = clip_by_norm(tree, self.clip).to_dense()
        return Tree(
            {
                name: Dense(clipped[name] + self._noise(clipped[name], keys.at(name)))
                for name in clipped.leaves
            }
        )

    def privatized_sum(self, tree: Tree, key: Key) -> dict[str, Array]:
        """The sum over a cohort of `privatize`, with its noise drawn once.

        Equal in distribution, and the clients' noise is never written down. For
        simulation: a real server sees each report.
        """
        clipped = clip_by_norm(tree, self.clip)
        spread = self._deviation * math.sqrt(len(tree))  # variances of n clients add
        return add_noise(
            clipped.sum(), key, draw=standard_normal, scale=lambda _: spread
        )

    def most_reports(self, *, epsilon: float, delta: float) -> int:
        """How many reports stay within a budget, under zero_out: the client's filter.

        n reports are one of noise_multiplier / sqrt(n).

        >>> LocalGaussian(1.0, noise_multiplier=5.0).most_reports(epsilon=4, delta=1e-6)
        17
        """
        # n / z² adds up to 1 / z_least²; rounded down, so never one report too many.
        return int((self.noise_multiplier / least_multiplier(epsilon, delta)) ** 2)

    @property
    def event(self) -> GaussianDpEvent:
        """The event of one report, for a whole user."""
        return gaussian_event(self.noise_multiplier)

    @property
    def _deviation(self) -> float:
        return self.noise_multiplier * self.clip

    def _noise(self, values: Array, keys: Keys) -> Array:
        n = math.prod(values.shape[1:])
        return (self._deviation * normals(keys, n)).reshape(values.shape)


def least_multiplier(epsilon: float, delta: float) -> float:
    """The noise multiplier of one Gaussian release that is (epsilon, delta)-DP."""
    check.positive(epsilon=epsilon, remedy=_REMEDY)
    return gaussian_noise(epsilon, delta=delta)


def gaussian_event(noise_multiplier: float) -> GaussianDpEvent:
    """The event of one Gaussian release."""
    from tacit.accounting.dp_events import GaussianDpEvent

    return GaussianDpEvent(noise_multiplier)


def standard_normal(key: Key, n: int) -> AddTo:
    """A function that adds scaled standard normal draws in float64, `n` in all.

    A seed's draws come from a fast generator, a secret's from its cipher.
    """
    if key.secret is not None:
        return filled(_ciphered(key))
    if not dispatch.pays("normal.add_normal", n):
        generator = key.generator()
        return filled(lambda out: generator.standard_normal(out=out))
    from tacit.kernels.normal import add_normal  # loads numba

    return partial(add_normal, fast_stream(key))


def normals(keys: Keys, n: int) -> Float64[np.ndarray, "clients n"]:
    """Standard normal noise, `n` draws per client; only a seed's draws have an end."""
    return keys.normal(n) if keys.secret is None else true_normal.normal(keys, n)


def _ciphered(key: Key) -> Fill:
    """A function that writes the next standard normal draws of a secret's key."""
    parts = count()  # each call gets an address of its own: no draw comes twice

    def fill(out: Array) -> None:
        out[:] = normals(key.at(next(parts)).alone(), len(out))[0]

    return fill


def fast_stream(key: Key) -> UInt64[np.ndarray, "4"]:
    """The state of a key's SFC64 stream, which is twice as fast as its Philox."""
    bits = np.random.SFC64(key.words)
    return np.array(bits.state["state"]["state"], np.uint64)
