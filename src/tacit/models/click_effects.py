"""Clicks above what was expected, item by item, and what noise leaves of them.

    x_u   a user's clicks less the expected ones: clicked - (clicks / shown of a slate)
    t     the noisy sum of x_u over users, each of norm 1 at the most
    s     deviation of the noise on each number of t, which is public

Most news of a catalog were not shown lately, and their sum is noise alone. So a sum is
taken to come from one of two kinds: nothing but noise, or an effect from N(0, τ²) and
noise. The share π of the second kind and τ follow from all sums by expectation
maximisation, and the effect of an item is what is expected of it then, in units of τ:

    effect(t) = asinh(P(shown | t) · τ² / (τ² + s²) · t / τ)

The inverse hyperbolic sine leaves usual effects as they are and takes the logarithm of
large ones: twenty times the usual excess counts four times as much in a logit, and not
twenty times, which would outweigh all content.

If noise exceeds what is there, τ is found to be zero and so is every effect. All of it
is computed from released sums and the known noise, so it costs no privacy.

Sources: Johnstone and Silverman 2004, empirical Bayes of sparse normal means; Schwarz
1978, "Estimating the dimension of a model", for whether there is an effect at all.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Float64

from tacit.data.impressions import Impressions

Kinds = tuple[float, float]  # share π and variance τ² of the items with an effect

# Shares of items with an effect from which the search starts. From a large share alone
# it would take thousands of steps to a small one.
_SHARES = (0.5, 0.05, 0.005, 0.0005)
_TRIED = 10  # steps of expectation maximisation from each start
_STEPS = 60  # and from the likeliest of what was found


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
    array([ 0.88137359, -0.88137359,  0.        ])
    >>> click_effects(np.array([0.5, -0.7, 0.1]), deviation=1.0)
    array([0., 0., 0.])
    """
    some = sums[sums != 0]
    if not len(some):
        return np.zeros(len(sums))
    if deviation == 0:
        return np.arcsinh(sums / np.sqrt(np.mean(some**2)))
    noise = deviation**2
    share, signal = _two_kinds(sums, noise)
    if signal == 0:
        return np.zeros(len(sums))
    kept = _chance_shown(sums, share, signal, noise) * signal / (signal + noise)
    return np.asarray(np.arcsinh(kept * sums / np.sqrt(signal)))


def _two_kinds(sums: Float64[np.ndarray, "items"], noise: float) -> Kinds:
    """The share π of items with an effect, and the variance τ² of effects.

    Both are zero unless they explain the sums better than noise alone, by more than the
    two numbers are worth (Schwarz 1978).
    """
    excess = float(np.mean(sums**2)) - noise
    starts = [(share, max(excess / share, noise)) for share in _SHARES]
    found = [_improved(sums, kinds, noise, steps=_TRIED) for kinds in starts]
    best = max(found, key=lambda kinds: _likelihood(sums, kinds, noise))
    best = _improved(sums, best, noise, steps=_STEPS)
    is_more_than_noise = _likelihood(sums, best, noise) > np.log(len(sums))
    return best if is_more_than_noise else (0.0, 0.0)


def _improved(
    sums: Float64[np.ndarray, "items"], kinds: Kinds, noise: float, *, steps: int
) -> Kinds:
    """The share and the variance after some steps of expectation maximisation."""
    share, signal = kinds
    for _ in range(steps):
        chance = _chance_shown(sums, share, signal, noise)
        share = float(np.mean(chance))
        found = float(chance @ sums**2) / max(float(chance.sum()), 1e-12)
        signal = max(found - noise, 0.0)
        if signal <= 0:
            break
    return share, signal


def _likelihood(
    sums: Float64[np.ndarray, "items"], kinds: Kinds, noise: float
) -> float:
    """Logarithm of the density of all sums over their density if all were noise."""
    share, signal = kinds
    nothing, effect = _logarithms(share)
    return float(np.sum(np.logaddexp(nothing, effect + _ratio(sums, signal, noise))))


def _chance_shown(
    sums: Float64[np.ndarray, "items"], share: float, signal: float, noise: float
) -> Float64[np.ndarray, "items"]:
    """The probability that a sum has an effect in it, by Bayes' rule."""
    nothing, effect = _logarithms(share)
    odds = effect - nothing + _ratio(sums, signal, noise)
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -500, 500))))


def _logarithms(share: float) -> tuple[float, float]:
    """Logarithms of 1 - π and of π."""
    return math.log(max(1 - share, 1e-12)), math.log(max(share, 1e-12))


def _ratio(
    sums: Float64[np.ndarray, "items"], signal: float, noise: float
) -> Float64[np.ndarray, "items"]:
    """Logarithm of the density of each sum with an effect over that of noise alone."""
    total = signal + noise
    return np.asarray(0.5 * (np.log(noise / total) + sums**2 * (1 / noise - 1 / total)))
