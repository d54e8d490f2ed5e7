"""Clicks above what was expected, item by item, and what noise leaves of them.

    x_u   a user's clicks less the expected ones: clicked - (clicks / shown of a slate)
    t     the noisy sum of x_u over users, each of norm 1 at the most
    s     deviation of the noise on each number of t, which is public

Most news of a catalog were not shown lately, and their sum is noise alone. So a sum is
taken to come from one of two kinds: nothing but noise, or an effect from N(0, τ²) and
noise. The share π of the second kind and τ follow from all sums by expectation
maximisation, and the effect of an item is what is expected of it then, in units of τ:

    effect(t) = P(shown | t) · τ² / (τ² + s²) · t / τ

If noise exceeds what is there, τ is found to be zero and so is every effect. All of it
is computed from released sums and the known noise, so it costs no privacy.

Source: Johnstone and Silverman 2004, empirical Bayes of sparse normal means.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Float64

from tacit.data.impressions import Impressions

_STEPS = 60  # of expectation maximisation
_LEAST = 1e-3  # of the noise's variance: an effect that is as good as none


def excess_clicks(impressions: Impressions) -> Float32[np.ndarray, "users items"]:
    """Each user's clicks less the expected ones, scaled down to norm 1 if longer."""
    slates = impressions.slates
    shown, owners = slates.shown, slates.shown.owners
    expected = impressions.n_clicked / np.maximum(shown.lengths, 1)
    values = impressions.clicked - expected[owners]
    cells = (values, (slates.users[owners], shown.values))
    gain = sp.csr_array(cells, shape=(slates.n_users, slates.n_items)).toarray()
    norms = np.linalg.norm(gain, axis=1, keepdims=True)
    return (gain / np.maximum(norms, 1.0)).astype(np.float32)


def click_effects(
    sums: Float64[np.ndarray, "items"], *, deviation: float
) -> Float64[np.ndarray, "items"]:
    """The expected effect of each item, in units of a usual effect.

    >>> click_effects(np.array([3.0, -3.0, 0.0]), deviation=0.0)
    array([ 1., -1.,  0.])
    >>> click_effects(np.array([0.5, -0.7, 0.1]), deviation=1.0)
    array([0., 0., 0.])
    """
    some = sums[sums != 0]
    if not len(some):
        return np.zeros(len(sums))
    if deviation == 0:
        return sums / np.sqrt(np.mean(some**2))
    noise = deviation**2
    share, signal = _two_kinds(sums, noise)
    if signal <= _LEAST * noise:
        return np.zeros(len(sums))
    kept = _chance_shown(sums, share, signal, noise) * signal / (signal + noise)
    return kept * sums / np.sqrt(signal)


def _two_kinds(sums: Float64[np.ndarray, "items"], noise: float) -> tuple[float, float]:
    """The share π of items with an effect, and the variance τ² of effects."""
    excess = float(np.mean(sums**2)) - noise
    share, signal = 0.5, max(2 * excess, 0.0)
    for _ in range(_STEPS):
        if signal <= 0:
            return share, 0.0
        chance = _chance_shown(sums, share, signal, noise)
        share = float(np.mean(chance))
        found = float(chance @ sums**2) / max(float(chance.sum()), 1e-12)
        signal = max(found - noise, 0.0)
    return share, signal


def _chance_shown(
    sums: Float64[np.ndarray, "items"], share: float, signal: float, noise: float
) -> Float64[np.ndarray, "items"]:
    """The probability that a sum has an effect in it, by Bayes' rule."""
    total = signal + noise
    # Logarithm of the ratio of both densities at a sum, times the prior odds.
    ratio = 0.5 * (np.log(noise / total) + sums**2 * (1 / noise - 1 / total))
    odds = np.log(max(share, 1e-12)) - np.log(max(1 - share, 1e-12)) + ratio
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -500, 500))))
