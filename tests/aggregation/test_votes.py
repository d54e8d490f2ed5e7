"""Votes: whatever bytes arrive, what exists is counted, in whole numbers."""

import numpy as np
import pytest

from tacit.aggregation.votes import Votes, tally
from tacit.errors import Refused
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key
from tacit.transport.channels import Each, RoundContext, Sum, Unlinked
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Tree

LAYOUT = Layout({"votes": Slot("int32", (3,))}, split_axis=0)
CONTEXT = RoundContext(LAYOUT, Key.from_seed(0))
SAID = np.array([[1, 3, -2], [1, -3, 0]], np.int32)


def test_votes_for_no_coordinate_count_as_none():
    """Whatever bytes a client sends, the server counts what exists."""
    votes = np.array([1, -1, 3, 3, -2, 0, 4, -4, 2**31 - 1, -(2**31)], np.int32)
    assert tally(votes, 3).tolist() == [0, -1, 2]


def test_twins_count_alike(monkeypatch):
    votes = np.random.default_rng(1).integers(-12, 13, (500, 7)).astype(np.int32)
    plain = tally(votes, 10)
    monkeypatch.setitem(TABLE, "one_bit.tally", TABLE["one_bit.tally"].at(0))
    np.testing.assert_array_equal(tally(votes, 10), plain, strict=True)
    legal = votes[np.abs(votes) <= 10]
    assert plain.sum() == (legal > 0).sum() - (legal < 0).sum()


def test_who_said_what_does_not_matter():
    """In one chunk, in two, or cut into messages by a relay."""
    whole = Reports(Tree.dense(votes=SAID))
    mixed = Tree.dense(votes=SAID.ravel()[[4, 1, 0, 5, 3, 2]])
    for delivery in (
        Each([whole]),
        Each([whole.select([1]), Reports.nobody(), whole.select([0])]),
        Unlinked(mixed, contributors=2),
    ):
        found = Votes(3).total(delivery, CONTEXT)
        assert found["votes"].tolist() == [2, -1, 0]
        assert found["votes"].dtype == np.int64


def test_nobody_has_no_votes():
    assert Votes(3).total(Each([]), CONTEXT)["votes"].tolist() == [0, 0, 0]


def test_votes_cannot_be_read_from_a_sum():
    assert Sum not in Votes(3).accepts
    with pytest.raises(Refused, match="votes cannot be read from a sum"):
        Votes(3).total(Sum({"votes": SAID.sum(axis=0)}), CONTEXT)
