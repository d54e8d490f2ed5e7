"""The tests of draws: what they allow, and how little they need to see."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.audits.noise_draws import _chances, largest_at_a_lag

N, ALARM = 2**17, 1e-7


def normal(seed):
    return np.random.default_rng(seed).standard_normal(N)


@pytest.mark.parametrize("seed", range(5))
def test_independent_draws_pass(seed):
    """False alarm 1e-7 each."""
    draws = normal(seed)
    assert largest_at_a_lag(draws, ALARM)[0] <= 1
    assert largest_at_a_lag(np.abs(draws), ALARM)[0] <= 1
    assert min(_chances(draws).values()) > ALARM


@pytest.mark.parametrize("lag", [1, 3, 64, 1000, 32_768, 65_536, N - 2**14])
def test_one_draw_in_ten_shared_at_a_lag_is_seen(lag):
    draws = normal(9)
    chosen = np.flatnonzero(np.random.default_rng(2).random(N - lag) < 0.1)
    draws[chosen + lag] = draws[chosen]
    ratio, where = largest_at_a_lag(draws, ALARM)
    assert ratio > 1
    assert where == lag


def test_draws_of_opposite_sign_are_seen():
    draws = normal(9)
    draws[1::2] = -draws[::2]
    assert largest_at_a_lag(draws, ALARM) == (pytest.approx(24, abs=2), 1)


def test_draws_that_do_not_vary():
    assert largest_at_a_lag(np.ones(N), ALARM)[0] == np.inf


@pytest.mark.parametrize(
    ("change", "test"),
    [
        (lambda x: 0.98 * x, "scale"),
        (lambda x: np.append(x, np.full(60, 4.5)), "beyond 4 deviations"),
        (lambda x: np.where(np.abs(x) > 3, 3.0, x), "beyond 3 deviations"),
        (lambda x: x + 0.02, "law"),
        (lambda x: x * np.inf, "not finite"),
    ],
)
def test_another_law_is_seen(change, test):
    with np.errstate(invalid="ignore"):
        assert _chances(change(normal(4)))[test] < ALARM
