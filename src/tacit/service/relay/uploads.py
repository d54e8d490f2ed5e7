"""Sealed messages of one client, in an upload that has one size for the whole epoch.

    0    4       magic, b"FR1" and a zero
    4    32      round_id, the digest of the epoch's manifest
    36   2       k, little-endian: as many as the manifest says
    38   k × s   sealed messages, each of report_bytes + 48
    end  2       zero: tokens that are unlinkable have their place here one day

A message is an envelope of its own, sealed to the collector by HPKE in base mode.
`info` holds the digest of the manifest: a seal opens in no other epoch. Several
messages under one seal would be cheaper, and the collector would see which of them
belong together. They are sealed in random order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import ClassVar, Self

from tacit import check
from tacit.errors import BadMessage, BadValue, Refused
from tacit.service import hpke
from tacit.service.manifest import Fields, Manifest, Signatory, Spelling

MAGIC = b"FR1\0"
CONTENT_TYPE = "application/tacit-reports"
_ID_BYTES, _COUNT_BYTES = 32, 2
_HEAD = len(MAGIC) + _ID_BYTES + _COUNT_BYTES
_TEXT = b"tacit/report/v1\0"
_chance = random.SystemRandom()


@dataclass(frozen=True)
class MessageFields(Fields):
    """What a manifest says of the messages of an epoch over a relay.

    `needs_tickets` says whether the minimum is a number of users, each with one ticket
    of the relay, or of uploads that anybody can make.
    """

    report_bytes: int  # of one message, before it is sealed
    reports_per_user: int  # k, messages of one upload
    needs_tickets: bool = False  # an upload counts with a ticket of the relay alone

    spelling: ClassVar[Spelling] = Spelling(
        signatories=(
            Signatory("relay", takes_reports=True, has_key=False),
            Signatory("collector"),
        ),
        fields={
            "report_bytes": "report_len",
            "reports_per_user": "reports_per_user",
            "needs_tickets": "tickets",
        },
        number="epoch",
        task="reports",
    )

    def __post_init__(self) -> None:
        check.count(
            remedy="",
            report_bytes=self.report_bytes,
            reports_per_user=self.reports_per_user,
        )
        if self.reports_per_user >= 2 ** (8 * _COUNT_BYTES):
            raise BadValue(
                f"reports_per_user={self.reports_per_user} must be below 65,536"
            )

    @property
    def sealed_bytes(self) -> int:
        """The bytes of every sealed message."""
        return self.report_bytes + hpke.SEAL_BYTES

    @property
    def body_bytes(self) -> int:
        """The bytes of every upload.

        >>> MessageFields(8, 50).body_bytes
        2840
        """
        return _HEAD + self.reports_per_user * self.sealed_bytes + _COUNT_BYTES

    def check(self, agreed: Self) -> None:
        """Refuse other messages, or uploads without tickets if some were agreed."""
        self.check_equal(agreed, "report_bytes", "reports_per_user")
        if agreed.needs_tickets and not self.needs_tickets:
            raise Refused(
                "the relay would count uploads without a ticket, agreed is one ticket "
                "per user: anybody could be all of them"
            )


EpochManifest = Manifest[MessageFields]


@dataclass(frozen=True)
class Upload:
    """One upload as it arrived: its digest, and its sealed messages."""

    digest: bytes  # SHA-256 of the body
    sealed: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def read(cls, body: bytes, manifest: EpochManifest) -> Upload:
        """The upload of a body for this epoch; refuses another form."""
        if len(body) != manifest.fields.body_bytes:
            raise BadMessage(
                f"a body of {len(body):,} bytes; every upload of this epoch has "
                f"{manifest.fields.body_bytes:,}"
            )
        if body[: len(MAGIC)] != MAGIC:
            raise BadMessage("does not begin as an upload of reports does")
        if epoch_of(body) != manifest.round_id:
            raise BadMessage("the upload was made for another epoch")
        count = manifest.fields.reports_per_user
        told = body[_HEAD - _COUNT_BYTES : _HEAD], body[-_COUNT_BYTES:]
        if told != (count.to_bytes(_COUNT_BYTES, "little"), bytes(_COUNT_BYTES)):
            raise BadMessage(f"an upload has {count} messages and no token")
        size = manifest.fields.sealed_bytes
        places = range(_HEAD, _HEAD + count * size, size)
        found = tuple(body[place : place + size] for place in places)
        if len({*found}) < count:
            raise BadMessage("an upload has a message twice")
        return cls(sha256(body).digest(), found)


def upload(messages: Sequence[bytes], manifest: EpochManifest) -> bytes:
    """The messages of one client, each sealed by itself to the collector.

    The bytes are kept and sent again as they are: a second upload of the same messages
    is another upload.
    """
    count = manifest.fields.reports_per_user
    if len(messages) != count or {*map(len, messages)} != {
        manifest.fields.report_bytes
    }:
        raise BadValue(
            f"{len(messages)} messages of {sorted({*map(len, messages)})} bytes; this "
            f"epoch has {count} of {manifest.fields.report_bytes}"
        )
    info = seal_info(manifest.round_id)
    sealed = [hpke.sealed(one, manifest.keys["collector"], info) for one in messages]
    # In no order: the n-th message of everybody may be about the same coordinates.
    _chance.shuffle(sealed)
    head = MAGIC + manifest.round_id + count.to_bytes(_COUNT_BYTES, "little")
    return head + b"".join(sealed) + bytes(_COUNT_BYTES)


def seal_info(round_id: bytes) -> bytes:
    """What a seal is bound to: the epoch, and with it its key, model and minimum."""
    return _TEXT + round_id


def epoch_of(body: bytes | memoryview) -> bytes:
    """The round_id that an upload says it is for."""
    return bytes(body[len(MAGIC) : len(MAGIC) + _ID_BYTES])
