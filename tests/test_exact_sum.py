"""Whole numbers: vectors, the limit for every report, and the law of the noise."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.special import ndtr, ndtri

from tacit import exact_sum
from tacit.errors import BadValue, Refused
from tacit.exact_sum import Noise, encode, limit, squares, steps_per_unit

FALSE_ALARM = 1e-9
SEED = bytes(range(32))


def number(text):
    return math.sqrt(0.5) if text == "sqrt(1/2)" else float(text)


def half(z):
    """Half of z zᵀ, the diagonal over √2."""
    z = np.asarray(z, np.float64)
    i, j = np.triu_indices(len(z))
    return z[i] * z[j] * np.where(i == j, math.sqrt(0.5), 1.0)


# Vectors


def test_limits(federation_vectors):
    for one in federation_vectors["limit"]:
        found = limit(number(one["clip"]), one["d"], steps=one["r"])
        assert found == one["limit"]


def test_encoded_reports(federation_vectors):
    for one in federation_vectors["encode"]:
        bound, steps = number(one["clip"]), one["r"]
        [q] = encode(half(one["z"])[None], bound, steps=steps)
        assert q.tolist() == one["q"]
        assert squares(q[None])[0] == one["sum_of_squares"]


def test_an_encoded_outer_product(federation_vectors):
    one = federation_vectors["loadings"]
    v = np.outer(one["q"], one["t"]).reshape(1, -1)
    [q] = encode(v, 1.0, steps=one["r"])
    assert q.tolist() == one["encoded"]
    assert limit(1.0, 4, steps=one["r"]) == one["limit"]
    assert squares(q[None])[0] == one["sum_of_squares"] <= one["limit"]


def test_an_encoded_root(federation_vectors):
    one = federation_vectors["factors"]
    [q] = encode(np.array([one["z"]]), 1.0, steps=one["r"])
    assert q.tolist() == one["q_z"]
    assert np.outer(q, q).tolist() == one["outer"]
    assert limit(1.0, 3, steps=one["r"]) == one["limit"]


def test_ties_go_to_even(federation_vectors):
    one = federation_vectors["ties"]
    [q] = encode(np.array([one["steps"]]) / 2**16, 1.0, steps=2.0**16)
    assert q.tolist() == one["q"]


def test_a_flat_history_that_would_be_too_long_is_rounded_towards_zero():
    v = np.zeros((1, 3533))
    v[0, :5] = 1 / math.sqrt(5)
    assert encode(v, 1.0, steps=2.0**16)[0, 0] == 29308  # 29308.59


def test_drawn_noise(federation_vectors):
    for one in federation_vectors["noise"]:
        seed, variance = bytes.fromhex(one["seed"]), one["sigma"] ** 2
        assert Noise(seed).draw(variance, len(one["k"])).tolist() == one["k"]


# The limit


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(0, 3), st.integers(1, 40)),
        elements=st.floats(width=64),
    ),
    st.sampled_from([1e-3, 0.7, 1.0, 30.0]),
)
def test_no_report_passes_the_limit(vectors, bound):
    steps = steps_per_unit(bound)
    q = encode(vectors, bound, steps=steps)
    most = limit(bound, vectors.shape[1], steps=steps)
    assert all(sum(int(x) ** 2 for x in row) <= most for row in q)


@given(st.integers(1, 400), st.integers(0, 2**32), st.floats(0.999, 1.0))
def test_reports_at_the_bound_stay_within_half_a_step(n, seed, length):
    v = np.random.default_rng(seed).normal(size=(1, n))
    v *= length / np.linalg.norm(v)
    q = encode(v, 1.0, steps=2.0**16)
    assert np.abs(q - v * 2**16).max() < 1
    assert squares(q)[0] <= limit(1.0, n, steps=2.0**16)


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf, 1e308, 2.0])
def test_a_broken_report_counts_as_zero(broken, federation_vectors):
    v = np.array([[broken, 0.0], [0.6, 0.8]])
    q = encode(v, 1.0, steps=2.0**16)
    assert q[0].tolist() == federation_vectors["zero"]["encoded"]
    assert q[1].any()


def test_too_many_numbers_are_refused():
    with pytest.raises(Refused, match=r"would need 1\.0\d+ times the noise"):
        limit(1.0, 10**9, steps=2.0**16)


# The noise


def exact(word, other, variance):
    """The draw by definition, with 60 digits."""
    with mpmath.workdps(60):
        place = mpmath.mpf(2 * ((word % 2**63) * 2**64 + other) + 1)
        u = place / mpmath.mpf(2) ** 129
        x = mpmath.sqrt(2 * mpmath.mpf(variance)) * mpmath.erfinv(1 - 2 * u)
        k = int(mpmath.nint(x))
    return -k if word >> 63 else k


@pytest.mark.parametrize("variance", [1, 2, 1000**2, 2 * 31896**2, 10**16])
def test_the_fast_draw_is_the_exact_one(variance):
    raw = exact_sum.key_stream(SEED)(16 * 120)
    words = np.frombuffer(raw, "<u8").tolist()
    wanted = [
        exact(a, b, variance) for a, b in zip(words[::2], words[1::2], strict=True)
    ]
    assert Noise(SEED).draw(variance, 120).tolist() == wanted


def test_what_is_near_a_half_is_decided_exactly():
    """Points a hair beside a half, where double precision cannot tell the side."""
    variance, sides = 1000**2, []
    with mpmath.workdps(60):
        for whole in (0, 1, 7, 500, 2500):
            tail = mpmath.erfc(
                mpmath.mpf(2 * whole + 1) / 2 / mpmath.sqrt(2 * variance)
            )
            centre = int(mpmath.floor(tail / 2 * mpmath.mpf(2) ** 128))
            for offset in (-(2**40), -1, 1, 2**40):
                word, other = divmod(centre + offset, 2**64)
                first = np.array([word, word + 2**63], np.uint64)
                second = np.array([other, other], np.uint64)
                found = exact_sum._rounded(first, second, variance)
                wanted = exact(word, other, variance)
                assert found.tolist() == [wanted, -wanted]
                sides.append(wanted - whole)
    assert {*sides} == {0, 1}


def test_the_inverse_is_as_good_as_is_relied_on():
    """`_ROUNDING` assumes scipy's inverse to 1e-12; it has about 1e-15."""
    near = np.concatenate(
        [2.0 ** -np.arange(2, 127, 0.9), np.linspace(1e-3, 0.4999, 99)]
    )
    with mpmath.workdps(60):
        for u, found in zip(near, ndtri(near), strict=True):
            wanted = -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(float(u)))
            assert abs(float(found / wanted - 1)) < 1e-13


def test_the_law_is_the_rounded_normal():
    sigma, n = 3, 400_000
    found = Noise(SEED).draw(sigma**2, n)
    edges = np.arange(-12, 13) + 0.5
    share = np.diff(ndtr(np.concatenate([[-np.inf], edges / sigma, [np.inf]])))
    counts = np.bincount(np.digitize(found, edges), minlength=len(share))
    assert stats.chisquare(counts, n * share).pvalue > FALSE_ALARM


def test_draws_go_on_where_they_stopped(monkeypatch):
    whole, parts = Noise(SEED).draw(10**6, 1000), Noise(SEED)
    monkeypatch.setattr(exact_sum, "_AT_ONCE", 64)
    several = [parts.draw(10**6, n) for n in (1, 0, 499, 500)]
    np.testing.assert_array_equal(np.concatenate(several), whole)


def test_no_noise_is_refused():
    with pytest.raises(BadValue, match="variance=0 must be >= 1"):
        Noise(SEED).draw(0, 3)
