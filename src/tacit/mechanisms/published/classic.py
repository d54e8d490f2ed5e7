"""The textbook Gaussian mechanism, as two of the papers use it."""

from __future__ import annotations

import math

from tacit import check


def classic_sigma(epsilon: float, *, delta: float, sensitivity: float = 1.0) -> float:
    """The textbook noise of the Gaussian mechanism, sqrt(2 ln(1.25 / delta)) / epsilon.

    Guarantee: (`epsilon`, `delta`) for epsilon < 1; beyond, what the accountant finds
        for this much noise.
    Assumes: one release.
    Source: Dwork and Roth 2014, Theorem A.1.
    """
    check.positive(epsilon=epsilon, sensitivity=sensitivity)
    check.fraction(delta=delta)
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
