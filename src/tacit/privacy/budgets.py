"""From a plan's target to the noise of each phase: a search over events.

Phases of Gaussian sums share a budget as if it were one release of multiplier z: a
phase with share s gets s / z² of it, divided among the rounds that a client takes part
in on average. A client that speaks once is in one of the phases only, and spends
everything there.

Clients that protect their own reports divide a target epsilon among their messages. The
noise of a user's k votes about d coordinates is (d / k) coth²(eps / 2). If the total is
k eps, that is least at eps = 2.18 per vote. Where a relay mixes, the total grows as
sqrt(k e^eps) instead, and the noise is least at sinh(eps) = 2, eps = 1.44.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from tacit.accounting.calibration import calibrate, gaussian_epsilon, gaussian_noise
from tacit.accounting.decomposition import take_apart
from tacit.accounting.epsilon import epsilon
from tacit.accounting.proven import ideal_delta
from tacit.errors import BadValue, Refused
from tacit.mechanisms.one_bit import BEST_EPSILON
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.guarantees import (
    noise_event,
    share_that_hides,
    sum_adjacency,
)
from tacit.release import EVERYONE, Adjacency, Unit, View
from tacit.sampling import Once, Poisson, PoissonByGroup, composed

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

BEST_MIXED_EPSILON = math.asinh(2.0)  # epsilon per vote behind a relay; derived above
MOST_VOTES = 100  # k of Minto et al. 2021; a catalog needs at least as many coordinates
_ROUGH = 1e-3  # grid of the loss distribution: fine enough to compare numbers of votes
_ENOUGH = 1e-10  # relative: the noise that a closed form may lack through rounding

Number = TypeVar("Number", int, float)


def given(value: Number | None, name: str) -> Number:
    """The value of a setting that calibration may fill in; refused while it is None."""
    if value is None:
        raise BadValue(
            f"privacy.{name} is not set: set it, or set privacy.target_epsilon (and "
            "privacy.delta) and have it calibrated"
        )
    return value


# --- Noise on sums --------------------------------------------------------------------


def noise_by_phase(
    plan: Plan, phases: Sequence[Phase], total: float
) -> dict[str, float]:
    """The multiplier of one round of each phase, if all compose to one of `total`."""
    if isinstance(plan.sampler, Once):  # one round per client: it may cost everything
        return {phase.name: total for phase in phases}
    often = plan.cohort_size / plan.population  # a client's rounds, on average
    return {
        # n rounds of multiplier z compose to z / sqrt(n), and that has its share of
        # 1 / total²: n / z² = share / total².
        phase.name: total * math.sqrt(len(phase.rounds) * often / phase.share)
        for phase in phases
    }


def sum_event(
    plan: Plan, phases: Sequence[Phase], noise: Mapping[str, float], group: str
) -> DpEvent:
    """What all phases and the releases before them cost a member of a group.

    It is the view of somebody who does not see the cohorts.
    """
    from tacit.accounting.dp_events import ComposedDpEvent

    before = [one.cells[Unit.USER, View.RELEASE].event for one in plan.before]
    if isinstance(plan.sampler, Once):  # a client is in one phase, perhaps the dearest
        return ComposedDpEvent([*before, noise_event(plan, min(noise.values()))])
    events = [
        plan.sampler.event(
            noise_event(plan, noise[phase.name]),
            group=group,
            plan=plan.over(len(phase.rounds)),
        )
        for phase in phases
    ]
    return ComposedDpEvent([*before, *events])


def least_total(plan: Plan, phases: Sequence[Phase], group: str) -> float:
    """The least total multiplier with which a group stays within its target.

    It is that of the noise on the sum, in whichever view the target is meant.
    """
    target = _target(plan, group)
    delta = ideal_delta(target, delta=_gaussian_delta(plan))
    return noise_of_the_sum(plan) * least_noise(
        lambda z: sum_event(plan, phases, noise_by_phase(plan, phases, z), group),
        target=target,
        delta=delta,
        adjacency=sum_adjacency(plan),
    )


def check_provable(plan: Plan) -> None:
    """Refuse targets that no noise on a sum is proven to meet, before it is trained."""
    for group in plan.groups:
        target = plan.target_of(group)
        if target is not None and plan.delta is not None:
            ideal_delta(target, delta=plan.delta)


def noise_of_the_sum(plan: Plan) -> float:
    """The noise on a sum over the noise that counts in the view of the target.

    Of two aggregators a server may know the noise of one; then that of the other
    counts, which is the noise on the sum over √2. Of a masked sum the shares of its
    least number of honest survivors count.
    """
    if plan.is_masked:
        return 1.0 / share_that_hides(plan)
    is_server = plan.calibrated_view is View.SERVER
    return math.sqrt(plan.noise_shares) if is_server else 1.0


def least_noise(
    event: Callable[[float], DpEvent],
    *,
    target: float,
    delta: float,
    adjacency: Adjacency = Adjacency.ZERO_OUT,
) -> float:
    """The least z for which `event(z)` stays within a target.

    Where the event is a Gaussian whose multiplier grows with z, a formula gives it.
    """
    ratio = _gaussian_ratio(event, adjacency)
    if ratio is None:
        return calibrate(event, target=target, delta=delta, adjacency=adjacency)
    noise = gaussian_noise(target, delta=delta)
    # The root of the closed form is rounded: never let it land above the target.
    while gaussian_epsilon(noise, delta=delta) > target:
        noise *= 1 + _ENOUGH
    return noise / ratio


def _gaussian_ratio(event: Callable[[float], DpEvent], adjacency: str) -> float | None:
    """m, if `event(z)` amounts to one Gaussian of multiplier m z; else None."""
    # Two points suffice to tell m z from m z + c; 1e-12 is rounding of the roots.
    found = [_one_gaussian(event(z), adjacency) for z in (1.0, 2.0)]
    one, two = found
    if one is None or two is None or not math.isclose(two, 2 * one, rel_tol=1e-12):
        return None
    return one


def _one_gaussian(event: DpEvent, adjacency: str) -> float | None:
    from tacit.accounting.dp_events import GaussianDpEvent

    parts = take_apart([(event, str(adjacency))]) or {}
    if len(parts) != 1 or [*parts.values()] != [1]:
        return None
    [part] = parts
    is_gaussian = isinstance(part.event, GaussianDpEvent)
    return float(part.event.noise_multiplier) if is_gaussian else None


def groups_of(plan: Plan, scale: Mapping[str, float]) -> list[str]:
    """The groups whose account differs; everyone together if none does."""
    by_target = isinstance(plan.target_epsilon, Mapping)
    if scale or by_target or isinstance(plan.sampler, PoissonByGroup):
        return [*plan.groups]
    return [EVERYONE]


def as_one_epsilon(plan: Plan, spent: Mapping[str, float]) -> float:
    """The epsilon at which one budget for all makes sums as clear as these groups do.

    A member of group g adds s_g to a sum and has mu_g = s_g mu under its noise. So the
    sum has the ratio of users to noise that everyone at the mean of mu_g would give it.
    """
    delta = _gaussian_delta(plan)
    mu = {
        group: 1 / gaussian_noise(found, delta=delta) for group, found in spent.items()
    }
    mean = sum(size * mu[group] for group, size in plan.groups.items())
    return gaussian_epsilon(plan.population / mean, delta=delta)


def rates_for_targets(plan: Plan, phases: Sequence[Phase]) -> PoissonByGroup:
    """Rates of being asked with which every group just meets its own target.

    The plan's `Poisson` rate is that of the group that may spend the most; it decides
    the noise. Source: Boenisch et al. 2023, the variant `Sample`.
    """
    targets = plan.target_epsilon
    if not isinstance(targets, Mapping) or not isinstance(plan.sampler, Poisson):
        raise BadValue(
            "budgets = 'sample' needs a target_epsilon for each group and the sampler "
            "'poisson', whose rate is that of the largest target"
        )
    wanted = {group: target for group, target in targets.items() if target is not None}
    if wanted.keys() != targets.keys():
        raise BadValue(
            f"budgets = 'sample' has no rate for {', '.join(plan.consenting)}, to whom "
            "nothing is promised; use budgets = 'scale'"
        )
    most, rate = max(wanted.values()), plan.sampler.rate
    total = least_total(_alone(plan, rate, most), phases, EVERYONE)
    noise = noise_by_phase(plan, phases, total)
    found = {
        group: rate
        if target == most
        else _rate(plan, phases, noise, target=target, most=rate)
        for group, target in wanted.items()
    }
    return PoissonByGroup(found)


def _alone(plan: Plan, rate: float, target: float) -> Plan:
    """The plan as if all of its users were one group with this rate and target."""
    return replace(plan, sampler=Poisson(rate), groups={}, target_epsilon=target)


def _rate(
    plan: Plan,
    phases: Sequence[Phase],
    noise: Mapping[str, float],
    *,
    target: float,
    most: float,
) -> float:
    """The largest rate that stays within a target at this noise, by halving."""

    def fits(rate: float) -> bool:
        event = sum_event(_alone(plan, rate, target), phases, noise, EVERYONE)
        found = epsilon(event, delta=ideal_delta(target, delta=_gaussian_delta(plan)))
        return found.value is not None and found.value <= target

    low, high = 0.0, most
    while high - low > 1e-4 * high:  # `low` fits, so what is lost is rate, not privacy
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if not low:
        raise Refused(f"no rate of being asked meets the target {target}")
    return low


def _target(plan: Plan, group: str) -> float:
    found = (
        max(filter(None, plan.target_epsilon.values()))
        if group == EVERYONE and isinstance(plan.target_epsilon, Mapping)
        else plan.target_of(group)
    )
    if found is None:
        raise BadValue(
            "privacy needs noise: set privacy.target_epsilon, or the mechanism's own "
            "noise_multiplier (central) or epsilon (local)"
        )
    return found


def _gaussian_delta(plan: Plan) -> float:
    if plan.delta is None:
        raise BadValue("Gaussian noise needs a delta: set privacy.delta, such as 1e-6")
    return plan.delta


# --- Reports that clients protect themselves ------------------------------------------


@dataclass(frozen=True)
class LocalBudget:
    """What a plan's target allows a client that protects its own reports."""

    plan: Plan

    def epsilon(self, *, messages: int = 1) -> float:
        """The largest epsilon per message, if a round has `messages` of them."""
        times = messages * self._rounds
        if not self.plan.is_mixed:
            return self._target / times
        noise = calibrate(  # it searches for noise, of which 1 / epsilon is a kind
            lambda z: self._mixed(1.0 / z, times),
            target=self._target,
            delta=self._delta,
            adjacency=Adjacency.REPLACE_ONE,
        )
        return 1.0 / noise

    def votes(self) -> int:
        """The number of votes per round with the least noise, at most `MOST_VOTES`."""
        if self.plan.is_mixed:
            return self._mixed_votes()
        each = self._target / self._rounds
        # The noise has one minimum, between two whole numbers of votes: try both.
        fewer = min(MOST_VOTES, max(1, math.floor(each / BEST_EPSILON)))
        some = range(fewer, min(MOST_VOTES, fewer + 1) + 1)
        return min(some, key=lambda k: 1 / k / math.tanh(each / k / 2) ** 2)

    def _mixed_votes(self) -> int:
        """The most votes of `BEST_MIXED_EPSILON` that meet the target, by halving."""
        low, high = 1, MOST_VOTES + 1  # one vote is always offered, the other never
        while high - low > 1:
            middle = (low + high) // 2
            event = self._mixed(BEST_MIXED_EPSILON, middle * self._rounds)
            low, high = (middle, high) if self._fits(event) else (low, middle)
        return low

    def _fits(self, event: DpEvent) -> bool:
        exchange = Adjacency.REPLACE_ONE
        found = epsilon(event, delta=self._delta, adjacency=exchange, finest=_ROUGH)
        return found.value is not None and found.value <= self._target

    def _mixed(self, each: float, times: int) -> DpEvent:
        from tacit.accounting.events import ShuffledDpEvent

        return composed(ShuffledDpEvent(each, self.plan.least_honest), times)

    @property
    def _rounds(self) -> int:
        return self.plan.sampler.most_participations(self.plan)

    @property
    def _target(self) -> float:
        if isinstance(self.plan.target_epsilon, Mapping):
            raise BadValue(
                "a target_epsilon for each group goes with mechanism = 'central'; "
                "clients that protect their own reports have one for all"
            )
        return _target(self.plan, EVERYONE)

    @property
    def _delta(self) -> float:
        if self.plan.delta is None:
            raise BadValue(
                "what a relay mixes has no pure epsilon: set privacy.delta, such as "
                "1e-6, or channel = 'direct'"
            )
        return self.plan.delta
