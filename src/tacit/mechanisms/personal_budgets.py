"""Users with budgets of their own, by public groups.

sample   one noise for all; a group with a smaller budget is asked more rarely
scale    all are asked alike; a group with a smaller budget is clipped harder

A user's epsilon follows from the group's own rate and multiplier. The group is chosen
by the user or taken from public facts, never from data: who is in which group is
visible in the account. Nothing here is computed from anybody's update.

Source: Boenisch, Mühl, Dziedzic, Rinberg and Papernot 2023, `Sample` and `Scale`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64

from tacit import arrays, check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import (
    ClippedSumWithBits,
    with_bits,
    within_bits,
)
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import GaussianSum, gaussian_event, standard_normal
from tacit.mechanisms.sum_mechanism import Bounded, add_noise
from tacit.tree import Array, Arrays, Tree
from tacit.wire_names import register

if TYPE_CHECKING:
    from tacit.accounting.dp_events import GaussianDpEvent


@dataclass(frozen=True)
class ByRate:
    """`sample`: a common Gaussian sum, and a rate of being asked for each group.

    Guarantee: a member of group g has T Gaussian releases of the common multiplier,
        Poisson-sampled at `rates[g]`, for a whole user under zero_out.
    Assumes: that of `GaussianSum`; groups are public; `PoissonByGroup(rates)` samples,
        and the figure holds for someone who does not see the cohorts.
    Source: Boenisch et al. 2023, the variant `Sample`.
    """

    common: GaussianSum
    rates: Mapping[str, float]

    def __post_init__(self) -> None:
        _check_named(self.rates)
        for group, rate in self.rates.items():
            check.rate(remedy="", **{f"rates[{group}]": rate})

    def event(self, group: str) -> GaussianDpEvent:
        """The event of one round for a member who takes part, before sampling."""
        _of_group(self.rates, group)
        return self.common.event


@register("gaussian_by_clip")
@dataclass(frozen=True)
class ByClip:
    """`scale`: common noise of deviation `sigma`, and a clip sigma / z for each group.

    Guarantee: for a member of group g one round is a Gaussian release of
        `multipliers[g]`, for a whole user under zero_out.
    Assumes: a trusted sum; groups are public; sums are divided by the planned size.
    Source: Boenisch et al. 2023, the variant `Scale`.
    """

    sigma: float
    multipliers: Mapping[str, float]  # in the order of the plan's groups

    def __post_init__(self) -> None:
        check.positive(sigma=self.sigma)
        _check_named(self.multipliers)
        for group, z in self.multipliers.items():
            check.positive(remedy="", **{f"multipliers[{group}]": z})

    def bound(
        self, tree: Tree, groups: Int64[np.ndarray, "clients"] | None = None
    ) -> Tree:
        """Each client's whole tree, clipped jointly to the clip of its group.

        `groups` are indices of the plan's groups, as clients keep them; without them,
        everyone has the largest clip.
        """
        if groups is None:
            return clip_by_norm(tree, self.sensitivity)
        clips = np.array([self.sensitivity_of(group) for group in self.multipliers])
        codes = arrays.integers(groups, "groups", below=len(clips))
        return clip_by_norm(tree, clips[codes])

    def enforce(self, tree: Tree) -> Tree:
        """Reports that arrive, clipped to the largest group's clip.

        A sum does not know groups: a client that lies about its own loses only its own
        smaller epsilon.
        """
        return self.bound(tree)

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The noisy total, in float64."""
        return add_noise(total, key, draw=standard_normal, scale=self.scale)

    def scale(self, leaf: str) -> float:
        """The standard deviation of the noise, the same for every leaf."""
        return self.sigma

    def bounded(self, leaves: Sequence[str]) -> tuple[Bounded, ...]:
        """All leaves together, to the largest clip; clients keep their own."""
        alike = len({*self.multipliers.values()}) == 1
        largest = self.sensitivity
        return (Bounded(tuple(leaves), largest, self.sigma, has_smaller=not alike),)

    @property
    def sensitivity(self) -> float:
        """The largest clip of any group."""
        return self.sigma / min(self.multipliers.values())

    @property
    def event(self) -> GaussianDpEvent:
        """The event of one noisy total, for the group with the largest clip."""
        return gaussian_event(min(self.multipliers.values()))

    def sensitivity_of(self, group: str) -> float:
        """The clip of this group: the largest norm of a member's contribution."""
        return self.sigma / _of_group(self.multipliers, group)

    def event_of(self, group: str) -> GaussianDpEvent:
        """The event of one noisy total, for a member of this group."""
        return gaussian_event(_of_group(self.multipliers, group))


@register("gaussian_by_clip_with_bits")
@dataclass(frozen=True)
class ByClipWithBits:
    """`scale` for a clip that moves: a group has s_g of the clip, and s_g of the bit.

    Guarantee: for a member of group g both sums of one round together are one Gaussian
        release of `common.noise_multiplier / scales[g]`, for a whole user under
        zero_out: update and bit are s_g of what `common` bounds, over the same noise.
    Assumes: that of `ClippedSumWithBits`; groups are public. The clip then follows the
        quantile of norms in which a member of g weighs s_g.
    Source: Andrew et al. 2021, Theorem 1, and Boenisch et al. 2023, `Scale`.
    """

    common: ClippedSumWithBits
    scales: Mapping[str, float]  # in the order of the plan's groups

    def __post_init__(self) -> None:
        _check_named(self.scales)
        for group, scale in self.scales.items():
            check.rate(remedy="", **{f"scales[{group}]": scale})

    def bound(
        self, tree: Tree, groups: Int64[np.ndarray, "clients"] | None = None
    ) -> Tree:
        """Each client's clipped tree and its bit, both times the scale of its group.

        `groups` are indices of the plan's groups; without them, everyone has the
        largest scale.
        """
        scales = np.array([*self.scales.values()])
        if groups is None:
            codes = np.full(len(tree), scales.argmax())
        else:
            codes = arrays.integers(groups, "groups", below=len(scales))
        return with_bits(tree, self.common.clip, scales=scales[codes])

    def enforce(self, tree: Tree) -> Tree:
        """Reports that arrive, within the largest group's clip and bit."""
        return within_bits(tree, self.common.clip, scale=self._largest)

    def add(self, total: Arrays, key: Key) -> dict[str, Array]:
        """The noisy totals of updates and bits, in float64."""
        return self.common.add(total, key)

    def scale(self, leaf: str) -> float:
        """The standard deviation of the noise on a leaf."""
        return self.common.scale(leaf)

    def bounded(self, leaves: Sequence[str]) -> tuple[Bounded, ...]:
        """Two bounds of the largest group; clients keep their own."""
        alike = len({*self.scales.values()}) == 1
        return tuple(
            replace(part, bound=part.bound * self._largest, has_smaller=not alike)
            for part in self.common.bounded(leaves)
        )

    @property
    def sensitivity(self) -> float:
        """The joint norm of update and bit of the largest group."""
        return self.common.sensitivity * self._largest

    @property
    def event(self) -> GaussianDpEvent:
        """The event of both totals of a round, for the group with the largest scale."""
        return gaussian_event(self.common.noise_multiplier / self._largest)

    def sensitivity_of(self, group: str) -> float:
        """The joint norm of update and bit of this group."""
        return self.common.sensitivity * _of_group(self.scales, group)

    def event_of(self, group: str) -> GaussianDpEvent:
        """The event of both totals of a round, for a member of this group."""
        return gaussian_event(
            self.common.noise_multiplier / _of_group(self.scales, group)
        )

    @property
    def _largest(self) -> float:
        return max(self.scales.values())


def _check_named(groups: Mapping[str, float]) -> None:
    if not groups:
        raise BadValue("no group is named; a user needs one")


def _of_group(values: Mapping[str, float], group: str) -> float:
    if group not in values:
        raise BadValue(f"group {check.unknown(group, values)}")
    return values[group]
