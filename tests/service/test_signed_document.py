"""Documents of two operators: signatures first, one form, and a chain."""

from dataclasses import dataclass

import pytest

from tacit.errors import BadMessage, BadValue, Refused
from tacit.service.signed_document import (
    MOST_BYTES,
    canonical,
    check_chain,
    from_base64,
    parsed,
    signature,
    signed_by,
    signing_public_key,
    text,
    whole,
    with_signatures,
)

KEYS = {"one": bytes([1]) * 32, "two": bytes([2]) * 32}
PUBLIC = {name: signing_public_key(key) for name, key in KEYS.items()}


@dataclass(frozen=True)
class Note:
    """A document with one number, and its place in a chain."""

    round: int
    previous: bytes = b""

    def document(self) -> bytes:
        return canonical({"n": self.round, "p": self.previous.hex()})

    @property
    def round_id(self) -> bytes:
        return bytes([self.round]) * 32


def read(made):
    return Note(whole(made["n"]), bytes.fromhex(text(made["p"])))


def sent() -> bytes:
    note = Note(3)
    both = {name: signature(note, key) for name, key in KEYS.items()}
    return with_signatures(note, **both)


def test_what_both_signed_is_read():
    assert parsed(signed_by(sent(), "note", **PUBLIC), read, what="note") == Note(3)


def test_every_changed_byte_is_found():
    whole_ = sent()
    for place in range(len(whole_)):
        broken = whole_[:place] + bytes([whole_[place] ^ 1]) + whole_[place + 1 :]
        with pytest.raises(BadMessage, match="has not signed this note"):
            signed_by(broken, "note", **PUBLIC)


def test_one_key_for_both_and_too_much_are_refused():
    with pytest.raises(BadValue, match="one operator"):
        signed_by(sent(), "note", one=PUBLIC["one"], two=PUBLIC["one"])
    with pytest.raises(BadMessage, match="at most"):
        signed_by(bytes(MOST_BYTES + 1), "note", **PUBLIC)
    with pytest.raises(BadValue, match="63 bytes"):
        with_signatures(Note(3), one=bytes(63))


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b'{"n":3}',
        b'{"n": 3,"p":""}',
        b'{"n":3.0,"p":""}',
        b'{"n":true,"p":""}',
    ],
)
def test_another_form_is_refused(document):
    with pytest.raises(BadMessage, match="a note"):
        parsed(document, read, what="note")


@pytest.mark.parametrize("value", [-1, 2**53, True, "1", 1.0])
def test_whole_numbers_are_those_that_every_reader_has(value):
    with pytest.raises(BadValue):
        whole(value)


def test_base64_and_texts_are_checked():
    with pytest.raises(BadValue):
        from_base64("?")
    with pytest.raises(BadValue):
        text(1)


@pytest.mark.parametrize(
    ("note", "known", "said"),
    [
        (Note(1, bytes(32)), {1: bytes(32)}, "two manifests"),
        (Note(0, bytes(32)), {}, "follows another"),
        (Note(1), {}, "follows no other"),
        (Note(2, bytes([9]) * 32), {1: bytes([1]) * 32}, "not known"),
    ],
)
def test_a_fork_is_refused(note, known, said):
    with pytest.raises(Refused, match=said):
        check_chain(note, known)


def test_a_chain_is_followed():
    check_chain(Note(0), {})
    check_chain(Note(2, bytes([1]) * 32), {1: bytes([1]) * 32})
    check_chain(Note(2, bytes([1]) * 32), {})
