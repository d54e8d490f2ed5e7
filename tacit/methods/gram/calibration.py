"""The least noise that meets a plan's target, and the head that goes with it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tacit.methods.gram import rule
from tacit.plan import Plan
from tacit.release import Unit, View, epsilon_a_report, given, noise_for_target
from tacit.sampling import Once

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from tacit.methods.gram.method import Gram

    G = TypeVar("G", bound=Gram)

_USUAL_SIZE = 5000  # of a local report; its noise hardly depends on it


def calibrated(method: G, plan: Plan) -> G:
    """The method with the least noise for the plan's target, and its head.

    A tenth of the budget counts; more where few tastes would stand out.
    """
    if method.count_share is not None or not method.count_rounds:
        return _calibrated(method, plan)
    usual = _calibrated(replace(method, count_share=rule.COUNT_SHARE), plan)
    share = rule.count_share(usual.edge(plan, side=int(given(usual.head, "head"))))
    if share == rule.COUNT_SHARE:
        return usual
    return _calibrated(replace(method, count_share=share), plan)


def _calibrated(method: G, plan: Plan) -> G:
    if method.privacy == "central" and _lacks_noise(method):
        method = _noisy(method, plan, _noise(method, plan))
    if method.privacy == "local" and method.epsilon is None:
        method = replace(method, epsilon=epsilon_a_report(plan))
    if method.head is None:
        planned = method.planned(plan, size=_USUAL_SIZE)
        size = rule.head_size(planned, most=method.max_head)
        method = replace(method, head=size)
    return method


def _lacks_noise(method: Gram) -> bool:
    counts_bare = method.count_rounds > 0 and method.count_noise is None
    return counts_bare or method.relate_noise is None


def _noise(method: Gram, plan: Plan) -> float:
    """The multiplier of one release that would cost what the whole run may."""
    if isinstance(plan.sampler, Once):
        return noise_for_target(plan)

    def whole(z: float) -> DpEvent:
        from dp_accounting import ComposedDpEvent

        releases = _noisy(method, plan, z).releases(plan)
        cells = [release.cells[Unit.USER, View.RELEASE] for release in releases]
        return ComposedDpEvent([cell.event for cell in cells])

    return noise_for_target(plan, whole)


def _noisy(method: G, plan: Plan, noise: float) -> G:
    """The noise of either kind of round, as if one release of `noise` were shared.

    `count_share` of mu² = 1 / noise² for the counting, the rest for the relating. A
    device that speaks once spends all of it on the one sum it is in.
    """
    relating = method.relating(plan).rounds
    if isinstance(plan.sampler, Once):
        count = relate = noise
    else:
        often = plan.cohort_size / plan.population  # a device's rounds, on average
        share = given(method.count_share, "count_share") if method.count_rounds else 0.0
        count = noise * math.sqrt(method.count_rounds * often / (share or 1.0))
        relate = noise * math.sqrt(relating * often / (1 - share))
    counting = count if method.count_rounds else None
    return replace(method, count_noise=counting, relate_noise=relate)
