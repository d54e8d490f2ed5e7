"""AES-256: what draws the coins and the noise that nobody may draw again.

`key_stream` gives bytes in counter mode, one after another; `blocks` gives one block
for each input, all of an array at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt64

from tacit.errors import BadValue

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext
    from cryptography.hazmat.primitives.ciphers.modes import CTR, ECB

SECRET_BYTES = 32  # the key of AES-256
_BLOCK_BYTES = 16  # of AES, whatever the key

Blocks = UInt64[np.ndarray, "blocks 2"]


def key_stream(secret: bytes, block: int = 0) -> Callable[[int], bytes]:
    """A function that gives the next bytes of counter mode, from this block on."""
    from cryptography.hazmat.primitives.ciphers import modes  # 10 ms to load

    encryptor = _encryptor(secret, modes.CTR(block.to_bytes(_BLOCK_BYTES, "big")))
    return lambda n: encryptor.update(bytes(n))  # zeros encrypted: the bare stream


def blocks(secret: bytes, inputs: Blocks) -> Blocks:
    """The block of every input: a random permutation to whoever lacks the secret."""
    from cryptography.hazmat.primitives.ciphers import modes

    raw = np.ascontiguousarray(inputs.astype("<u8", copy=False)).reshape(-1)
    out = np.empty(raw.nbytes + _BLOCK_BYTES - 1, np.uint8)  # as OpenSSL asks
    encryptor = _encryptor(secret, modes.ECB())
    encryptor.update_into(raw.data.cast("B") if len(raw) else b"", out.data)
    made = out[: raw.nbytes].view("<u8").reshape(inputs.shape)
    return made.astype(np.uint64, copy=False)


def check_secret(secret: bytes) -> None:
    """Refuse what is no key of AES-256."""
    if len(secret) != SECRET_BYTES:
        raise BadValue(f"a secret of {len(secret)} bytes; needed are {SECRET_BYTES}")


def _encryptor(secret: bytes, mode: CTR | ECB) -> CipherContext:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    check_secret(secret)
    return Cipher(algorithms.AES256(secret), mode).encryptor()
