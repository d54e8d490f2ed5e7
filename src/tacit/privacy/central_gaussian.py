"""Gaussian noise on sums of bounded reports: the default protection.

    S   bound     the phase's own, or `clip` where reports are clipped to a choice
    z   noise     multiplier of a round, by phase; follows from the plan's target
    s_g scale     a group's bound over S, at most 1: its personal budget

    client   1  the whole report, all leaves together, times s_g min(1, S / norm) where
                S is proven, and times min(1, s_g S / norm) where it is a choice
    sum      2  add N(0, (z S)²) to every number
    account  3  one Gaussian release of multiplier z / s_g per round

With `clip_quantile` the clip follows a quantile of the norms, privately: clients send
one additional bit (`mechanisms.adaptive_clip`), and the budget of a round covers both.
The bit of a member of group g is s_g of a bit, so that both cost s_g of the others'.

A group that accepts that nothing is promised to it sends whole reports, and each weighs
`consent_weight` times one of the group with the largest target. The account of the
others is theirs alone: the noise over their own bound is what it would be without it.

Where a method chooses its phases as it goes, `total_noise` is that of the whole run as
one Gaussian release: a phase of share s gets s / total² of the budget, and whatever is
chosen from earlier releases, the sum of 1/z² never passes 1 / total² (Smith and
Thakurta 2022). Engine and clients both check it before each round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from tacit import check
from tacit.errors import BadMessage, BadValue, Refused
from tacit.keys import Keys
from tacit.mechanisms.adaptive_clip import BIT, AdaptiveClip
from tacit.mechanisms.gaussian import GaussianSum, gaussian_event
from tacit.mechanisms.personal_budgets import ByClip, ByClipWithBits
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.phase import Phase, check_clip
from tacit.plans import Plan
from tacit.privacy.budgets import (
    check_provable,
    given,
    groups_of,
    least_total,
    noise_by_phase,
)
from tacit.privacy.guarantees import summed, unprotected, whole_run
from tacit.privacy.privacy import Codes, Privacy, Slots, parts_of, release
from tacit.release import Release
from tacit.sampling import Everyone, Once, PoissonByGroup
from tacit.transport.messages import Layout, PublicSlot, Slot
from tacit.tree import Arrays, Tree
from tacit.wire_names import register

# How many people differ among each other as much as noise of multiplier 1 differs from
# nothing. Chosen on validation users of MovieLens 1M (docs/personal_budgets.md).
_PEOPLE_PER_NOISE = 26_000.0
# The most that a report may weigh: sums are in whole steps of a range.
_HEAVIEST = 300.0
CLIP = "clip"  # its name in the server's memory and in a broadcast, where it moves
# sigma_b over the planned whole reports: the deviation of the noise on the sum of clip
# bits, which are sent as b - 1/2, times the scale of a group. The share of clients
# below the clip then has a deviation of 0.05 in each round, as in Andrew et al. 2021
# (sigma_b = m / 20).
_BIT_NOISE_RATIO = 0.05
_CHOSEN = (
    "{} noise on every sum; each sum is chosen from earlier ones within one budget "
    "(fully adaptive composition, {})"
)
_WHAT = "noisy {}, summed over clients"
_SEVERAL = "one noisy sum per round"  # of different phases


@register("central_gaussian")
@dataclass(frozen=True)
class CentralGaussian(Privacy):
    """Bounded reports, and Gaussian noise on their sum.

    Leave the noise out to have it follow from the plan's target.
    """

    is_releasable: ClassVar[bool] = True

    noise_multiplier: float | Mapping[str, float] | None = None  # z, of all or by phase
    clip: float | None = None  # S of clipped phases; None: the method's own
    clip_quantile: float | None = None  # None: the clip is fixed
    clip_rate: float = 0.2  # of the geometric step: eta_C of Andrew et al. 2021
    clip_span: float = 1000.0  # by how much a moving clip may leave its start, each way
    bit_noise: float | None = None  # on the sum of the bits of a moving clip
    scale: Mapping[str, float] = field(default_factory=dict)  # s_g, by public group
    total_noise: float | None = None  # of the run, where the method chooses its phases

    def __post_init__(self) -> None:
        noise = self.noise_multiplier
        named = noise if isinstance(noise, Mapping) else {"": noise}
        for phase, z in named.items():
            if z is not None:
                name = f"noise_multiplier[{phase}]" if phase else "noise_multiplier"
                check.positive(remedy=_REMEDY, **{name: z})
        for name in ("clip", "bit_noise", "total_noise"):
            if getattr(self, name) is not None:
                check.positive(**{name: getattr(self, name)})
        if noise is not None and self.total_noise is not None:
            raise BadValue(
                f"noise_multiplier={noise} and total_noise={self.total_noise} exclude "
                "each other: the first is the noise of a round, the second that of a "
                "whole run whose phases are chosen as it goes; leave one of them out"
            )
        check.positive(clip_rate=self.clip_rate)
        check.at_least(1, clip_span=self.clip_span)
        self._check_moving_clip()
        for group, scale in self.scale.items():
            check.rate(remedy="", **{f"scale[{group}]": scale})

    def _check_moving_clip(self) -> None:
        if self.clip_quantile is None:
            if self.bit_noise is not None:
                raise BadValue(
                    f"bit_noise={self.bit_noise} belongs to a clip that moves; set "
                    "clip_quantile, such as 0.5, or leave bit_noise out"
                )
            return
        check.fraction(clip_quantile=self.clip_quantile)

    # account

    def calibrated(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> Self:
        """A copy with the least noise for the plan's target, and its groups' scales."""
        made = self
        check_provable(plan)  # also where the noise is given: clients keep the target
        self._check_phases(phases)
        self._check_choice(plan, is_chosen=is_chosen)
        if self.scale.keys() == plan.groups.keys():  # a file may name them in any order
            ordered = {group: self.scale[group] for group in plan.groups}
            made = replace(self, scale=ordered)
        if is_chosen and self.total_noise is None:
            # Any phase will do: the budget is that of all rounds as a single phase.
            whole = replace(phases[0], rounds=range(plan.rounds), share=1.0)
            made = made._calibrated_total(plan, [whole])
        elif not is_chosen and self.noise_multiplier is None:
            made = made._calibrated_phases(plan, phases)
        return made._with_bit_noise(plan, phases)

    def _calibrated_phases(self, plan: Plan, phases: Sequence[Phase]) -> Self:
        totals = self._totals(plan, phases)
        noise = noise_by_phase(plan, phases, self._common(plan, totals))
        return replace(self, noise_multiplier=noise, scale=self._scales(plan, totals))

    def _calibrated_total(self, plan: Plan, whole: Sequence[Phase]) -> Self:
        totals = self._totals(plan, whole)
        [noise] = noise_by_phase(plan, whole, self._common(plan, totals)).values()
        total = noise / math.sqrt(plan.rounds)
        return replace(self, total_noise=total, scale=self._scales(plan, totals))

    def _totals(self, plan: Plan, phases: Sequence[Phase]) -> dict[str, float]:
        """The least total noise for each group that has an account of its own.

        A group whose scale is given needs less noise by that factor. A consenting
        group needs none, and is not among them if scales are given; else it has what
        gives its reports their weight.
        """
        totals = {
            group: least_total(plan, phases, group) * self.scale.get(group, 1.0)
            for group in groups_of(plan, self.scale)
            if group not in plan.consenting
        }
        if not self._scales_follow(plan):
            return totals
        loudest = min(totals.values())
        others = sum(plan.groups[group] for group in totals)
        weighty = loudest / consent_weight(loudest, others)
        return {group: totals.get(group, weighty) for group in plan.groups}

    def _common(self, plan: Plan, totals: Mapping[str, float]) -> float:
        """The noise that serves all groups: enough for each.

        Where scales follow from targets, the largest target decides, and the groups
        that may spend less send less.
        """
        needed = totals.values()
        return min(needed) if self._scales_follow(plan) else max(needed)

    def _scales_follow(self, plan: Plan) -> bool:
        by_target = isinstance(plan.target_epsilon, Mapping)
        by_rate = isinstance(plan.sampler, PoissonByGroup)
        return by_target and not by_rate and not self.scale

    def _scales(self, plan: Plan, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Scales with which each group just meets its own target, unless given."""
        if not self._scales_follow(plan):
            return self.scale
        least = min(totals.values())
        return {group: least / total for group, total in totals.items()}

    def _with_bit_noise(self, plan: Plan, phases: Sequence[Phase]) -> Self:
        clipped = [phase for phase in phases if phase.is_clipped]
        if self.clip_quantile is None or self.bit_noise is not None or not clipped:
            return self
        # With bit_noise = z the update's multiplier is z / sqrt(1 - 1/4) = 1.155 z
        # (Andrew et al. 2021, Theorem 1): the most that a small cohort pays.
        loudest = max(self.noise_of(phase) for phase in clipped)
        needed = _BIT_NOISE_RATIO * self.planned(plan)
        return replace(self, bit_noise=max(needed, loudest))

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One noisy sum per phase, for each group whose budget is its own."""
        self._check_groups(plan)
        self._check_phases(phases)
        self._check_choice(plan, is_chosen=is_chosen)
        for phase in filter(self._moves, phases):
            self._rule(phase)  # refuses bit noise that leaves no budget for the sum
        is_split = bool(plan.consenting)
        aimless = plan if is_split else replace(plan, target_epsilon=None)
        return tuple(
            one
            for group in groups_of(aimless, self.scale)
            for one in self._of_group(plan, phases, group, is_chosen=is_chosen)
        )

    def _of_group(
        self, plan: Plan, phases: Sequence[Phase], group: str, *, is_chosen: bool
    ) -> tuple[Release, ...]:
        parts = parts_of(plan, phases, _WHAT, is_chosen=is_chosen)
        if is_chosen:
            total = given(self.total_multiplier(group), "total_noise")
            reason = _CHOSEN.format(*_law(plan))
            cells = whole_run(plan, gaussian_event(total), reason=reason)
            if group in plan.consenting:
                cells = unprotected("consented")
            what = _SEVERAL if parts else _WHAT.format(phases[0].what)
            return (release(plan, what, cells, group=group, parts=parts),)
        if len(phases) > 1 and isinstance(plan.sampler, Once):
            # Every client is in one phase only, so the dearest one bounds its cost.
            dearest = min(phases, key=self.noise_of)
            whole = replace(dearest, rounds=range(plan.rounds))
            one = self._of_phase(plan, whole, group, is_only=True)
            return (replace(one, what=_SEVERAL, parts=parts),)
        is_only = len(phases) == 1
        return tuple(self._of_phase(plan, p, group, is_only=is_only) for p in phases)

    def _of_phase(
        self, plan: Plan, phase: Phase, group: str, *, is_only: bool
    ) -> Release:
        # The noise is the same for all; a group that adds s_g S at most has z / s_g.
        z = self.noise_of(phase) / self.scale.get(group, 1.0)
        cells = summed(
            plan.over(len(phase.rounds)),
            gaussian_event(z),
            reason=self._reason(plan, phase),
            group=group,
        )
        if group in plan.consenting:
            cells = unprotected("consented")
        what, where = _WHAT.format(phase.what), None if is_only else phase
        return release(plan, what, cells, phase=where, group=group)

    def _reason(self, plan: Plan, phase: Phase) -> str:
        """The theorem, and a page; not what is summed, so that phases share it."""
        reports = "clipped reports" if phase.is_clipped else "reports of bounded length"
        bits = " and of clip bits (Andrew et al. 2021, Theorem 1)"
        moves = bits if phase.is_clipped and self.clip_quantile is not None else ""
        proof = f" ({phase.proof})" if phase.proof else ""
        return f"{_law(plan)[0]} noise on sums of {reports}{moves}{proof}"

    def total_multiplier(self, group: str) -> float | None:
        """Noise over sensitivity of a whole run of chosen phases, for a group."""
        if self.total_noise is None:
            return None
        return self.total_noise / self.scale.get(group, 1.0)

    def multiplier(self, phase: Phase, group: str) -> float | None:
        """Noise over sensitivity of one round of a chosen phase, for a group."""
        if self.total_noise is None:
            return None
        return self.noise_of(phase) / self.scale.get(group, 1.0)

    def noise_of(self, phase: Phase) -> float:
        """z: the noise of one round over the phase's bound."""
        if self.total_noise is not None:
            return self.total_noise * math.sqrt(len(phase.rounds) / phase.share)
        noise = self.noise_multiplier
        if isinstance(noise, Mapping):
            if phase.name not in noise:
                raise BadValue(
                    f"noise_multiplier has none for the phase '{phase.name}'; it has "
                    f"some for {', '.join(noise) or 'none'}"
                )
            return noise[phase.name]
        return given(noise, "noise_multiplier")

    # client, channel and server

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """The method's leaves, and one bit more where the clip moves."""
        moves = self._moves(phase)
        return Layout({**slots, BIT: Slot("float64", ())} if moves else slots)

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Line 1: the report, clipped to the bound of each client's group."""
        mechanism = self.mechanism(phase, told)
        if not isinstance(mechanism, ByClip | ByClipWithBits):
            return mechanism.bound(tree)
        if not phase.is_clipped:
            # So that a sum over `planned` is a mean in which a member of g weighs s_g,
            # also where reports are shorter than their bound.
            tree = tree.scale(np.array([*self.scale.values()])[codes])
        return mechanism.bound(tree, codes)

    def mechanism(self, phase: Phase, told: Arrays) -> SumMechanism:
        """Lines 1 and 2, at the clip that everyone was sent."""
        z = self.noise_of(phase)
        if self._moves(phase):
            common = self._rule(phase).at(told_clip(told))
            return ByClipWithBits(common, self.scale) if self.scale else common
        bound = phase.bounded_by(self.clip)
        if not self.scale:
            return GaussianSum(bound, z)
        multipliers = {group: z / scale for group, scale in self.scale.items()}
        return ByClip(z * bound, multipliers)

    def told(self, phase: Phase, memory: Arrays) -> Arrays:
        """The clip of the next round, where it moves."""
        if not self._moves(phase):
            return {}
        return {CLIP: memory.get(CLIP, np.array(phase.bounded_by(self.clip)))}

    def told_shape(self, phase: Phase) -> Mapping[str, PublicSlot]:
        """One number for a moving clip, within the span that was agreed."""
        if not self._moves(phase):
            return {}
        rule = self._rule(phase)
        return {CLIP: PublicSlot("float64", (), rule.least, rule.most)}

    def after(
        self, phase: Phase, told: Arrays, total: Arrays, *, planned: float
    ) -> Arrays:
        """The clip of the next round, by the noisy bits."""
        if not self._moves(phase):
            return {}
        rule = self._rule(phase)
        return {CLIP: np.array(rule.following(told_clip(told), total, planned=planned))}

    def planned(self, plan: Plan) -> float:
        """How many whole reports a cohort adds up to; one of group g counts s_g."""
        if not self.scale:
            return plan.cohort_size
        self._check_groups(plan)
        rates = plan.sampler.rates if isinstance(plan.sampler, PoissonByGroup) else {}
        usual = plan.cohort_size / plan.population
        return sum(
            self.scale[group] * rates.get(group, usual) * size
            for group, size in plan.groups.items()
        )

    def variance(self, phase: Phase, *, users: float, size: int) -> float:
        """The variance of the noise on each number, (z S)², whoever takes part."""
        return (self.noise_of(phase) * phase.bounded_by(self.clip)) ** 2

    # details

    def _moves(self, phase: Phase) -> bool:
        return self.clip_quantile is not None and phase.is_clipped

    def _rule(self, phase: Phase) -> AdaptiveClip:
        start, quantile = phase.bounded_by(self.clip), self.clip_quantile
        assert quantile is not None
        return AdaptiveClip(
            start,
            least=start / self.clip_span,
            most=start * self.clip_span,
            noise_multiplier=self.noise_of(phase),
            bit_noise=given(self.bit_noise, "bit_noise"),
            quantile=quantile,
            rate=self.clip_rate,
        )

    def _check_phases(self, phases: Sequence[Phase]) -> None:
        """Refuse a clip or a noise that no phase would have."""
        check_clip(phases, clip=self.clip, clip_quantile=self.clip_quantile)
        named = self.noise_multiplier
        known = [phase.name for phase in phases]
        for name in named if isinstance(named, Mapping) else ():
            if name not in known:
                raise BadValue(f"noise_multiplier: phase {check.unknown(name, known)}")

    def _check_groups(self, plan: Plan) -> None:
        if self.scale and [*self.scale] != [*plan.groups]:
            raise BadValue(
                f"scale is for the groups {[*self.scale]}; the plan has "
                f"{[*plan.groups]}: name the same ones, and calibrate to put them into "
                "its order"
            )

    def _check_choice(self, plan: Plan, *, is_chosen: bool) -> None:
        """Refuse the noise of the other kind, and what chosen phases cannot account."""
        if not is_chosen:
            if self.total_noise is not None:
                raise BadValue(
                    f"total_noise={self.total_noise} is for methods that choose their "
                    "phases as they go, and this one does not; set noise_multiplier, "
                    "or leave both out and set target_epsilon"
                )
            return
        if self.noise_multiplier is not None:
            raise BadValue(
                f"noise_multiplier={self.noise_multiplier} is not used by a method "
                "that chooses its phases as it goes: their shares divide the noise of "
                "the run; set total_noise, or leave both out and set target_epsilon"
            )
        if not isinstance(plan.sampler, Everyone):
            raise Refused(
                "a method that chooses its phases as it goes has an account only if "
                f"everyone is asked in every round; the plan has "
                f"{type(plan.sampler).__name__}: use the sampler 'everyone'"
            )
        if self.clip_quantile is not None:
            raise Refused("phases that are chosen have no account for a moving clip")


def consent_weight(noise: float, others: int) -> float:
    """What the report of somebody who accepts no promise weighs beside one of `others`.

    Two means are added with the least variance when each weighs what it is sure of. Of
    the few, people alone differ; of the others, people and noise: 1 + C z² / n times as
    much a report. The noise of few people is loud, and then the few decide almost
    alone; among very many others all weigh the same.

    >>> round(consent_weight(4.22, 4_780)), round(consent_weight(4.22, 1_000_000), 1)
    (98, 1.5)
    """
    return min(_HEAVIEST, 1.0 + _PEOPLE_PER_NOISE * noise**2 / max(1, others))


def _law(plan: Plan) -> tuple[str, str]:
    """The law of the noise, and who proved that its rounds may be chosen."""
    if plan.is_masked:
        return "Skellam", "Feldman and Zrnic 2021"
    return "Gaussian", "Smith and Thakurta 2022"


def told_clip(told: Arrays) -> float:
    """The clip in what was broadcast; refuses a broadcast with none or with several."""
    found = told.get(CLIP)
    if found is None or found.shape:
        has = "none" if found is None else f"an array of shape {found.shape}"
        raise BadMessage(
            f"a broadcast of a clip that moves must say one '{CLIP}'; has {has}"
        )
    return float(found)


_REMEDY = "use mechanism = 'none' to train without protection"
