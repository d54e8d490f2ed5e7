"""Figures that move with a crowd and with nobody in it."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.service.federation.coarse import (
    STEP,
    down_to,
    floored,
    quantiles,
    queue_step,
)

COUNTS = st.integers(0, 10**6)


@given(COUNTS, st.integers(1, 5000))
def test_a_count_is_hidden_below_the_minimum_and_else_a_multiple(count, least):
    shown = floored(count, least)
    assert (shown is None) == (count < least)
    assert shown is None or (shown % STEP == 0 and 0 <= count - shown < STEP)


def test_what_is_not_known_is_hidden():
    assert floored(None, 1) is None


@given(COUNTS, st.sampled_from([1, STEP, 3600]))
def test_one_more_seldom_shows(count, step):
    moved = down_to(step, count + 1) - down_to(step, count)
    assert moved in (0, step)
    assert moved == 0 or (count + 1) % step == 0


@given(st.integers(0, 2**26))
def test_a_queue_moves_with_no_fewer_than_fifty_reports(largest):
    assert queue_step(largest) >= max(STEP * largest, 16 * 2**20)


@given(st.integers(0, 900), st.randoms(use_true_random=False))
def test_quantiles_move_only_with_a_full_fifty(count, chance):
    """An aggregator remembers the last 256 durations."""
    every = [chance.random() for _ in range(count + 1)]
    before, after = (every[:n][-256:] for n in (count, count + 1))
    is_full = (count + 1) % STEP == 0
    if not is_full:
        assert quantiles(before, count) == quantiles(after, count + 1)
    assert (quantiles(before, count) is None) == (count < STEP)


def test_quantiles_are_those_of_the_durations():
    seconds = [n / 100 for n in range(1, 101)]
    assert quantiles(seconds, 100) == (0.51, 1.0)
