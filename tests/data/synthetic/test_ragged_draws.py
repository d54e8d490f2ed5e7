"""Draws in rows of different lengths, against loops over the rows."""

import numpy as np
import pytest

from tacit.data.ragged import Ragged, offsets_of
from tacit.data.synthetic import ragged_draws

LENGTHS = np.array([3, 0, 5, 1])


def test_the_place_of_each_value_counts_from_zero_in_its_row():
    found = ragged_draws.within(LENGTHS)
    assert found.tolist() == [i for n in LENGTHS for i in range(n)]


def test_the_heaviest_of_a_row_comes_first():
    weights = np.random.default_rng(0).normal(size=LENGTHS.sum())
    rows = Ragged(offsets_of(LENGTHS), weights)
    found = ragged_draws.heaviest_first(weights, rows)
    for start, end in zip(rows.offsets, rows.offsets[1:], strict=False):
        order = np.argsort(-weights[start:end])
        assert found[start:end][order].tolist() == list(range(end - start))


@pytest.mark.parametrize("spread", [0.0, 0.8])
def test_whole_numbers_have_the_mean_and_a_least(spread):
    """The midpoints of 20,000 equal steps: their mean is within 1% of the stated."""
    uniform = (np.arange(20_000) + 0.5) / 20_000
    found = ragged_draws.log_normal(uniform, 50.0, spread=spread, least=2)
    assert found.mean() == pytest.approx(50, rel=0.01)
    assert ragged_draws.log_normal(uniform, 1.0, spread=2.0, least=2).min() == 2


def test_the_largest_of_log_weight_and_gumbel_noise_is_a_draw_by_weight():
    """Exact binomial, 40,000 draws: a share 3% off is 12 deviations away."""
    uniform = np.random.default_rng(1).uniform(size=(40_000, 2))
    noise = ragged_draws.gumbel(uniform.ravel()).reshape(uniform.shape)
    first = (np.log([0.2, 0.8]) + noise).argmax(axis=1) == 0
    assert first.mean() == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / 40_000))
