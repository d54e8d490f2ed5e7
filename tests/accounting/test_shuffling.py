"""The clones bound: brute force, and what it must never be below."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from tacit.accounting.shuffling import _clones, _given, shuffled
from tacit.errors import BadValue


def clones_delta(eps0, n, epsilon):
    """The hockey stick of the clones pair, summed over all counts."""
    p, pi = math.exp(-eps0), 1 / (1 + math.exp(-eps0))
    total = 0.0
    for c in range(n):
        a = np.arange(c + 2)
        up, down = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
        one, other = pi * up + (1 - pi) * down, (1 - pi) * up + pi * down
        excess = np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
        total += binom.pmf(c, n - 1, p) * excess
    return total


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("at", [0.0, 0.2, 0.9])
def test_one_report_equals_brute_force(n, at):
    found = shuffled(1.0, n).distribution().get_delta_for_epsilon(at)
    exact = clones_delta(1.0, n, at)
    assert exact - 1e-12 <= found <= exact + 2e-5


def test_the_report_itself_is_never_beaten():
    """Alone in the batch, shuffling hides nothing; more company hides more."""
    deltas = [
        shuffled(1.0, n).distribution().get_delta_for_epsilon(0.3)
        for n in (1, 10, 100, 1000)
    ]
    alone = 1 / (1 + math.exp(-1.0)) * -math.expm1(0.3 - 1.0)
    assert deltas[0] == pytest.approx(alone, abs=1e-5)
    assert deltas == sorted(deltas, reverse=True)


def test_counts_are_rounded_down_only():
    """Fewer clones hide less, so a coarse count is an upper bound."""
    counts, weights = _clones(1.0, 1_000_000)
    mean = weights @ counts
    exact = 999_999 * math.exp(-1.0)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert exact * (1 - 1 / 4096) <= mean <= exact


@pytest.mark.parametrize("reports", [50_000, 5_000_000])
def test_a_large_batch_is_told_by_a_few_thousand_losses(reports):
    """Work is in proportion to them: a second for 50,000 reports, and for millions."""
    counts, _ = _clones(2.4999, reports)
    losses, _ = _given(counts[:1], epsilon=2.4999)
    assert len(counts) < 3_000, len(counts)
    assert losses.size < 30_000, losses.size


def test_nonsense_is_refused():
    for bad in [(0.0, 5), (math.nan, 5), (1.0, 0), (1.0, 2.5)]:
        with pytest.raises(BadValue):
            shuffled(*bad)
