"""What a machine that holds some of the users answers in a round, as bytes.

    offset  bytes  field
    0       4      magic, b"TCNA"
    4       1      version
    5       1      kind: 1 a partial sum, 2 reports, 3 a refusal
    6       1      1 in a release, whose clients draw from the operating system; else 0
    7       1      zero
    8       4      part: which share of the users it holds (unsigned)
    12      4      parts: into how many shares the users are divided (unsigned)
    16      16     random bytes of the machine's store: who holds the share
    32      8      asked (unsigned); in a release zero
    40      8      took part (unsigned); in a release zero
    48      4      number of messages (unsigned)
    52      …      for each message: 8 bytes with its length, then its bytes

The messages have a checksum and the agreement's digest of their own (`codec`); that of
a refusal is one sentence. Every length is compared with the bytes that are there before
anything is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from tacit import check
from tacit.errors import BadMessage, BadValue
from tacit.text import shown

VERSION = 2
MAGIC = b"TCNA"
_HEADER = struct.Struct("<4sBBBBII16sQQI")
_LENGTH = struct.Struct("<Q")
STORE_BYTES = 16
_MOST_MESSAGES = 2**20  # chunks of reports; each holds at least one client
_LONGEST_REASON = 500  # characters


class Kind(IntEnum):
    """What a machine may answer."""

    PARTIAL_SUM = 1
    REPORTS = 2
    REFUSAL = 3


@dataclass(frozen=True)
class Share:
    """Which share of the users a machine holds: part `part` of `parts`."""

    part: int
    parts: int

    def __post_init__(self) -> None:
        check.count(parts=self.parts)
        if not 0 <= self.part < self.parts:
            raise BadValue(
                f"part={self.part} must be from 0 to {self.parts - 1}: the users are "
                f"divided into parts={self.parts}"
            )

    def __str__(self) -> str:
        return f"part {self.part} of {self.parts}"


def answer_size(messages: int, content: int) -> int:
    """The bytes of an answer whose messages have so many in all; of any refusal too."""
    longest = max(messages * _LENGTH.size + content, _LENGTH.size + 4 * _LONGEST_REASON)
    return _HEADER.size + longest


@dataclass(frozen=True)
class NodeAnswer:
    """One machine's answer in a round."""

    kind: Kind
    share: Share
    messages: tuple[bytes, ...]
    asked: int = 0
    took_part: int = 0
    is_release: bool = False  # whether its clients draw from the operating system
    store: bytes = bytes(STORE_BYTES)  # of the machine: the same in all its answers

    @classmethod
    def refusal(
        cls, share: Share, reason: str, *, store: bytes = bytes(STORE_BYTES)
    ) -> NodeAnswer:
        """The answer of a machine that says no, and why."""
        text = reason[:_LONGEST_REASON].encode()
        return cls(Kind.REFUSAL, share, (text,), store=store)

    @property
    def reason(self) -> str:
        """Why a machine refused, with all that a terminal would obey as an escape."""
        text = b"".join(self.messages)[: 4 * _LONGEST_REASON]
        return shown(text.decode("utf-8", "replace"), longest=_LONGEST_REASON)

    def encode(self) -> bytes:
        """The bytes of the answer."""
        head = _HEADER.pack(
            MAGIC,
            VERSION,
            self.kind,
            self.is_release,
            0,
            self.share.part,
            self.share.parts,
            self.store,
            self.asked,
            self.took_part,
            len(self.messages),
        )
        framed = (part for m in self.messages for part in (_LENGTH.pack(len(m)), m))
        return b"".join([head, *framed])

    @classmethod
    def decode(cls, content: bytes) -> NodeAnswer:
        """The answer in these bytes; refuses all that is not one."""
        if len(content) < _HEADER.size:
            raise BadMessage(f"{len(content)} bytes are too few for an answer")
        magic, version, kind, *rest = _HEADER.unpack_from(content)
        if magic != MAGIC:
            raise BadMessage("does not begin as an answer does")
        if version != VERSION:
            raise BadMessage(f"version {version}; this program reads version {VERSION}")
        release, zero, part, parts, store, asked, took_part, n = rest
        if zero or release > 1:
            raise BadMessage("does not begin as an answer does")
        if kind not in {*Kind}:
            raise BadMessage(f"kind {kind} of an answer; known are {[*map(int, Kind)]}")
        if n > _MOST_MESSAGES:
            raise BadMessage(f"{n:,} messages; there may be {_MOST_MESSAGES:,}")
        try:
            share = Share(part, parts)
        except BadValue as error:
            raise BadMessage(str(error)) from error
        messages = _unframed(content, n)
        counts = asked, took_part
        return cls(Kind(kind), share, messages, *counts, bool(release), store)


def _unframed(content: bytes, n: int) -> tuple[bytes, ...]:
    messages, place = [], _HEADER.size
    for _ in range(n):
        if len(content) - place < _LENGTH.size:
            raise BadMessage("ends before its last message")
        [length] = _LENGTH.unpack_from(content, place)
        place += _LENGTH.size
        if length > len(content) - place:
            raise BadMessage(
                f"a message of {length:,} bytes is announced, and "
                f"{len(content) - place:,} are left"
            )
        messages.append(content[place : place + length])
        place += length
    if place != len(content):
        raise BadMessage(f"{len(content) - place:,} bytes stand after its last message")
    return tuple(messages)
