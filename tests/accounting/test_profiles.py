"""Profiles against closed forms, integrals and the library."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.integrate import quad
from scipy.stats import norm

from tacit.accounting.profiles import (
    gaussian_delta,
    poisson_loss,
    sampled_delta,
    sampled_loss,
)
from tacit.errors import BadValue


def hockey_stick(p, q, epsilon):
    """The integral of (p - e^epsilon q)+ over a wide interval."""
    f = lambda x: max(0.0, p(x) - math.exp(epsilon) * q(x))  # noqa: E731
    return quad(f, -15, 15, limit=500, epsabs=1e-12)[0]


@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.7, 2.0])
def test_the_gaussian_profile_is_its_integral(epsilon):
    z = 1.3
    moved, still = norm(1 / z, 1).pdf, norm(0, 1).pdf
    found = gaussian_delta(np.array([epsilon]), noise_multiplier=z)[0]
    assert found == pytest.approx(hockey_stick(moved, still, epsilon), abs=1e-9)


@pytest.mark.parametrize("epsilon", [-0.2, 0.0, 0.3, 1.0])
def test_the_sampled_profile_is_its_integral(epsilon):
    z, q = 0.8, 0.3
    moved, still = norm(1 / z, 1).pdf, norm(0, 1).pdf
    found = sampled_delta(np.array([epsilon]), rate=q, noise_multiplier=z)[0]
    mixed = lambda x: (1 - q) * still(x) + q * moved(x)  # noqa: E731
    assert found == pytest.approx(hockey_stick(mixed, still, epsilon), abs=1e-9)


@pytest.mark.parametrize(("q", "z"), [(0.01, 1.0), (0.2, 0.5), (0.9, 0.3), (1e-3, 3.0)])
@pytest.mark.parametrize("rounds", [1, 50])
def test_poisson_equals_the_librarys(q, z, rounds):
    ours = poisson_loss(rate=q, noise_multiplier=z, grid=1e-2).self_compose(rounds)
    theirs = pld.from_gaussian_mechanism(
        z, sampling_prob=q, value_discretization_interval=1e-2
    ).self_compose(rounds)
    epsilons = [0.0, 0.005, 0.1, 1.0, 5.0]
    assert ours.get_delta_for_epsilon(epsilons) == pytest.approx(
        theirs.get_delta_for_epsilon(epsilons), abs=1e-10
    )
    for delta in (1e-3, 1e-6, 1e-8):
        assert ours.get_epsilon_for_delta(delta) == pytest.approx(
            theirs.get_epsilon_for_delta(delta), rel=1e-7, abs=1e-6
        )


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_a_discretised_loss_is_never_below_its_profile(epsilon):
    """Between grid points the chord is above the curve; at them they meet."""
    q, z = 0.2, 1.0
    loss = sampled_loss(rate=q, noise_multiplier=z, grid=0.1)
    at = lambda e: sampled_delta(np.array([e]), rate=q, noise_multiplier=z)[0]  # noqa: E731
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(at(epsilon), abs=1e-12)
    assert loss.get_delta_for_epsilon(epsilon + 0.05) > at(epsilon + 0.05)


def test_without_replacement_covers_an_exchange_of_one_in_two():
    """The real pair: a mixture with the user's value moved one way or the other."""
    q, z, epsilon = 0.4, 1.0, 0.3
    one, other = norm(0.5 / z, 1).pdf, norm(-0.5 / z, 1).pdf  # distance 1 apart
    rest = norm(0, 1).pdf
    p = lambda x: (1 - q) * rest(x) + q * one(x)  # noqa: E731
    p2 = lambda x: (1 - q) * rest(x) + q * other(x)  # noqa: E731
    bound = sampled_delta(np.array([epsilon]), rate=q, noise_multiplier=z)[0]
    assert hockey_stick(p, p2, epsilon) <= bound


@pytest.mark.parametrize("make", [sampled_loss, poisson_loss])
@pytest.mark.parametrize(
    "bad", [{"rate": 0.0}, {"rate": 1.0}, {"noise_multiplier": 0.0}, {"grid": -1.0}]
)
def test_nonsense_is_refused(make, bad):
    with pytest.raises(BadValue):
        make(**({"rate": 0.5, "noise_multiplier": 1.0, "grid": 0.01} | bad))
