"""Composition on a lattice is exact up to the tail; rounding only goes up."""

import numpy as np
import pytest

from tacit.accounting.lattice import Lattice

COIN = Lattice(0.3, -1, np.array([0.25, 0.0, 0.75]))


def test_two_coins():
    two = COIN.times(2)
    assert two.lowest == -2
    assert two.masses == pytest.approx([0.0625, 0, 0.375, 0, 0.5625], abs=1e-15)
    assert COIN.times(1) is COIN


def test_mass_is_kept_and_infinity_grows():
    some = Lattice(0.1, 0, np.array([0.5, 0.49]), 0.01)
    many = some.times(50)
    assert many.infinite == pytest.approx(1 - 0.99**50)
    assert many.masses.sum() + many.infinite == pytest.approx(1.0, abs=1e-12)


def test_losses_are_rounded_up_but_grid_points_stay():
    rounded = COIN.rounded(0.2)  # -0.3 -> -0.2, 0 -> 0, 0.3 -> 0.4
    assert rounded.lowest == -1
    assert rounded.masses == pytest.approx([0.25, 0, 0, 0.75])
    exact = Lattice(1.0, 100, np.array([1.0])).rounded(1e-4)
    assert exact.lowest == 1_000_000


def test_it_becomes_the_librarys_distribution():
    """At epsilon 0 the hockey stick of the coin is 0.75 (1 - e^-0.3)."""
    delta = COIN.distribution().get_delta_for_epsilon(0.0)
    assert delta == pytest.approx(0.75 * -np.expm1(-0.3))
