from __future__ import annotations

import numpy as np
import pytest

from tacit.attacks.leaks import Attempt, Histories
from tacit.attacks.leaks.item_gradient import FOUND, ItemGradient, bits
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.release import Standing, Unit, View


@pytest.fixture(scope="module")
def histories() -> Histories:
    """200 users, 60 items, a few popular ones; nobody without items."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0.4, 0.05, 60)
    drawn = (rng.random((200, 60)) < shares).astype(np.uint8)
    drawn[:, 0] |= ~drawn.any(axis=1)
    return drawn


@pytest.fixture(scope="module")
def attempts(histories: Histories) -> tuple[Attempt, ...]:
    return ItemGradient().attack(histories, Key.from_seed(0))


def test_without_a_mechanism_the_whole_history_is_found(
    attempts: tuple[Attempt, ...],
) -> None:
    off = [attempt for attempt in attempts if not attempt.is_protected]
    assert [attempt.scores[FOUND].mean for attempt in off] == [1.0, 1.0]
    assert off == [*attempts[:2]]
    assert all(attempt.statement.epsilon is None for attempt in off)


def test_a_mechanism_leaves_little_more_than_a_guess(
    attempts: tuple[Attempt, ...],
) -> None:
    """At epsilon 1 within 5 s.e. (one-sided false alarm below 1e-6) of guessing."""
    for attempt in attempts[2:]:
        score, said = attempt.scores[FOUND], attempt.statement
        assert said.standing is Standing.PROVEN
        assert (said.unit, said.view) == (Unit.USER, View.SERVER)
        assert said.epsilon is not None
        assert score.se is not None
        if said.epsilon < 2:
            assert score.mean < score.chance + 5 * score.se
        assert score.mean < 0.8


def test_a_weak_mechanism_is_seen_through(histories: Histories) -> None:
    """The attack is no straw man: at epsilon 500 it finds nearly everything."""
    attempts = ItemGradient(epsilons=(500.0,)).attack(histories, Key.from_seed(0))
    whole, some_bits, noisy = (a.scores[FOUND] for a in attempts[2:])
    assert whole.mean > 0.9
    assert noisy.mean > 0.9
    # one bit an item: rounding to a bit loses much even without a flip
    assert some_bits.mean > some_bits.chance + 0.1


def test_guessing_alone_knows_what_is_popular(
    histories: Histories, attempts: tuple[Attempt, ...]
) -> None:
    at_random = float((histories.sum(axis=1) / histories.shape[1]).mean())
    assert attempts[0].scores[FOUND].chance > at_random


def test_epsilons_are_what_the_mechanisms_say(attempts: tuple[Attempt, ...]) -> None:
    said = [a.statement.epsilon for a in attempts[2:]]
    assert said == pytest.approx([8.0] * 3 + [1.0] * 3)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 1), (1.0, 1), (8.0, 4)])
def test_bits_share_their_total(epsilon: float, count: int) -> None:
    made = bits(epsilon, items=60)
    assert made.count == count
    assert made.total_epsilon == pytest.approx(epsilon)


def test_bad_values_are_refused() -> None:
    with pytest.raises(BadValue, match=r"epsilon=0\.0 must be > 0"):
        ItemGradient(epsilons=(0.0,))
