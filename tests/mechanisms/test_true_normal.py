"""Normal draws against sixty digits, in the middle and far out."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from mechanisms.local_audit import clients
from scipy.special import ndtr, ndtri

from tacit.keys import Keys
from tacit.mechanisms import true_normal
from tacit.mechanisms.true_normal import ERROR, FARTHEST, half_masses, normal, quantile
from tacit.testing.statistics import assert_distribution


def exact_quantile(log_mass: mpmath.mpf, near: float) -> mpmath.mpf:
    """Where the normal has this mass below, by Newton's steps from a point nearby."""
    x = mpmath.mpf(near)
    for _ in range(5):
        mass = mpmath.ncdf(x)
        x -= (mpmath.log(mass) - log_mass) * mass / mpmath.npdf(x)
    return x


def gap(found: float, log_mass: mpmath.mpf) -> float:
    true = exact_quantile(log_mass, found)
    return float(abs(mpmath.mpf(found) - true) / (1 + abs(true)))


def masses() -> np.ndarray:
    draw = np.random.default_rng(0)
    middle, near = draw.uniform(0, 0.5, 300), np.exp(-draw.uniform(0.7, 11.5, 300))
    joint = math.exp(-2) * (
        1 + draw.uniform(-1e-3, 1e-3, 100)
    )  # where ndtri's parts meet
    half = 0.5 - draw.uniform(0, 1e-9, 50)
    return np.maximum(np.concatenate([middle, near, joint, half]), 2.0**-16)


def test_quantiles_of_whole_words():
    with mpmath.workdps(60):
        gaps = [
            gap(float(ndtri(m)), mpmath.log(mpmath.mpf(float(m)))) for m in masses()
        ]
    assert max(gaps) < ERROR / 32


def test_quantiles_of_logarithms_however_far():
    draw = np.random.default_rng(1)
    far = np.exp(draw.uniform(math.log(0.7), math.log(FARTHEST**2 / 2), 300))
    logs = -np.concatenate([far, draw.uniform(0.25, 60, 300)])
    found = quantile(logs)
    assert found.min() < -2000
    with mpmath.workdps(60):
        pairs = zip(found, logs, strict=True)
        gaps = [gap(float(x), mpmath.mpf(float(log))) for x, log in pairs]
    assert max(gaps) < ERROR / 16


def test_draws_are_normal():
    """False alarm below 1e-9."""
    draws = normal(clients(3, 20_000), 5)
    assert draws.shape == (20_000, 5)
    assert_distribution(draws.ravel(), ndtr, false_alarm=1e-9)


def words_of(first: int, *rest: int):
    """Keys whose first draw is `first`, and whose continuations are `rest`."""

    def bits(self: Keys, n: int) -> np.ndarray:
        is_first = np.array_equal(self.words, FEW.words)
        row = [first % 2**64] if is_first else [*rest, *[0] * n][:n]
        return np.tile(np.array(row, np.uint64), (len(self), 1))

    return bits


FEW = clients(0, 1)


@pytest.mark.parametrize(
    ("words", "mass"),
    [
        ((2**47,), mpmath.mpf(2) ** -17),
        ((-1 - 2**47,), mpmath.mpf(2) ** -17),
        ((5, 2**63), mpmath.mpf(5.5) * mpmath.mpf(2) ** -64),
        ((0, 3 * 2**50), mpmath.mpf(3) * mpmath.mpf(2) ** -78),
        ((-1, 0, 7 * 2**40, 2**63), mpmath.mpf(7) * mpmath.mpf(2) ** -152),
        ((0, *[0] * 100, 2**50), mpmath.mpf(2) ** (50 - 64 * 102)),
    ],
)
def test_a_word_is_continued_where_it_has_few_bits(monkeypatch, words, mass):
    """Also past the range of floats; the sign of the first word is that of the draw."""
    monkeypatch.setattr(Keys, "bits", words_of(*words))
    [[draw]] = normal(FEW, 1)
    with mpmath.workdps(60):
        assert gap(-abs(float(draw)), mpmath.log(mass)) < ERROR
        [found], [log] = half_masses(FEW, np.array([words[0]]))
        assert log == pytest.approx(float(mpmath.log(mass)), rel=1e-14)
        assert found == pytest.approx(float(mass), rel=1e-13)
    assert (draw > 0) == (words[0] < 0)


def test_a_generator_that_says_nothing_but_zeros_ends(monkeypatch):
    monkeypatch.setattr(true_normal, "_MOST_WORDS", 64)
    monkeypatch.setattr(Keys, "bits", words_of(0))
    assert math.isnan(normal(FEW, 1)[0, 0])


def test_a_client_does_not_depend_on_the_others(monkeypatch):
    """With every word continued."""
    monkeypatch.setattr(true_normal, "_DEEP", 0.6)
    keys = clients(5, 6)
    together = normal(keys, 3)
    assert len(np.unique(together)) == 18
    alone = [normal(keys[[i]], 3)[0] for i in range(6)]
    np.testing.assert_array_equal(together, alone)
    monkeypatch.undo()
    np.testing.assert_allclose(together, normal(keys, 3), rtol=1e-13)
