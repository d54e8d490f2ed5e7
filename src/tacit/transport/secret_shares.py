"""Shamir's secret sharing in the field of 2¹⁶ elements.

    s      a secret: words of 16 bits      t   the threshold
    x_j    the point of peer j, not zero   k   how many peers there are

    split    p(x) = s + a_1 x + … + a_(t-1) x^(t-1), the a_i uniform; peer j gets p(x_j)
    join     s = p(0), by Lagrange from the shares of t peers

Every word of a secret has a polynomial of its own. The shares of t - 1 peers are
uniform whatever the secret is; those of t peers give it back. Addition is xor. Products
are sums of logarithms to the base x, which generates the field modulo x¹⁶ + x¹² + x³ +
x + 1.

Source: Shamir 1979, "How to share a secret".
"""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Int64, UInt16

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key

SECRET_BYTES = 32
MOST_PEERS = 2**16 - 1  # points that are not zero
_WORDS = SECRET_BYTES // 2
_POLYNOMIAL = 0x1100B
_ORDER = 2**16 - 1  # of the multiplicative group
_LOG_OF_ZERO = 2 * _ORDER  # beyond every sum of two logarithms

Words = UInt16[np.ndarray, "secrets words"]
Points = UInt16[np.ndarray, "peers"]
Shares = UInt16[np.ndarray, "secrets peers words"]


def split(secrets: list[bytes], points: Points, *, threshold: int, key: Key) -> Shares:
    """The shares of these secrets, of 32 bytes each, for the peers at these points."""
    check.count(threshold=threshold)
    _check_points(points)
    if threshold > len(points):
        raise BadValue(
            f"threshold={threshold} of {len(points)} shares could never be met"
        )
    words = _words(secrets)
    n = words.size * (threshold - 1)
    random = key.alone().bits(-(-n // 4))[0].astype("<u8").view("<u2")[:n]
    coefficients = random.reshape(threshold - 1, *words.shape).astype(np.uint16)
    log, exp = _tables()
    shares = np.zeros((len(words), len(points), words.shape[1]), np.uint16)
    at = log[points][:, None]
    for coefficient in (*coefficients[::-1], words):  # Horner's rule
        shares = exp[log[shares] + at] ^ coefficient[:, None]
    return shares


def join(shares: Shares, points: Points) -> list[bytes]:
    """The secrets of which these are shares; as many shares as the threshold, or more.

    Shares of different secrets give something else, and nothing here can tell.
    """
    _check_points(points)
    log, exp = _tables()
    weights = _at_zero(points)
    products = exp[log[shares] + log[weights][:, None]]
    return [row.astype("<u2").tobytes() for row in np.bitwise_xor.reduce(products, 1)]


def _at_zero(points: Points) -> Points:
    """Lagrange's weight of each point for the value at zero: Π x_j / (x_j - x_i)."""
    log, exp = _tables()
    differences = log[points[:, None] ^ points].astype(np.int64)
    np.fill_diagonal(differences, 0)
    logs = log[points].astype(np.int64)
    exponents = logs.sum() - logs - differences.sum(axis=1)
    return np.asarray(exp[exponents % _ORDER])


def _check_points(points: Points) -> None:
    if 0 in points or len(np.unique(points)) < len(points):
        raise BadValue("points of shares must be distinct, and none of them zero")


def _words(secrets: list[bytes]) -> Words:
    if {len(secret) for secret in secrets} - {SECRET_BYTES}:
        raise BadValue(f"a secret to be shared has {SECRET_BYTES} bytes")
    return np.frombuffer(b"".join(secrets), "<u2").reshape(-1, _WORDS)


@cache
def _tables() -> tuple[Int64[np.ndarray, "elements"], UInt16[np.ndarray, "exponents"]]:
    """Logarithms, and powers for every sum of two; what has a zero in it is zero."""
    log = np.full(2**16, _LOG_OF_ZERO, np.int64)
    exp = np.zeros(2 * _LOG_OF_ZERO + 1, np.uint16)
    element = 1
    for exponent in range(_ORDER):
        log[element] = exponent
        exp[[exponent, exponent + _ORDER]] = element
        element <<= 1
        element ^= _POLYNOMIAL * (element >> 16)
    return log, exp
