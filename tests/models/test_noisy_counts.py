"""What noisy counts say about the true ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.models.noisy_counts import (
    Counting,
    CountPrior,
    expected_counts,
    standing_out,
)

RNG = np.random.default_rng(0)
TRUE = 400 / np.arange(1, 3001) ** 0.9  # a few items much liked, most hardly at all


def share_found(counts, *, deviation, best, least):
    counting = Counting(1000, deviation, least=least, best=best, head=best)
    return counting.judged(counts).share_found


def noisy(deviation, *, seed=1):
    return TRUE + deviation * np.random.default_rng(seed).normal(size=len(TRUE))


@pytest.mark.parametrize("deviation", [2.0, 8.0, 30.0])
def test_expected_counts_are_nearer_to_the_true_ones(deviation):
    counts = noisy(deviation)
    off = np.square(expected_counts(counts, deviation) - TRUE).mean()
    assert off < np.square(np.maximum(counts, 0.0) - TRUE).mean() / 2


def test_what_noise_lifted_is_pulled_down_and_what_stands_far_above_is_not():
    counts = noisy(8.0)
    found = expected_counts(counts, 8.0)
    assert found[0] == pytest.approx(counts[0], rel=0.05)
    lifted = (TRUE < 1) & (counts > 15)
    assert lifted.sum() > 20
    assert found[lifted].mean() < counts[lifted].mean() / 2


@given(st.floats(0.5, 50.0))
def test_the_order_stays(deviation):
    counts = np.sort(noisy(deviation))
    found = expected_counts(counts, deviation)
    assert (np.diff(found) >= -1e-9 * found.max()).all()
    assert np.isfinite(found).all()


def test_without_noise_counts_are_what_they_are():
    assert expected_counts(np.array([3.0, 0.0, -1.0]), 0.0).tolist() == [3, 0, 0]
    assert share_found(TRUE, deviation=0.0, best=10, least=0.0) == 1.0
    assert len(expected_counts(np.zeros(0), 1.0)) == 0


def test_a_prior_of_known_counts_foretells_what_is_found():
    """On counts that come from the prior itself, against a simulation."""
    prior = CountPrior(np.array([0.0, 10.0]), np.array([0.9, 0.1]), 1000)
    draws = np.random.default_rng(2)
    true = np.repeat([0.0, 10.0], [900, 100])
    for deviation in (0.1, 5.0, 20.0):
        found = [
            true[np.argsort(-(true + deviation * draws.normal(size=1000)))[:50]].sum()
            for _ in range(200)
        ]
        error = np.std(found) / len(found) ** 0.5
        assert prior.found(deviation, best=50) == pytest.approx(
            np.mean(found), abs=5 * error + 2
        )


@pytest.mark.parametrize("deviation", [5.0, 15.0, 40.0])
def test_the_share_found_is_about_the_true_one(deviation):
    """Against counts with half the noise: what four times the budget would find."""
    told, truly = [], []
    for seed in range(10):
        counts, better = (
            noisy(deviation, seed=seed),
            noisy(deviation / 2, seed=100 + seed),
        )
        told.append(
            share_found(counts, deviation=deviation, best=100, least=deviation / 2)
        )
        found, possible = (
            TRUE[np.argsort(-some)[:100]].sum() for some in (counts, better)
        )
        truly.append(found / possible)
    assert np.mean(told) == pytest.approx(np.mean(truly), abs=0.1)


def test_noise_alone_makes_nothing_stand_out():
    found = [standing_out(noise, 3.0) for noise in 3 * RNG.normal(size=(200, 1000))]
    assert np.mean(found) == pytest.approx(0.5, abs=0.25)
    assert standing_out(np.array([100.0, 0.0, 1.0]), 3.0) == 1
    assert standing_out(np.zeros(0), 1.0) == 0


def test_counts_far_below_zero_break_nothing():
    counts = np.concatenate([np.full(50, -1e6), [5.0]])
    assert np.isfinite(expected_counts(counts, 1.0)).all()
    assert 0 <= share_found(counts, deviation=1.0, best=10, least=0.5) <= 1


@pytest.mark.parametrize("deviation", [0.0, 3.0])
def test_how_many_items_of_the_head_a_history_has(deviation):
    """From the counts of unit vectors alone, within a tenth of the truth."""
    rng, chance = np.random.default_rng(3), 1 / np.arange(1, 401) ** 0.7
    has = rng.random((4000, 400)) < np.minimum(1, 15 * chance / chance.sum())
    true = (has / np.sqrt(np.maximum(has.sum(axis=1, keepdims=True), 1))).sum(axis=0)
    counts = true + deviation * rng.normal(size=400)
    head = np.argsort(-counts)[:50]
    truly = has[:, head].sum(axis=1).mean()
    counting = Counting(4000, deviation, least=deviation, best=100, head=50)
    assert counting.judged(counts).per_history == pytest.approx(truly, rel=0.1)
    if deviation:
        assert counting.foretold(true).per_history == pytest.approx(truly, rel=0.1)


def test_counts_that_add_up_to_less_than_nothing_have_no_items_per_history():
    counting = Counting(100, 5.0, least=5.0, best=10, head=10)
    assert counting.judged(np.full(40, -3.0)).per_history == 0


def test_what_is_foretold_is_what_is_found():
    """On average over draws of the noise; the share tends to be found a little high."""
    counting = Counting(5000, 8.0, least=4.0, best=100, head=60)
    told = counting.foretold(TRUE)
    found = [counting.judged(noisy(8.0, seed=seed)) for seed in range(20)]
    for name, off in [("share_found", 0.06), ("standing_out", 3), ("per_history", 0.1)]:
        mean = np.mean([getattr(one, name) for one in found])
        assert mean == pytest.approx(getattr(told, name), abs=off), name
