"""Draws that the audit decides by itself, against those of the product."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.audits import stream_draws
from tacit.audits.stream_draws import Draw, Segment, blocks, foreign_draws
from tacit.cipher import key_stream
from tacit.exact_sum import Noise

SECRET = bytes(range(32))
VARIANCES = [1, 3, 1000**2, 2 * 65_536**2, 2**60]


def test_the_draws_that_are_published():
    """The example of `tacit.exact_sum.Noise`."""
    numbers = np.array([-482, -261, -705, 896])
    assert foreign_draws(SECRET, [Segment(numbers, 1000**2)]) == 0


@pytest.mark.parametrize("variance", VARIANCES)
def test_honest_draws_are_the_streams_and_no_neighbour_is(variance):
    numbers = Noise(SECRET).draw(variance, 300)
    assert foreign_draws(SECRET, [Segment(numbers, variance)]) == 0
    for change in (1, -1):
        assert foreign_draws(SECRET, [Segment(numbers + change, variance)]) == 300
    assert foreign_draws(SECRET, [Segment(-numbers, variance)]) == (numbers != 0).sum()
    assert foreign_draws(SECRET, [Segment(numbers, variance)], first=1) > 200 * (
        variance > 3
    )


def test_draws_are_counted_over_all_segments():
    noise = Noise(SECRET)
    parts = [(1000**2, 7), (2 * 1000**2, 5), (10**10, 9)]
    honest = [Segment(noise.draw(v, n), v) for v, n in parts]
    assert foreign_draws(SECRET, honest) == 0
    restarted = [Segment(Noise(SECRET).draw(v, n), v) for v, n in parts]
    assert foreign_draws(SECRET, restarted) > 10
    assert foreign_draws(SECRET, honest[1:], first=7) == 0


def test_long_segments_are_read_in_pieces(monkeypatch):
    monkeypatch.setattr(stream_draws, "_AT_ONCE", 64)
    numbers = Noise(SECRET).draw(10**6, 300)
    assert foreign_draws(SECRET, [Segment(numbers, 10**6)]) == 0
    numbers[200] += 1
    assert foreign_draws(SECRET, [Segment(numbers, 10**6)]) == 1


@pytest.mark.parametrize("number", [0, 1, 255, 2**32, 5 + 2**64, 5 + (3 << 64)])
def test_blocks_are_those_of_counter_mode(number):
    raw = key_stream(SECRET, number)(48)
    assert blocks(SECRET, number, 3).astype("<u8").tobytes() == raw


@pytest.mark.parametrize("number", [0, 1, 3])
def test_what_a_block_leaves_open_is_decided_by_the_blocks_that_follow(number):
    """A u whose first digits are those of the mass beyond a half step."""
    import mpmath

    variance, seen = 4, set()
    with mpmath.workprec(400):
        mass = mpmath.ncdf(-(number + mpmath.mpf(1) / 2) / 2)
        whole = int(mpmath.floor(mpmath.ldexp(mass, 128)))
        rest = mpmath.ldexp(mass, 128) - whole
        for draw in range(20):
            [[high, low]] = blocks(SECRET, draw + 2**64).tolist()
            is_beyond = mpmath.ldexp((high << 64) + low, -128) < rest
            nearest = number + bool(is_beyond)
            seen.add(nearest)
            for tried in (number, number + 1):
                found = Draw(SECRET, draw, whole).rounds_to(tried, variance)
                assert found == (tried == nearest)
    assert len(seen) == 2
