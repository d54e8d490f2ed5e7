"""What real users with each interest are like: one noisy sum, a release of its own.

Invented users (`population`) cost nothing, but a server may know better. Those who took
part in training add up, in one round, how many have each interest and how their vectors
differ from the public mean of it. The mean of all follows, and each interest takes the
direction of its new mean.

    client   b the nearest interest, e = (u - u_b) cut to norm c
             sends, in block b, (1/2, sqrt(3)/2 e / c): norm 1 at the most, else zeros
    channel  the sum, with noise of deviation z on every number
    server   counts n_b; mean shift of e, shrunk by what the noise explains

    shift_b  max(0, 1 - d s² / |shift|²) shift,   s = 2 z c / (sqrt(3) n_b)

Sensitivity: a user fills one block of norm 1/4 + 3/4 <= 1, so that the sum moves by 1
if a user is removed: a Gaussian release of multiplier z (docs/serving.md). Shrinkage is
James and Stein's (1961): where noise explains the whole shift, the public mean stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import gaussian_event, least_multiplier
from tacit.mechanisms.private_vector import cut
from tacit.plans import Plan
from tacit.privacy.guarantees import whole_run
from tacit.release import Release
from tacit.serving.interests import Interests, Users

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

_COUNT, _VECTOR = 0.5, math.sqrt(0.75)  # squares sum to 1

Blocks = Float64[np.ndarray, "interests numbers"]


@dataclass(frozen=True, eq=False)
class InterestSums:
    """Sums of users by interest, under Gaussian noise.

    Guarantee: one Gaussian release of `noise_multiplier` for a whole user, zero_out.
    Assumes: a trusted sum; interests and `clip` are public; `float_noise`, since sums
        and noise are floats here, for simulation.
    """

    interests: Interests
    clip: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        check.positive(clip=self.clip, noise_multiplier=self.noise_multiplier)

    @classmethod
    def calibrated(
        cls, interests: Interests, users: Users, *, epsilon: float, delta: float
    ) -> InterestSums:
        """The sums of one release; the clip is the median distance of these users.

        They must be public, such as invented ones.
        """
        apart = users - interests.means[interests.nearest(users)]
        clip = float(np.median(np.linalg.norm(apart, axis=1)))
        return cls(interests, clip, least_multiplier(epsilon, delta))

    @property
    def event(self) -> DpEvent:
        """The event of the whole release."""
        return gaussian_event(self.noise_multiplier)

    def release(self, plan: Plan) -> Release:
        """The release, for the account of those who take part."""
        reason = "Gaussian noise on sums of users by interest (docs/serving.md)"
        cells = whole_run(plan, self.event, reason=reason)
        what, when = "noisy sums of users by interest", "once, after training"
        sums = Release(what, "everyone", when, cells, channel=plan.channel)
        return sums.assuming(Code("float_noise"))

    def contributions(
        self, users: Users
    ) -> Float64[np.ndarray, "users interests numbers"]:
        """What each client adds: one block, of norm 1 at the most."""
        own, block = self._blocks(users)
        found = np.zeros((len(users), len(self.interests), block.shape[1]))
        found[np.arange(len(users)), own] = block
        return found

    def noisy_sum(self, users: Users, key: Key) -> Blocks:
        """The sum over clients with its noise, as a trusted sum would give it."""
        own, block = self._blocks(users)
        total = np.zeros((len(self.interests), block.shape[1]))
        np.add.at(total, own, block)
        noise = key.generator().standard_normal(total.shape)
        return total + self.noise_multiplier * noise

    def _blocks(
        self, users: Users
    ) -> tuple[Int64[np.ndarray, "users"], Float64[np.ndarray, "users numbers"]]:
        """The interest of each user, and the numbers that are added to its block."""
        own = self.interests.nearest(users)
        apart = cut(users - self.interests.means[own], theta=self.clip) / self.clip
        count = np.full((len(users), 1), _COUNT)
        return own, np.concatenate([count, _VECTOR * apart], axis=1)

    def learn(self, total: Blocks) -> Interests:
        """The interests of users with the means and shares that the noisy sum tells."""
        expected = (len(self.interests), 1 + len(self.interests.mean))
        if total.shape != expected:
            raise BadValue(f"a sum of shape {total.shape}; needed is {expected}")
        z = self.noise_multiplier
        # Fewer users than the noise could make are read as that many.
        counts = np.maximum(total[:, 0] / _COUNT, z / _COUNT)
        shift = total[:, 1:] / _VECTOR * self.clip / counts[:, None]
        deviation = z * self.clip / (_VECTOR * counts)
        explained = shift.shape[1] * deviation**2
        squares = np.maximum((shift**2).sum(axis=1), 1e-300)
        trust = np.maximum(0.0, 1.0 - explained / squares)
        means = self.interests.means + trust[:, None] * shift
        return self.interests.of_users(means, counts / counts.sum())
