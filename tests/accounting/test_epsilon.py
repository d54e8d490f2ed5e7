"""What composition proves and what it refuses; agreed vectors: test_vectors.py."""

import math

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent,
    SelfComposedDpEvent,
    TruncatedSubsampledGaussianDpEvent,
    UnsupportedDpEvent,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tacit.accounting.epsilon import compose, epsilon
from tacit.accounting.events import (
    FailureDpEvent,
    PaddedDpEvent,
    ShuffledDpEvent,
    SkellamDpEvent,
    pure_local,
)
from tacit.accounting.rdp import rdp_epsilon
from tacit.errors import BadValue, Refused

ZERO_OUT, REPLACE_ONE = "zero_out", "replace_one"


def training(rate, noise, rounds):
    event = PoissonSampledDpEvent(rate, GaussianDpEvent(noise))
    return SelfComposedDpEvent(event, rounds)


def value(event, *, delta=1e-6, adjacency=ZERO_OUT):
    return epsilon(event, delta=delta, adjacency=adjacency).value


@pytest.mark.parametrize(("count", "eps"), [(30, 0.1), (100, 0.5), (40, 1.0)])
def test_randomized_response_is_bounded_by_its_exact_figure_and_rounding(count, eps):
    """Binary response has binomially many losses: delta is a sum of 101 terms."""
    found = value(SelfComposedDpEvent(pure_local(eps), count))
    kept = binom(count, 1 / (1 + math.exp(-eps)))

    def delta(e):
        losses = [(2 * j - count) * eps for j in range(count + 1)]
        return sum(
            kept.pmf(j) * -math.expm1(e - loss)
            for j, loss in enumerate(losses)
            if loss > e
        )

    assert delta(found) <= 1e-6 * (1 + 1e-6)
    assert delta(found - count * 1e-4 - 1e-3) > 1e-6


def test_pure_epsilons_add_up_exactly():
    reports = SelfComposedDpEvent(pure_local(2.5), 100)
    epoch = epsilon(reports, delta=0, adjacency=REPLACE_ONE)
    assert (epoch.value, epoch.accountant) == (250.0, "basic composition")
    twenty = compose([(SelfComposedDpEvent(reports, 20), REPLACE_ONE)], delta=0)
    assert (twenty.value, twenty.adjacency) == (5000.0, REPLACE_ONE)


def test_the_smaller_of_two_bounds_is_taken():
    few = SelfComposedDpEvent(
        pure_local(0.10005), 2
    )  # a grid step up is more than this
    found = epsilon(few, delta=1e-9)
    assert found.accountant == "basic composition"
    assert found.value == 0.2001
    assert value(SelfComposedDpEvent(pure_local(0.1), 365)) < 36.5


@pytest.mark.parametrize(("adjacency", "distance"), [(ZERO_OUT, 1), (REPLACE_ONE, 2)])
def test_laplace_noise(adjacency, distance):
    event = SelfComposedDpEvent(LaplaceDpEvent(4.0), 3)
    assert value(event, delta=0, adjacency=adjacency) == distance * 0.75
    assert value(event, delta=1e-3, adjacency=adjacency) < distance * 0.75


def test_gaussian_noise_has_no_pure_epsilon():
    assert epsilon(GaussianDpEvent(10.0), delta=0).value is None


def test_nothing_costs_nothing():
    for event in (NoOpDpEvent(), ComposedDpEvent([]), training(0.0, 1.0, 5)):
        assert value(event) == 0
        assert value(event, delta=0) == 0
    assert compose([], delta=1e-6).value == 0


@pytest.mark.parametrize(
    "bare",
    [
        NonPrivateDpEvent(),
        GaussianDpEvent(0.0),
        LaplaceDpEvent(0),
        SelfComposedDpEvent(NonPrivateDpEvent(), 2),
        PoissonSampledDpEvent(0.5, NonPrivateDpEvent()),
        training(0.1, 0.0, 3),
        PaddedDpEvent(0.1, GaussianDpEvent(0.0)),
        SampledWithoutReplacementDpEvent(9, 3, GaussianDpEvent(0)),
        TruncatedSubsampledGaussianDpEvent(9, 0.5, 8, 0.0),
        GaussianDpEvent(1e-9),
    ],
)
def test_one_bare_release_leaves_nothing_to_prove(bare):
    for event in (bare, ComposedDpEvent([GaussianDpEvent(1.0), bare])):
        found = epsilon(event, delta=1e-6, adjacency=REPLACE_ONE)
        assert (found.value, found.accountant) == (None, "none")
    beside = compose([(bare, ZERO_OUT), (pure_local(1.0), REPLACE_ONE)], delta=1e-6)
    assert beside.value is None


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (UnsupportedDpEvent(), "UnsupportedDpEvent has no accountant"),
        (SampledWithReplacementDpEvent(9, 3, GaussianDpEvent(1)), "no accountant"),
        (PoissonSampledDpEvent(0.5, LaplaceDpEvent(1.0)), "only Gaussians"),
        (PaddedDpEvent(0.5, pure_local(1.0)), "only Gaussians"),
        (
            SampledWithoutReplacementDpEvent(9, 3, GaussianDpEvent(1)),
            "replace_one only",
        ),
        ("gaussian", "str has no accountant"),
    ],
)
def test_what_has_no_account_is_refused(event, reason):
    with pytest.raises(Refused, match=reason):
        epsilon(event, delta=1e-6)


def test_a_removal_says_nothing_of_an_exchange():
    central, local = training(0.1, 1.0, 3), pure_local(1.0)
    with pytest.raises(Refused, match="says nothing of an exchange"):
        compose(
            [(central, ZERO_OUT), (local, REPLACE_ONE)],
            delta=1e-6,
            adjacency=REPLACE_ONE,
        )
    fixed = SampledWithoutReplacementDpEvent(100, 10, GaussianDpEvent(1.0))
    for sampled in (fixed, central):
        with pytest.raises(Refused, match="not local"):
            compose([(sampled, REPLACE_ONE), (central, ZERO_OUT)], delta=1e-6)
    with pytest.raises(Refused, match="not local"):
        compose([(fixed, REPLACE_ONE)], delta=1e-6, adjacency=ZERO_OUT)
    both = compose([(fixed, REPLACE_ONE), (local, REPLACE_ONE)], delta=1e-6)
    assert both.adjacency == REPLACE_ONE


def test_mixed_adjacencies_are_each_accounted_under_their_own():
    """A local Gaussian at distance 2 S and a central one at S: mu adds in squares."""
    mixed = [(GaussianDpEvent(4.0), ZERO_OUT), (GaussianDpEvent(4.0), REPLACE_ONE)]
    one = GaussianDpEvent(4.0 / math.sqrt(5))
    assert compose(mixed, delta=1e-6).value == pytest.approx(value(one), abs=1e-9)


def test_selection_among_runs_goes_by_rényi_divergence():
    runs = RepeatAndSelectDpEvent(GaussianDpEvent(5.0), 4.0, 1.0)
    found = epsilon(runs, delta=1e-6)
    assert found.accountant == "RDP"
    assert value(GaussianDpEvent(5.0)) < found.value < 4.0
    more = compose([(runs, ZERO_OUT), (pure_local(0.1), REPLACE_ONE)], delta=1e-6)
    assert found.value < more.value < found.value + 0.1 + 1e-9
    with pytest.raises(Refused, match="zero_out only"):
        epsilon(runs, delta=1e-6, adjacency=REPLACE_ONE)


def test_skellam_noise_is_an_event_too():
    event = SelfComposedDpEvent(SkellamDpEvent(1e6, l1=100.0, l2=100.0), 4)
    found = epsilon(event, delta=1e-6)
    nearly = value(GaussianDpEvent(5.0))
    assert found.accountant == "RDP"
    assert nearly < found.value < 1.2 * nearly


@pytest.mark.parametrize("delta", [-0.1, 1.0, 2.0, math.nan, 1e-11, None])
def test_bad_deltas_are_refused(delta):
    with pytest.raises(BadValue, match="delta="):
        epsilon(GaussianDpEvent(1.0), delta=delta)


@pytest.mark.parametrize(
    "event",
    [
        GaussianDpEvent(-1.0),
        GaussianDpEvent(math.nan),
        LaplaceDpEvent(math.inf),
        training(1.5, 1.0, 1),
        training(-0.5, 1.0, 1),
        training(0.5, 1.0, 0),
        training(0.5, 1.0, 2.5),
        SampledWithoutReplacementDpEvent(3, 9, GaussianDpEvent(1.0)),
        TruncatedSubsampledGaussianDpEvent(9, 0.5, -1, 1.0),
    ],
)
def test_impossible_values_are_refused(event):
    with pytest.raises(BadValue):
        epsilon(event, delta=1e-6, adjacency=REPLACE_ONE)


def test_an_unknown_adjacency_is_refused():
    for wrong in ("zeroout", None, 3):
        with pytest.raises(BadValue, match="adjacency="):
            compose([(GaussianDpEvent(1.0), wrong)], delta=1e-6)
    with pytest.raises(BadValue, match="adjacency="):
        epsilon(GaussianDpEvent(1.0), delta=1e-6, adjacency="remove")


@settings(max_examples=10)
@given(
    q=st.floats(0.001, 0.3),
    z=st.floats(0.7, 5.0),
    rounds=st.integers(1, 50),
    more=st.floats(1.05, 2.0),
)
@pytest.mark.slow
def test_epsilon_grows_with_rounds_and_rate_and_falls_with_noise(q, z, rounds, more):
    def at(q, z, rounds):
        return epsilon(training(q, z, rounds), delta=1e-6, finest=1e-2).value

    base = at(q, z, rounds)
    assert at(q, z, rounds + 1) >= base
    assert at(q * more, z, rounds) >= base
    assert at(q, z * more, rounds) <= base


@pytest.mark.parametrize(
    "event",
    [
        training(0.9, 0.01, 1000),
        training(1e-7, 0.1, 10_000),
        training(1e-3, 1.0, 10**6),
        SelfComposedDpEvent(pure_local(800.0), 10),
        SelfComposedDpEvent(LaplaceDpEvent(1e-3), 10),
        SelfComposedDpEvent(ShuffledDpEvent(50.0, 3), 10),
        PaddedDpEvent(0.999, GaussianDpEvent(0.01)),
    ],
)
def test_extremes_have_a_finite_figure(event):
    assert 0 < value(event) < math.inf


def test_a_coarser_grid_is_an_upper_bound():
    event = training(0.01, 1.0, 100)
    rough = [epsilon(event, delta=1e-6, finest=g).value for g in (1e-2, 1e-3, 1e-4)]
    assert rough == sorted(rough, reverse=True)
    assert rough[0] - rough[2] < 0.02


def test_a_ratio_beyond_all_floats_leaves_basic_composition():
    """A hundred bits of 8 are next to no protection, and no warning either."""
    event = SelfComposedDpEvent(pure_local(8.0), 108)
    found = epsilon(event, delta=1e-6, adjacency="replace_one")
    assert 700 < found.value <= 864


# Releases that may fail


FAILS = FailureDpEvent(2e-7)


def test_a_failure_takes_its_probability_from_the_delta_of_the_rest():
    """delta = f + (1 - f) rest, exactly; the library's own loss of (0, f) agrees."""
    both = ComposedDpEvent([GaussianDpEvent(5.0), FAILS])
    rest = (1e-6 - 2e-7) / (1 - 2e-7)
    found = value(both)
    assert found == value(GaussianDpEvent(5.0), delta=rest)
    assert value(GaussianDpEvent(5.0)) < found
    whole = pld.from_gaussian_mechanism(5.0).compose(
        pld.from_privacy_parameters(DifferentialPrivacyParameters(0.0, 2e-7))
    )
    assert found == pytest.approx(whole.get_epsilon_for_delta(1e-6), abs=1e-4)
    assert rdp_epsilon(both, delta=1e-6) > found


def test_failures_of_several_releases_add_up():
    twice = SelfComposedDpEvent(ComposedDpEvent([GaussianDpEvent(5.0), FAILS]), 2)
    failure = 1 - (1 - 2e-7) ** 2
    rest = SelfComposedDpEvent(GaussianDpEvent(5.0), 2)
    expected = value(rest, delta=(1e-6 - failure) / (1 - failure))
    assert value(twice) == pytest.approx(expected, rel=1e-9)


def test_a_delta_that_a_failure_uses_up_leaves_nothing():
    both = ComposedDpEvent([GaussianDpEvent(5.0), FAILS])
    for delta in (2e-7, 1e-7):
        with pytest.raises(Refused, match="must be more than that"):
            value(both, delta=delta)
    assert value(both, delta=0) is None
    assert value(FAILS) == 0.0
    assert value(ComposedDpEvent([LaplaceDpEvent(2.0), FAILS]), delta=2.0000001e-7) == (
        0.5
    )
