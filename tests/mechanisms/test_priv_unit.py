from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from mechanisms.local_audit import (
    DRAWS,
    assert_mean_and_variance,
    assert_no_louder,
    clients,
)
from mechanisms.test_integer_coins import is_within
from mechanisms.test_true_normal import exact_quantile
from scipy.special import logit, ndtr, ndtri

from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms import priv_unit
from tacit.mechanisms.priv_unit import (
    STEP,
    PrivUnit,
    best_cap,
    cap_at,
    drawn,
    farthest,
    rounding_loss,
)
from tacit.testing.statistics import assert_distribution


@pytest.mark.parametrize(
    ("epsilon", "t", "p", "q", "gain", "variance", "digits"),
    [
        (0.5, 0.1993, 0.545237, 0.578972, 0.199284, 25.1799, 4),
        (1.0, 0.3974, 0.589341, 0.654472, 0.397463, 6.3300, 4),
        (2.5, 0.9756, 0.705972, 0.835360, 0.975662, 1.0505, 4),
        (5.0, 1.8505, 0.831247, 0.967876, 1.850644, 0.29198, 5),
        (10.0, 3.2597, 0.924747, 0.999442, 3.260060, 0.094091, 6),
    ],
)
def test_parameters_for_five_thousand_dimensions(
    epsilon, t, p, q, gain, variance, digits
):
    cap = best_cap(epsilon, 5000)
    assert cap.threshold == pytest.approx(t, abs=5e-5)
    assert cap.inside == pytest.approx(p, abs=5e-7)
    assert cap.below == pytest.approx(q, abs=5e-7)
    assert cap.gain == pytest.approx(gain, abs=5e-7)
    square = (5000 + cap.threshold * cap.gain) / cap.gain**2
    assert round((square - 1) / 5000, digits) == variance


@given(st.floats(0.01, 60), st.floats(-2, 6))
def test_the_densities_of_two_inputs_differ_by_e_to_the_epsilon(epsilon, threshold):
    """Over the Gaussian, a report has one density on the cap and one off it."""
    cap = cap_at(threshold, epsilon=epsilon)
    on, off = math.log(cap.inside / cap.above), math.log(cap.outside / cap.below)
    assert on - off <= epsilon * (1 + 1e-9) + 1e-9
    if cap.off > 1:  # else a word says less than epsilon allows
        assert on - off == pytest.approx(epsilon, rel=1e-9, abs=1e-9 + 2 / cap.off)
    assert cap.inside + cap.outside == pytest.approx(1)
    if epsilon < 20 and abs(threshold) < 4:
        total = float(logit(cap.inside) + logit(ndtr(threshold)))
        assert total == pytest.approx(epsilon, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("dimension", [1, 2, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 8.0, 30.0])
def test_no_other_threshold_has_less_variance(epsilon, dimension):
    best = PrivUnit(epsilon, dimension).variance(1.0)
    for t in np.linspace(-3, math.sqrt(2 * epsilon) + 4, 200):
        cap = cap_at(float(t), epsilon=epsilon)
        square = (dimension + t * cap.gain) / cap.gain**2
        assert best <= (square - 1) / dimension * (1 + 1e-9)


def along_the_cap(mechanism: PrivUnit, reports: np.ndarray) -> np.ndarray:
    """The first coordinate in units where the cap begins at the threshold."""
    return reports[:, 0] * mechanism.cap.gain / mechanism.radius


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_two_hundred_thousand_draws_of_an_extreme_pair(epsilon):
    """The cap of one input is the loudest event against its opposite.

    False alarm 3e-5 a comparison; sees an epsilon 0.05 larger.
    """
    mechanism = PrivUnit(epsilon, 3)
    v = np.tile([1.0, 0.0, 0.0], (DRAWS, 1))
    one = along_the_cap(mechanism, mechanism.privatize(v, clients(1)))
    other = along_the_cap(mechanism, mechanism.privatize(-v, clients(2)))
    t = mechanism.cap.threshold
    assert_no_louder(one >= t, other >= t, epsilon)
    assert_no_louder(other <= -t, one <= -t, epsilon)
    for place in (-2.0, -t, 0.0, t, 2.0):
        assert_no_louder(one >= place, other >= place, epsilon)
    with pytest.raises(AssertionError):
        assert_no_louder(one >= t, other >= t, epsilon - 0.05)


def test_a_cap_hit_too_often_is_caught():
    """A mechanism of epsilon 1.15 does not pass for one of 1."""
    mechanism, louder = PrivUnit(1.0, 3), PrivUnit(1.15, 3)
    v = np.tile([1.0, 0.0, 0.0], (DRAWS, 1))
    one = along_the_cap(louder, louder.privatize(v, clients(1)))
    other = along_the_cap(louder, louder.privatize(-v, clients(2)))
    t = louder.cap.threshold
    with pytest.raises(AssertionError):
        assert_no_louder(one >= t, other >= t, mechanism.epsilon)


@pytest.mark.parametrize(
    "vector",
    [
        [2.0, 0.0, 0.0, 0.0],
        [0.6, -0.5, 0.2, 0.0],
        [0.0, 0.0, 0.0, 0.0],
        [-0.01, 0.0, 0.01, 0.02],
    ],
)
def test_reports_are_unbiased_and_have_the_stated_variance(vector):
    """False alarm 6e-5 a coordinate; sees a norm that is off by 1 %."""
    mechanism, x = PrivUnit(2.5, 4, radius=2.0), np.array(vector)
    reports = mechanism.privatize(np.tile(x, (DRAWS, 1)), clients(4))
    assert reports.dtype == np.float32
    stated = mechanism.variance(float(np.linalg.norm(x)))
    assert_mean_and_variance(reports.astype(np.float64), x, stated)
    assert mechanism.estimate(reports) == pytest.approx(reports.mean(0, np.float64))


def test_longer_vectors_are_clipped():
    mechanism, keys = PrivUnit(1.0, 3, radius=0.5), clients(1, 100)
    unit = np.tile([0.0, 3.0, 4.0], (100, 1))
    short = mechanism.privatize(unit / 10, keys)
    for factor in (1.0, 1e6, 4e307):
        long = mechanism.privatize(unit * factor, keys)
        assert long == pytest.approx(short, abs=1e-5)


def test_the_part_along_the_vector_has_its_distribution():
    """False alarm below 1e-9; sees a threshold 0.05 off."""
    mechanism = PrivUnit(2.0, 2)
    cap, v = mechanism.cap, np.tile([1.0, 0.0], (DRAWS, 1))
    along = along_the_cap(mechanism, mechanism.privatize(v, clients(7)))

    def cdf(a: np.ndarray) -> np.ndarray:
        low = cap.outside * np.minimum(ndtr(a) / cap.below, 1.0)
        high = cap.inside * np.maximum(ndtr(a) - cap.below, 0.0) / cap.above
        return np.clip(low + high, 0.0, 1.0)

    assert_distribution(along, cdf, false_alarm=1e-9)


def test_across_the_vector_there_is_only_noise():
    """False alarm below 1e-9; sees noise that is 1.5 % off."""
    mechanism = PrivUnit(2.0, 2)
    v = np.tile([0.6, 0.8], (DRAWS, 1))
    reports = mechanism.privatize(v, clients(8)).astype(np.float64)
    across = (reports @ [0.8, -0.6]) * mechanism.cap.gain
    assert_distribution(across, ndtr, false_alarm=1e-9)


def test_five_thousand_dimensions_project_to_the_same_law():
    """The mean along the vector is 1 in 4 s.e., across it 0; variance within 3 %."""
    mechanism, n = PrivUnit(5.0, 5000), 400
    v = np.full(5000, 5000**-0.5)
    reports = mechanism.privatize(np.tile(v, (n, 1)), clients(9, n))
    along = reports @ v
    assert abs(along.mean() - 1) < 4 * along.std() / math.sqrt(n)
    measured = float(((reports - v) ** 2).mean())
    assert measured == pytest.approx(mechanism.variance(1.0), rel=0.03)


def test_what_is_not_finite_counts_as_zero():
    mechanism, keys = PrivUnit(1.0, 3), clients(1, 3)
    bad = np.array([[math.nan, 0, 0], [math.inf, 1, 1], [0, -math.inf, math.nan]])
    zero = mechanism.privatize(np.zeros((3, 3)), keys)
    assert (mechanism.privatize(bad, keys) == zero).all()
    assert np.isfinite(zero).all()


@given(st.integers(0, 2**32), st.floats(0.01, 200), st.integers(1, 5))
def test_reports_are_finite(seed, epsilon, dimension):
    mechanism, keys = PrivUnit(epsilon, dimension), clients(seed, 50)
    values = np.full((50, dimension), 5e-324)
    assert np.isfinite(mechanism.privatize(values, keys)).all()


def test_a_client_does_not_depend_on_the_others():
    mechanism, keys = PrivUnit(1.0, 6), clients(3, 20)
    values = np.linspace(-1, 1, 120).reshape(20, 6)
    together = mechanism.privatize(values, keys)
    alone = [mechanism.privatize(values[[i]], keys[[i]])[0] for i in range(20)]
    np.testing.assert_array_equal(together, alone)


def test_the_event_is_pure():
    event = PrivUnit(0.3, 5).event
    assert (event.epsilon, event.choices) == (0.3, 2)


@pytest.mark.parametrize(
    "bad", [(0.0, 5, 1.0), (math.inf, 5, 1.0), (1.0, 0, 1.0), (1.0, 5, 0.0)]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(BadValue):
        PrivUnit(*bad)


def test_vectors_of_a_wrong_shape_are_refused():
    with pytest.raises(BadValue, match="needed is one vector of 4"):
        PrivUnit(1.0, 4).privatize(np.zeros((3, 5)), clients(0, 3))


# --- The bytes: docs/privacy.md has the proof, and here are its premises --------------


@pytest.mark.parametrize("dimension", [1, 3, 300, 3500, 100_000])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.5, 8.0, 30.0, 200.0, 5000.0])
def test_cap_and_rounding_stay_within_epsilon(epsilon, dimension):
    """Densities on the cap and off it, in exact numbers; the rest is the rounding's."""
    cap = PrivUnit(epsilon, dimension).cap
    above, outside = Fraction(cap.above), Fraction(cap.off, 2**64)
    loss = rounding_loss(dimension, farthest(epsilon, dimension))
    assert 0 < loss < 2e-4
    ratio = (1 - outside) * (1 - above) / (outside * above)
    assert ratio > 1
    assert is_within(ratio, min(epsilon, 500.0) - loss)
    assert 0 <= cap.threshold <= math.sqrt(2 * min(epsilon, 500.0)) + 2


def exact_mass(word: int) -> mpmath.mpf:
    """The mass in (0, 1/2) in the middle of those that begin with this word."""
    whole = int(word) if word < 2**63 else 2**64 - 1 - int(word)
    return (mpmath.mpf(whole) + mpmath.mpf(0.5)) / 2**64


def exact_along(cap, words: np.ndarray, near: float) -> mpmath.mpf:
    side, word = (int(w) for w in words)
    mass, above = exact_mass(word), mpmath.mpf(cap.above)
    is_low = word >= 2**63
    if side >= cap.off:
        over = above * (1 - mass if is_low else mass)
    elif is_low:
        return exact_quantile(mpmath.log((1 - above) * mass), near)
    else:
        over = mass + above * (1 - mass)
    return -exact_quantile(mpmath.log(over), -near)


def exact_reports(direction: np.ndarray, cap, keys: Keys) -> list[list[mpmath.mpf]]:
    """Y of the module's text for these directions made units, with sixty digits."""
    across, along = keys.at("across").bits(direction.shape[1]), keys.at("along").bits(2)
    near = priv_unit._along(cap, keys.at("along"))
    found = []
    for row, words, pair, a in zip(direction, across, along, near, strict=True):
        v = [mpmath.mpf(float(x)) for x in row]
        norm = mpmath.sqrt(mpmath.fdot(v, v))
        v, g = [x / norm for x in v], []
        for word in words:
            mass = exact_mass(word)
            x = exact_quantile(mpmath.log(mass), float(ndtri(float(mass))))
            g.append(-x if word >= 2**63 else x)
        shift = exact_along(cap, pair, a) - mpmath.fdot(g, v)
        found.append([x + shift * y for x, y in zip(g, v, strict=True)])
    return found


@pytest.mark.parametrize(
    ("dimension", "users"), [(1, 60), (2, 40), (3, 30), (40, 4), (700, 1)]
)
@pytest.mark.parametrize("epsilon", [0.5, 9.0])
def test_what_is_computed_is_near_the_exact_report(epsilon, dimension, users):
    """By far: all coordinates together have a tenth of what is paid for."""
    mechanism, keys = PrivUnit(epsilon, dimension), clients(dimension, users)
    raw = np.random.default_rng(0).normal(size=(users, dimension))
    raw[::2, 1:] *= 1e-9  # nearly along an axis
    direction, _ = priv_unit._polar(raw, 1.0)
    found, _ = drawn(direction, mechanism.cap, keys)
    with mpmath.workdps(60):
        exact = exact_reports(direction, mechanism.cap, keys)
        gaps = np.array(
            [
                [
                    float(abs(mpmath.mpf(float(x)) - y))
                    for x, y in zip(*rows, strict=True)
                ]
                for rows in zip(found, exact, strict=True)
            ]
        )
    assert gaps.max() > 0  # two computations, not one
    loss = rounding_loss(dimension, farthest(epsilon, dimension))
    assert 4 * gaps.sum(axis=1).max() / STEP < loss / 10


def assert_on_the_grid(mechanism: PrivUnit, reports: np.ndarray) -> None:
    """Reports are whole steps, the same ones whoever sends them."""
    scale = STEP * mechanism.radius / mechanism.cap.gain
    whole = np.rint(reports.astype(np.float64) / scale)
    np.testing.assert_array_equal(reports, (whole * scale).astype(np.float32))


def in_floats(mechanism, direction, across, along) -> np.ndarray:
    """What stood here before: the report in floats, as it comes."""
    astray = np.einsum("cd,cd->c", across, direction)
    report = across + (along - astray)[:, None] * direction
    return (report * (mechanism.radius / mechanism.cap.gain)).astype(np.float32)


nasty = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
rows = arrays.arrays(np.float64, (3, 4), elements=nasty)
HUGE, TINY = float(np.finfo(float).max), 5e-324


@given(rows, st.integers(0, 2**32), st.floats(0.01, 100))
@example(np.full((3, 4), HUGE), 0, 1.0)
@example(np.full((3, 4), TINY), 0, 1.0)
@example(np.array([[HUGE, TINY, -0.0, 0.0]] * 3), 0, 1.0)
@example(np.array([[math.nan, math.inf, 1.0, -math.inf]] * 3), 0, 1.0)
def test_whatever_the_vector_a_unit_is_sent_on_the_public_grid(values, seed, radius):
    direction, length = priv_unit._polar(values, radius)
    for row in direction:
        square = math.fsum(Fraction(x) ** 2 for x in row.tolist())
        assert abs(square - 1) < 2.0**-48
    assert ((length >= 0) & (length <= 1)).all()
    mechanism = PrivUnit(1.0, 4, radius)
    reports = mechanism.privatize(values, clients(seed, 3))
    assert np.isfinite(reports).all()
    assert_on_the_grid(mechanism, reports)


def test_reports_in_floats_are_off_the_grid():
    mechanism, keys = PrivUnit(1.0, 4), clients(0, 50)
    direction, _ = priv_unit._polar(np.ones((50, 4)), 1.0)
    along = priv_unit._along(mechanism.cap, keys.at("along"))
    plain = in_floats(mechanism, direction, keys.at("across").normal(4), along)
    with pytest.raises(AssertionError):
        assert_on_the_grid(mechanism, plain)
    assert_on_the_grid(mechanism, mechanism.privatize(direction, keys))


def atoms(places: np.ndarray) -> np.ndarray:
    """Values that a normal draw of 52 bits can have."""
    return ndtri((places + 0.5) * 2.0**-52)


def is_bare(reports: np.ndarray, scale: float) -> np.ndarray:
    """Whether a small number is one that a draw gives without anything added."""
    place = np.rint(ndtr(reports.astype(np.float64) / scale) * 2.0**52 - 0.5)
    near = [(atoms(place + j) * scale).astype(np.float32) for j in range(-2, 3)]
    return np.any([reports == one for one in near], axis=0)


def test_low_bits_of_reports_in_floats_give_the_vector_away():
    """Within 2^-36 of zero: every report about e1, and one in a thousand of the other.

    A pure epsilon of 0.5 has become 6.8 there. The same reports in steps are zeros.
    """
    mechanism, draw, n, w = PrivUnit(0.5, 2), np.random.default_rng(0), 20_000, 2.0**-36
    scale = 1.0 / mechanism.cap.gain
    first, small = draw.normal(size=n), draw.uniform(-w, w, n)
    along = priv_unit._along(mechanism.cap, clients(1, n))
    seen = []
    for direction in ([1.0, 0.0], [math.sqrt(0.5), math.sqrt(0.5)]):
        a, b = direction
        wanted = (small - (along - first * a) * b) / (1 - b * b)  # so that Y_2 is small
        second = atoms(np.rint(ndtr(wanted) * 2.0**52 - 0.5))
        across, v = np.stack([first, second], axis=1), np.tile(direction, (n, 1))
        kept = np.abs(wanted) < 4
        report = in_floats(mechanism, v, across, along)[kept, 1]
        assert np.abs(report / scale).max() < 2 * w
        assert not np.rint(report / scale / STEP).any()
        seen.append(is_bare(report, scale).mean())
    assert seen[0] == 1.0
    assert seen[1] < 0.01
    assert math.log(seen[0] / seen[1]) > 8 * mechanism.epsilon


def test_now_and_then_nothing_is_said_whoever_asks(monkeypatch):
    """So that what is too far out to be computed exactly can hide behind it."""
    mechanism, keys, ones = PrivUnit(1.0, 3), clients(0, 5), np.ones((5, 3))
    assert mechanism.privatize(ones, keys).all()
    monkeypatch.setattr(priv_unit, "_NOTHING", 2**64 - 1)
    assert not mechanism.privatize(ones, keys).any()


@pytest.mark.parametrize("value", [13.0, 1e5, math.nan])
def test_what_is_too_far_out_becomes_nothing(monkeypatch, value):
    mechanism, keys, ones = PrivUnit(1.0, 3), clients(0, 5), np.ones((5, 3))
    monkeypatch.setattr(priv_unit, "normal", lambda keys, n: np.full((5, n), value))
    assert not mechanism.privatize(ones, keys).any()
    monkeypatch.setattr(priv_unit, "normal", lambda keys, n: np.full((5, n), 1.0))
    assert mechanism.privatize(ones, keys).any()
    monkeypatch.setattr(priv_unit, "_along", lambda cap, keys: np.full(5, 3 * value))
    assert not mechanism.privatize(ones, keys).any()


def test_too_many_numbers_for_their_epsilon_are_refused():
    for epsilon, dimension in ((1e-6, 5000), (1.0, 2**22 + 1)):
        with pytest.raises(BadValue, match="rounding"):
            PrivUnit(epsilon, dimension)


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_no_report_is_longer_than_the_longest(monkeypatch, epsilon):
    """Draws that would be are sent as zeros: one at the very edge is sent as it is."""
    mechanism, keys = PrivUnit(epsilon, 3, 2.0), clients(0, 5)
    edge = mechanism._farthest * mechanism.radius / mechanism.cap.gain
    assert edge < mechanism.most_norm < 1.00001 * edge
    for along in (mechanism._farthest - 0.01, mechanism._farthest + 0.01):
        monkeypatch.setattr(priv_unit, "normal", lambda keys, n: np.zeros((5, n)))
        monkeypatch.setattr(
            priv_unit, "_along", lambda cap, keys, along=along: np.full(5, along)
        )
        norms = np.linalg.norm(mechanism.privatize(np.ones((5, 3)), keys), axis=1)
        assert (norms <= mechanism.most_norm).all()
        assert norms.any() == (along < mechanism._farthest)
