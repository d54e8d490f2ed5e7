"""Tests of the bytes of an answer."""

import numpy as np
import pytest

from tacit.errors import BadMessage
from tacit.service.answer import Answer, answer_bytes

VERSION = bytes(range(16))
N_ITEMS = 100


def an_answer(items, scores=None):
    down = np.linspace(1.0, -1.0, len(items)) if scores is None else np.array(scores)
    return Answer(VERSION, np.array(items, np.int32), down)


@pytest.mark.parametrize("items", [[], [3], [7, 0, 99]])
def test_what_is_decoded_is_what_was_encoded(items):
    sent = an_answer(items)
    message = sent.encode()
    found = Answer.decode(message, n_items=N_ITEMS)
    assert found.version == VERSION
    assert found.items.tolist() == items
    assert found.scores.tolist() == sent.scores.tolist()
    assert len(message) == answer_bytes(len(items))


def test_the_bytes_are_as_documented():
    assert an_answer([258], [1.0]).encode() == bytes.fromhex(
        "5441 01 00 01000000 000102030405060708090a0b0c0d0e0f02010000 000000000000f03f"
    )


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"", "0 bytes"),
        (b"TQ" + bytes(30), "begins with"),
        (b"TA\x02" + bytes(30), "begins with"),
        (an_answer([1, 2]).encode()[:-1], "47 bytes; 2 items have 48"),
        (an_answer([1, 2]).encode() + b"x", "49 bytes"),
        (an_answer([100]).encode(), "outside of the 100"),
        (an_answer([-1]).encode(), "outside of the 100"),
        (an_answer([1, 1]).encode(), "twice"),
        (an_answer([1, 2], [0.0, np.nan]).encode(), "not finite"),
        (an_answer([1, 2], [0.0, 1.0]).encode(), "from the best down"),
    ],
)
def test_what_no_server_says_is_refused(message, said):
    with pytest.raises(BadMessage, match=said):
        Answer.decode(message, n_items=N_ITEMS)
