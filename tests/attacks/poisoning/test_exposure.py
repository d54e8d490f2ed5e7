"""Exposure by hand."""

import numpy as np
import pytest

from tacit.attacks.poisoning import exposure
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.errors import BadValue


def shards(histories):
    users = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
    items = np.concatenate([np.array(h, int) for h in histories])
    return Shards.of(
        Interactions.of_columns(users, items, n_users=len(histories), n_items=5)
    )


# user 1 has item 0, user 2 shall find it: it is nothing to the other two
USERS = Heldout(
    np.arange(4), shards([[4], [0], [4], [4]]), shards([[1], [1], [0], [1]])
)


def test_only_strangers_of_the_item_count():
    scores = np.tile([9.0, 1, 2, 3, 4], (4, 1))
    scores[3] = [0, 1, 2, 3, 4]  # this one is not shown item 0

    def score(history):
        return scores

    found = exposure(score, USERS, 0, k=1)
    assert (found.mean, found.n) == (0.5, 2)
    assert exposure(score, USERS, 0, k=4).mean == 1.0


def test_ties_count_as_their_chance():
    """Of four candidates with one score two are shown: a half each."""
    found = exposure(lambda history: np.zeros((4, 5)), USERS, 0, k=2)
    assert found.mean == pytest.approx(0.5)


def test_what_cannot_be():
    with pytest.raises(BadValue, match=r"item=5 must be in \[0, 5\)"):
        exposure(lambda history: np.zeros((4, 5)), USERS, 5)
    same = Heldout(USERS.users, USERS.history, shards([[1]] * 4))
    with pytest.raises(BadValue, match="everybody has item 1"):
        exposure(lambda history: np.zeros((4, 5)), same, 1)
