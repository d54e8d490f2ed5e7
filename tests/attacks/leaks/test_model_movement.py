"""The score, by hand; whom it finds is tested with the attack on PrivRec."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.attacks.leaks.model_movement import likeness
from tacit.transport.messages import Broadcast
from tacit.tree import Array, Tree


def broadcast(**weights: Array) -> Broadcast:
    return Broadcast(0, bytes(16), weights)


BEFORE = broadcast(a=np.zeros((2, 2), np.float32), b=np.ones(3), other=np.zeros(1))
MOVED = np.array([[3.0, 0.0], [0.0, 4.0]])


def test_whoever_moved_the_model_alone_is_as_alike_as_can_be() -> None:
    """sqrt(n), for n weights; its opposite has the opposite."""
    after = broadcast(a=MOVED.astype(np.float32), b=np.ones(3), other=np.ones(1))
    sent = Tree.dense(a=np.stack([MOVED, -2 * MOVED, np.eye(2)[::-1], 0 * MOVED]))
    found = likeness(sent, BEFORE, after)
    assert found == pytest.approx([2.0, -2.0, 0.0, 0.0])


def test_each_leaf_counts_by_how_loud_it_is() -> None:
    after = broadcast(a=MOVED, b=1 + 10 * np.ones(3), other=np.zeros(1))
    sent = Tree.dense(a=np.ones((1, 2, 2)), b=np.array([[1.0, 0.0, 0.0]]))
    loud_a, loud_b = 25 / 4, 100.0
    product, square = 7 / loud_a + 10 / loud_b, 4 / loud_a + 1 / loud_b
    assert likeness(sent, BEFORE, after) == pytest.approx([product / square**0.5])


def test_the_step_of_the_server_cancels() -> None:
    sent = Tree.dense(a=np.arange(8.0).reshape(2, 2, 2), b=np.ones((2, 3)))
    near, far = (
        broadcast(a=step * MOVED, b=1 + step * np.arange(3.0), other=np.zeros(1))
        for step in (1.0, 7.0)
    )
    found = likeness(sent, BEFORE, near)
    np.testing.assert_allclose(found, likeness(sent, BEFORE, far), rtol=1e-12)


def test_what_did_not_move_or_is_no_weight_says_nothing() -> None:
    sent = Tree.dense(b=np.ones((2, 3)), is_within_clip=np.ones(2))
    assert likeness(sent, BEFORE, BEFORE).tolist() == [0.0, 0.0]
