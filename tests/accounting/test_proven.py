"""What of an ideal figure is proven, where a cipher draws the noise of sums."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting import dp_events as dp
from tacit.accounting.epsilon import epsilon
from tacit.accounting.events import ShuffledDpEvent, pure_local
from tacit.accounting.profiles import gaussian_noise
from tacit.accounting.proven import (
    ADVANTAGE,
    MOST_DISTANCE,
    SHARE,
    cipher_cost,
    compose_cells,
    ideal_delta,
    most_epsilon,
)
from tacit.errors import Refused
from tacit.release import Adjacency, Cell, Standing

DELTA = 1e-6
deltas = st.floats(1e-10, 1e-5)


def cell(event, *, is_local=False):
    adjacency = Adjacency.REPLACE_ONE if is_local else Adjacency.ZERO_OUT
    return Cell(Standing.PROVEN, "test", event, adjacency, is_local=is_local)


def gaussian(target, *, delta=DELTA):
    """A sum whose ideal figure is this."""
    return cell(dp.GaussianDpEvent(gaussian_noise(target, delta=delta)))


def queries(n, each=1.0):
    return cell(dp.SelfComposedDpEvent(pure_local(each), n), is_local=True)


def exact_cost(target):
    """(1 + e^epsilon) times the advantage, with sixty digits."""
    with mpmath.workdps(60):
        return (1 + mpmath.exp(mpmath.mpf(target))) * mpmath.mpf(2) ** -127


@given(st.floats(0.0, 600.0))
def test_what_the_cipher_adds_is_never_less_than_its_bound(target):
    assert cipher_cost(target) >= exact_cost(target) * (1 - 1e-14)
    assert cipher_cost(target) <= exact_cost(target + 1) * (1 + 1e-14)


@given(deltas)
def test_the_largest_epsilon_is_the_last_whole_one_within_the_share(delta):
    most = most_epsilon(delta)
    assert cipher_cost(most) <= SHARE * delta < cipher_cost(most + 1)


def test_sixteen_is_proven_at_every_delta_in_use():
    assert most_epsilon(1e-10) == 58  # the least delta of the accountant
    assert most_epsilon(1e-30) < 16  # it is a matter of delta


@given(deltas, st.floats(0.01, 100.0))
def test_the_printed_figure_follows_from_the_ideal_one_and_the_addition(delta, target):
    """delta(ideal, at what is printed) + the addition <= delta, in exact sums."""
    noise = gaussian_noise(target, delta=delta)
    try:
        found = compose_cells([cell(dp.GaussianDpEvent(noise))], delta=delta)
    except Refused:
        assert target > most_epsilon(delta) - 1e-6 or noise < 1 / MOST_DISTANCE
        assert target > 45
        return
    assert found.value is not None
    with mpmath.workdps(60):
        mu = 1 / mpmath.mpf(noise)
        e = mpmath.mpf(found.value)
        ideal = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(
            -mu / 2 - e / mu
        )
        assert ideal + exact_cost(found.value) <= mpmath.mpf(delta) * (1 + 1e-9)
    assert target * (1 - 1e-9) <= found.value <= target + 0.002


@pytest.mark.parametrize("target", [0.1, 1.0, 8.0, 16.0, 32.0])
def test_at_everyday_epsilons_no_digit_changes(target):
    event = gaussian(target).event
    assert compose_cells([cell(event)], delta=DELTA) == epsilon(event, delta=DELTA)
    assert ideal_delta(target, delta=DELTA) == DELTA


@pytest.mark.parametrize("target", [68.0, 75.0, 100.0, 200.0, 1e6])
def test_beyond_it_nothing_is_proven(target):
    with pytest.raises(Refused, match=rf"epsilon={target:.2f}.*none above 67"):
        ideal_delta(target, delta=DELTA)
    if target < 1e4:
        with pytest.raises(Refused, match="none above 67"):
            compose_cells([gaussian(target)], delta=DELTA)


def test_repeated_rounds_count_together():
    """Each is far from the limit, and all of them are beyond it."""
    one = dp.GaussianDpEvent(1.0)
    assert compose_cells([cell(one)], delta=DELTA).value < 6
    with pytest.raises(Refused, match="none above 67"):
        compose_cells([cell(dp.SelfComposedDpEvent(one, 100))], delta=DELTA)


@pytest.mark.slow  # 4 s
def test_reports_that_a_relay_mixes_are_no_exception():
    mixed = dp.SelfComposedDpEvent(ShuffledDpEvent(6.0, 3), 15)
    with pytest.raises(Refused, match="none above 67"):
        compose_cells([cell(mixed)], delta=DELTA)


def test_pure_reports_speak_of_random_words():
    assert compose_cells([queries(200)], delta=0.0).value == 200
    assert compose_cells([queries(200)], delta=DELTA).value > 100


def test_beside_many_reports_the_sums_count_alone():
    """A training of epsilon 8, and a query a day: the queries' epsilon is their own."""
    both = [gaussian(8.0), queries(365)]
    ideal = epsilon(
        dp.ComposedDpEvent([c.event for c in both]), delta=DELTA, adjacency="zero_out"
    )
    found = compose_cells(both, delta=DELTA)
    assert found.value > 100
    assert ideal.value <= found.value <= ideal.value * 1.001
    with pytest.raises(Refused, match="none above 67"):
        compose_cells([gaussian(66.0), queries(365)], delta=DELTA)


def test_noise_so_small_that_blocks_might_repeat_is_refused():
    """A sample so rare that the figure is small, of a release that hides nothing."""
    rare = dp.PoissonSampledDpEvent(1e-7, dp.GaussianDpEvent(0.05))
    assert epsilon(rare, delta=DELTA).value < 1
    with pytest.raises(Refused, match=r"noise of 0\.05 of its sensitivity"):
        compose_cells([cell(rare)], delta=DELTA)


def test_nothing_is_lost_where_nothing_was_promised():
    nothing = cell(dp.NonPrivateDpEvent())
    assert compose_cells([nothing], delta=DELTA).value is None
    assert compose_cells([gaussian(1.0)], delta=0.0).value is None


def distinct_blocks(*, numbers, rounds, mu):
    """What it costs that blocks never repeat, of docs/release.md."""
    each = 4 * numbers**2 + 2 * numbers * math.exp(mu**2 / 2)
    return rounds * each * 2.0**-128


def test_distinct_blocks_cost_next_to_nothing():
    """Less than the rounding of a delta, or than what is paid for the cipher."""
    assert distinct_blocks(numbers=2**20, rounds=1000, mu=1.0) < 1e-22
    assert distinct_blocks(numbers=2**28, rounds=1000, mu=1.0) < 1e-17
    assert distinct_blocks(numbers=2**28, rounds=1, mu=MOST_DISTANCE) < 1e-12
    for target in (24, 40, 60, 67):
        mu = 1 / gaussian_noise(target, delta=DELTA)
        spent = distinct_blocks(numbers=2**28, rounds=1, mu=mu)
        assert spent < max(1e-20, ADVANTAGE / 2 * math.exp(target))
