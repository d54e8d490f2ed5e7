"""How a model is served, in a few settings, and the public model that follows.

    settings = ServingSettings(Mode.KRR, epsilon=2.0)
    model = served_model(recommender, settings)     # the same on client and server

A method that trained a basis hands it over, and `dpa` says attention over that one. Of
other models, and for krr, interests are made from invented users (`population`), as all
decoders are, so that they are as public as the weights are. All draws for it come from
a seed that everyone knows.

    noise = "sound"   what the epsilon needs: `epsilon` is proven, for a whole user
    noise = "paper"   what Liu et al. 2022 print: `epsilon` is claimed, for one
                      interaction, and what is proven of it stands beside the claim
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from tacit import check
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import least_multiplier
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.published import PublishedGradient
from tacit.method import ItemSpace, Method
from tacit.release import Unit
from tacit.serving.interests import Interests, Users, find_interests, score_axes
from tacit.serving.noisy_attention import (
    NoisyAttention,
    Pads,
    Reading,
    attention_reason,
)
from tacit.serving.noisy_vector import NoisyVector
from tacit.serving.population import USERS, invented_histories
from tacit.serving.query import Mode
from tacit.serving.query_mechanism import (
    FLOAT_NOISE,
    InterestResponse,
    QueryMechanism,
    printed_noise,
)
from tacit.serving.queryable import space_of, vectors_of
from tacit.serving.recommender import Recommender
from tacit.serving.served_model import ServedModel
from tacit.serving.trained_basis import (
    TrainedBasis,
    basis_size,
    encodings_of,
    trained_basis,
)

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
    default a usual number for the epsilon; a basis that training made has its own.
    `axes` is for vdp: the user vector is projected to so many; without it, it is sent
    whole. `delta` chooses Gaussian noise for dpa and vdp; 0 chooses Laplace noise.
    `padding` is for dpa, and `pads` says whether users may have it replace their
    sensitive items only (`sensitive`). `theta` is of noise="paper": 1 for dpa, where
    line 8 of Algorithm 2 is as printed then, and .001 for vdp; `epsilon` may be
    infinite there. `reading` is SoftPlus there, and else the best linear estimate.

    `has_trained_basis` follows from the method (`of_method`).
    """

    mode: Mode
    epsilon: float
    interests: int | None = None
    delta: float = 0.0
    reading: Reading | None = None
    padding: float = 0.0
    axes: int | None = None
    pads: Pads = "all"
    noise: Literal["sound", "paper"] = "sound"
    theta: float | None = None
    has_trained_basis: bool = False

    def __post_init__(self) -> None:
        if self.mode is Mode.ON_DEVICE:
            raise BadValue("mode=on_device sends nothing, and has no settings")
        check.one_of(("sound", "paper"), noise=self.noise)
        if not (self.is_printed and self.epsilon == math.inf):
            check.positive(epsilon=self.epsilon)
        self._refuse_unused("interests", self.interests, Mode.KRR, Mode.DPA)
        self._refuse_unused("delta", self.delta, Mode.DPA, Mode.VDP)
        self._refuse_unused("padding", self.padding, Mode.DPA)
        self._refuse_unused("axes", self.axes, Mode.VDP)
        self._check_printed()

    def _check_printed(self) -> None:
        if not self.is_printed:
            if self.theta is not None:
                raise BadValue(
                    f"theta={self.theta} is for noise='paper'; sound noise takes it "
                    "from invented users: leave it out"
                )
            return
        check.positive(theta=self._theta)
        if self.mode is Mode.KRR:
            raise BadValue(
                "noise='paper' is for dpa and vdp: no query of the paper is a "
                "randomised response; leave it out"
            )
        if self.axes is not None or self.reading == "regression":
            raise BadValue(
                "noise='paper' has no axes and no regression: the paper sends a whole "
                "vector and reads attention by SoftPlus; leave them out"
            )

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
        if self.mode is Mode.VDP:
            return f"{printed_noise(kind, self.claimed)} on the user vector"
        return attention_reason(
            self.count,
            is_gaussian=bool(self.delta),
            has_trained_basis=self.has_trained_basis,
            claimed=self.claimed,
        )

    @property
    def is_printed(self) -> bool:
        """Whether the noise is the paper's, whatever it is worth."""
        return self.noise == "paper"

    @property
    def claimed(self) -> float | None:
        """What the paper claims for one interaction and query; never called epsilon."""
        return self.epsilon if self.is_printed else None

    @property
    def _theta(self) -> float:
        if self.theta is not None:
            return self.theta
        return 1.0 if self.mode is Mode.DPA else 0.001

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
        """What one query costs; it follows from the settings, without any model.

        Of the printed vector a mechanism, which knows its width, may promise more.
        """
        from tacit.accounting.events import local_gaussian, pure_local

        if self.is_printed and self.mode is Mode.VDP:
            own = PublishedGradient(self.epsilon, theta=self._theta, delta=self.delta)
            return own.event  # whatever the width
        if self.is_printed:
            unseen = TrainedBasis(np.zeros((self.count, 1)), np.zeros(1))
            return self._printed(unseen).event(unit)
        if self.mode is Mode.KRR:
            return pure_local(self.epsilon, choices=self.count)
        event: DpEvent = pure_local(self.epsilon)
        if self.delta:
            noise = least_multiplier(self.epsilon, self.delta)
            event = local_gaussian(noise, diameter=1.0)
        if self.padding and unit is Unit.ITEM and self.pads == "all":
            return Padding(self.padding).item_event(event)
        return event

    def of_method(self, method: Method) -> Self:
        """These settings for a model of this method: its basis, where it trains one."""
        size = basis_size(method)
        if self.mode is not Mode.DPA:
            return self
        if not size and self.is_printed:
            raise BadValue(
                "noise='paper' with mode='dpa' needs a basis that training made, and "
                f"{type(method).__name__} makes none as it is set; use noise='sound', "
                "or mode='vdp', the paper's baseline"
            )
        if size and self.interests not in (None, size):
            raise BadValue(
                f"interests={self.interests}: the method trains a basis of {size}; "
                "leave it out"
            )
        if not size:
            return self
        return replace(self, interests=size, has_trained_basis=True)

    def mechanism(
        self,
        space: ItemSpace,
        users: Users,
        key: Key,
        *,
        basis: TrainedBasis | None = None,
    ) -> QueryMechanism:
        """The mechanism for users like these, who must be public or released.

        With a basis they are users as they were encoded, before any mixture.
        """
        if self.mode is Mode.VDP:
            return self._vector(space, users)
        if basis is not None:
            if self.is_printed:
                return self._printed(basis)
            return self._attention(replace(basis, mean=users.mean(axis=0)), users)
        interests = find_interests(space, users, count=self.count, key=key)
        if self.mode is Mode.KRR:
            return InterestResponse(self.epsilon, interests)
        return self._attention(interests, users)

    def _attention(
        self, interests: Interests | TrainedBasis, users: Users
    ) -> NoisyAttention:
        return NoisyAttention.fitted(
            self.epsilon,
            interests,
            users,
            delta=self.delta,
            reading=self.reading or "regression",
            padding=self._padding,
            pads=self.pads,
        )

    @property
    def _padding(self) -> Padding | None:
        return Padding(self.padding) if self.padding else None

    def _printed(self, basis: TrainedBasis) -> NoisyAttention:
        """The paper's mechanism; what it costs depends on no number of the basis."""
        return NoisyAttention.printed(
            self.epsilon,
            basis,
            theta=self._theta,
            delta=self.delta,
            padding=self._padding,
            pads=self.pads,
        )

    def _vector(self, space: ItemSpace, users: Users) -> NoisyVector:
        if self.is_printed:
            width = users.shape[1]
            return NoisyVector.printed(
                self.epsilon, width, theta=self._theta, delta=self.delta
            )
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
    recommender = recommender.ranking_for("any")  # invented users have no order
    key, space = Key.from_seed(_PUBLIC_SEED), space_of(recommender)
    settings = settings.of_method(recommender.method)
    basis = trained_basis(recommender) if settings.has_trained_basis else None
    users = _invented(recommender, settings, key.at("users"))
    found = settings.mechanism(space, users, key.at("interests"), basis=basis)
    return ServedModel(space, found)


def _invented(recommender: Recommender, settings: ServingSettings, key: Key) -> Users:
    """Invented users, encoded as clients will be; one, if only its width is needed."""
    count = 1 if settings.is_printed else settings.invented
    histories = invented_histories(recommender, key, users=count)
    if settings.has_trained_basis:
        return encodings_of(recommender, histories)
    return vectors_of(recommender, histories)
