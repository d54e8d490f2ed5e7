"""Draws that differ from those of endless random bits by a known amount.

A draw is the quantile of a tail mass in (0, 1/2) and a sign. A word gives the mass to
63 bits. If fewer than 48 of them are left behind the leading zeros, the word is
continued by others: the mass has its leading 48 bits however small it is, so that no
tail ends and none has gaps. With U the real number whose bits were all drawn,

    |draw - quantile(U)| <= ERROR (1 + |quantile(U)|)        up to FARTHEST

That takes scipy's `ndtri` and `log_ndtr` to be right within 2^-48; they are within
2^-51 in the tests, which compare with 60 digits. Laplace draws are made of the same
masses, and have no end either.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import log_ndtr, ndtri, ndtri_exp

from tacit.keys import Keys

ERROR = 2.0**-46  # four times 2^-48: the library's error, the mass's, and room
FARTHEST = 2400.0  # e^(-2400²/2) is 2^16 words of zeros
_DEEP = 2.0**-16  # masses below have fewer than 48 bits of their word
_LEAST, _MOST_WORDS = 2**48, 2**17  # digits that suffice; words that are asked for

Each = Float64[np.ndarray, "clients"]


def normal(keys: Keys, n: int) -> Float64[np.ndarray, "clients n"]:
    """`n` standard normal draws for each client."""
    words = keys.bits(n).view(np.int64)
    mass = words * 2.0**-64
    np.abs(mass, out=mass)
    rows, columns = np.nonzero(mass < _DEEP)
    draws = ndtri(mass, out=mass)
    if len(rows):
        logs = _log_deep(keys[rows].at_each(columns), words[rows, columns])
        draws[rows, columns] = quantile(logs)
    np.negative(draws, out=draws, where=words < 0)
    return draws


def laplace(keys: Keys, n: int) -> Float64[np.ndarray, "clients n"]:
    """`n` standard Laplace draws for each client: of mean size 1."""
    words = keys.bits(n).view(np.int64)
    mass = np.abs(words * 2.0**-64)
    rows, columns = np.nonzero(mass < _DEEP)
    logs = np.log(np.maximum(mass, _DEEP))
    if len(rows):
        own = keys[rows].at_each(columns)
        logs[rows, columns] = _log_deep(own, words[rows, columns])
    size = -(logs + math.log(2.0))  # twice the mass is uniform on (0, 1)
    return np.where(words < 0, -size, size)


def half_masses(keys: Keys, words: Int64[np.ndarray, "clients"]) -> tuple[Each, Each]:
    """A tail mass in (0, 1/2) from each signed word, and its logarithm."""
    mass = np.abs(words * 2.0**-64)
    deep = np.flatnonzero(mass < _DEEP)
    logs = np.log(np.maximum(mass, _DEEP))
    logs[deep] = _log_deep(keys[deep], words[deep])
    mass[deep] = np.exp(logs[deep])
    return mass, logs


def quantile(log_mass: Each) -> Each:
    """Where the normal has this mass below; logarithms, so that none is too small."""
    x = ndtri_exp(log_mass)  # within 1e-12; a step of Newton's makes it 2^-51
    found = log_ndtr(x)
    slope = np.exp(-(x**2) / 2 - math.log(2 * math.pi) / 2 - found)
    return np.asarray(x - (found - log_mass) / slope)


def _log_deep(keys: Keys, words: Int64[np.ndarray, "some"]) -> Each:
    """Logarithms of masses whose words are continued; NaN beyond `FARTHEST`."""
    more = keys.at("continued")
    found = [_continued(int(w), more[[i]]) for i, w in enumerate(words)]
    return np.array(found, np.float64)


def _continued(word: int, key: Keys) -> float:
    start, more = (word if word >= 0 else ~word), 1
    while more <= _MOST_WORDS:
        rest = int.from_bytes(key.bits(more).astype(">u8").tobytes(), "big")
        digits = (start << 64 * more) + rest
        if digits >= _LEAST:
            length = digits.bit_length()
            exponent = length - 64 * (more + 1)
            return math.log(digits / 2**length) + exponent * math.log(2.0)
        more *= 2
    return math.nan
