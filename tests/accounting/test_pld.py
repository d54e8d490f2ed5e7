"""The library's traps are still there, and ours stays out of them."""

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from tacit.accounting.epsilon import epsilon
from tacit.accounting.events import pure_local
from tacit.accounting.rdp import rdp_epsilon

REPLACE_ONE = NeighboringRelation.REPLACE_ONE


def test_t1_the_count_of_randomized_responses():
    event = RandomizedResponseDpEvent(pure_local(1.0).noise, 2)
    hundred = SelfComposedDpEvent(event, 100)
    library = PLDAccountant(REPLACE_ONE).compose(hundred).get_epsilon(1e-6)
    assert library == pytest.approx(1.0, abs=1e-3)  # wrong
    ours = epsilon(hundred, delta=1e-6, adjacency="replace_one").value
    assert ours == pytest.approx(83.53, abs=0.01)


def test_t2_two_meanings_of_a_noise_multiplier():
    event = GaussianDpEvent(1.0)
    by_loss = PLDAccountant(REPLACE_ONE).compose(event).get_epsilon(1e-5)
    by_rényi = RdpAccountant(neighboring_relation=REPLACE_ONE).compose(event)
    assert by_loss == pytest.approx(9.9973, abs=5e-4)
    assert by_rényi.get_epsilon(1e-5) == pytest.approx(4.7285, abs=5e-4)  # half as far
    ours = epsilon(event, delta=1e-5, adjacency="replace_one").value
    assert ours == pytest.approx(9.9973, abs=5e-4)
    assert rdp_epsilon(event, delta=1e-5, adjacency="replace_one") > ours


def test_t3_several_gaussians_on_one_sample():
    both = ComposedDpEvent([GaussianDpEvent(5.0), GaussianDpEvent(2.0)])
    sampled = PoissonSampledDpEvent(0.1, both)
    with pytest.raises(UnsupportedEventError):
        PLDAccountant().compose(sampled)
    merged = GaussianDpEvent((5.0**-2 + 2.0**-2) ** -0.5)
    ours = epsilon(sampled, delta=1e-6).value
    assert ours == epsilon(PoissonSampledDpEvent(0.1, merged), delta=1e-6).value


def test_t4_relations_that_are_not_supported():
    poisson = PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    with pytest.raises(UnsupportedEventError):
        RdpAccountant(neighboring_relation=REPLACE_ONE).compose(poisson)
    assert epsilon(poisson, delta=1e-6, adjacency="replace_one").value
    fixed = SampledWithoutReplacementDpEvent(100, 10, GaussianDpEvent(1.0))
    with pytest.raises(UnsupportedEventError):
        PLDAccountant(REPLACE_ONE).compose(fixed)
    assert epsilon(fixed, delta=1e-6, adjacency="replace_one").value
