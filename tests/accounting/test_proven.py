"""What of an ideal figure is proven, where a cipher draws the noise of sums."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting import dp_events as dp
from tacit.accounting import proven
from tacit.accounting.decomposition import Part, deviations, distance, take_apart
from tacit.accounting.epsilon import compose_once, epsilon
from tacit.accounting.events import FailureDpEvent, ShuffledDpEvent, pure_local
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
from tacit.plans import Plan
from tacit.release import Adjacency, Cell, Standing
from tacit.sampling import FixedSize

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
    # 66 at delta, more at the delta/2000 that it has there; not the hundreds of both.
    with pytest.raises(Refused, match=r"epsilon=7\d\.\d\d of noisy.*none above 66"):
        compose_cells([gaussian(66.0), queries(365)], delta=DELTA)


@pytest.mark.parametrize("delta", [1.6e-7, 1e-8, 2.1e-9])
def test_beside_many_reports_a_small_delta_is_no_obstacle(delta):
    """Of 600,000 users: the share of delta is less than can be computed with."""
    training = cell(dp.SelfComposedDpEvent(dp.GaussianDpEvent(4.0), 2))
    both = [training, queries(365)]
    found = compose_cells(both, delta=delta)
    # What all have at nine tenths of delta is an upper bound.
    most = epsilon(dp.ComposedDpEvent([c.event for c in both]), delta=0.9 * delta).value
    assert 200 < found.value <= most


@pytest.mark.parametrize("failure", [1e-12, 1e-8, 9e-7])
def test_beside_many_reports_a_failure_of_the_sums_counts_once(failure):
    """A set of items that is selected fails more often than the cipher may cost."""
    selection = cell(FailureDpEvent(failure))
    both = [selection, gaussian(8.0), queries(365)]
    found = compose_cells(both, delta=DELTA)
    left = (DELTA * (1 - SHARE) - failure) / (1 - failure)
    assert found.value == pytest.approx(
        compose_once([(c.event, str(c.adjacency)) for c in both[1:]], delta=left).value,
        rel=1e-3,
    )
    with pytest.raises(Refused, match=r"epsilon=7\d\.\d\d of noisy.*none above 66"):
        compose_cells([selection, gaussian(66.0), queries(365)], delta=DELTA)


def test_beside_many_reports_too_small_a_delta_is_named():
    with pytest.raises(Refused, match=r"at delta=1e-09 nothing.*use a delta of 2e-09"):
        compose_cells([gaussian(8.0, delta=1e-9), queries(365)], delta=1e-9)


@given(st.floats(0.05, 20.0), st.integers(1, 400), st.floats(1e-12, 1e-7))
def test_sums_beside_reports_have_a_figure_or_a_refusal(noise, n, failure):
    """Never another error, and never sums whose own epsilon is beyond the proof."""
    sums = [cell(dp.GaussianDpEvent(noise)), cell(FailureDpEvent(failure))]
    try:
        found = compose_cells([*sums, queries(n, 30.0)], delta=DELTA)
    except Refused:
        assert noise < 0.2
    else:
        assert found.value is not None
        alone = compose_once([(sums[0].event, "zero_out")], delta=DELTA)
        assert cipher_cost(alone.value) <= SHARE * DELTA


NEAR_A_WHOLE_NUMBER = [gaussian_noise(e, delta=DELTA) for e in (66.9999, 65.9999)]


def paid(cells, monkeypatch, *, delta):
    """What is printed, and what of delta was kept for the cipher."""
    asked = []

    def compose(releases, *, delta):
        asked.append(delta)
        return compose_once(releases, delta=delta)

    monkeypatch.setattr(proven, "compose_once", compose)
    found = compose_cells(cells, delta=delta).value
    return found, delta - asked[-1]


@pytest.mark.parametrize("noise", [*NEAR_A_WHOLE_NUMBER, 0.13, 0.15, 0.2, 0.5])
@pytest.mark.parametrize("sampled", [False, True])
def test_what_is_printed_is_what_was_paid_for(noise, sampled, monkeypatch):
    """Composed at less than delta, a figure may pass the whole number it paid for."""
    event = dp.GaussianDpEvent(noise)
    if sampled:
        event = dp.PoissonSampledDpEvent(0.999, event)
    try:
        found, kept = paid([cell(event)], monkeypatch, delta=DELTA)
    except Refused:
        assert noise == NEAR_A_WHOLE_NUMBER[0]
        return
    assert cipher_cost(found) <= kept + math.ulp(DELTA)
    assert found <= most_epsilon(DELTA)


def test_a_figure_that_passes_the_last_whole_number_is_none():
    event = dp.GaussianDpEvent(NEAR_A_WHOLE_NUMBER[0])
    assert 66.99 < epsilon(event, delta=DELTA).value <= 67
    with pytest.raises(Refused, match=r"epsilon=67\.00 of noisy.*none above 67"):
        compose_cells([cell(event)], delta=DELTA)


@pytest.mark.parametrize("delta", [1e-5, 1e-6, 1e-8, 1e-10])
def test_the_largest_target_is_reached(delta):
    """Noise that is calibrated for it pays once, and is not refused for rounding."""
    most = most_epsilon(delta)
    left = ideal_delta(most, delta=delta)
    noise = gaussian_noise(most, delta=left)
    found = compose_cells([cell(dp.GaussianDpEvent(noise))], delta=delta)
    assert most * (1 - 1e-9) <= found.value <= most


def test_a_cohort_of_fixed_size_counts_an_exchange_once():
    """Its event has noise over the distance of an exchange: 2/9 is enough."""
    plan = Plan(1000, sampler=FixedSize(1))

    def exchange(z):
        event = FixedSize(1).event(dp.GaussianDpEvent(z), group="", plan=plan)
        return Cell(Standing.PROVEN, "test", event, Adjacency.REPLACE_ONE)

    assert compose_cells([exchange(0.23)], delta=1e-2).value is not None
    with pytest.raises(Refused, match=r"noise of 0\.11 of its sensitivity.*1/9"):
        compose_cells([exchange(0.22)], delta=1e-2)


@pytest.mark.parametrize("z", [0.3, 1.0])
def test_distances_are_those_of_the_accounts(z):
    """A sample of everyone is the Gaussian that it samples, under every adjacency."""
    whole = dp.GaussianDpEvent(z)
    for adjacency in ("zero_out", "replace_one"):
        [merged] = take_apart([(whole, adjacency)])
        wanted = deviations(merged)
        assert wanted == pytest.approx(distance(adjacency) / z)
        assert deviations(Part(dp.PoissonSampledDpEvent(0.5, whole), adjacency)) == (
            pytest.approx(wanted)
        )
    halved = FixedSize(5).event(whole, group="", plan=Plan(9, sampler=FixedSize(5)))
    assert deviations(Part(halved, "replace_one")) == pytest.approx(wanted)


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
