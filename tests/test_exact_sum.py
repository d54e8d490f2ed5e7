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
from tacit.accounting.calibration import gaussian_noise
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


@pytest.mark.parametrize("variance", [1, 2, 1000**2, 2 * 31896**2, 10**16, 2**80])
def test_the_fast_draw_is_the_exact_one(variance):
    raw = exact_sum.key_stream(SEED)(16 * 120)
    words = np.frombuffer(raw, "<u8").tolist()
    wanted = [
        exact(a, b, variance) for a, b in zip(words[::2], words[1::2], strict=True)
    ]
    assert Noise(SEED).draw(variance, 120).tolist() == wanted


# Distances from a half; for loud noise double precision is wrong up to 1e-5 from it.
BESIDE = [0, *(2.0**-k for k in (60, 40)), 5e-7, 1.5e-6, 3e-6, 1e-5, 1e-3, 0.1]


@pytest.mark.parametrize("log_sigma", [0, 10, 24, 34, 36, 40, 47])
def test_what_is_near_a_half_is_decided_exactly(log_sigma):
    """Points a hair beside a half, in the middle and farther out."""
    sigma, places = 2**log_sigma, []
    rng = np.random.default_rng(log_sigma)
    reaches = [0, 7 / sigma, 0.5, 2.5, 5.0, *abs(rng.normal(size=10) * 0.1)]
    with mpmath.workdps(60):
        for whole in {round(reach * sigma) for reach in reaches}:
            for away in (*BESIDE, *(-b for b in BESIDE)):
                x = (mpmath.mpf(2 * whole + 1) / 2 + away) / sigma
                u = mpmath.erfc(x / mpmath.sqrt(2)) / 2
                place = int(mpmath.floor(u * mpmath.mpf(2) ** 128))
                hairs = (-1, 1) if away == 0 else (0,)
                places += [(whole, place + hair) for hair in hairs]
    words = [divmod(place, 2**64) for _, place in places]
    first = np.array([high for high, _ in words], np.uint64)
    second = np.array([low for _, low in words], np.uint64)
    wanted = [exact(high, low, sigma**2) for high, low in words]
    noise = Noise(SEED)
    assert noise._rounded(first, second, sigma**2).tolist() == wanted
    negative = noise._rounded(first + np.uint64(2**63), second, sigma**2)
    assert negative.tolist() == [-k for k in wanted]
    sides = {k - whole for (whole, _), k in zip(places, wanted, strict=True)}
    assert sides == {0, 1}


def test_the_inverse_is_as_good_as_is_relied_on():
    """`_ROUNDING` assumes scipy's inverse to 1e-12; it has about 1e-15."""
    near = np.concatenate(
        [2.0 ** -np.arange(2, 127, 0.9), np.linspace(1e-3, 0.4999, 99)]
    )
    with mpmath.workdps(60):
        for u, found in zip(near, ndtri(near), strict=True):
            wanted = -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(float(u)))
            assert abs(float(found / wanted - 1)) < 1e-13


# The tail


class Scripted:
    """A stream whose first draw has these digits of u, and then digits of its own."""

    def __init__(self, digits: int, count: int, *, is_negative: bool = False):
        self.digits, self.count = digits, count
        self.sign, self.asked = int(is_negative) << 127, []

    def key_stream(self, seed, block=0):
        assert seed == SEED
        return lambda n: b"".join(self.block(block + i) for i in range(n // 16))

    def block(self, number):
        """Block 0 has the first 127 digits, and each block 2^64 on 128 more."""
        self.asked.append(number)
        more, draw = divmod(number, 2**64)
        assert draw == 0
        end = 127 + 128 * more
        # Behind the digits that were given come others, as in a stream.
        others = int.from_bytes(np.random.default_rng(0).bytes(256))
        shifted = (self.digits << 2048 | others) >> self.count + 2048 - end
        word = shifted % 2**128 if more else shifted % 2**127 | self.sign
        return (word >> 64).to_bytes(8, "little") + (word % 2**64).to_bytes(8, "little")


@pytest.fixture
def draw_of(monkeypatch):
    """The draw of a stream that begins with these digits behind the point of 2u."""

    def draw(digits, count, variance, **sign):
        stream = Scripted(digits, count, **sign)
        monkeypatch.setattr(exact_sum, "key_stream", stream.key_stream)
        [number] = Noise(SEED).draw(variance, 1).tolist()
        assert all(block % 2**64 == 0 for block in stream.asked)
        assert stream.asked == sorted(set(stream.asked))
        return number

    return draw


def edge(number, variance, count):
    """The first digits of 2u, where -σ Φ⁻¹(u) is number + ½."""
    with mpmath.workdps(200):
        half = mpmath.mpf(2 * number + 1) / 2
        twice = mpmath.erfc(half / mpmath.sqrt(2 * mpmath.mpf(variance)))
        return int(mpmath.floor(mpmath.ldexp(twice, count)))


@pytest.mark.parametrize("sigma", [1, 2**12, 2**31])
@pytest.mark.parametrize("zeros", [31, 32, 33, 63, 64, 100, 126, 127, 200, 255, 300])
def test_however_small_u_is_the_draw_is_the_exact_one(draw_of, sigma, zeros):
    rng = np.random.default_rng(zeros)
    digits, count = 2**200 + int.from_bytes(rng.bytes(25)), zeros + 201
    k = draw_of(digits, count, sigma**2)
    assert k >= 6 * sigma
    assert edge(k, sigma**2, count) < digits < edge(k - 1, sigma**2, count)
    assert draw_of(digits, count, sigma**2, is_negative=True) == -k


@pytest.mark.parametrize("number", [0, 700, 6301, 9000, 12_700, 13_200, 25_000])
def test_where_127_digits_do_not_decide_more_of_them_do(draw_of, number):
    """On both sides of an edge, however close, in the middle and in the tail.

    Draws fall as u grows: so every number has the mass that the normal gives it, none
    is missing and none too rare. The old noise had holes, and ended at 13,109.
    """
    variance = 1000**2
    zeros = 600 - edge(number, variance, 600).bit_length()
    for count in (zeros + 40, zeros + 120, zeros + 250):
        place = edge(number, variance, count)
        assert draw_of(place - 1, count, variance) == number + 1
        assert draw_of(place + 1, count, variance) == number


def test_every_draw_has_blocks_of_its_own(monkeypatch):
    """Whatever draws were asked for before, and however many at once."""
    asked, real = [], exact_sum.key_stream

    def stream(seed, block=0):
        asked.append(block)
        return real(seed, block)

    monkeypatch.setattr(exact_sum, "key_stream", stream)
    monkeypatch.setattr(exact_sum, "_DEEP", 2**60)  # an eighth of all
    monkeypatch.setattr(exact_sum, "_LEAST_DIGITS", 129)  # and all of these go on
    whole, together = Noise(SEED).draw(10**6, 200), [*asked]
    asked.clear()
    monkeypatch.setattr(exact_sum, "_AT_ONCE", 7)
    parts = Noise(SEED)
    several = [parts.draw(10**6, n) for n in (1, 0, 99, 100)]
    np.testing.assert_array_equal(np.concatenate(several), whole)
    assert asked == together
    continued = [block for block in together if block]
    assert len(continued) > 10
    assert {block >> 64 for block in continued} == {1}
    assert len({*continued}) == len(continued)
    assert max(block % 2**64 for block in continued) < 200


def old_draw(digits, count, variance):
    """The noise that ended: u was the middle of 2^-128, and nothing followed."""
    first = digits << 127 >> count
    u = (first + 0.5) * 2.0**-128
    return round(-math.sqrt(variance) * float(ndtri(u)))


def mass_from(number, variance, draw):
    """Pr[k >= number] as a sampler has it: draws fall as u grows."""
    if number <= 0:
        return 1 - mass_from(1 - number, variance, draw)
    count = 400  # first digits of 2u
    low, high = -1, 2**count
    ideal = edge(number - 1, variance, count)
    if draw(ideal - 1, count, variance) >= number > draw(ideal + 1, count, variance):
        low, high = ideal - 1, ideal
    while high - low > 1:
        middle = (low + high) // 2
        reached = draw(middle, count, variance) >= number
        low, high = (middle, high) if reached else (low, middle)
    return mpmath.mpf(high) / mpmath.mpf(2) ** (count + 1)


def most_gained(epsilon, mu, draw):
    """How far an attacker is beyond e^epsilon who says "there" above a threshold."""
    sigma, gains = 2**12, []
    for reach in (12.4, 13.1087, 13.3, 18.5):
        far = round(reach * sigma)
        hits = mass_from(far - round(mu * sigma), sigma**2, draw)
        alarms = mass_from(far, sigma**2, draw)
        gains.append(float(hits - mpmath.exp(epsilon) * alarms))
    return max(gains)


@pytest.mark.parametrize("epsilon", [16, 40, 60, 100, 200])
def test_no_threshold_tells_more_than_the_ideal_noise(draw_of, epsilon):
    """The attack on noise that ends: "there", when beyond what noise alone reaches."""
    mu = 1 / gaussian_noise(epsilon, delta=1e-6)
    assert most_gained(epsilon, mu, draw_of) <= 1e-6
    if epsilon >= 100:
        assert most_gained(epsilon, mu, old_draw) > (0.9 if epsilon == 200 else 1e-3)


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


def test_noise_beyond_double_precision_is_refused():
    assert abs(Noise(SEED).draw(2**96 - 1, 3)).max() > 2**40
    with pytest.raises(BadValue, match=r"variance=\d+ must be < 2\^96.*fewer steps"):
        Noise(SEED).draw(2**96, 3)
