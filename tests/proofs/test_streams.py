"""The edges of streams; the vectors of `test_proof` have the published ones."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from proof_circuits import TOY

from tacit.proofs.field import FIELD32, FIELD40
from tacit.proofs.streams import Usage, draw, open_stream

SEED = bytes(range(32))


def test_a_stream_is_counter_mode_under_a_key_from_the_hash():
    domain = bytes.fromhex("01ffff10060004")
    key = hmac.new(SEED, b"\x07" + domain + b"ab", hashlib.sha256).digest()
    cipher = Cipher(algorithms.AES128(key[:16]), modes.CTR(key[16:]))
    expected = cipher.encryptor().update(bytes(100))
    stream = open_stream(0xFFFF1006, Usage.PROVE, SEED, b"a", b"b")
    assert stream(30) + stream(70) == expected


def test_circuit_usage_seed_and_binder_separate_streams():
    streams = {
        open_stream(identity, usage, seed, binder)(16)
        for identity in (0xFFFF1006, 0xFFFF7401)
        for usage in Usage
        for seed in (SEED, bytes(32))
        for binder in (b"", b"\0", b"\1")
    }
    assert len(streams) == 2 * len(Usage) * 2 * 3


@pytest.mark.parametrize("field", [TOY, FIELD32, FIELD40])
def test_a_draw_goes_on_where_numbers_were_left_out(field):
    """A quarter of the toy's bytes are not below 97, so many draws need more bytes."""
    for n in (0, 1, 7, 1000):
        stream = open_stream(1, Usage.JOINT, SEED, bytes([n % 256]))
        raw = open_stream(1, Usage.JOINT, SEED, bytes([n % 256]))(field.size * 4 * n)
        numbers = draw(field, stream, n)
        assert len(numbers) == n
        assert (numbers == field.below(raw)[:n]).all()


def test_draws_are_uniform():
    """97 cells of 1,000 each: chi-square within six deviations but once in 10⁸."""
    counts = np.bincount(
        draw(TOY, open_stream(1, Usage.JOINT, SEED), 97_000), minlength=97
    )
    assert abs(((counts - 1000) ** 2 / 1000).sum() - 96) < 6 * np.sqrt(2 * 96)
