"""What protects Gram's two sums: nothing, noise on them, or noise on every device.

Sensitivity of the second sum: |z zᵀ| = |z|² <= 1 in the Frobenius norm, and a half has
its norm over sqrt(2) (`tree.Symmetric`). Noise of s / sqrt(2) on every number of the
half is therefore the Gaussian mechanism of multiplier s. That holds for any z of norm 1
or less: what made it (weights, content, a fold) does not matter. Once mirrored, it is
noise of deviation s on the diagonal and s / sqrt(2) beside it, which `models.spectrum`
removes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.keys import Keys
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.plan import Plan
from tacit.release import Cells, local, summed, unprotected
from tacit.tree import Tree

if TYPE_CHECKING:
    from dp_accounting import DpEvent

LONGEST = {"counts": 1.0, "relations": math.sqrt(0.5)}  # norms of honest reports
_GAUSSIAN = "Gaussian mechanism on a sum of bounded vectors (docs/methods/gram.md)"


@dataclass(frozen=True)
class Bare:
    """Reports as they are."""

    dtype = "float64"

    def report(self, tree: Tree, keys: Keys) -> Tree:
        """Unchanged."""
        return tree

    def noise(self, leaf: str) -> GaussianSum | None:
        """None."""
        return None

    def variance(self, people: float, *, size: int) -> float:
        """Of the noise on the diagonal of the second sum, a round: none."""
        return 0.0

    def cells(self, plan: Plan, leaf: str) -> Cells:
        """No promise."""
        return unprotected("reports are sent as they are; no mechanism protects them")


@dataclass(frozen=True)
class Central:
    """Bounded reports, and Gaussian noise on their sums."""

    counting: GaussianSum | None  # None: nothing is counted
    relating: GaussianSum
    dtype = "float64"

    @classmethod
    def of(cls, count_noise: float | None, relate_noise: float) -> Central:
        """The mechanisms of these multipliers."""
        counting = None
        if count_noise is not None:
            counting = GaussianSum(LONGEST["counts"], count_noise)
        return cls(counting, GaussianSum(LONGEST["relations"], relate_noise))

    def report(self, tree: Tree, keys: Keys) -> Tree:
        """Clipped, which honest reports need not be."""
        return self.noise(next(iter(tree.leaves))).bound(tree)

    def noise(self, leaf: str) -> GaussianSum:
        """What the sum of this leaf gets."""
        if leaf == "relations":
            return self.relating
        assert self.counting is not None
        return self.counting

    def variance(self, people: float, *, size: int) -> float:
        """Of the noise on the diagonal of the second sum, a round."""
        return self.relating.noise_multiplier**2

    def cells(self, plan: Plan, leaf: str) -> Cells:
        """A Gaussian release in every round."""
        return summed(plan, self.noise(leaf).event, reason=_GAUSSIAN)

    @property
    def dearer(self) -> str:
        """The leaf whose round costs more."""
        counting, relating = self.counting, self.relating
        if counting and counting.noise_multiplier < relating.noise_multiplier:
            return "counts"
        return "relations"


@dataclass(frozen=True)
class Local:
    """One PrivUnitG report a device, of the vector its report stands for."""

    epsilon: float
    dtype = "float32"
    dearer = "counts"  # both cost the same

    def report(self, tree: Tree, keys: Keys) -> Tree:
        """Randomised on the device."""
        ((name, leaf),) = tree.leaves.items()
        values = leaf.dense().values
        mechanism = PrivUnit(self.epsilon, values.shape[1], LONGEST[name])
        return Tree.dense(**{name: mechanism.privatize(values, keys)})

    def noise(self, leaf: str) -> GaussianSum | None:
        """None: the reports have theirs."""
        return None

    def variance(self, people: float, *, size: int) -> float:
        """Of what `people` reports of `size` numbers add up to, mirrored."""
        return people * PrivUnit(self.epsilon, size).variance(1.0)

    def cells(self, plan: Plan, leaf: str) -> Cells:
        """Pure local privacy, a report a participation."""
        return local(plan, self._event, reason="PrivUnitG, pure local privacy")

    @property
    def _event(self) -> DpEvent:
        return PrivUnit(self.epsilon, 2).event  # whatever the size


Protection = Bare | Central | Local
