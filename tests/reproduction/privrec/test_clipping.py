"""The bound and the quantile it is after, on a tiny world."""

import pytest

from tacit.reproduction.privrec import clipping as module
from tacit.reproduction.privrec.clipping import Followed, bound, followed


@pytest.fixture
def short(monkeypatch, tiny):
    monkeypatch.setattr(module, "_ROUNDS", 4)
    monkeypatch.setattr(module, "_EVERY", 2)
    monkeypatch.setattr(module, "_ASKED", 10)
    return tiny


def test_bounds_quantiles_and_shares_of_the_same_rounds(short):
    found = followed(0.05, 0.5, short)
    assert found.rounds == (2, 4)
    assert len(found.bounds) == len(found.quantiles) == len(found.within) == 2
    for s, quantile, share in zip(
        found.bounds, found.quantiles, found.within, strict=True
    ):
        assert (share >= 0.5) == (s >= quantile)


def test_norms_are_those_of_updates_after_the_last_round_too(short):
    """While counting all norms are 1; an update has no such length."""
    found = followed(0.05, 0.5, short)
    assert found.rounds[-1] == module._ROUNDS
    assert all(abs(quantile - 1) > 1e-6 for quantile in found.quantiles)


def test_a_bound_far_below_rises_and_one_far_above_falls(short):
    low, high = followed(1e-2, 0.5, short), followed(50.0, 0.5, short)
    assert low.bounds[0] == 1e-2 < low.bounds[1]  # two rounds count
    assert high.bounds[0] == 50.0 > high.bounds[1]


def test_the_claim_can_fail():
    near, far = (Followed((60,), (1.0,), (1.0,), (share,)) for share in (0.55, 0.9))
    assert module._follows(0.05, 0.5, near).ok
    assert not module._follows(0.05, 0.5, far).ok


def test_it_is_written_and_read():
    found = Followed((1, 2), (0.1, 0.2), (0.3, 0.4), (0.5, 0.6))
    assert Followed.from_json(found.to_json()) == found


def test_a_chart_with_both_starts(short):
    (chart,) = bound("quick").charts
    assert len(chart.lines) == 4
