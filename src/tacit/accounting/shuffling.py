"""Amplification by shuffling: the clones bound, composed by loss distribution.

A report of pure local eps0 is, with probability e^-eps0, drawn as if it were the
victim's own: a clone (Feldman, McMillan and Talwar 2021). Among n reports the server
then sees counts of which C ~ Bin(n - 1, e^-eps0) are clones, half on each side:

    c = C clones, a = A + victim on the first side,  A ~ Bin(c, 1/2)
    pi     e^eps0 / (1 + e^eps0)
    mass   pi · Bin(a - 1; c, 1/2) + (1 - pi) · Bin(a; c, 1/2)
    loss   log((pi a + (1 - pi)(c + 1 - a)) / ((1 - pi) a + pi (c + 1 - a)))

The sharper constant of the 2022 sequel has an erratum and is not used.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import expit

from tacit import check
from tacit.accounting.lattice import Lattice

STEP = 1e-5  # of the losses of one report, before composition
_MOST_STEPS = 1e6  # on either side of zero: 16 MB of masses
_IGNORED = 1e-14  # mass of counts that are not looked at; it is given to infinity
_TOLD_APART = 4096  # counts of clones are rounded down by one in so many
_BLOCK = 64  # counts looked at together: it bounds the memory of their table

Counts = Int64[np.ndarray, "counts"]


@lru_cache(maxsize=8)
def shuffled(epsilon: float, reports: int) -> Lattice:
    """The loss of one shuffled report among `reports`, rounded up to `STEP` or so."""
    check.positive(epsilon=epsilon)
    check.count(reports=reports)
    step = max(STEP, epsilon / _MOST_STEPS)
    reach = math.ceil(epsilon / step)  # no loss is beyond eps0
    masses = np.zeros(2 * reach + 1)
    clones, weights = _clones(epsilon, reports)
    for start in range(0, len(clones), _BLOCK):
        block = slice(start, start + _BLOCK)
        losses, mass = _given(clones[block], epsilon=epsilon)
        places = np.minimum(np.ceil(losses / step).astype(np.int64), reach) + reach
        weighed = mass * weights[block, None]
        masses += np.bincount(places.ravel(), weighed.ravel(), len(masses))
    return Lattice(step, -reach, masses, max(0.0, 1.0 - float(masses.sum())))


def _clones(
    epsilon: float, reports: int
) -> tuple[Counts, Float64[np.ndarray, "counts"]]:
    """The likely numbers of clones, not too many of them, and their probabilities.

    Counts in between are taken for the next lower one. That is an upper bound: c + 1
    clones are made from c by adding one, which looks at nobody's data.
    """
    from scipy.stats import binom  # a third of a second, and few plans have a relay

    clones = binom(reports - 1, math.exp(-epsilon))
    low, high = max(0, int(clones.ppf(_IGNORED))), int(clones.isf(_IGNORED))
    stride = 1 + low // _TOLD_APART
    counts = np.arange(low, high + 1, stride)
    return counts, -np.diff(clones.sf(counts - 1), append=0.0)


def _given(
    clones: Counts, *, epsilon: float
) -> tuple[Float64[np.ndarray, "counts firsts"], Float64[np.ndarray, "counts firsts"]]:
    """Losses, and their masses, for each number of clones."""
    from scipy.stats import binom

    # Hoeffding: further from the middle than this has probability below _IGNORED
    reach = math.ceil(math.sqrt(clones.max() * math.log(2 / _IGNORED) / 2)) + 1
    c = clones[:, None]
    firsts = c // 2 + np.arange(-reach - 1, reach + 2)
    chance = np.asarray(binom.pmf(firsts, c, 0.5))
    pi, first = expit(epsilon), np.clip(firsts[:, 1:], 0, c + 1)  # no mass outside
    second = c + 1 - first
    mass = pi * chance[:, :-1] + expit(-epsilon) * chance[:, 1:]
    ahead = pi * first + expit(-epsilon) * second
    behind = expit(-epsilon) * first + pi * second
    return np.log(ahead / behind), mass
