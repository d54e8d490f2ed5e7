"""Clicks above expectation: by hand, bounded, and shrunk by their noise."""

import numpy as np
import pytest

from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.models.click_effects import click_effects, excess_clicks


def shown(rows: list[list[int]], clicked: list[bool], users: list[int]) -> Impressions:
    items = np.array([item for row in rows for item in row], np.int32)
    return Impressions.of_columns(
        users,
        Ragged.of_lengths([len(row) for row in rows], items),
        clicked=np.array(clicked),
        histories=Ragged.of_lengths([0], np.zeros(0, np.int32)),
        history_of=[0] * len(rows),
        n_users=3,
        n_items=5,
    )


def test_excess_clicks_by_hand():
    """One of four clicked: ¾ and three times -¼, of norm sqrt(¾); the others saw none.

    User 2 clicks one of two, twice: (1, -1), scaled down to norm 1.
    """
    rows, clicked = [[0, 1, 2, 3], [1, 4], [1, 4]], [True] + [False] * 3
    found = excess_clicks(shown(rows, [*clicked, *[True, False] * 2], [0, 2, 2]))
    np.testing.assert_allclose(found[0], [0.75, -0.25, -0.25, -0.25, 0])
    np.testing.assert_array_equal(found[1], 0.0)
    half = 2**-0.5
    np.testing.assert_allclose(found[2], [0, half, 0, 0, -half], atol=1e-6)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-6


def test_effects_are_what_is_expected_of_sparse_sums():
    """A tenth of 5,000 items have an effect of deviation 5, all of them noise of 1.

    The mean squared error is below that of the sums and of the best single factor. The
    effects are on the scale of asinh, which is undone here.
    """
    draw = np.random.default_rng(0)
    true = np.where(np.arange(5000) < 500, draw.normal(scale=5, size=5000), 0.0)
    seen = true + draw.normal(size=5000)
    found = np.sinh(click_effects(seen, deviation=1.0))
    usual = np.sqrt(np.mean(true[:500] ** 2))
    one_factor = seen * np.mean(true**2) / (np.mean(true**2) + 1)
    assert np.mean((found * usual - true) ** 2) < 0.5 * np.mean(
        (one_factor - true) ** 2
    )
    assert np.corrcoef(found, true)[0, 1] > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_of_noise_alone_nothing_is_left(seed):
    """Sums that are all noise would have effects of 1 if nothing shrank them."""
    seen = np.random.default_rng(seed).normal(size=5000)
    assert not click_effects(seen, deviation=1.0).any()
    assert not click_effects(np.zeros(4), deviation=0.0).any()


@pytest.mark.parametrize("seed", range(3))
def test_few_effects_among_many_items_are_found(seed):
    """One item in a thousand is ten deviations away: the others have no effect.

    A search that starts from half of the items alone stops at small effects of many.
    """
    draw = np.random.default_rng(seed)
    true = np.where(np.arange(50_000) < 50, 10 * draw.choice([-1, 1], 50_000), 0)
    found = click_effects(true + draw.normal(size=50_000), deviation=1.0)
    assert (np.sign(found[:50]) == true[:50] / 10).all()
    assert np.abs(found[:50]).min() > 0.4
    assert np.abs(found[50:]).mean() < 1e-3
