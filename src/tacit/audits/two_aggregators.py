"""Two aggregators: what one of them, and all others, can see of a single victim.

One side picks a sum with one report in it and knows every half but one. What the other
aggregator publishes is then the report and that aggregator's noise. Each of the two is
the honest one in turn, and the report has 16,384 numbers:

    report    no report in whole steps, however it was made, is longer than its bound
    noise     that of one aggregator alone has the scale and law of the server's view
    pairs     the noise of one says nothing about that of the other
    halves    what one publishes is uniform to whoever lacks the other's
    account   the server's view has no more than half of the variance that readers have

An honest pair fails one of these checks once in about 800; an audit asks again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.stats import kstest

from tacit.accounting.decomposition import merged_multiplier
from tacit.audits.canaries import probes
from tacit.audits.checks import Check
from tacit.audits.lower_bounds import (
    ALARM,
    correlation_errors,
    normal_p_value,
    variance_interval,
)
from tacit.audits.lying_reports import contexts
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.transport.channels import RoundContext
from tacit.transport.messages import Layout, Slot, zeros
from tacit.transport.shared_sum import Numbers, SharedSum, play, signed

_NUMBERS = 2**14  # of a report, so that noise of 0.97 of its deviation is seen
_LEAST_P = 1e-4  # of a Kolmogorov-Smirnov test; its chance of a false alarm
_MOST_ERRORS = 4.5  # that a correlation may be away from zero
_ROUNDING = 1e-4  # relative: whole steps, and a limit that is a little above the bound

Draws = Float64[np.ndarray, "draws"]


def check_aggregators(method: Method, plan: Plan, *, key: Key) -> Iterator[Check]:
    """Every check of two aggregators, in the first kinds of rounds of the plan."""
    views = [
        _View.of(context, plan, key.at("view", number))
        for number, context in enumerate(contexts(method, plan, key.at("kinds")))
    ]
    yield _check_reports(views)
    yield _check_variance(views)
    yield _check_law(views)
    yield _check_pairs(views)
    yield _check_halves(views)
    yield check_shares(method, plan)


@dataclass(frozen=True, eq=False)
class _View:
    """A round with one victim, seen from both sides, in units of the claimed noise."""

    largest: float  # the longest report in whole steps, in units of the bound
    noises: tuple[Draws, Draws]  # of the leader, of the helper
    arrays: tuple[Numbers, Numbers]  # as they were published

    @classmethod
    def of(cls, context: RoundContext, plan: Plan, key: Key) -> _View:
        """The round of a context, with a report of more numbers."""
        mechanism, [leaf] = context.mechanism, [*context.layout.slots]
        assert mechanism is not None
        layout = Layout({leaf: Slot("float64", (_NUMBERS,))})
        shared = SharedSum.of(mechanism, layout, most_reports=plan.population)
        reports = probes(
            zeros(layout.slots, 1), {leaf: mechanism.sensitivity}, key.at("probes")
        )
        with np.errstate(all="ignore"):  # some are not finite
            said = shared.encoded(reports)
        norms = np.sqrt((said.astype(np.float64) ** 2).sum(axis=1))
        total, _ = shared.total([reports.select([1])])  # one victim, at its bound
        both = play(total, shared, key.at("round"))
        known = signed(total)
        noises = [
            (signed(honest.published + other.halves) - known) / shared.steps
            for honest, other in (both, both[::-1])
        ]
        # A server knows the noise of its own side; that of the other is over √2.
        scale = mechanism.scale(leaf) / math.sqrt(2.0)
        return cls(
            float(norms.max()) / shared.steps / mechanism.sensitivity,
            (noises[0] / scale, noises[1] / scale),
            (both[0].published, both[1].published),
        )


def _check_reports(views: list[_View]) -> Check:
    return Check.at_most(
        "largest report in whole steps over the sensitivity",
        max(view.largest for view in views),
        claimed=1.0,
        slack=_ROUNDING,
        detail=f"probes of {_NUMBERS:,} numbers, from small to not finite",
    )


def _check_variance(views: list[_View]) -> Check:
    squares = [float((noise**2).mean()) for view in views for noise in view.noises]
    low, high = variance_interval(_NUMBERS, alarm=ALARM / len(squares))
    worst = max(squares, key=lambda one: abs(one - 1))
    return Check(
        "noise variance of one aggregator over the claimed one",
        1.0,
        worst,
        all(low - _ROUNDING <= one <= high + _ROUNDING for one in squares),
        f"one victim, {len(squares)} times {_NUMBERS:,} draws; chi-square allows "
        f"{low:.4f} to {high:.4f}, false alarm {ALARM:g}",
        ALARM,
    )


def _check_law(views: list[_View]) -> Check:
    chances = [normal_p_value(noise) for view in views for noise in view.noises]
    least = _LEAST_P / len(chances)
    return Check(
        "p-value of normal noise of one aggregator, at least",
        least,
        min(chances),
        min(chances) > least,
        f"Kolmogorov-Smirnov against the claimed normal, false alarm {_LEAST_P:g}",
        _LEAST_P,
    )


def _check_pairs(views: list[_View]) -> Check:
    return Check.at_most(
        "noise correlation between two aggregators, in standard errors",
        max(correlation_errors(*view.noises) for view in views),
        claimed=_MOST_ERRORS,
        slack=0.0,
        detail=f"{len(views)} rounds of {_NUMBERS:,} numbers; whoever draws from one "
        "seed twice shows the other's noise",
        alarm=7e-6 * len(views),  # two tails of a normal beyond 4.5 deviations
    )


def _check_halves(views: list[_View]) -> Check:
    arrays = [array for view in views for array in view.arrays]
    chances = [float(kstest(a / 2.0**32, "uniform").pvalue) for a in arrays]
    least = _LEAST_P / len(chances)
    return Check(
        "p-value of uniform numbers of one aggregator, at least",
        least,
        min(chances),
        min(chances) > least,
        f"{len(arrays)} published arrays, each without the other; false alarm "
        f"{_LEAST_P:g}",
        _LEAST_P,
    )


def check_shares(method: Method, plan: Plan) -> Check:
    """The server's view claims no more than the noise of one aggregator."""
    ratios = [
        merged_multiplier(release.cells[unit, View.SERVER].event, "an audit")
        / merged_multiplier(release.cells[unit, View.RELEASE].event, "an audit")
        for release in method.releases(plan)
        for unit in Unit
    ]
    return Check.at_most(
        "noise claimed of one aggregator over that of both",
        max(ratios),
        claimed=math.sqrt(0.5),
        slack=1e-9,
        detail="the events that the ledger reads, server's view and release view",
    )
