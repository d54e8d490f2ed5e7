"""Integer sums with Skellam noise: what secure aggregation can add up.

client    encode   clip, put on a grid of `resolution` steps per unit, round at random
sum       add      Skellam noise, the difference of two Poissons: integers stay integers
server    estimate back to the update's units

Rounding can make a vector longer, so it is drawn again until its squared norm is within
a limit that most draws meet. The limit is enforced, not expected: the sensitivities
below hold for every contribution.

    c = resolution · clip · (1 + slack)             before rounding, d coordinates
    D2² = ⌊min((c + √d)², c² + d/4 + √(2 ln(1/β)) (c + √d/2))⌋,  β = e^(-1/2)
    D1 = min(√d · D2, D2²)                          |k| <= k² for whole numbers
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64

from tacit import arrays, check
from tacit.accounting.rdp import skellam_rdp
from tacit.errors import BadValue
from tacit.keys import Key, Keys
from tacit.mechanisms.clipping import SLACK, clip_by_norm
from tacit.tree import Array, Arrays, Dense, Tree

if TYPE_CHECKING:
    from tacit.accounting.events import SkellamDpEvent

_LOG_INVERSE_BETA = 0.5  # at least 1 - e^(-1/2) = 39 % of all roundings are kept
_ATTEMPTS = 64  # all fail once in 1e13; then rounding is towards zero, always within
_LARGEST = 2.0**30  # squares must add up within 63 bits
LEAST_STEPS = 2**10  # in a bound, for which `skellam_event` accounts


@dataclass(frozen=True)
class SkellamSum:
    """The sum of clipped, rounded updates with Skellam noise on every coordinate.

    Guarantee: one round has Rényi divergence `rdp(alpha)` for a whole user under
        zero_out, for whole alpha >= 2.
    Assumes: a trusted sum (`SkellamShares` needs none); `clip` and `dimension`, the
        coordinates of a whole update, are public. numpy draws the Poissons in floats,
        so a release has no use for it: it is for simulation.
    Source: Agarwal, Kairouz and Liu 2021; rounding: Kairouz, Liu and Steinke 2021,
        Theorem 1.
    """

    clip: float
    noise_multiplier: float
    resolution: float  # grid steps in a unit of the update
    dimension: int

    def __post_init__(self) -> None:
        check.positive(clip=self.clip, resolution=self.resolution)
        check.positive(noise_multiplier=self.noise_multiplier)
        check.count(dimension=self.dimension)
        check.positive(largest_norm=self._longest)
        if max(self._longest, self.noise_multiplier * self._longest) > _LARGEST:
            raise BadValue(
                f"resolution={self.resolution} makes contributions or noise of "
                f"{self._longest:.3g} steps and more; allowed are {_LARGEST:.3g}: "
                "choose a smaller one"
            )

    def encode(self, tree: Tree, keys: Keys) -> Tree:
        """Each client's clipped tree on the grid: int64, within the sensitivities.

        Unbiased but for the draws that were too long and drawn again.
        """
        clipped = clip_by_norm(tree, self.clip).to_dense()
        flat = _flat(clipped) * self.resolution
        if flat.shape[1] != self.dimension:
            raise BadValue(
                f"an update of {flat.shape[1]} coordinates; dimension="
                f"{self.dimension} was agreed and the noise is made for it"
            )
        return _unflat(_rounded(flat, keys, self._squared_limit), clipped)

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The total plus Skellam noise, in int64 and exact."""
        _check_whole(total)
        return {
            name: value + skellam(key.at(name), self.variance, value.shape)
            for name, value in total.items()
        }

    def estimate(self, total: Arrays) -> dict[str, Array]:
        """The sum of the updates, in their own units."""
        return {name: value / self.resolution for name, value in total.items()}

    def scale(self, leaf: str) -> float:
        """The standard deviation of the noise in steps, the same for every leaf."""
        return math.sqrt(self.variance)

    @property
    def variance(self) -> float:
        """The variance of the noise, in squared steps."""
        return (self.noise_multiplier * self.sensitivity) ** 2

    @property
    def sensitivity(self) -> float:
        """D2: the largest L2 norm of a contribution, in steps."""
        return math.sqrt(self._squared_limit)

    @property
    def l1_sensitivity(self) -> float:
        """D1: the largest L1 norm of a contribution, in steps."""
        limit = self._squared_limit
        return min(math.sqrt(self.dimension * limit), float(limit))

    def rdp(self, alpha: int) -> float:
        """The Rényi divergence of one noisy total; inf between whole orders."""
        return float(
            skellam_rdp(
                np.array([alpha], np.float64),
                variance=self.variance,
                l1=self.l1_sensitivity,
                l2=self.sensitivity,
            )[0]
        )

    @property
    def event(self) -> SkellamDpEvent:
        """The event of one noisy total, accounted for by Rényi divergence."""
        from tacit.accounting.events import SkellamDpEvent

        return SkellamDpEvent(self.variance, self.l1_sensitivity, self.sensitivity)

    @property
    def _longest(self) -> float:
        """The norm beyond which no rounding leads: each coordinate moves by < 1."""
        return self._before + math.sqrt(self.dimension)

    @property
    def _before(self) -> float:
        return self.resolution * self.clip * (1 + SLACK)

    @property
    def _squared_limit(self) -> int:
        c, root = self._before, math.sqrt(self.dimension)
        # Kairouz, Liu and Steinke 2021, Theorem 1; rounded down to a whole square.
        spread = math.sqrt(2 * _LOG_INVERSE_BETA) * (c + root / 2)
        return int(min(self._longest**2, c**2 + self.dimension / 4 + spread))


@dataclass(frozen=True)
class SkellamShares:
    """The noise of a `SkellamSum`, drawn by the clients themselves in equal shares.

    Skellam noise adds up exactly, so no party need be trusted with all of it.

    Guarantee: that of `whole`, against server and `colluders` clients together.
    Assumes: secure aggregation hides all but the sum; at least `least_clients` clients
        add their share, of whom at most `colluders` tell it to the server.
    Source: Agarwal, Kairouz and Liu 2021.
    """

    whole: SkellamSum
    least_clients: int
    colluders: int = 0

    def __post_init__(self) -> None:
        check.count(least_clients=self.least_clients)
        arrays.integer(self.colluders, "colluders", below=2**63)
        if self.colluders >= self.least_clients:
            raise BadValue(
                f"colluders={self.colluders} must be < least_clients="
                f"{self.least_clients}; nobody would be left to add noise"
            )

    @property
    def variance(self) -> float:
        """The variance of one client's share, in squared steps."""
        return self.whole.variance / (self.least_clients - self.colluders)

    def privatize(self, tree: Tree, keys: Keys) -> Tree:
        """Each client's encoded tree with that client's share of the noise."""
        encoded = self.whole.encode(tree, keys.at("rounding"))
        own = keys.at("noise")
        return Tree(
            {
                name: Dense(encoded[name] + self._noise(encoded[name], own.at(name)))
                for name in encoded.leaves
            }
        )

    def _noise(self, values: Array, keys: Keys) -> Array:
        noise = np.zeros(values.shape, np.int64)
        for row, words in enumerate(keys.words):  # one stream per client
            noise[row] = skellam(
                Key(words, keys.secret), self.variance, values.shape[1:]
            )
        return noise


def skellam_event(noise_multiplier: float) -> SkellamDpEvent:
    """The event of one sum of whole numbers with this much noise over their limit √L.

    It covers every bound of `LEAST_STEPS` steps and more, whatever the dimension: D1 is
    no more than D2² = L for whole numbers, so that the divergence is no more than

        a / (2 z²) + min((2a + 5) / (4 z⁴ L), 3 / (2 z²)),

    which falls in L. Events compose as Gaussian ones do: if 1/z² of all rounds adds up
    to no more than 1/z², they cost no more than one event of z, also where each is
    chosen from the ones before (Feldman and Zrnic 2021), since the sum of 1/z⁴ is no
    more than the square of the sum of 1/z². Numbers that differ in their variance or
    limit, such as the bit of a moving clip, are covered in the same way.
    Source: Agarwal, Kairouz and Liu 2021, Corollary 3.6.
    """
    from tacit.accounting.events import SkellamDpEvent

    squared = float(LEAST_STEPS**2)
    return SkellamDpEvent(noise_multiplier**2 * squared, squared, float(LEAST_STEPS))


def skellam(key: Key, variance: float, shape: tuple[int, ...]) -> Array:
    """Skellam draws: the difference of two Poissons, each with half the variance."""
    generator = key.generator()
    half = variance / 2
    draws = generator.poisson(half, shape) - generator.poisson(half, shape)
    return np.asarray(draws, np.int64)


def _rounded(
    values: Float64[np.ndarray, "clients n"], keys: Keys, squared_limit: int
) -> Int64[np.ndarray, "clients n"]:
    """Up with the probability of the fraction; again while the result is too long."""
    result = np.trunc(values).astype(np.int64)  # towards zero: never longer
    rest = np.arange(len(values))
    for attempt in range(_ATTEMPTS):
        if not len(rest):
            break
        low = np.floor(values[rest])
        # Fresh coins for each attempt, and only for those who need one.
        coins = keys[rest].at(attempt).uniform(values.shape[1])
        drawn = low.astype(np.int64) + (coins < values[rest] - low)
        fits = (drawn**2).sum(axis=1) <= squared_limit
        result[rest[fits]] = drawn[fits]
        rest = rest[~fits]
    return result


def _flat(tree: Tree) -> Float64[np.ndarray, "clients n"]:
    """All leaves of each client side by side, one row per client."""
    leaves = [
        tree[name].reshape(len(tree), math.prod(leaf.shape)).astype(np.float64)
        for name, leaf in tree.leaves.items()
    ]
    return np.concatenate(leaves, axis=1) if leaves else np.zeros((0, 0))


def _unflat(flat: Int64[np.ndarray, "clients n"], like: Tree) -> Tree:
    sizes = [math.prod(leaf.shape) for leaf in like.leaves.values()]
    columns = np.split(flat, np.cumsum(sizes)[:-1], axis=1)
    leaves = {
        name: Dense(part.reshape(len(like), *leaf.shape))
        for (name, leaf), part in zip(like.leaves.items(), columns, strict=True)
    }
    return Tree({**leaves})


def _check_whole(total: Arrays) -> None:
    for name, value in total.items():
        if value.dtype.kind not in "iu":
            raise BadValue(
                f"leaf '{name}' is {value.dtype}; Skellam noise is for whole numbers: "
                "sum what `encode` gave"
            )
