"""The bound and the quantile it is after, on the invented world."""

from __future__ import annotations

import pytest
from tacit_study_privrec.clipping import Followed, followed, follows
from tacit_study_privrec.contenders import Bench

from tacit.experiment.assemble import assemble

BENCH = Bench("ml1m", "smoke")


def run(start: float) -> Followed:
    """Two rounds count, two train."""
    changes = (f"privacy.clip={start}", "privacy.clip_quantile=0.5", "run.rounds=4")
    [experiment] = BENCH.cell("DP-PrivRec", *changes).experiments()
    return followed(assemble(experiment), 0.5, every=2)


@pytest.fixture(scope="module")
def low():
    return run(1e-2)


@pytest.mark.slow
def test_bounds_quantiles_and_shares_of_the_same_rounds(low):
    assert low.rounds == [2, 4]
    assert len(low.bounds) == len(low.quantiles) == len(low.within) == 2
    for s, quantile, share in zip(low.bounds, low.quantiles, low.within, strict=True):
        assert (share >= 0.5) == (s >= quantile)


def test_norms_are_those_of_updates_after_the_last_round_too(low):
    """While counting all norms are 1; an update has no such length."""
    assert low.rounds[-1] == 4
    assert all(abs(quantile - 1) > 1e-6 for quantile in low.quantiles)


def test_a_bound_far_below_rises_and_one_far_above_falls(low):
    high = run(50.0)
    assert low.bounds[0] == 1e-2 < low.bounds[1]  # two rounds count
    assert high.bounds[0] == 50.0 > high.bounds[1]


def test_the_claim_can_fail():
    near, far = (Followed([60], [1.0], [1.0], [share]) for share in (0.55, 0.9))
    assert follows(0.05, 0.5, near).ok
    assert not follows(0.05, 0.5, far).ok


def test_a_chart_with_both_starts(reproduced):
    (chart,) = reproduced("bound").charts
    assert len(chart.lines) == 4
    for line in chart.lines.values():
        assert line.x == (2.0, 4.0)
