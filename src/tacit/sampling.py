"""Who takes part in a round, and what that choice earns in the account.

A sampler draws cohorts *and* hands out the event of the whole run: the object that
flips the coins is the object the accountant reads, so they cannot disagree.
Amplification by sampling holds only for someone who does not see the cohorts (the
`release` view).

Draws are addressed by client and round: whether a client is in a cohort never depends
on who else is in the population, except for `FixedSize`, where it must.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Bool, Float64, Int64

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.keys import Keys
from tacit.wire_names import register

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Groups = Mapping[str, int]  # public group -> how many clients it has
Cohort = Int64[np.ndarray, "cohort"]

_STEP = 2.0**-53  # of a coin


@dataclass(frozen=True)
class Draw:
    """Who may be asked in a round: everyone's sampling key and group."""

    keys: Keys
    codes: Int64[np.ndarray, "clients"]  # index of the client's group in the plan
    round: int

    def coins(self) -> Float64[np.ndarray, "clients"]:
        """One uniform draw per client, fresh in every round."""
        return self.keys.at("round", self.round).uniform(1)[:, 0]

    def own_round(self, rounds: int) -> Int64[np.ndarray, "clients"]:
        """One round per client, the same whichever round asks."""
        return self.keys.at("own round").integers(1, below=rounds)[:, 0]


class Sampler(Protocol):
    """Chooses cohorts; a frozen dataclass, so that it can be part of a plan."""

    def cohort(self, draw: Draw, plan: Horizon) -> Cohort:
        """The indices of the clients who are asked in this round, ascending."""
        ...

    def expected(self, plan: Horizon) -> float:
        """The planned cohort size that sums are divided by; never the realised one."""
        ...

    def most_participations(self, plan: Horizon) -> int:
        """In how many rounds one client can be asked at the most."""
        ...

    def event(self, inner: DpEvent, *, group: str, plan: Horizon) -> DpEvent:
        """What a run of rounds, each releasing `inner`, costs a client of `group`."""
        ...


class Horizon(Protocol):
    """The part of a plan that samplers read."""

    @property
    def rounds(self) -> int: ...  # noqa: D102
    @property
    def groups(self) -> Groups: ...  # noqa: D102


@register("poisson")
@dataclass(frozen=True)
class Poisson:
    """Every client joins with probability `rate`, by an independent coin each round."""

    rate: float

    def __post_init__(self) -> None:
        check.rate(rate=self.rate, remedy="use Everyone() for all clients")

    def cohort(self, draw: Draw, plan: Horizon) -> Cohort:
        """The clients whose coin fell."""
        return np.flatnonzero(_falls(draw.coins(), self.rate))

    def expected(self, plan: Horizon) -> float:
        """The planned cohort size: the rate times the population."""
        return self.rate * _population(plan)

    def most_participations(self, plan: Horizon) -> int:
        """All rounds: the coins may fall that way."""
        return plan.rounds

    def event(self, inner: DpEvent, *, group: str, plan: Horizon) -> DpEvent:
        """Poisson-sampled, composed over the rounds."""
        return _poisson(self.rate, inner, plan)


@register("poisson_by_group")
@dataclass(frozen=True)
class PoissonByGroup:
    """As `Poisson`, with a rate for each public group."""

    rates: Mapping[str, float]

    def __post_init__(self) -> None:
        if not self.rates:
            raise BadValue("rates={} must name at least one group")
        for group, rate in self.rates.items():
            check.rate(remedy="", **{f"rates[{group}]": rate})

    def cohort(self, draw: Draw, plan: Horizon) -> Cohort:
        """The clients whose coin fell, each at the rate of its group."""
        rates = np.array([self._rate(group) for group in plan.groups])
        return np.flatnonzero(_falls(draw.coins(), rates[draw.codes]))

    def expected(self, plan: Horizon) -> float:
        """The sum of rate times size over the groups."""
        for group in self.rates:
            if group not in plan.groups:
                raise BadValue(f"rates: group {check.unknown(group, plan.groups)}")
        return sum(self._rate(group) * size for group, size in plan.groups.items())

    def most_participations(self, plan: Horizon) -> int:
        """All rounds: the coins may fall that way."""
        return plan.rounds

    def event(self, inner: DpEvent, *, group: str, plan: Horizon) -> DpEvent:
        """Poisson-sampled at the group's own rate."""
        return _poisson(self._rate(group), inner, plan)

    def _rate(self, group: str) -> float:
        if group not in self.rates:
            raise BadValue(f"group {check.unknown(group, self.rates)}")
        return self.rates[group]


@register("fixed_size")
@dataclass(frozen=True)
class FixedSize:
    """Exactly `size` clients, without replacement. Simulation only.

    No deployed server can promise it: clients come and go, and the promise is needed
    for the account.
    """

    size: int

    def __post_init__(self) -> None:
        check.count(size=self.size)

    def cohort(self, draw: Draw, plan: Horizon) -> Cohort:
        """The clients with the smallest draws."""
        self._fits(len(draw.keys))
        # The smallest of independent draws: every set of this size is equally likely.
        order = np.argsort(draw.coins(), kind="stable")
        return np.sort(order[: self.size])

    def expected(self, plan: Horizon) -> float:
        """The planned cohort size, which is the realised one too."""
        self._fits(_population(plan))
        return float(self.size)

    def most_participations(self, plan: Horizon) -> int:
        """All rounds: nothing keeps a client from being drawn every time."""
        return plan.rounds

    def event(self, inner: DpEvent, *, group: str, plan: Horizon) -> DpEvent:
        """Sampled without replacement, composed over the rounds; replace_one only.

        Exchanging a user moves a sum by two clips, and this event counts noise over
        that distance: the multiplier of `inner`, noise over one clip, is halved.
        """
        from tacit.accounting.dp_events import GaussianDpEvent
        from tacit.accounting.dp_events import (
            SampledWithoutReplacementDpEvent as Sampled,
        )

        if not isinstance(inner, GaussianDpEvent):
            raise Refused(
                f"a cohort of fixed size has no account for {type(inner).__name__}; "
                "use Poisson"
            )
        halved = GaussianDpEvent(inner.noise_multiplier / 2)
        return composed(Sampled(_population(plan), self.size, halved), plan.rounds)

    def _fits(self, population: int) -> None:
        if self.size > population:
            raise BadValue(
                f"size={self.size} must be <= {population}, the population; "
                "use Everyone() for all clients"
            )


@register("everyone")
@dataclass(frozen=True)
class Everyone:
    """All clients in every round."""

    def cohort(self, draw: Draw, plan: Horizon) -> Cohort:
        """The indices of all clients."""
        return np.arange(len(draw.keys))

    def expected(self, plan: Horizon) -> float:
        """The planned cohort size: the whole population."""
        return float(_population(plan))

    def most_participations(self, plan: Horizon) -> int:
        """All rounds of the plan, in each of which everyone is asked."""
        return plan.rounds

    def event(self, inner: DpEvent, *, group: str, plan: Horizon) -> DpEvent:
        """Composed over the rounds, without amplification."""
        return composed(inner, plan.rounds)


@register("once")
@dataclass(frozen=True)
class Once:
    """Every client in exactly one round, which the client draws by itself."""

    def cohort(self, draw: Draw, plan: Horizon) -> Cohort:
        """The clients whose round this is."""
        return np.flatnonzero(draw.own_round(plan.rounds) == draw.round)

    def expected(self, plan: Horizon) -> float:
        """The planned cohort size: the population over the rounds."""
        return _population(plan) / plan.rounds

    def most_participations(self, plan: Horizon) -> int:
        """One round, which the client draws by itself."""
        return 1

    def event(self, inner: DpEvent, *, group: str, plan: Horizon) -> DpEvent:
        """A single release, whatever the number of rounds."""
        # Rounds have disjoint clients: parallel composition (McSherry 2009).
        return inner


def _population(plan: Horizon) -> int:
    return sum(plan.groups.values())


def _falls(
    coins: Float64[np.ndarray, "clients"], rates: Float64[np.ndarray, "..."] | float
) -> Bool[np.ndarray, "clients"]:
    """Which coins fall: each with the largest chance in their steps up to its rate.

    `coins < rates` would round chances up, and amplification would be a little less
    than the account has it.
    """
    return np.asarray(coins + _STEP <= rates)


def _poisson(rate: float, inner: DpEvent, plan: Horizon) -> DpEvent:
    from tacit.accounting.dp_events import PoissonSampledDpEvent

    # Every round counts, in the cohort or not: whoever sees models sees no cohort.
    return composed(PoissonSampledDpEvent(rate, inner), plan.rounds)


def composed(event: DpEvent, times: int) -> DpEvent:
    """The event of `times` releases like this one."""
    from tacit.accounting.dp_events import SelfComposedDpEvent

    return event if times == 1 else SelfComposedDpEvent(event, times)
