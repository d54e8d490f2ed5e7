"""Batches and closings have one form."""

import pytest

from tacit.errors import BadMessage, BadValue
from tacit.service.relay.batches import (
    Closing,
    batch_body,
    batch_count,
    batch_epoch,
    batch_messages,
)

EPOCH = bytes(range(32))


def test_a_batch_is_messages_and_their_number():
    body = batch_body(EPOCH, b"abcdef", 3)
    assert batch_epoch(body) == EPOCH
    assert batch_count(body, sealed_bytes=3) == 2
    assert batch_messages(body, sealed_bytes=3) == [b"abc", b"def"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        batch_body(EPOCH, b"", 3),
        batch_body(EPOCH, b"abc", 3)[:-1],
        batch_body(EPOCH, b"abc", 3) + b"\0",
        batch_body(EPOCH, b"abcd", 4),
    ],
)
def test_other_bodies_are_refused(body):
    with pytest.raises(BadMessage, match="a batch of"):
        batch_messages(body, sealed_bytes=3)


def test_a_closing_has_one_form():
    made = Closing(7, (bytes(16), bytes([1]) * 16))
    assert Closing.read(made.document()) == made
    for body in (
        b"{}",
        b"[]",
        made.document() + b" ",
        made.document().replace(b"7", b"0"),
        made.document().replace(b"7", b"7.0"),
    ):
        with pytest.raises(BadMessage, match="closing"):
            Closing.read(body)


@pytest.mark.parametrize(
    "batches", [(bytes([1]) * 16, bytes(16)), (bytes(16),) * 2, (bytes(15),)]
)
def test_ids_of_batches_are_sorted_and_each_there_once(batches):
    with pytest.raises(BadValue):
        Closing(1, batches)
