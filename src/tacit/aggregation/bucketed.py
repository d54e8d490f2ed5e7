"""Robust statistics over the sums of random groups, each noisy already.

    g        groups; every client draws one in every round
    s_1 … s_g  the groups' sums, each with the noise of a whole sum

    client   1  place the bounded update into its group
    sum      2  add N(0, (z S)²) to every number of every group's sum
    server   3  g times a robust statistic of s_1 … s_g, number by number

One user is in one group, so zeroing a user out moves the g sums together by one
clip, as it moves a single sum: the account is the same. What it costs is noise, about
g times the variance, as g sums have it. An attacker spoils one group only: the median
holds as long as fewer than half of the groups have one, even if liars choose theirs. A
server that sees reports counts each in one group, whatever it claims. In a sum nobody
can: there a liar may spread one clip over all groups (docs/poisoning.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tacit import check
from tacit.aggregation.mean import Mean
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.transport.channels import Delivery, Each, RoundContext, Sum
from tacit.transport.messages import Layout, Reports
from tacit.tree import Array, Grouped, Leaf, Tree

Statistic = Literal["median", "trimmed"]
"""Median of the groups, or their mean without the lowest and highest `trim` of them."""


@dataclass(frozen=True)
class Bucketed:
    """Sums groups, then takes a robust statistic; a plain sum up to the noise.

    Source: the groups, Karimireddy, He and Jaggi 2022; median and trimmed mean, Yin,
    Chen, Ramchandran and Bartlett 2018.
    """

    groups: int
    statistic: Statistic = "median"
    trim: int = 1
    accepts: tuple[type[Delivery], ...] = (Each, Sum)
    is_plain_sum: bool = True

    def __post_init__(self) -> None:
        check.at_least(3, groups=self.groups)  # of two, no median outvotes a liar
        check.one_of(("median", "trimmed"), statistic=self.statistic)
        check.count(trim=self.trim)
        if self.statistic == "trimmed" and 2 * self.trim >= self.groups:
            raise BadValue(
                f"trim={self.trim} of groups={self.groups} on either side leaves none; "
                f"trim at most {(self.groups - 1) // 2}"
            )

    def placed(self, tree: Tree, keys: Keys) -> Tree:
        """Line 1: every leaf in the group that its client draws."""
        drawn = keys.integers(1, below=self.groups)[:, 0]
        chosen = np.eye(self.groups)[drawn]
        leaves = {}
        for name, leaf in tree.leaves.items():
            assert not isinstance(leaf, Grouped), "a leaf is placed once"
            dtype, _ = next(iter(leaf.stored.values()))
            # Stays factored: g - 1 groups of zeros are never written out.
            leaves[name] = Grouped(leaf, chosen.astype(dtype))
        return Tree({**leaves})

    def declared(self, layout: Layout) -> Layout:
        """The layout of reports once every leaf stands in its client's group."""
        slots = {n: slot.grouped(self.groups) for n, slot in layout.slots.items()}
        return Layout(slots, layout.split_axis)

    def total(self, delivery: Delivery, context: RoundContext) -> dict[str, Array]:
        """Line 3; leaves without groups are just summed."""
        if isinstance(delivery, Each):
            delivery = Each(Reports(_in_one(chunk.tree)) for chunk in delivery.chunks)
        slots = context.layout.slots
        return {
            name: value if slots[name].groups is None else self._robust(value)
            for name, value in Mean().total(delivery, context).items()
        }

    def _robust(self, sums: Array) -> Array:
        if self.statistic == "median":
            # One group's sum stands for g of them, as callers divide by the cohort.
            return np.median(sums, axis=0) * self.groups
        kept = np.sort(sums, axis=0)[self.trim : self.groups - self.trim]
        return kept.mean(axis=0) * self.groups


def _in_one(tree: Tree) -> Tree:
    """Every report in the group that it claims most of; honest ones stay as they are.

    Without this a liar who claims all groups spoils every one of them.
    """

    def placed(leaf: Leaf) -> Leaf:
        if not isinstance(leaf, Grouped):
            return leaf
        chosen = np.abs(leaf.shares).argmax(axis=1)
        only = np.eye(leaf.shares.shape[1], dtype=leaf.shares.dtype)[chosen]
        return Grouped(leaf.inner, only)

    return Tree({name: placed(leaf) for name, leaf in tree.leaves.items()})
