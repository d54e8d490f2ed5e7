"""Each sampler has finitely many random words: what the least of them decides.

The table of docs/release.md, row by row. PrivUnit's proof has tests of its own.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tacit.errors import Refused
from tacit.keys import Key, Keys
from tacit.mechanisms import integer_coins
from tacit.mechanisms.gaussian import GaussianSum, LocalGaussian, normals
from tacit.mechanisms.label_choice import negatives
from tacit.mechanisms.laplace import LaplaceSum
from tacit.mechanisms.one_bit import _bits_plain
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.private_attention import (
    GaussianAttention,
    LaplaceAttention,
    laplace,
)
from tacit.mechanisms.private_vector import PrivateVector
from tacit.mechanisms.skellam import SkellamSum
from tacit.plans import Plan
from tacit.sampling import Draw, Poisson, PoissonByGroup
from tacit.transport.exact_total import check_exact
from tacit.transport.messages import Layout, Slot
from tacit.tree import Dense, Tree

EPSILONS = [1e-12, 1e-3, 0.5, 2.1773, 16.0, 44.0, 60.0, 500.0]
DEVICE = Key.from_secret(bytes(range(32))).each(range(2))


def odds_at_most(epsilon, true, false):
    """Whether true / false <= e^epsilon, exactly."""
    with mpmath.workdps(400):
        grown = mpmath.exp(mpmath.mpf(epsilon))
        return mpmath.mpf(true.numerator) / true.denominator <= grown * (
            mpmath.mpf(false.numerator) / false.denominator
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("choices", [2, 3, 37, 10**6, 2**40 + 1])
def test_a_response_is_never_surer_than_epsilon(epsilon, choices):
    """64 bits decide whether the value is forgotten, and 64 which one is drawn."""
    forgets = Fraction(integer_coins.lies(epsilon, choices), 2**64)
    rarest = Fraction(2**64 // choices, 2**64)  # of Keys.integers
    false = forgets * rarest
    assert false > 0
    assert odds_at_most(epsilon, 1 - forgets + false, false)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("bits", [32, 64])
def test_a_bit_is_never_surer_than_epsilon(epsilon, bits):
    """64 bits decide a flip, 32 a vote."""
    flips = Fraction(integer_coins.flips(epsilon, bits=bits), 2**bits)
    assert flips > 0
    assert odds_at_most(epsilon, 1 - flips, flips)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("value", [1e300, -1e300, 1.0, -1.0, 0.3, np.nan])
def test_no_value_of_a_vote_has_fewer_words_than_its_least(epsilon, value, monkeypatch):
    """Of 2^32 draws, at least `flips` say 0 and at least as many say 1."""
    least = integer_coins.flips(epsilon, bits=32)
    ends = [0, least - 1, 2**32 - least, 2**32 - 1]
    words = np.array([ends[0] | ends[1] << 32, ends[2] | ends[3] << 32], np.uint64)
    monkeypatch.setattr(Keys, "bits", lambda _, n: words[None, :n])
    values = np.full((1, 4), value)
    said = _bits_plain(DEVICE[:1], values, 1.0, least * 2.0**-32)
    assert said.tolist() == [[0, 0, 1, 1]]


def test_negatives_look_at_the_report_alone():
    """Their bits may be biased as they like: they never meet the click."""
    keys, sizes = DEVICE.at("negatives"), np.array([9, 9])
    first = negatives(np.array([3, 3]), keys, sizes=sizes, count=4)
    again = negatives(np.array([3, 3]), keys, sizes=sizes, count=4)
    assert first.values.tolist() == again.values.tolist()


@pytest.mark.parametrize("draw", [normals, laplace])
def test_a_devices_noise_does_not_end(draw, monkeypatch):
    """A seed's normal ends at 8.21, and a seed's Laplace at 36.7."""
    real, end = Keys.bits, {normals: 8.22, laplace: 36.8}[draw]

    def bits(self, n):
        return np.ones((len(self), n), np.uint64) if n == 3 else real(self, n)

    monkeypatch.setattr(Keys, "bits", bits)
    assert (np.abs(draw(DEVICE, 3)) > end).all()
    assert np.isfinite(draw(DEVICE, 3)).all()


def noisy_update(update, keys):
    sent = LocalGaussian(1.0, noise_multiplier=1.0).privatize(
        Tree({"w": Dense(update)}), keys
    )
    return sent["w"]


def noisy_sum(update, _):
    own = Key.from_secret(bytes(range(32)))
    return GaussianSum(1.0, noise_multiplier=1.0).add({"w": update[0]}, own)["w"]


@pytest.mark.parametrize(
    ("release", "width"),
    [
        (noisy_update, 3),
        (noisy_sum, 3),
        (GaussianAttention(8.0, 3, theta=1.0, delta=1e-6).noisy, 3),
        (LaplaceAttention(8.0, 3, theta=1.0).noisy, 3),
        (PrivateVector(8.0, 3, theta=1.0, delta=1e-6).noisy, 3),
        (PrivateVector(8.0, 3, theta=1.0).noisy, 3),
    ],
)
def test_what_devices_send_has_that_noise(release, width, monkeypatch):
    real = Keys.bits

    def bits(self, n):
        return np.ones((len(self), n), np.uint64) if n == width else real(self, n)

    inputs = np.full((2, width), 1 / width)
    usual = np.abs(release(inputs, DEVICE)).max()
    monkeypatch.setattr(Keys, "bits", bits)
    far = release(inputs, DEVICE)
    assert len({*far.ravel()}) == far.size  # continued, each by words of its own
    assert np.abs(far).min() > 2 * usual


def test_devices_have_the_laws_of_their_noise():
    """20,000 draws each; false alarm 1e-9."""
    from scipy import stats

    keys = Key.from_secret(bytes(32)).each(range(2))
    for draw, law in ((normals, "norm"), (laplace, "laplace")):
        assert stats.kstest(draw(keys, 10_000).ravel(), law).pvalue > 1e-9


@pytest.mark.parametrize("rate", [2.0**-60, 0.1, 1 / 3, 0.5, 1.0])
def test_a_cohorts_coin_falls_at_most_at_its_rate(rate, monkeypatch):
    """A coin has steps of 2^-53, and amplification needs the rate or less."""
    last = int(rate * 2**53)  # steps at or below the rate, exactly
    steps = np.clip([0, last - 1, last, 2**53 - 1], 0, 2**53 - 1)
    coins = steps * 2.0**-53
    monkeypatch.setattr(Draw, "coins", lambda _: coins)
    draw = Draw(DEVICE, np.zeros(4, np.int64), 0)
    wanted = (steps < last).tolist()
    for sampler in (Poisson(rate), PoissonByGroup({"everyone": rate})):
        cohort = sampler.cohort(draw, Plan(4, sampler=sampler))
        assert np.isin(np.arange(4), cohort).tolist() == wanted
    assert Fraction(last, 2**53) <= Fraction(rate)


@pytest.mark.parametrize("probability", [1e-17, 0.1, 1 / 3])
def test_padding_falls_at_least_as_often_as_it_says(probability, monkeypatch):
    steps = np.array([0, int(probability * 2**53), int(probability * 2**53) + 1])
    monkeypatch.setattr(Keys, "uniform_ragged", lambda *_: steps * 2.0**-53)
    falls = Padding(probability).pad([3], DEVICE[:1])
    least = steps[~falls].min()  # so many of 2^53 coins fall
    assert Fraction(int(least), 2**53) >= Fraction(probability)


@pytest.mark.parametrize(
    "mechanism",
    [LaplaceSum(1.0, 1.0), SkellamSum(1.0, 1.0, resolution=64.0, dimension=3)],
    ids=lambda m: type(m).__name__,
)
def test_float_draws_are_for_simulation(mechanism):
    """A release refuses them, before anyone is asked."""
    layout = Layout({"w": Slot("float64", (3,))})
    with pytest.raises(Refused, match="has no form in whole numbers"):
        check_exact(mechanism, layout)
