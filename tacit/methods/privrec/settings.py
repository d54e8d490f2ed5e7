"""PrivRec's settings, and the objects that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tacit import check
from tacit.aggregation.server_optimizers import BY_NAME, ServerOptimizer
from tacit.errors import BadValue, Refused
from tacit.mechanisms.adaptive_clip import AdaptiveClip
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.published.privrec import PublishedClipping
from tacit.mechanisms.sums import SumMechanism
from tacit.methods.privrec.protection import (
    Adaptive,
    Bare,
    Constant,
    Protection,
    Published,
)
from tacit.models.feature_mlp import (
    Activation,
    Blueprint,
    Dislikes,
    Labelling,
    Schedule,
)
from tacit.models.feature_mlp.devices import VALUE
from tacit.phases import CountFirst
from tacit.plan import Plan
from tacit.release import given
from tacit.sampling import Everyone, FixedSize


@dataclass(frozen=True)
class Settings:
    """The fields of `PrivRec`; `PrivRec` itself has the protocol.

    `people` and `situations` say how many labels each feature has, 0 for a number:
    everyone must know that beforehand, for it cannot be taken from private data.
    """

    items: tuple[str, ...] = ()  # features of the catalog; none named: all but text
    by_value: tuple[str, ...] = ()  # numbers of items with a label for each value
    people: Mapping[str, int] = field(default_factory=dict)
    situations: Mapping[str, int] = field(default_factory=dict)
    mode: Literal["sound", "paper"] = "sound"
    privacy: Literal["none", "central"] = "none"
    # what is learnt from
    positive_from: float | None = None  # the least value that is liked; None: any
    negatives: int = 2  # items never touched, for each that is liked
    dislikes: Dislikes = "negative"  # what becomes of events that are not liked
    uses_value: bool = False  # an event's value is an input (Frappe's `count`)
    # the network
    embedding: int = 64
    widths: tuple[int, ...] = (64, 32, 16, 8)
    activation: Activation = "relu"
    head: Literal["sigmoid", "linear"] = "sigmoid"
    precision: Literal["float32", "float64"] = "float32"
    # Algorithm 1
    local_epochs: int = 5  # E2
    batch: int = 32
    rate: float = 0.05  # alpha1
    pull: float = 0.01  # mu
    step: float = 1.0  # alpha3
    server_step: Literal["reptile", "adam"] = "reptile"  # "adam": `step` is its rate
    adapt_epochs: int = 5  # 0: the weights of everyone
    adapt_rate: float = 0.05
    # Algorithm 2
    clip: float = 1.0  # S, or the first S
    is_adaptive: bool = True  # sound: whether S moves
    quantile: float = 0.5  # gamma
    clip_rate: float = 0.2  # alpha4
    least_clip: float = 1e-3
    most_clip: float = 1e3
    balance: float = 0.7  # h; paper only
    noise_multiplier: float | None = None  # z
    bit_noise: float | None = None  # sound: calibrated to the planned cohort
    # counting, sound only: how often an item is liked becomes one of its features
    count_rounds: int = 0
    count_share: float = 0.1  # of the budget
    count_noise: float | None = None  # calibrated with noise_multiplier

    def __post_init__(self) -> None:
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(("none", "central"), privacy=self.privacy)
        check.one_of(("reptile", "adam"), server_step=self.server_step)
        check.at_least(0, count_rounds=self.count_rounds)
        check.not_negative(adapt_epochs=self.adapt_epochs)
        check.count(local_epochs=self.local_epochs)
        check.positive(step=self.step, adapt_rate=self.adapt_rate, clip=self.clip)
        check.fraction(
            quantile=self.quantile, balance=self.balance, count_share=self.count_share
        )
        _ = self._schedule, self._blueprint, self._labelling  # refuse what cannot be
        self._check_mixtures()
        self._check_central()
        self._phases.check_noises(self.count_noise, self.noise_multiplier)

    def _check_mixtures(self) -> None:
        if self.mode == "paper" and self.server_step != "reptile":
            raise BadValue(
                f"server_step='{self.server_step}' belongs to mode='sound': the paper "
                "takes plain steps, and its noise is made for them"
            )
        if self.mode == "paper" and self.count_rounds:
            raise BadValue(
                f"count_rounds={self.count_rounds} is not in the paper; use "
                "mode='sound'"
            )
        if self.mode == "paper" and not self.is_adaptive:
            raise BadValue(
                "is_adaptive=False belongs to mode='sound': the paper's clip moves"
            )
        if self.bit_noise is not None and (
            self.mode == "paper" or not self.is_adaptive
        ):
            raise BadValue(
                f"bit_noise={self.bit_noise} is of mode='sound' with is_adaptive=True; "
                "elsewhere nothing has this noise: leave it out"
            )
        if self.uses_value and self.mode != "paper":
            raise BadValue(
                "uses_value=True belongs to mode='paper': the value of an event tells "
                "whether it happened, and no candidate has one"
            )
        if VALUE in self.situations:
            raise BadValue(f"situations: '{VALUE}' is the event's own; see uses_value")

    def _check_central(self) -> None:
        for name in ("noise_multiplier", "bit_noise", "count_noise"):
            value = getattr(self, name)
            if value is not None:
                check.positive(**{name: value})
                if self.privacy != "central":
                    raise BadValue(f"{name} belongs to privacy='central' only")

    # what follows

    @property
    def _blueprint(self) -> Blueprint:
        return Blueprint(
            items=self.items,
            by_value=self.by_value,
            people=self.people,
            situations=self.situations,
            uses_value=self.uses_value,
            has_counts=self.count_rounds > 0,
            is_scaled=self.mode == "sound",
            embedding=self.embedding,
            widths=self.widths,
            activation=self.activation,
            dtype=self.precision,
        )

    @property
    def _labelling(self) -> Labelling:
        return Labelling(self.positive_from, self.negatives, self.dislikes, self.head)

    @property
    def _optimizer(self) -> ServerOptimizer:
        return BY_NAME[self.server_step](self.step)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(
            epochs=self.local_epochs,
            batch=self.batch,
            rate=self.rate,
            pull=self.pull,
            is_squared=self.mode == "sound",
            head=self.head,
        )

    @property
    def _adaptation(self) -> Schedule:
        return replace(self._schedule, epochs=self.adapt_epochs, rate=self.adapt_rate)

    @property
    def _phases(self) -> CountFirst:
        return CountFirst(self.count_rounds, self.count_share)

    def _training(self, plan: Plan) -> Plan:
        """The part of the plan that trains."""
        if self.mode == "paper" and self.privacy == "central":
            _refuse_other_cohorts(plan)
        return self._phases.others(plan, what="PrivRec counts first, then trains")

    def _mechanism(self, round: int, clip: float) -> SumMechanism | None:
        if round >= self.count_rounds:
            return self._protection.at(clip)
        return self._counting

    @property
    def _counting(self) -> GaussianSum | None:
        """What sums of likes get; a person moves them by 1 at most."""
        if self.privacy == "none":
            return None
        return GaussianSum(1.0, given(self.count_noise, "count_noise"))

    @property
    def _protection(self) -> Protection:
        if self.privacy == "none":
            return Bare()
        noise = given(self.noise_multiplier, "noise_multiplier")
        if self.mode == "paper":
            rule = PublishedClipping(
                noise,
                balance=self.balance,
                rate=self.clip_rate,
                quantile=self.quantile,
            )
            return Published(rule, self.clip, least=self.least_clip, step=self.step)
        if not self.is_adaptive:
            return Constant(GaussianSum(self.clip, noise))
        return Adaptive(
            AdaptiveClip(
                self.clip,
                least=self.least_clip,
                most=self.most_clip,
                noise_multiplier=noise,
                bit_noise=given(self.bit_noise, "bit_noise"),
                quantile=self.quantile,
                rate=self.clip_rate,
            )
        )


def _refuse_other_cohorts(plan: Plan) -> None:
    """The paper's noise is made for cohorts of one size."""
    if not isinstance(plan.sampler, FixedSize | Everyone):
        raise Refused(
            f"mode='paper' needs cohorts of a fixed size and the plan has "
            f"{type(plan.sampler).__name__}; use fixed_size, or mode='sound'"
        )
