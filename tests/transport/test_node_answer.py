"""What a node answers, as bytes: nothing else is read as an answer."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadMessage, BadValue
from tacit.transport.node_answer import Kind, NodeAnswer, Share

ANSWER = NodeAnswer(Kind.REPORTS, Share(2, 5), (b"one", b"", b"three"), 7, 6)


@given(
    st.sampled_from(Kind),
    st.lists(st.binary(max_size=20), max_size=4),
    st.integers(0, 2**64 - 1),
    st.booleans(),
)
def test_it_reads_what_it_wrote(kind, messages, asked, is_release):
    made = NodeAnswer(
        kind,
        Share(0, 3),
        tuple(messages),
        asked=asked,
        is_release=is_release,
        store=bytes(range(16)),
    )
    assert NodeAnswer.decode(made.encode()) == made


def changed(place, form, value):
    content = bytearray(ANSWER.encode())
    struct.pack_into(form, content, place, value)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "0 bytes are too few"),
        (b"x" * 60, "does not begin"),
        (changed(6, "<B", 2), "does not begin"),
        (changed(7, "<B", 1), "does not begin"),
        (changed(4, "<B", 0), "version 0; this program reads version 2"),
        (changed(4, "<B", 9), "version 9; this program reads version 2"),
        (changed(5, "<B", 4), "kind 4"),
        (changed(8, "<I", 5), "part=5"),
        (changed(12, "<I", 0), "parts=0"),
        (changed(48, "<I", 2**31), "2,147,483,648 messages"),
        (changed(48, "<I", 4), "ends before"),
        (changed(48, "<I", 2), "stand after"),
        (changed(52, "<Q", 8 * 10**11), "800,000,000,000 bytes is announced"),
        (ANSWER.encode() + b"!", "stand after"),
        (ANSWER.encode()[:-1], "is announced"),
    ],
)
def test_all_else_is_refused(content, complaint):
    with pytest.raises(BadMessage, match=complaint):
        NodeAnswer.decode(content)


@given(st.binary(max_size=80))
def test_whatever_the_bytes_are_it_is_an_answer_or_refused(content):
    for tried in (content, ANSWER.encode()[:52] + content):
        try:
            found = NodeAnswer.decode(tried)
        except BadMessage:
            continue
        assert found.encode() == tried


def test_a_refusal_says_why_in_few_words():
    made = NodeAnswer.refusal(Share(0, 1), "no " * 1000)
    assert NodeAnswer.decode(made.encode()).reason == ("no " * 1000)[:500]
    sly = NodeAnswer.refusal(Share(0, 1), "no\x1b[2J\nround 0: \u202eall is well")
    assert sly.reason == "no\\x1b[2J\\nround 0: \\u202eall is well"
    odd = NodeAnswer(Kind.REFUSAL, Share(0, 1), (b"\xff" * 9000,))
    assert len(odd.reason) == 500


def test_a_share_is_one_of_its_parts():
    assert str(Share(0, 4)) == "part 0 of 4"
    for part, parts in ((4, 4), (-1, 4), (0, 0)):
        with pytest.raises(BadValue, match="part"):
            Share(part, parts)
