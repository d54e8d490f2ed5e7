"""Participations are counted; a filter stops before the budget is passed."""

import math

import numpy as np
import pytest

from tacit.accounting.calibration import gaussian_epsilon, gaussian_noise
from tacit.accounting.epsilon import epsilon
from tacit.accounting.profiles import gaussian_delta
from tacit.accounting.views import allowed_participations, server_view
from tacit.errors import BadValue


def test_the_server_sees_every_participation():
    found = epsilon(server_view(4.0, 10), delta=1e-6).value
    assert found == pytest.approx(gaussian_epsilon(4.0, delta=1e-6, count=10))


def test_the_filter():
    assert allowed_participations(5.0, target=4.0, delta=1e-6) == 17
    half = allowed_participations(5.0, target=4.0, delta=1e-6, adjacency="replace_one")
    assert half == 17 // 4
    assert allowed_participations(0.5, target=1.0, delta=1e-6) == 0


@pytest.mark.parametrize("nm", [1.2, 3.0, 8.7, 40.0])
@pytest.mark.parametrize("target", [0.5, 4.0])
def test_the_last_allowed_is_within_and_one_more_is_not(nm, target):
    n = allowed_participations(nm, target=target, delta=1e-6)
    if n:
        assert gaussian_epsilon(nm, delta=1e-6, count=n) <= target + 1e-9
    assert gaussian_epsilon(nm, delta=1e-6, count=n + 1) > target


def test_a_budget_that_is_met_exactly():
    """Whether the kth is allowed hangs on the last bit; that it is within does not."""
    for k in range(1, 60):
        for target in (0.5, 2.0, 7.0):
            nm = gaussian_noise(target, delta=1e-6) * math.sqrt(k)
            n = allowed_participations(nm, target=target, delta=1e-6)
            assert n in (k - 1, k)
            if n:
                each = nm / math.sqrt(n)
                reached = gaussian_delta(np.array([target]), noise_multiplier=each)
                assert reached[0] <= 1e-6
            more = allowed_participations(nm * (1 + 1e-9), target=target, delta=1e-6)
            assert more == k


def test_nonsense_is_refused():
    with pytest.raises(BadValue):
        server_view(0.0, 3)
    with pytest.raises(BadValue):
        server_view(1.0, 0)
    with pytest.raises(BadValue):
        allowed_participations(1.0, target=0.0, delta=1e-6)
    with pytest.raises(BadValue):
        allowed_participations(1.0, target=1.0, delta=1e-6, adjacency="other")
