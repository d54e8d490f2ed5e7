"""Pseudorandom streams of the proofs: HMAC-SHA256 makes a key, AES-128 the bytes.

    domain   1 ‖ identity of the circuit, 4 bytes ‖ usage, 2 bytes, big-endian
    key, iv  the halves of HMAC-SHA256(seed, length of the domain ‖ domain ‖ binder)
    stream   AES-128 in counter mode under that key, from that block on

Source: XofHmacSha256Aes128 of draft-chen-cfrg-vdaf-pine-01. A number is the next bytes
of the stream, cut to the bits of p; one that is not below p is left out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from enum import IntEnum

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tacit.proofs.field import Field, Numbers

SEED_BYTES = 32
_HALF = 16  # bytes of a key of AES-128, and of a block


class Usage(IntEnum):
    """What a stream is used for, as it stands in its domain."""

    MEASUREMENT = 1  # the helper's share of the measurement
    PROOF = 2  # the helper's share of the proofs
    JOINT = 3  # joint randomness of the circuit
    PROVE = 4  # the random values of the wires
    QUERY = 5  # the points at which a proof is queried
    JOINT_SEED = 6
    JOINT_PART = 7
    TESTS = 8  # the vectors of the wraparound tests
    TESTS_SEED = 9
    TESTS_PART = 10


Stream = Callable[[int], bytes]


def open_stream(identity: int, usage: Usage, seed: bytes, *binder: bytes) -> Stream:
    """A function that gives the next bytes of the stream."""
    domain = b"\x01" + identity.to_bytes(4, "big") + usage.to_bytes(2, "big")
    mac = hmac.new(seed, bytes([len(domain)]) + domain, hashlib.sha256)
    for part in binder:
        mac.update(part)
    key = mac.digest()
    mode = modes.CTR(key[_HALF:])
    encryptor = Cipher(algorithms.AES128(key[:_HALF]), mode).encryptor()
    return lambda n: encryptor.update(bytes(n))


def draw(field: Field, stream: Stream, n: int) -> Numbers:
    """The next `n` uniform numbers below p."""
    numbers = field.below(stream(n * field.size))
    while len(numbers) < n:
        more = field.below(stream((n - len(numbers)) * field.size))
        numbers = np.concatenate([numbers, more])
    return numbers
