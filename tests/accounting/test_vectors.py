"""The test vectors of the privacy page, section 9, as far as an account gives them.

Tolerance 5e-4 unless stated. Vectors of single mechanisms are in their own tests.
"""

import dp_accounting as dp
import pytest
from quick import some_of

from tacit.accounting.calibration import calibrate, clipped_noise, gaussian_noise
from tacit.accounting.epsilon import compose, epsilon
from tacit.accounting.events import (
    PaddedDpEvent,
    ShuffledDpEvent,
    local_gaussian,
    pure_local,
)
from tacit.accounting.ftrl import Banded, coefficients
from tacit.accounting.published import effective_noise
from tacit.accounting.rdp import rdp_epsilon, skellam_rdp
from tacit.accounting.views import allowed_participations, server_view

TOLERANCE = 5e-4
REPLACE_ONE = "replace_one"


def near(value: float, tolerance: float = TOLERANCE):
    return pytest.approx(value, abs=tolerance)


def gaussian(z: float, *, rate: float = 1.0, times: int = 1) -> dp.DpEvent:
    one = dp.GaussianDpEvent(z)
    sampled = one if rate == 1.0 else dp.PoissonSampledDpEvent(rate, one)
    return dp.SelfComposedDpEvent(sampled, times)


@pytest.mark.parametrize(
    ("rate", "z", "times", "delta", "pld", "rdp", "exchanged"),
    some_of(
        [
            (0.01, 1.0, 1000, 1e-5, 1.8282, 2.1014, 2.8434),
            (0.00625, 2.0, 1000, 1e-6, 0.4357, 0.4749, 0.8282),
            (1.0, 4.0, 10, 1e-6, 3.7472, 4.0104, 8.3062),
            (0.01, 1.0, 1000, 1e-6, 2.1245, 2.4367, 3.2142),
            (0.004, 0.8, 500, 1e-6, 1.4131, 2.1413, 1.5502),
            (0.02, 1.5, 2000, 1e-6, 3.2328, 3.4833, 6.0561),
            (0.1, 1.0, 100, 1e-5, 7.0466, 7.9039, 10.5164),
            (250 / 5634, 2.0, 2300, 1e-5, 5.1595, 5.5874, 10.7818),
        ],
        3,
    ),
)
def test_poisson_gaussian(rate, z, times, delta, pld, rdp, exchanged):
    event = gaussian(z, rate=rate, times=times)
    assert epsilon(event, delta=delta).value == near(pld)
    assert rdp_epsilon(event, delta=delta) == near(rdp)
    found = epsilon(event, delta=delta, adjacency=REPLACE_ONE)
    assert found.value == near(exchanged)


@pytest.mark.parametrize(("cap", "expected"), some_of([(60, 0.4357), (45, 0.4749)], 1))
def test_a_cap_on_the_cohort(cap, expected):
    one = dp.TruncatedSubsampledGaussianDpEvent(4800, 30 / 4800, cap, 2.0)
    event = dp.SelfComposedDpEvent(one, 1000)
    assert epsilon(event, delta=1e-6).value == near(expected)


@pytest.mark.parametrize(
    ("size", "population", "nm", "times", "delta", "rdp", "pld"),
    some_of(
        [
            (30, 4800, 1.0, 1000, 1e-6, 2.4460, 1.5244),
            (100, 10000, 1.0, 1000, 1e-6, 4.0212, 2.5128),
            (15, 760, 1.0, 1000, 1e-6, 8.5109, 5.2349),
            (250, 5634, 2.0, 2300, 1e-5, 12.6738, 6.0337),
        ],
        2,
    ),
)
def test_without_replacement(size, population, nm, times, delta, rdp, pld):
    one = dp.GaussianDpEvent(nm)
    sampled = dp.SampledWithoutReplacementDpEvent(population, size, one)
    event = dp.SelfComposedDpEvent(sampled, times)
    assert epsilon(event, delta=delta, adjacency=REPLACE_ONE).value == near(pld)
    assert rdp_epsilon(event, delta=delta, adjacency=REPLACE_ONE) == near(rdp)


@pytest.mark.slow  # three of them are in test_calibration.py too
@pytest.mark.parametrize(
    ("rate", "times", "delta", "targets"),
    [
        (0.01, 1000, 1e-6, {1: 1.5627, 2: 1.0290, 4: 0.7786, 8: 0.6167}),
        (189 / 943, 100, 1e-5, {1: 7.640, 2: 4.180, 4: 2.380, 8: 1.446}),
        (604 / 6040, 100, 1e-5, {1: 3.942, 2: 2.248, 4: 1.386, 8: 0.936}),
        (1000 / 50_000, 500, 1e-6, {1: 2.097, 2: 1.288, 4: 0.907, 8: 0.692}),
        (1385 / 138_493, 1000, 1e-6, {1: 1.563, 2: 1.029, 4: 0.779, 8: 0.617}),
    ],
)
def test_calibration_and_presets(rate, times, delta, targets):
    for target, z in targets.items():
        found = calibrate(
            lambda noise: gaussian(noise, rate=rate, times=times),
            target=float(target),
            delta=delta,
        )
        assert found == near(z, 1e-3), target


def test_adaptive_clip_splits_the_noise():
    assert clipped_noise(1.0, bits=5.0) == pytest.approx(1.005038, abs=1e-6)


@pytest.mark.parametrize(
    ("rate", "expected"), [(0.005530, 0.9986), (0.010624, 1.9993), (0.020238, 3.9994)]
)
def test_personal_rates(rate, expected):
    event = gaussian(1.0626, rate=rate, times=1000)
    assert epsilon(event, delta=1e-6).value == near(expected)


@pytest.mark.parametrize(
    ("step", "expected"), [(0.1, 1.1927), (1.0, 1.0000), (2.0, 0.7255)]
)
def test_a_step_outside_the_noise(step, expected):
    assert effective_noise(1.0, step=step, shared=0.7) == near(expected, 5e-5)


ANALYTIC = {
    1e-5: (30.7496, 7.0318, 3.7306, 1.9938, 1.3906, 1.0812, 0.8919, 0.6002, 0.4999),
    1e-6: (36.3047, 8.0576, 4.2247, 2.2305, 1.5439, 1.1935, 0.9800, 0.6529, 0.5411),
    1e-8: (45.9374, 9.8635, 5.1003, 2.6529, 1.8186, 1.3956, 1.1390, 0.7484, 0.6158),
}


@pytest.mark.parametrize("delta", ANALYTIC)
def test_analytic_gaussian(delta):
    targets = (0.1, 0.5, 1, 2, 3, 4, 5, 8, 10)
    found = [gaussian_noise(float(target), delta=delta) for target in targets]
    assert found == near(list(ANALYTIC[delta]))


@pytest.mark.parametrize(
    ("nm", "n", "expected"), [(1, 10, 19.4237), (4, 10, 3.7472), (5, 17, 3.9290)]
)
def test_server_view(nm, n, expected):
    assert epsilon(server_view(float(nm), n), delta=1e-6).value == near(expected)


def test_the_filter_of_a_device():
    assert allowed_participations(5.0, target=4.0, delta=1e-6) == 17


@pytest.mark.parametrize(
    ("releases", "user", "item"),
    [
        (1, None, 0.5933),
        (7, 2.8899, None),
        (30, 6.5848, 3.2111),
        (365, 31.0401, 13.5244),
    ],
)
def test_serving(releases, user, item):
    """Gaussian of epsilon 1 at 1e-6; an item is padded away half of the time."""
    nm = gaussian_noise(1.0, delta=1e-6)
    if user is not None:
        assert epsilon(gaussian(nm, times=releases), delta=1e-6).value == near(user)
    if item is not None:
        padded = PaddedDpEvent(0.5, local_gaussian(nm, diameter=1.0))
        event = dp.SelfComposedDpEvent(padded, releases)
        found = epsilon(event, delta=1e-6, adjacency=REPLACE_ONE)
        assert found.value == near(item)


@pytest.mark.parametrize(
    ("times", "one", "expected", "tolerance"),
    [
        (10, 1.0, 10.0, TOLERANCE),
        (100, 1.0, 83.5307, TOLERANCE),
        (100, 0.1, 4.7820, TOLERANCE),
        (365, 0.1, 10.3375, TOLERANCE),
        (2000, 2.5, 4505, 1.0),
    ],
)
def test_randomized_response_composition(times, one, expected, tolerance):
    event = dp.SelfComposedDpEvent(pure_local(one), times)
    found = epsilon(event, delta=1e-6, adjacency=REPLACE_ONE)
    assert found.value == near(expected, tolerance)


def test_local_totals_of_fmf():
    """k = 100 reports of 2.5 in each of 20 epochs: 250 an epoch, 5000 in all."""
    for times, expected in ((100, 250.0), (2000, 5000.0)):
        event = dp.SelfComposedDpEvent(pure_local(2.5), times)
        assert epsilon(event, delta=0.0, adjacency=REPLACE_ONE).value == near(expected)


@pytest.mark.parametrize(
    ("n", "one", "times", "expected", "below", "above"),
    some_of(
        [
            (50_000, 2.5, 1, 0.0960, 0.006, 0.01),
            (10_000, 1.0, 1, 0.0530, 0.006, 0.01),
            (10_000, 1.0, 100, 0.623, 0.006, 0.01),
            (50_000, 2.5, 100, 1.129, 0.006, 0.01),
            (50_000, 2.5, 2000, 5.94, 0.006, 0.01),
            (1_000, 2.5, 100, 10.23, 0.05, 0.05),
        ],
        3,
    ),
)
def test_shuffle(n, one, times, expected, below, above):
    event = dp.SelfComposedDpEvent(ShuffledDpEvent(one, n), times)
    found = epsilon(event, delta=1e-6, adjacency=REPLACE_ONE).value
    assert expected - below <= found <= expected + above


def test_banded_coefficients():
    expected = [1, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375]
    assert coefficients(6).tolist() == expected
    norms = {10: 1.338411, 20: 1.419820, 50: 1.519843, 100: 1.591022}
    for bands, norm in norms.items():
        banded = Banded(participations=1, separation=bands, bands=bands)
        assert banded.norm == pytest.approx(norm, abs=1e-6)


@pytest.mark.parametrize(
    ("bands", "times", "target", "expected"),
    [(20, 10, 4.0, 5.3587), (20, 5, 4.0, 3.7892), (100, 10, 2.0, 11.2221)],
)
def test_banded_noise(bands, times, target, expected):
    banded = Banded(participations=times, separation=bands, bands=bands)
    assert banded.noise(target, delta=1e-6) == near(expected)


def test_skellam():
    import numpy as np

    found = skellam_rdp(np.array([8.0]), variance=100.0, l1=3.0, l2=3.0)
    assert found[0] == pytest.approx(0.363825, abs=1e-6)


@pytest.mark.slow
def test_ledger():
    """Training, local Gaussians and randomised responses of one user together."""
    train = gaussian(1.0, rate=0.01, times=1000)
    local = gaussian(5.0, times=5)
    choices = dp.SelfComposedDpEvent(pure_local(0.1, choices=5), 30)
    assert epsilon(local, delta=1e-6).value == near(1.9945)
    found = epsilon(choices, delta=1e-6, adjacency=REPLACE_ONE)
    assert found.value == near(1.5002)
    rest = [(local, "zero_out"), (choices, REPLACE_ONE)]
    release = compose([(train, "zero_out"), *rest], delta=1e-6)
    assert release.value == near(3.3910)
    seen = server_view(1.0, 12)
    assert epsilon(seen, delta=1e-6).value == near(21.8392)
    server = compose([(seen, "zero_out"), *rest], delta=1e-6)
    assert server.value == near(22.2195)
