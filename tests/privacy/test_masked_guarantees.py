"""What is claimed of a masked sum: Skellam noise of the honest survivors, ASSUMED."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from tacit.accounting.epsilon import compose, epsilon
from tacit.accounting.events import SkellamDpEvent
from tacit.accounting.rdp import skellam_rdp
from tacit.errors import Refused
from tacit.mechanisms.skellam import LEAST_STEPS, skellam_event
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.privacy.guarantees import set_of_items
from tacit.release import Standing, Unit, View
from tacit.runtime.simulate import check_plan
from tacit.sampling import Poisson

PLAN = Plan(
    1000,
    rounds=3,
    channel="masked_sum",
    delta=1e-6,
    target_epsilon=2.0,
    min_contributors=900,
    assumed_sybils=50,
)
DELTA = 1e-6


def delta_of(variance: float, shift: int, epsilon: float) -> float:
    """The exact delta in one dimension: Skellam noise against itself, moved."""
    reach = int(14 * math.sqrt(variance)) + shift + 20
    k = np.arange(-reach, reach + shift + 1)
    law, moved = ive(np.abs(k), variance), ive(np.abs(k - shift), variance)
    return float(np.maximum(law - math.exp(epsilon) * moved, 0.0).sum())


def exact_epsilon(variance: float, shift: int, delta: float) -> float:
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = delta_of(variance, shift, middle) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


# --- The event ------------------------------------------------------------------------


@pytest.mark.parametrize("z", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_account_is_no_less_than_the_exact_epsilon_in_one_dimension(z):
    """And no more than a quarter above it: what Rényi divergence costs."""
    exact = exact_epsilon((z * LEAST_STEPS) ** 2, LEAST_STEPS, DELTA)
    found = epsilon(skellam_event(z), delta=DELTA).value
    assert exact <= found <= 1.25 * exact


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.floats(0.4, 6.0))
def test_so_is_that_of_few_steps(shift, z):
    """Where whole numbers matter: shifts of a few steps, by the event's own formula."""
    variance = (z * shift) ** 2
    event = SkellamDpEvent(variance, float(shift), float(shift))
    found = epsilon(event, delta=DELTA).value
    assert found is not None
    assert exact_epsilon(variance, shift, DELTA) <= found * (1 + 1e-9)


def test_so_is_that_of_sixteen_numbers_that_move_by_one_step():
    """The L1 term: a report of sixteen ones, whose exact losses are composed."""
    variance = 24.0
    k = np.arange(-120, 122)
    law, moved = (
        dict(zip(k.tolist(), np.log(ive(np.abs(k - m), variance)), strict=True))
        for m in (0, 1)
    )
    one = pld.from_two_probability_mass_functions(
        moved, law, pessimistic_estimate=False, value_discretization_interval=1e-4
    )
    exact = one.self_compose(16).get_epsilon_for_delta(DELTA)
    event = SkellamDpEvent(variance, 16.0, 4.0)
    assert exact <= epsilon(event, delta=DELTA).value


@given(
    st.integers(LEAST_STEPS**2, 2**40),
    st.floats(0.3, 50.0),
    st.sampled_from([2, 3, 8, 64, 512]),
)
def test_the_event_covers_every_larger_limit_and_every_shape(limit, z, order):
    """D1 of whole numbers is at most their squares; more steps cost less."""
    orders = np.array([order], float)
    event = skellam_event(z)
    covered = skellam_rdp(orders, variance=event.variance, l1=event.l1, l2=event.l2)
    actual = skellam_rdp(
        orders, variance=z * z * limit, l1=float(limit), l2=math.sqrt(limit)
    )
    assert (actual <= covered * (1 + 1e-12)).all()


@given(st.lists(st.floats(0.5, 30.0), min_size=1, max_size=6))
def test_rounds_cost_no_more_than_one_event_of_their_total(noises):
    """So that a budget in 1/z² holds, as it does for Gaussian noise."""
    total = sum(z**-2 for z in noises) ** -0.5
    several = compose([(skellam_event(z), "zero_out") for z in noises], delta=DELTA)
    assert several.value <= epsilon(skellam_event(total), delta=DELTA).value + 1e-9


# --- The cells ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FederatedPopularity, Gram])
def test_a_target_is_met_by_the_noise_of_the_honest_survivors(kind):
    method = kind(privacy=CentralGaussian()).calibrated(PLAN)
    releases = method.releases(PLAN)
    cells = [r.cells[Unit.USER, View.SERVER] for r in releases]
    spent = compose([(c.event, str(c.adjacency)) for c in cells], delta=DELTA)
    assert 1.98 < spent.value <= 2.0
    for release in releases:
        for unit in Unit:
            server = release.cells[unit, View.SERVER]
            readers = release.cells[unit, View.RELEASE]
            assert (readers.event, readers.assumes) == (server.event, server.assumes)
            assert readers.standing is Standing.ASSUMED
            assert server.standing is Standing.ASSUMED
            assert [code.name for code in server.assumes] == [
                "honest_but_curious_server",
                "pki",
                "honest_fraction",
            ]
            assert server.assumes[-1].values == (900, 850)
            together = release.cells[unit, View.COLLUSION]
            assert together.standing is Standing.NONE
            assert "Skellam" in server.reason
            assert "Gaussian" not in server.reason


def test_the_account_has_the_shares_that_cannot_be_subtracted():
    """z² of the whole sum, of which 850 of 1,000 shares are honest survivors'."""
    privacy = CentralGaussian(noise_multiplier=3.0)
    method = FederatedPopularity(privacy=privacy)
    [release] = method.releases(PLAN.over(1))
    event = release.cells[Unit.USER, View.SERVER].event
    assert event == skellam_event(3.0 * math.sqrt(0.85))
    assert privacy.mechanism(method.phases(PLAN)[0], {}).event.noise_multiplier == 3.0


def test_masks_need_more_noise_than_a_trusted_sum_and_less_than_each_alone():
    trusted = Plan(1000, rounds=3, channel="secure_sum", delta=1e-6, target_epsilon=2.0)
    noises = []
    for plan in (trusted, replace(PLAN, min_contributors=1000, assumed_sybils=0), PLAN):
        method = FederatedPopularity(privacy=CentralGaussian()).calibrated(plan)
        noises.append(method.privacy.noise_of(method.phases(plan)[0]))
    assert noises == sorted(noises)
    assert noises[1] / noises[0] < 1.1  # what Rényi divergence costs
    assert noises[2] / noises[1] == pytest.approx(math.sqrt(1 / 0.85), rel=1e-3)


# --- Refused --------------------------------------------------------------------------


def test_plans_that_masks_cannot_keep_are_refused():
    method = FederatedPopularity(privacy=CentralGaussian(2.0))
    check_plan(method, PLAN)
    with pytest.raises(Refused, match="'everyone'"):
        check_plan(method, replace(PLAN, sampler=Poisson(0.5)))
    with pytest.raises(Refused, match="min_contributors"):
        check_plan(method, replace(PLAN, min_contributors=1, assumed_sybils=0))
    with pytest.raises(Refused, match="there is none over 'masked_sum'"):
        set_of_items(PLAN, skellam_event(1.0))


def test_krum_needs_single_reports_and_is_refused_with_the_reason():
    with pytest.raises(Refused, match="Krum in FedVae needs Each"):
        check_plan(FedVae(attackers=1), replace(PLAN, target_epsilon=None))
