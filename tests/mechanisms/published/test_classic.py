from __future__ import annotations

import math

import pytest
from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian

from tacit.errors import BadValue
from tacit.mechanisms.published import classic_sigma


def test_by_hand():
    """sqrt(2 ln 125000) = 4.844805 at delta 1e-5."""
    assert classic_sigma(1.0, delta=1e-5) == pytest.approx(4.844805, abs=1e-6)
    assert classic_sigma(0.5, delta=1e-5, sensitivity=2.0) == pytest.approx(19.379221)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
def test_it_holds_below_one(epsilon, delta):
    """And wastes noise there."""
    assert classic_sigma(epsilon, delta=delta) > get_sigma_gaussian(epsilon, delta)


def test_beyond_its_range_it_proves_less_than_it_says():
    """Epsilon 10 of the papers' tables is really 10.4 at delta 1e-5."""
    sigma = classic_sigma(10.0, delta=1e-5)
    assert sigma < get_sigma_gaussian(10.0, 1e-5)
    assert get_epsilon_gaussian(sigma, 1e-5) > 10.3


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (1, 0), (math.nan, 0.1)])
def test_nonsense_is_refused(epsilon, delta):
    with pytest.raises(BadValue):
        classic_sigma(epsilon, delta=delta)
