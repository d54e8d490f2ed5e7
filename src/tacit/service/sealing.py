"""A report for two operators: two halves, each sealed to one of them alone.

    0     32        round_id, the digest of the round's manifest
    32    16        report_id, random
    48    80        the seed, for the helper:        key 32, text 32, tag 16
    128   48 + 4 d  the other half, for the leader:  key 32, text 4 d, tag 16

Both are sealed by HPKE in base mode (RFC 9180) with X25519, HKDF-SHA256 and
AES-128-GCM. The `info` of a seal holds the role, the round and the report: a half opens
for the other role, in another round or under another id nowhere.

What the halves are is decided in `tacit.transport.shared_sum`; here they are bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tacit.errors import BadMessage, BadValue

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.hpke import Suite

ROUND_BYTES, ID_BYTES, SEED_BYTES, KEY_BYTES = 32, 16, 32, 32
_SEAL_BYTES = 48  # an encapsulated key and a tag, around every sealed text
_WORD_BYTES = 4  # of a number
_TEXT = b"tacit/share/v1\0"
SEALED_SEED_BYTES = SEED_BYTES + _SEAL_BYTES
_FIRST = ROUND_BYTES + ID_BYTES
_SECOND = _FIRST + SEALED_SEED_BYTES


class Role(StrEnum):
    """The operator whom a half is for, by the letter in the `info` of its seal."""

    LEADER = "L"
    HELPER = "H"


@dataclass(frozen=True)
class SealedReport:
    """One client's report as it is sent: names that say nothing, and two seals."""

    round_id: bytes
    report_id: bytes
    for_helper: bytes
    for_leader: bytes

    def body(self) -> bytes:
        """The bytes of the report, of one length for all clients of a round."""
        return self.round_id + self.report_id + self.for_helper + self.for_leader

    @classmethod
    def read(cls, body: bytes, *, numbers: int) -> SealedReport:
        """The report of a body; refuses one of another length."""
        if len(body) != body_size(numbers):
            raise BadMessage(
                f"a report of {numbers:,} numbers has {body_size(numbers):,} bytes; "
                f"{len(body):,} were sent"
            )
        return cls(
            body[:ROUND_BYTES],
            body[ROUND_BYTES:_FIRST],
            body[_FIRST:_SECOND],
            body[_SECOND:],
        )

    def opened(self, role: Role, private_key: bytes) -> bytes:
        """The half of this role: a seed, or numbers; refuses what does not open."""
        sealed = self.for_leader if role is Role.LEADER else self.for_helper
        info = seal_info(role, self.round_id, self.report_id)
        return open_half(sealed, private_key, info)


def sealed_report(
    seed: bytes,
    explicit: bytes,
    *,
    round_id: bytes,
    leader: bytes,
    helper: bytes,
    report_id: bytes | None = None,
) -> SealedReport:
    """A report whose halves are sealed to the public keys of both operators.

    `explicit` is the leader's half as it is sent. The id is random unless it is given.
    """
    if len(seed) != SEED_BYTES:
        raise BadValue(f"a seed of {len(seed)} bytes; needed are {SEED_BYTES}")
    own = os.urandom(ID_BYTES) if report_id is None else report_id
    return SealedReport(
        round_id,
        own,
        _sealed(seed, helper, seal_info(Role.HELPER, round_id, own)),
        _sealed(explicit, leader, seal_info(Role.LEADER, round_id, own)),
    )


def body_size(numbers: int) -> int:
    """The bytes of a report of so many numbers.

    >>> body_size(3533)
    14308
    """
    return _SECOND + _SEAL_BYTES + _WORD_BYTES * numbers


def seal_info(role: Role, round_id: bytes, report_id: bytes) -> bytes:
    """What a seal is bound to: the role, the round and the report."""
    for name, found, n in (
        ("round_id", round_id, ROUND_BYTES),
        ("report_id", report_id, ID_BYTES),
    ):
        if len(found) != n:
            raise BadValue(f"{name} has {len(found)} bytes; needed are {n}")
    return _TEXT + role.encode() + round_id + report_id


def new_private_key() -> bytes:
    """A private key of one operator, for one round."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private_key: bytes) -> bytes:
    """The public key that goes with a private one."""
    return _private(private_key).public_key().public_bytes_raw()


def open_half(sealed: bytes, private_key: bytes, info: bytes) -> bytes:
    """The text of a seal; refuses a seal of another key, role, round or report."""
    from cryptography.exceptions import InvalidTag

    try:
        return _suite().decrypt(sealed, _private(private_key), info)
    except InvalidTag:
        raise BadMessage(
            "a half does not open: it was sealed to another key, role, round or "
            "report, or was changed on its way"
        ) from None


def _sealed(text: bytes, key: bytes, info: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    try:
        return _suite().encrypt(text, X25519PublicKey.from_public_bytes(key), info)
    except ValueError:  # of another length, or of a small order
        raise BadValue(
            f"{key.hex()} is no public key of X25519 that can be sealed to; take the "
            "operator's key from the signed manifest"
        ) from None


def _private(key: bytes) -> X25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(key)


def _suite() -> Suite:
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
