"""How a model is served, in a few settings, and the public model that follows.

    settings = ServingSettings(Mode.KRR, epsilon=2.0)
    model = served_model(recommender, settings)     # the same on client and server

Interests and decoders are made from invented users (`population`), so the model is as
public as the weights are. All draws for it come from a seed that everyone knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import least_multiplier
from tacit.mechanisms.padding import Padding
from tacit.method import ItemSpace
from tacit.release import Unit
from tacit.serving.interests import Users, find_interests, score_axes
from tacit.serving.noisy_attention import NoisyAttention, Pads, Reading
from tacit.serving.noisy_vector import NoisyVector
from tacit.serving.population import USERS, invented_users
from tacit.serving.query import Mode
from tacit.serving.query_mechanism import (
    FLOAT_NOISE,
    InterestResponse,
    QueryMechanism,
)
from tacit.serving.queryable import space_of
from tacit.serving.recommender import Recommender
from tacit.serving.served_model import ServedModel

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

# Up to each epsilon, so many interests: a lie is one of B - 1 others, so that few are
# told apart well. Chosen on validation users of two data sets (docs/serving.md).
_USUAL_INTERESTS = ((1.0, 3), (4.0, 5), (7.0, 20), (np.inf, 300))
_USERS_PER_INTEREST = 20
_PUBLIC_SEED = 24


@dataclass(frozen=True)
class ServingSettings:
    """What a client sends to be served, and how much a release may cost.

    `epsilon` holds for a whole user and one release. `interests` is for krr and dpa, by
    default a usual number for the epsilon. `axes` is for vdp: the user vector is
    projected to so many; without it, it is sent whole. `delta` chooses Gaussian noise
    for dpa and vdp; 0 chooses Laplace noise. `padding` is for dpa, and `pads` says
    whether users may have it replace their sensitive items only (`sensitive`).
    """

    mode: Mode
    epsilon: float
    interests: int | None = None
    delta: float = 0.0
    reading: Reading = "regression"
    padding: float = 0.0
    axes: int | None = None
    pads: Pads = "all"

    def __post_init__(self) -> None:
        if self.mode is Mode.ON_DEVICE:
            raise BadValue("mode=on_device sends nothing, and has no settings")
        check.positive(epsilon=self.epsilon)
        self._refuse_unused("interests", self.interests, Mode.KRR, Mode.DPA)
        self._refuse_unused("delta", self.delta, Mode.DPA, Mode.VDP)
        self._refuse_unused("padding", self.padding, Mode.DPA)
        self._refuse_unused("axes", self.axes, Mode.VDP)

    def _refuse_unused(self, name: str, value: object, *modes: Mode) -> None:
        if value and self.mode not in modes:
            raise BadValue(
                f"{name}={value} is for {' and '.join(modes)}, not for {self.mode}; "
                "leave it out"
            )

    @property
    def reason(self) -> str:
        """Why the guarantee of a query holds, for the account."""
        if self.mode is Mode.KRR:
            return f"k-ary randomised response over {self.count} interests"
        kind = "Gaussian" if self.delta else "Laplace"
        where = "attention" if self.mode is Mode.DPA else "the user vector"
        return f"{kind} noise on {where}"

    @property
    def assumes(self) -> tuple[Code, ...]:
        """What the guarantee rests on besides the client."""
        return () if self.mode is Mode.KRR else (FLOAT_NOISE,)

    @property
    def count(self) -> int:
        """The number of interests, for krr and dpa."""
        return self.interests or usual_interests(self.epsilon)

    @property
    def invented(self) -> int:
        """How many users are invented: enough for a mean of each interest."""
        count = 0 if self.mode is Mode.VDP else self.count
        return max(USERS, _USERS_PER_INTEREST * count)

    def event(self, unit: Unit) -> DpEvent:
        """What one query costs; it follows from the settings, without any model."""
        from tacit.accounting.events import local_gaussian, pure_local

        if self.mode is Mode.KRR:
            return pure_local(self.epsilon, choices=self.count)
        event: DpEvent = pure_local(self.epsilon)
        if self.delta:
            noise = least_multiplier(self.epsilon, self.delta)
            event = local_gaussian(noise, diameter=1.0)
        if self.padding and unit is Unit.ITEM and self.pads == "all":
            return Padding(self.padding).item_event(event)
        return event

    def mechanism(self, space: ItemSpace, users: Users, key: Key) -> QueryMechanism:
        """The mechanism for users like these, who must be public or released."""
        if self.mode is Mode.VDP:
            return self._vector(space, users)
        interests = find_interests(space, users, count=self.count, key=key)
        if self.mode is Mode.KRR:
            return InterestResponse(self.epsilon, interests)
        return NoisyAttention.fitted(
            self.epsilon,
            interests,
            users,
            delta=self.delta,
            reading=self.reading,
            padding=Padding(self.padding) if self.padding else None,
            pads=self.pads,
        )

    def _vector(self, space: ItemSpace, users: Users) -> NoisyVector:
        if self.axes is None:
            return NoisyVector.whole(self.epsilon, users, delta=self.delta)
        return NoisyVector.projected(
            self.epsilon,
            users,
            axes=self.axes,
            metric=score_axes(space),
            delta=self.delta,
        )


def usual_interests(epsilon: float) -> int:
    """A number of interests that serves well at this epsilon.

    >>> [usual_interests(epsilon) for epsilon in (1, 5, 10)]
    [3, 20, 300]
    """
    check.positive(epsilon=epsilon)
    return next(count for most, count in _USUAL_INTERESTS if epsilon <= most)


def served_model(recommender: Recommender, settings: ServingSettings) -> ServedModel:
    """The public model of these settings: the same wherever it is made."""
    key = Key.from_seed(_PUBLIC_SEED)
    space = space_of(recommender)
    users = invented_users(recommender, key.at("users"), users=settings.invented)
    return ServedModel(space, settings.mechanism(space, users, key.at("interests")))
