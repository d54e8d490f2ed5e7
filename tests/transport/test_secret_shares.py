"""Shamir's shares: a threshold of them gives a secret back, and fewer say nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.testing.statistics import assert_frequencies
from tacit.transport.secret_shares import SECRET_BYTES, join, split

SECRETS = st.lists(
    st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES), min_size=1, max_size=3
)
FALSE_ALARM = 1e-9


def points(n: int) -> np.ndarray:
    return np.arange(1, n + 1).astype(np.uint16)


def multiplied(a: int, b: int) -> int:
    """The field's product by its definition: carryless, then reduced bit by bit."""
    product = 0
    for bit in range(16):
        product ^= (a << bit) * (b >> bit & 1)
    for bit in range(31, 15, -1):
        product ^= (0x1100B << bit - 16) * (product >> bit & 1)
    return product


def value_at(coefficients, x: int) -> int:
    total = 0
    for coefficient in reversed(coefficients):
        total = multiplied(total, x) ^ coefficient
    return total


@given(SECRETS, st.integers(1, 9), st.integers(0, 9), st.integers(0, 99))
def test_any_threshold_of_shares_gives_the_secrets_back(secrets, t, more, seed):
    at = points(t + more)
    key = Key.from_seed(seed)
    shares = split(secrets, at, threshold=t, key=key.at("split"))
    some = np.sort(key.at("some").permutation(t + more)[:t])
    assert join(shares[:, some], at[some]) == secrets
    assert join(shares, at) == secrets  # more than are needed do no harm


def test_shares_are_values_of_a_polynomial_over_the_field():
    """Worked by hand: three shares decide the polynomial, and a fourth lies on it."""
    secret = bytes(range(SECRET_BYTES))
    shares = split([secret], points(4), threshold=3, key=Key.from_seed(1))[0]
    word = int.from_bytes(secret[:2], "little")
    values = [int(v) for v in shares[:, 0]]
    # p(x) = s + a x + b x²; with x = 1, 2 two equations: s+a+b and s + 2a + 4b.
    first, second = values[0] ^ word, values[1] ^ word
    inverse = next(x for x in range(1, 2**16) if multiplied(2 ^ 4, x) == 1)
    b = multiplied(second ^ multiplied(2, first), inverse)
    a = first ^ b
    assert [value_at([word, a, b], x) for x in range(1, 5)] == values


def test_one_share_less_gives_something_else():
    secret = bytes(SECRET_BYTES)
    shares = split([secret], points(5), threshold=3, key=Key.from_seed(2))
    assert join(shares[:, :3], points(3)) == [secret]
    assert join(shares[:, :2], points(2)) != [secret]


def test_a_share_is_uniform_whatever_the_secret():
    """Chi-square over the top four bits of 16,384 words of one peer, for two secrets.

    A false alarm once in 1e9.
    """
    for secret in (bytes(SECRET_BYTES), b"\xff" * SECRET_BYTES):
        keys = (Key.from_seed(3).at(number) for number in range(1024))
        words = np.concatenate(
            [split([secret], points(3), threshold=3, key=k)[0, 1] for k in keys]
        )
        seen = np.bincount(words >> 12, minlength=16)
        assert_frequencies(seen, np.full(16, 1 / 16), false_alarm=FALSE_ALARM)


def test_what_cannot_be_shared_is_refused():
    key = Key.from_seed(0)
    with pytest.raises(BadValue, match="never be met"):
        split([bytes(32)], points(3), threshold=4, key=key)
    with pytest.raises(BadValue, match="32 bytes"):
        split([b"short"], points(3), threshold=2, key=key)
    for wrong in ([0, 1], [2, 2]):
        with pytest.raises(BadValue, match="distinct"):
            split([bytes(32)], np.array(wrong, np.uint16), threshold=1, key=key)


def test_every_pair_of_three_shares_joins_alike():
    shares = split([b"x" * 32, b"y" * 32], points(3), threshold=2, key=Key.from_seed(4))
    for pair in itertools.combinations(range(3), 2):
        some = np.array(pair)
        assert join(shares[:, some], points(3)[some]) == [b"x" * 32, b"y" * 32]
