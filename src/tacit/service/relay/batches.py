"""What a relay hands to a collector: shuffled messages, and how many there are in all.

    batch     32      round_id of the epoch
              4       n, little-endian
              n × s   sealed messages of the epoch
    closing   JSON: the number of uploads, and the ids of all batches, sorted

A batch holds messages of the whole epoch in random order, and nothing else: no upload,
no address, no time, no ticket. Its id is random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit import check
from tacit.errors import BadMessage, BadValue
from tacit.service.signed_document import canonical, parsed, whole

ID_BYTES = 16
MOST_BATCH_BYTES = 8 * 2**20
_BYTES_AT_ONCE = 2**20  # of messages in a batch, unless one alone is larger
_EPOCH_BYTES, _COUNT_BYTES = 32, 4
_HEAD = _EPOCH_BYTES + _COUNT_BYTES


def messages_at_once(sealed_bytes: int) -> int:
    """How many sealed messages of this length a batch has.

    >>> messages_at_once(56)
    18724
    """
    return max(1, _BYTES_AT_ONCE // sealed_bytes)


def batch_body(epoch: bytes, sealed: bytes, size: int) -> bytes:
    """The bytes of a batch of sealed messages of this size, one after the other."""
    return epoch + (len(sealed) // size).to_bytes(_COUNT_BYTES, "little") + sealed


def batch_epoch(body: bytes) -> bytes:
    """The round_id that a batch says it is for."""
    return body[:_EPOCH_BYTES]


def batch_count(body: bytes, *, sealed_bytes: int) -> int:
    """How many messages a batch has; refuses a body of another form."""
    count = int.from_bytes(body[_EPOCH_BYTES:_HEAD], "little")
    if not count or len(body) != _HEAD + count * sealed_bytes:
        raise BadMessage(
            f"a batch of {len(body):,} bytes says that it has {count:,} messages of "
            f"{sealed_bytes} bytes"
        )
    return count


def batch_messages(body: bytes, *, sealed_bytes: int) -> list[bytes]:
    """The sealed messages of a batch; refuses a body of another form."""
    batch_count(body, sealed_bytes=sealed_bytes)
    places = range(_HEAD, len(body), sealed_bytes)
    return [body[place : place + sealed_bytes] for place in places]


@dataclass(frozen=True)
class Closing:
    """What a relay has forwarded of an epoch: all of it, or nothing."""

    uploads: int
    batches: tuple[bytes, ...]  # ids, sorted

    def __post_init__(self) -> None:
        check.count(remedy="", uploads=self.uploads)
        if [*self.batches] != sorted({*self.batches}):
            raise BadValue("ids of batches must be sorted, and each there once")
        if any(len(one) != ID_BYTES for one in self.batches):
            raise BadValue(f"an id of a batch has {ID_BYTES} bytes")

    def document(self) -> bytes:
        """The one form of it as JSON."""
        batches = [one.hex() for one in self.batches]
        return canonical({"uploads": self.uploads, "batches": batches})

    @classmethod
    def read(cls, body: bytes) -> Closing:
        """What a relay says of an epoch; refuses another form."""
        return parsed(body, _closing, what="closing")


def _closing(made: Mapping[str, Any]) -> Closing:
    batches = tuple(bytes.fromhex(one) for one in made["batches"])
    return Closing(whole(made["uploads"]), batches)
