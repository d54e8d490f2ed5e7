"""Rényi divergence: never below the loss distribution; warnings; Skellam."""

import logging
import math

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from scipy.stats import skellam

from tacit.accounting.decomposition import Part
from tacit.accounting.epsilon import epsilon
from tacit.accounting.events import PaddedDpEvent, ShuffledDpEvent, pure_local
from tacit.accounting.rdp import (
    _fewer_warnings,
    rdp,
    rdp_epsilon,
    skellam_epsilon,
    skellam_rdp,
)
from tacit.errors import BadValue, Refused


def training(rate, noise, rounds):
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
    return SelfComposedDpEvent(event, rounds)


@pytest.mark.slow
def test_it_is_never_below_the_loss_distribution():
    rng = np.random.default_rng(8)
    for _ in range(15):
        q, z = 10 ** rng.uniform(-3, -0.5), rng.uniform(0.7, 4.0)
        event = training(q, z, int(rng.integers(1, 500)))
        delta = 10 ** rng.uniform(-8, -4)
        tight = epsilon(event, delta=delta, finest=1e-3).value
        assert tight <= rdp_epsilon(event, delta=delta) + 1e-3


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize(
    "event", [GaussianDpEvent(2.0), LaplaceDpEvent(2.0), pure_local(0.3, choices=4)]
)
def test_nor_for_other_noise_under_either_adjacency(event, adjacency):
    many = SelfComposedDpEvent(event, 5)
    tight = epsilon(many, delta=1e-5, adjacency=adjacency).value
    assert tight <= rdp_epsilon(many, delta=1e-5, adjacency=adjacency) + 1e-3


def test_an_exchange_is_a_removal_twice_as_far():
    """Trap T2: the library's two accountants want different multipliers."""
    exchanged = rdp_epsilon(GaussianDpEvent(1.0), delta=1e-5, adjacency="replace_one")
    assert exchanged == pytest.approx(rdp_epsilon(GaussianDpEvent(0.5), delta=1e-5))


def test_randomized_response_matches_the_library():
    from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
    from dp_accounting.rdp import RdpAccountant

    orders = np.array([1.5, 2.0, 8.0, 64.0])
    ours = rdp(Part(pure_local(1.2, choices=5), "zero_out"), orders)
    event = RandomizedResponseDpEvent(pure_local(1.2, choices=5).noise, 5)
    library = RdpAccountant(orders, NeighboringRelation.REPLACE_ONE).compose(event).rdp
    assert ours == pytest.approx(library, rel=1e-9)
    huge = rdp(Part(pure_local(900.0), "zero_out"), orders)
    assert (huge <= 900).all()
    assert (huge > 850).all()


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_zcdp_has_its_line_under_the_adjacency_it_is_stated_for(adjacency):
    """rho times the order, three releases added: no doubling, unlike a Gaussian."""
    orders = np.array([1.5, 2.0, 64.0])
    assert rdp(Part(ZCDpEvent(0.5), adjacency), orders) == pytest.approx(orders / 2)
    many = SelfComposedDpEvent(ZCDpEvent(0.5), 3)
    found = rdp_epsilon(many, delta=1e-6, adjacency=adjacency)
    gaussian = rdp_epsilon(GaussianDpEvent(3**-0.5), delta=1e-6)
    assert found == pytest.approx(gaussian, rel=1e-9)


def test_what_has_no_curve_is_refused():
    for event in (ShuffledDpEvent(1.0, 9), PaddedDpEvent(0.5, GaussianDpEvent(1.0))):
        with pytest.raises(Refused, match="no Rényi account"):
            rdp_epsilon(event, delta=1e-6)
    with pytest.raises(Refused, match="no Rényi account under replace_one"):
        rdp_epsilon(training(0.1, 1.0, 3), delta=1e-6, adjacency="replace_one")
    assert rdp_epsilon(NonPrivateDpEvent(), delta=1e-6) == math.inf
    with pytest.raises(BadValue, match="delta="):
        rdp_epsilon(GaussianDpEvent(1.0), delta=0)


def test_only_the_known_warning_is_silenced(caplog):
    """Small rates at fractional orders do not converge; leaving them out is safe."""
    absl = logging.getLogger("absl")
    with _fewer_warnings():
        absl.warning("order %d: Excluding this order", 3)
        absl.warning("something else")
    absl.warning("Excluding this order")  # the filter is gone
    said = [record.getMessage() for record in caplog.records]
    assert said == ["something else", "Excluding this order"]
    caplog.clear()
    rdp_epsilon(training(0.2, 0.5, 1000), delta=1e-5)
    assert not caplog.records


def test_the_library_still_warns():
    """If this fails, the filter above has nothing left to do."""
    from dp_accounting.rdp import rdp_privacy_accountant

    source = rdp_privacy_accountant.__loader__.get_source(
        rdp_privacy_accountant.__name__
    )
    assert "Excluding this order" in source


def test_skellam_bound():
    bound = skellam_rdp(np.array([8.0]), variance=100.0, l1=3.0, l2=3.0)[0]
    assert bound == pytest.approx(0.363825, abs=5e-7)
    x = np.arange(-200, 201)
    moved, still = skellam.logpmf(x - 3, 50, 50), skellam.logpmf(x, 50, 50)
    exact = np.logaddexp.reduce(8 * moved - 7 * still) / 7
    assert exact == pytest.approx(0.355722, abs=1e-6)
    assert exact < bound


def test_skellam_epsilon_uses_whole_orders_only():
    assert (
        skellam_rdp(np.array([2.5, 1.0]), variance=9.0, l1=1.0, l2=1.0).min() == np.inf
    )
    one = skellam_epsilon(variance=1e4, l1=30.0, l2=20.0, delta=1e-6)
    assert rdp_epsilon(GaussianDpEvent(5.0), delta=1e-6) < one < 1.1
    assert one < skellam_epsilon(variance=1e4, l1=30.0, l2=20.0, delta=1e-6, count=2)
    for bad in ({"variance": 0.0}, {"l1": -1.0}, {"delta": 0.0}, {"count": 0}):
        with pytest.raises(BadValue):
            skellam_epsilon(
                **({"variance": 1.0, "l1": 1.0, "l2": 1.0, "delta": 0.1} | bad)
            )
