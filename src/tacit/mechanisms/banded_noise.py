"""Noise correlated over rounds, for training where sampling cannot be enforced.

c     the first p coefficients of 1/sqrt(1 - x): 1, 1/2, 3/8, 5/16, …
z_t   fresh normal noise of round t
x_t   z_t - c_1 x_{t-1} - … - c_{p-1} x_{t-p+1}: what is added to the sum of round t

The sums of all rounds with this noise are C⁻¹ (C sums + z), C the banded matrix of c:
one Gaussian release of C sums. A user who takes part at most k times, p rounds apart
or more, meets columns of C that do not overlap, so zeroing that user out moves C sums
by at most clip · sqrt(k) · ‖c‖. Later rounds take back a part of earlier noise, so
weights, which add rounds up, suffer less than from fresh noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit import check
from tacit.accounting.ftrl import Banded, coefficients
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.clipping import clip_by_norm
from tacit.mechanisms.gaussian import least_multiplier, standard_normal
from tacit.mechanisms.sum_mechanism import add_noise
from tacit.tree import Array, Arrays, Tree

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent


@dataclass(frozen=True)
class BandedNoise:
    """Sums of clipped updates, with noise that later rounds take back in part.

    Guarantee: *all rounds of a run together* are one Gaussian release of
        `noise_multiplier` for a whole user under zero_out; replace_one doubles the
        sensitivity. Nothing is gained by sampling, nothing lost by its absence.
    Assumes: a trusted sum; clients keep to the schedule's participations and separation
        themselves; `clip` is public.
    Source: Choquette-Choo et al. 2023 (banded matrices); the coefficients:
        Fichtenberger, Henzinger and Upadhyay 2023.
    """

    clip: float
    noise_multiplier: float
    schedule: Banded  # bands, and who may take part how often

    def __post_init__(self) -> None:
        check.positive(clip=self.clip, noise_multiplier=self.noise_multiplier)

    @classmethod
    def calibrated(
        cls, clip: float, schedule: Banded, *, epsilon: float, delta: float
    ) -> BandedNoise:
        """The least noise for a whole run within (epsilon, delta), under zero_out."""
        return cls(clip, least_multiplier(epsilon, delta), schedule)

    def bound(self, tree: Tree) -> Tree:
        """Each client's whole tree, clipped jointly."""
        return clip_by_norm(tree, self.clip)

    def start(self, like: Arrays) -> dict[str, Array]:
        """The state before the first round, for sums shaped as these.

        It holds the last noises of each leaf, the newest first: one copy of the sum
        less than there are bands. It is as secret as the noise itself.
        """
        return {
            name: np.zeros((self.schedule.bands - 1, *value.shape))
            for name, value in like.items()
        }

    def add(
        self, total: Arrays, key: Key, *, state: Arrays
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """The noisy total of a round in float64, and the state for the next one."""
        past = self.schedule.bands - 1
        _check_state(total, state, past)
        zeros = {name: np.zeros(value.shape) for name, value in total.items()}
        fresh = add_noise(zeros, key, draw=standard_normal, scale=self.scale)
        # x_t = z_t - c_1 x_{t-1} - …: a row of C⁻¹ z, without ever forming the matrix
        noise = {name: fresh[name] - self._taken_back(state[name]) for name in total}
        following = {
            name: np.concatenate([x[None], state[name]])[:past]
            for name, x in noise.items()
        }
        return {name: total[name] + x for name, x in noise.items()}, following

    def scale(self, leaf: str) -> float:
        """The standard deviation of the fresh noise, the same for every leaf."""
        return self.noise_multiplier * self.sensitivity

    @property
    def sensitivity(self) -> float:
        """What zeroing one user out of all rounds moves C sums by, at the most."""
        return self.clip * self.schedule.sensitivity

    @property
    def event(self) -> DpEvent:
        """The event of the whole run; not to be composed over its rounds."""
        return self.schedule.event(self.scale("") / self.clip)

    def _taken_back(self, past: Array) -> Array:
        return np.tensordot(coefficients(self.schedule.bands)[1:], past, axes=1)


def _check_state(total: Arrays, state: Arrays, past: int) -> None:
    needed = {name: (past, *value.shape) for name, value in total.items()}
    given = {name: value.shape for name, value in state.items()}
    if given != needed:
        raise BadValue(
            f"state of shapes {given}; needed are {needed}: begin with start(), go on "
            "with what add() returned"
        )
