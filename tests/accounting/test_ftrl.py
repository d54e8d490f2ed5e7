"""Banded noise: coefficients, and the sensitivity against brute force."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.accounting.ftrl import Banded, coefficients
from tacit.errors import BadValue


def test_coefficients():
    assert coefficients(1).tolist() == [1.0]
    squared = np.convolve(coefficients(50), coefficients(50))[:50]
    assert squared == pytest.approx(np.ones(50))  # (1 - x)^(-1/2), squared: 1 / (1 - x)


def test_noise_for_a_target():
    target, banded = 4.0, Banded(10, separation=20)
    noise = banded.noise(target, delta=1e-6)
    found = epsilon(banded.event(noise), delta=1e-6).value
    assert found == pytest.approx(target, abs=1e-6)
    exchanged = banded.noise(target, delta=1e-6, adjacency="replace_one")
    assert exchanged == pytest.approx(2 * noise)
    found = epsilon(banded.event(exchanged), delta=1e-6, adjacency="replace_one").value
    assert found == pytest.approx(target, abs=1e-6)


@pytest.mark.parametrize(
    ("bands", "separation", "k"), [(3, 3, 3), (2, 4, 2), (4, 4, 2)]
)
def test_no_pattern_of_participations_moves_a_run_further(bands, separation, k):
    """All legal patterns of 9 rounds; the clipped updates may point anywhere."""
    rounds, c = 9, coefficients(bands)
    strategy = sum(np.diag(np.full(rounds - j, c[j]), -j) for j in range(bands))
    limit = Banded(k, separation=separation, bands=bands).sensitivity
    furthest = 0.0
    for n in range(1, k + 1):
        for chosen in combinations(range(rounds), n):
            if all(b - a >= separation for a, b in pairwise(chosen)):
                # columns do not overlap, so signs and directions do not matter
                gram = strategy[:, chosen].T @ strategy[:, chosen]
                furthest = max(furthest, np.sqrt(np.abs(gram).sum()))
    assert furthest == pytest.approx(limit)


def test_overlapping_columns_are_refused():
    with pytest.raises(BadValue, match="bands=4 must be <= separation=3"):
        Banded(2, separation=3, bands=4)
    for bad in [(0, 3, 2), (2, 0, 1), (2, 3, 0), (1.5, 3, 2)]:
        with pytest.raises(BadValue):
            Banded(bad[0], separation=bad[1], bands=bad[2])
    with pytest.raises(BadValue):
        Banded(1, separation=20).event(0.0)
    with pytest.raises(BadValue):
        coefficients(0)
