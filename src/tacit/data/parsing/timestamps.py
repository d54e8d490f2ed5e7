"""Times as people write them, as whole seconds since 1970."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from jaxtyping import Int64

# 1e11 seconds is the year 5138, 1e11 milliseconds 1973: from there on milliseconds.
_MILLISECONDS_FROM = 1e11
_END = 1e14  # milliseconds in the year 5138, too

EXPECTED = "unix seconds or milliseconds, or ISO 8601, not before 1970"


def second(text: str) -> int:
    """The second of one time; ValueError if it is none. Without a zone it is UTC.

    >>> second("1970-01-02"), second("86400.9"), second("1700000000000")
    (86400, 86400, 1700000000)
    """
    try:
        number = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        number = zoned.timestamp()
        if number >= 0:
            return math.floor(number)
    if not 0 <= number < _END:
        raise ValueError(text)
    return math.floor(number / 1000 if number >= _MILLISECONDS_FROM else number)


def seconds(texts: Sequence[str]) -> Int64[np.ndarray, "events"]:
    """`second` of each; a column of numbers is converted at once."""
    try:
        numbers = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return np.array([second(text) for text in texts], np.int64)
    if not ((numbers >= 0) & (numbers < _END)).all():
        raise ValueError("out of range")
    is_milliseconds = numbers >= _MILLISECONDS_FROM
    return np.floor(np.where(is_milliseconds, numbers / 1000, numbers)).astype(np.int64)
