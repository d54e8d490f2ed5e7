"""Laplace sums: pure epsilon in L1."""

import numpy as np
import pytest
from scipy.stats import laplace

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.mechanisms.laplace import LaplaceSum
from tacit.testing.mechanism_contract import MechanismContract


class TestLaplaceSum(MechanismContract):
    order = 1
    law = laplace

    def mechanism(self):
        return LaplaceSum(clip=3.0, epsilon=0.7)


def test_the_account_gives_the_epsilon_back():
    event = LaplaceSum(clip=5.0, epsilon=0.5).event
    assert epsilon(event, delta=0.0).value == pytest.approx(0.5, abs=5e-4)
    twice = epsilon(event, delta=0.0, adjacency="replace_one").value
    assert twice == pytest.approx(1.0, abs=5e-4)


def test_the_likelihood_ratio_is_at_most_epsilon():
    """For contributions on the edge of the clip, over a grid of outputs."""
    mechanism = LaplaceSum(clip=2.0, epsilon=0.3)
    noise = laplace(scale=mechanism.scale("x"))
    for moved in (np.array([2.0, 0.0]), np.array([-0.5, 1.5])):
        y = np.stack(np.meshgrid(*[np.linspace(-20, 20, 81)] * 2), axis=-1)
        ratio = (noise.logpdf(y - moved) - noise.logpdf(y)).sum(axis=-1)
        assert np.abs(ratio).max() == pytest.approx(0.3, rel=1e-9)


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf")])
def test_nonsense_is_refused(bad):
    with pytest.raises(BadValue, match="clip="):
        LaplaceSum(clip=bad, epsilon=1.0)
    with pytest.raises(BadValue, match=r"epsilon=.*use mechanism = 'none'"):
        LaplaceSum(clip=1.0, epsilon=bad)
