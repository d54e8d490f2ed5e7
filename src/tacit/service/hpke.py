"""Seals that one key opens: HPKE in base mode, and keys for one round.

X25519, HKDF-SHA256 and AES-128-GCM (RFC 9180: 0x0020, 0x0001, 0x0001). A seal is the
encapsulated key, the text and a tag: 48 bytes around every text. `info` says what a
seal is for, and under another `info` it opens nowhere.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tacit.errors import BadMessage, BadValue

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.hpke import Suite

KEY_BYTES = 32
SEAL_BYTES = 48  # an encapsulated key and a tag, around every sealed text


def new_private_key() -> bytes:
    """A private key of one operator, for one round."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private_key: bytes) -> bytes:
    """The public key that goes with a private one."""
    return _private(private_key).public_key().public_bytes_raw()


def sealed(text: bytes, key: bytes, info: bytes) -> bytes:
    """The text, sealed to this public key with fresh randomness."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        return _suite().encrypt(text, X25519PublicKey.from_public_bytes(key), info)
    except ValueError:  # of another length, or of a small order
        raise BadValue(
            f"{key.hex()} is no public key of X25519 that can be sealed to; take the "
            "operator's key from the signed manifest"
        ) from None


class SealOpener:
    """Opens seals of one key, which is read once for all of them."""

    def __init__(self, private_key: bytes) -> None:
        self._key, self._suite = _private(private_key), _suite()

    def __call__(self, seal: bytes | memoryview, info: bytes) -> bytes:
        """The text of a seal; refuses one that was made otherwise, or changed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._suite.decrypt(seal, self._key, info)
        except (InvalidTag, ValueError):
            raise BadMessage("it was sealed otherwise, or changed on its way") from None


def opened(seal: bytes, private_key: bytes, info: bytes) -> bytes:
    """The text of one seal; refuses one that was made otherwise, or changed."""
    return SealOpener(private_key)(seal, info)


def _private(key: bytes) -> X25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(key)


@cache
def _suite() -> Suite:
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
