"""A seal opens with its key, its info and its bytes, and otherwise nowhere."""

import pytest

from tacit.errors import BadMessage, BadValue
from tacit.service.hpke import (
    SEAL_BYTES,
    new_private_key,
    opened,
    public_key,
    sealed,
)

PRIVATE = bytes([5]) * 32


def test_a_text_comes_back():
    found = sealed(b"text", public_key(PRIVATE), b"info")
    assert len(found) == 4 + SEAL_BYTES
    assert opened(found, PRIVATE, b"info") == b"text"
    assert sealed(b"text", public_key(PRIVATE), b"info") != found


def test_nothing_else_opens_it():
    found = sealed(b"text", public_key(PRIVATE), b"info")
    for seal, key, info in (
        (found, new_private_key(), b"info"),
        (found, PRIVATE, b"other"),
        (found[:-1] + bytes([found[-1] ^ 1]), PRIVATE, b"info"),
        (found[:-1], PRIVATE, b"info"),
        (bytes(len(found)), PRIVATE, b"info"),
        (b"", PRIVATE, b"info"),
    ):
        with pytest.raises(BadMessage, match="sealed otherwise"):
            opened(seal, key, info)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(32)])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(BadValue, match="no public key"):
        sealed(b"text", key, b"")
