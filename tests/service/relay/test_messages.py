"""Reports to messages of equal length and back, and what no honest client sends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadMessage, Refused
from tacit.keys import Key
from tacit.service.relay.messages import MessageForm, in_order
from tacit.transport.channels import RoundContext, Shuffle
from tacit.transport.messages import Layout, Reports, Slot
from tacit.tree import Tree

VOTES = MessageForm(Layout({"votes": Slot("int32", (6,))}, split_axis=0))
WHOLE = MessageForm(
    Layout(
        {
            "b": Slot("float32", (3,)),
            "a": Slot("uint8", (2, 2)),
            "c": Slot("bool", (1,)),
        }
    )
)
MATRIX = MessageForm(
    Layout({"m": Slot("float64", (2, 5)), "n": Slot("int16", (3, 5))}, split_axis=1)
)


def flat_rows(form: MessageForm, tree: Tree):
    """The messages of all clients, one after the other."""
    return form.rows(tree).reshape(-1, form.message_bytes)


def votes(n: int, seed: int = 0) -> Tree:
    draw = np.random.default_rng(seed)
    return Tree.dense(votes=draw.integers(-9, 9, (n, 6), dtype=np.int32))


def test_lengths_follow_from_the_layout():
    assert (VOTES.count, VOTES.content_bytes, VOTES.message_bytes) == (6, 4, 8)
    assert (WHOLE.count, WHOLE.content_bytes, WHOLE.message_bytes) == (1, 17, 24)
    assert (MATRIX.count, MATRIX.content_bytes, MATRIX.message_bytes) == (5, 22, 24)


@given(st.integers(1, 5), st.integers(0, 100))
def test_messages_are_those_that_the_channel_delivers(n, seed):
    tree = votes(n, seed)
    found = VOTES.tree(flat_rows(VOTES, tree))["votes"]
    context = RoundContext(VOTES.layout, Key.from_seed(0))
    delivered = Shuffle().carry([Reports(tree)], context).messages["votes"]
    assert sorted(found.tolist()) == sorted(delivered.tolist())
    assert found.dtype == delivered.dtype


def test_an_uncut_report_is_one_message():
    tree = Tree.dense(
        a=np.arange(8, dtype=np.uint8).reshape(2, 2, 2),
        b=np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
        c=np.array([[True], [False]]),
    )
    found = WHOLE.tree(flat_rows(WHOLE, tree))
    for name in "abc":
        np.testing.assert_array_equal(found[name], tree[name])
        assert found[name].dtype == tree[name].dtype


def test_the_axis_of_messages_may_be_any():
    draw = np.random.default_rng(0)
    tree = Tree.dense(
        m=draw.normal(size=(4, 2, 5)),
        n=draw.integers(-5, 5, (4, 3, 5), dtype=np.int16),
    )
    found = MATRIX.tree(flat_rows(MATRIX, tree))
    np.testing.assert_array_equal(found["m"][7], tree["m"][1, :, 2])
    np.testing.assert_array_equal(found["n"][7], tree["n"][1, :, 2])


def test_numbers_that_would_spoil_a_sum_are_not_sound():
    good = flat_rows(
        WHOLE,
        Tree.dense(
            a=np.zeros((5, 2, 2), np.uint8),
            b=np.zeros((5, 3), np.float32),
            c=np.zeros((5, 1), bool),
        ),
    )
    assert WHOLE.sound(good).all()
    bad = good.copy()
    bad[0, 4:8] = np.frombuffer(np.float32("nan").tobytes(), np.uint8)
    bad[1, 4:8] = np.frombuffer(np.float32("inf").tobytes(), np.uint8)
    bad[2, 16] = 2  # a second way to say true
    bad[3, -1] = 1  # padding that says something
    assert WHOLE.sound(bad).tolist() == [False, False, False, False, True]


def test_other_reports_and_lengths_are_refused():
    with pytest.raises(BadMessage, match="declared"):
        flat_rows(VOTES, Tree.dense(votes=np.zeros((1, 5), np.int32)))
    with pytest.raises(BadMessage, match="8"):
        VOTES.tree(np.zeros((2, 9), np.uint8))
    with pytest.raises(Refused, match="must agree"):
        MessageForm(
            Layout({"a": Slot("int8", (2,)), "b": Slot("int8", (3,))}, split_axis=0)
        )
    with pytest.raises(Refused, match="nothing"):
        MessageForm(Layout({}))


@given(st.permutations(range(12)))
def test_sorted_messages_do_not_tell_in_which_order_they_came(order):
    rows = flat_rows(VOTES, votes(2))
    np.testing.assert_array_equal(in_order(rows[list(order)]), in_order(rows))
