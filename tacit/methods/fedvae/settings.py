"""FedVAE's settings, and the objects that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from tacit import check
from tacit.aggregation.bucketed import Bucketed, Statistic
from tacit.aggregation.krum import Krum
from tacit.aggregation.mean import Mean
from tacit.aggregation.server_optimizers import Adam, DecayingBoost
from tacit.data.catalog import Catalog
from tacit.errors import BadValue
from tacit.mechanisms.sums import SumMechanism
from tacit.methods.fedvae.protection import Bare, Central, Protection
from tacit.models.mult_vae import Init, Network
from tacit.phases import CountFirst
from tacit.plan import Plan
from tacit.release import given
from tacit.tree import Arrays

Dtype = Literal["float32", "float64"]


@dataclass(frozen=True)
class Settings:
    """The fields of `FedVae`; `FedVae` itself has the protocol."""

    mode: Literal["sound", "paper"] = "sound"
    privacy: Literal["none", "central"] = "none"
    # the network
    hidden: tuple[int, ...] = (600,)
    latent: int = 200
    variational: bool = True  # without it Mult-DAE: nothing is sampled, no KL
    tied: bool = False  # the last matrix is the first, transposed
    init: Init | None = None  # None: "normal" in mode="paper", else "xavier"
    dtype: Dtype | None = None  # None: "float64" where `init` is "normal"
    # a device's loss
    dropout: float = 0.5
    beta: float = 0.2
    beta_rounds: int = 0  # rounds over which β rises from 0; 0: it is fixed
    loss: Literal["sum", "mean"] = "sum"  # over a person's items
    local_passes: int = 1
    local_rate: float = 0.0  # of a device's own steps between its passes
    # the server's step
    rate: float = 1e-3  # η
    beta1: float = 0.9
    beta2: float = 0.999
    adam_epsilon: float = 1e-8
    boost: float = 0.0  # γ
    decay: float = 0.9  # δ
    # against attackers
    attackers: int | None = None  # f; None: no filter
    keep: int | None = None  # m; None: all but f
    groups: int | None = None
    statistic: Statistic = "median"
    trim: int = 1
    # counting
    count_rounds: int = 0
    count_share: float = 0.1  # of the budget
    head: int | None = None  # None: the whole catalog
    # privacy
    clip: float = 0.1  # S
    clip_quantile: float | None = None  # None: the clip is fixed
    noise_multiplier: float | None = None  # z
    count_noise: float | None = None
    bit_noise: float | None = None

    def __post_init__(self) -> None:
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(("none", "central"), privacy=self.privacy)
        check.one_of(("sum", "mean"), loss=self.loss)
        check.one_of(("float32", "float64"), dtype=self._dtype)
        self._network(1)
        if not 0 <= self.dropout < 1:
            raise BadValue(f"dropout={self.dropout} must be in [0, 1)")
        check.not_negative(beta=self.beta, local_rate=self.local_rate)
        check.at_least(0, beta_rounds=self.beta_rounds, count_rounds=self.count_rounds)
        check.count(local_passes=self.local_passes)
        check.fraction(count_share=self.count_share)
        check.positive(clip=self.clip)
        _ = self._optimizer, self.aggregator
        self._check_paper()
        self._check_counting()
        self._check_central()
        self._phases.check_noises(self.count_noise, self.noise_multiplier)

    def _check_paper(self) -> None:
        if self.mode == "sound":
            return
        default = {f.name: f.default for f in fields(self)}
        added = ("privacy", "groups", "count_rounds", "variational", "tied", "loss")
        for name in added:
            if getattr(self, name) != default[name]:
                raise BadValue(
                    f"{name}={getattr(self, name)!r} is not in the paper; "
                    "use mode='sound'"
                )

    def _check_counting(self) -> None:
        if self.head is not None:
            check.count(head=self.head)
            if not self.count_rounds:
                raise BadValue(
                    f"head={self.head} needs counts: set count_rounds to 1 or more"
                )
        if self.count_rounds and self.attackers is not None:
            raise BadValue(
                f"attackers={self.attackers} with count_rounds={self.count_rounds}: "
                "Krum compares gradients and cannot count; use groups, or "
                "count_rounds = 0"
            )

    def _check_central(self) -> None:
        if self.clip_quantile is not None:
            check.fraction(clip_quantile=self.clip_quantile)
        if self.privacy == "central" and self.attackers is not None:
            raise BadValue(
                f"attackers={self.attackers}: Krum looks at reports before the noise, "
                "and no sensitivity follows; use groups"
            )
        for name in ("noise_multiplier", "count_noise", "bit_noise", "clip_quantile"):
            value = getattr(self, name)
            if value is not None and self.privacy != "central":
                raise BadValue(f"{name} belongs to privacy='central' only")
            if value is not None:
                check.positive(**{name: value})

    # what follows

    @property
    def _protection(self) -> Protection:
        if self.privacy == "none":
            return Bare(self.mode == "paper")
        noise = given(self.noise_multiplier, "noise_multiplier")
        count = given(self.count_noise, "count_noise") if self.count_rounds else None
        if self.clip_quantile is None:
            return Central(noise, self.clip, count)
        return Central.following(
            self.clip_quantile,
            noise_multiplier=noise,
            clip=self.clip,
            bit_noise=given(self.bit_noise, "bit_noise"),
            count_noise=count,
        )

    def _mechanism(self, round: int, told: Arrays) -> SumMechanism | None:
        if round < self.count_rounds:
            return self._protection.counting()
        return self._protection.training(told)

    def _network(self, n_items: int) -> Network:
        return Network(n_items, self.hidden, self.latent, self.variational, self.tied)

    @property
    def _optimizer(self) -> Adam:
        boosted = DecayingBoost(self.rate, self.boost, self.decay)
        return Adam(boosted, self.beta1, self.beta2, self.adam_epsilon)

    @property
    def _init(self) -> Init:
        if self.init is not None:
            return self.init
        return "normal" if self.mode == "paper" else "xavier"

    @property
    def _dtype(self) -> Dtype:
        """Variances of first weights from N(0, 1) leave the range of float32."""
        if self.dtype is not None:
            return self.dtype
        return "float64" if self._init == "normal" else "float32"

    def _beta(self, round: int) -> float:
        done = round - self.count_rounds
        return self.beta * min(1.0, done / self.beta_rounds if self.beta_rounds else 1)

    def _columns(self, catalog: Catalog) -> int:
        return len(catalog) if self.head is None else min(self.head, len(catalog))

    @property
    def aggregator(self) -> Mean | Krum | Bucketed:
        """A mean, behind a filter or over groups if attackers are expected."""
        if self.attackers is not None and self.groups is not None:
            raise BadValue("attackers and groups are two defenses; set one of them")
        if self.attackers is not None:
            return Krum(self.attackers, self.keep)
        if self.groups is not None:
            return Bucketed(self.groups, self.statistic, self.trim)
        return Mean()

    @property
    def _phases(self) -> CountFirst:
        return CountFirst(self.count_rounds, self.count_share)

    def _training(self, plan: Plan) -> Plan:
        """The part of the plan that trains."""
        return self._phases.others(plan, what="FedVAE counts first, then trains")
