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

import math
import os
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Self

from tacit import check
from tacit.errors import BadMessage, BadValue, Refused
from tacit.service.hpke import (
    KEY_BYTES,
    SEAL_BYTES,
    SealOpener,
    new_private_key,
    public_key,
    sealed,
)
from tacit.service.manifest import Fields, Manifest, Signatory, Spelling

__all__ = [
    "ID_BYTES",
    "KEY_BYTES",
    "ROUND_BYTES",
    "SEALED_SEED_BYTES",
    "SEED_BYTES",
    "Opener",
    "Role",
    "SealedReport",
    "SumFields",
    "SumManifest",
    "body_size",
    "new_private_key",
    "open_half",
    "public_key",
    "seal_info",
    "sealed_report",
]

ROUND_BYTES, ID_BYTES, SEED_BYTES = 32, 16, 32
_WORD_BYTES = 4  # of a number
_TEXT = b"tacit/share/v1\0"
SEALED_SEED_BYTES = SEED_BYTES + SEAL_BYTES
_FIRST = ROUND_BYTES + ID_BYTES
_SECOND = _FIRST + SEALED_SEED_BYTES


_ROUNDING = 1e-9  # relative: what double precision may lose of σ / √L


@dataclass(frozen=True)
class SumFields(Fields):
    """What a manifest says of the sum of a round over two servers."""

    leaf: str
    numbers: int  # d, of a report
    steps: int  # r, per unit
    limit: int  # L, of the sum of squares of a report in steps
    sigma: int  # the deviation of each operator's noise, in steps

    spelling: ClassVar[Spelling] = Spelling(
        signatories=(Signatory("leader", takes_reports=True), Signatory("helper")),
        fields={
            "leaf": "leaf",
            "numbers": "d",
            "steps": "r",
            "limit": "limit",
            "sigma": "sigma",
        },
    )

    def __post_init__(self) -> None:
        check.count(
            remedy="",
            numbers=self.numbers,
            steps=self.steps,
            limit=self.limit,
            sigma=self.sigma,
        )

    @property
    def multiplier(self) -> float:
        """σ / √L: the noise of one operator over the longest report."""
        return self.sigma / math.sqrt(self.limit)

    @property
    def body_bytes(self) -> int:
        """The bytes of every report of the round."""
        return body_size(self.numbers)

    def check(self, agreed: Self) -> None:
        """Refuse another sum, or less noise of one operator; more is welcome."""
        self.check_equal(agreed, "leaf", "numbers", "steps", "limit")
        if self.multiplier < agreed.multiplier * (1 - _ROUNDING):
            raise Refused(
                f"the noise of one operator is {self.multiplier:.6g} times the longest "
                f"report, agreed is {agreed.multiplier:.6g} at least"
            )


SumManifest = Manifest[SumFields]


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
    for_leader: bytes | memoryview  # large: read without a copy

    def body(self) -> bytes:
        """The bytes of the report, of one length for all clients of a round."""
        parts = (self.round_id, self.report_id, self.for_helper, self.for_leader)
        return b"".join(parts)

    @classmethod
    def read(cls, body: bytes | memoryview, *, numbers: int) -> SealedReport:
        """The report of a body, which may not change afterwards.

        Refuses one of another length.
        """
        if len(body) != body_size(numbers):
            raise BadMessage(
                f"a report of {numbers:,} numbers has {body_size(numbers):,} bytes; "
                f"{len(body):,} were sent"
            )
        view = memoryview(body)
        return cls(
            bytes(view[:ROUND_BYTES]),
            bytes(view[ROUND_BYTES:_FIRST]),
            bytes(view[_FIRST:_SECOND]),
            view[_SECOND:],
        )

    def opened(self, role: Role, private_key: bytes) -> bytes:
        """The half of this role: a seed, or numbers; refuses what does not open."""
        seal = self.for_leader if role is Role.LEADER else self.for_helper
        return Opener(role, self.round_id, private_key)(seal, self.report_id)


class Opener:
    """Opens the halves of one role and round; its key is read once for all of them."""

    def __init__(self, role: Role, round_id: bytes, private_key: bytes) -> None:
        self._info = seal_info(role, round_id, bytes(ID_BYTES))[:-ID_BYTES]
        self._opened = SealOpener(private_key)

    def __call__(self, seal: bytes | memoryview, report_id: bytes) -> bytes:
        """The text of a seal; refuses that of another key, role, round or report."""
        if len(report_id) != ID_BYTES:
            raise BadValue(f"an id of {len(report_id)} bytes; needed are {ID_BYTES}")
        return _opened(self._opened, seal, self._info + report_id)


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
        sealed(seed, helper, seal_info(Role.HELPER, round_id, own)),
        sealed(explicit, leader, seal_info(Role.LEADER, round_id, own)),
    )


def body_size(numbers: int) -> int:
    """The bytes of a report of so many numbers.

    >>> body_size(3533)
    14308
    """
    return _SECOND + SEAL_BYTES + _WORD_BYTES * numbers


def seal_info(role: Role, round_id: bytes, report_id: bytes) -> bytes:
    """What a seal is bound to: the role, the round and the report."""
    for name, found, n in (
        ("round_id", round_id, ROUND_BYTES),
        ("report_id", report_id, ID_BYTES),
    ):
        if len(found) != n:
            raise BadValue(f"{name} has {len(found)} bytes; needed are {n}")
    return _TEXT + role.encode() + round_id + report_id


def open_half(seal: bytes, private_key: bytes, info: bytes) -> bytes:
    """The text of a seal; refuses a seal of another key, role, round or report."""
    return _opened(SealOpener(private_key), seal, info)


def _opened(opener: SealOpener, seal: bytes | memoryview, info: bytes) -> bytes:
    try:
        return opener(seal, info)
    except BadMessage:
        raise BadMessage(
            "a half does not open: it was sealed to another key, role, round or "
            "report, or was changed on its way"
        ) from None
