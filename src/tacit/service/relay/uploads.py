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

from tacit.errors import BadMessage, BadValue
from tacit.service import hpke
from tacit.service.relay.manifest import EpochManifest

MAGIC = b"FR1\0"
CONTENT_TYPE = "application/tacit-reports"
_ID_BYTES, _COUNT_BYTES = 32, 2
_HEAD = len(MAGIC) + _ID_BYTES + _COUNT_BYTES
_TEXT = b"tacit/report/v1\0"
_chance = random.SystemRandom()


@dataclass(frozen=True)
class Upload:
    """One upload as it arrived: its digest, and its sealed messages."""

    digest: bytes  # SHA-256 of the body
    sealed: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def read(cls, body: bytes, manifest: EpochManifest) -> Upload:
        """The upload of a body for this epoch; refuses another form."""
        if len(body) != upload_size(manifest):
            raise BadMessage(
                f"a body of {len(body):,} bytes; every upload of this epoch has "
                f"{upload_size(manifest):,}"
            )
        if body[: len(MAGIC)] != MAGIC:
            raise BadMessage("does not begin as an upload of reports does")
        if epoch_of(body) != manifest.round_id:
            raise BadMessage("the upload was made for another epoch")
        count = manifest.reports_per_user
        told = body[_HEAD - _COUNT_BYTES : _HEAD], body[-_COUNT_BYTES:]
        if told != (count.to_bytes(_COUNT_BYTES, "little"), bytes(_COUNT_BYTES)):
            raise BadMessage(f"an upload has {count} messages and no token")
        size = sealed_size(manifest)
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
    count = manifest.reports_per_user
    if len(messages) != count or {*map(len, messages)} != {manifest.report_bytes}:
        raise BadValue(
            f"{len(messages)} messages of {sorted({*map(len, messages)})} bytes; this "
            f"epoch has {count} of {manifest.report_bytes}"
        )
    info = seal_info(manifest.round_id)
    sealed = [hpke.sealed(one, manifest.collector_key, info) for one in messages]
    # In no order: the n-th message of everybody may be about the same coordinates.
    _chance.shuffle(sealed)
    head = MAGIC + manifest.round_id + count.to_bytes(_COUNT_BYTES, "little")
    return head + b"".join(sealed) + bytes(_COUNT_BYTES)


def seal_info(round_id: bytes) -> bytes:
    """What a seal is bound to: the epoch, and with it its key, model and minimum."""
    return _TEXT + round_id


def sealed_size(manifest: EpochManifest) -> int:
    """The bytes of every sealed message of an epoch."""
    return manifest.report_bytes + hpke.SEAL_BYTES


def upload_size(manifest: EpochManifest) -> int:
    """The bytes of every upload of an epoch."""
    return size_of(manifest.report_bytes, manifest.reports_per_user)


def size_of(report_bytes: int, count: int) -> int:
    """The bytes of an upload of so many messages of this length.

    >>> size_of(8, 50)
    2840
    """
    return _HEAD + count * (report_bytes + hpke.SEAL_BYTES) + _COUNT_BYTES


def epoch_of(body: bytes | memoryview) -> bytes:
    """The round_id that an upload says it is for."""
    return bytes(body[len(MAGIC) : len(MAGIC) + _ID_BYTES])
