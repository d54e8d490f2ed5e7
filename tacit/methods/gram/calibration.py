"""The least noise that meets a plan's target, and the head that goes with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tacit.methods.gram import rule
from tacit.phases import CountFirst, Noises
from tacit.plan import Plan
from tacit.release import epsilon_a_report, given

if TYPE_CHECKING:
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
        share = given(method.count_share, "count_share") if method.count_rounds else 0.0
        phases = CountFirst(method.count_rounds, share)
        found = phases.calibrated(plan, lambda n: _noisy(method, n).releases(plan))
        method = _noisy(method, found)
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


def _noisy(method: G, noises: Noises) -> G:
    count, relate = noises
    return replace(method, count_noise=count, relate_noise=relate)
