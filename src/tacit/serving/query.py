"""What leaves a client to be served: a version, a mode, and a payload of fixed length.

    TQ       2 bytes   these are a query
    format   1 byte    how the rest is read
    mode     1 byte    1 krr, 2 dpa, 3 vdp
    version  16 bytes  the digest of the public model that it was made for
    payload            an index (krr) or numbers (dpa, vdp), little-endian

All queries of one model have the same length. None says who asks, or when.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tacit.errors import BadMessage, BadValue

VERSION_BYTES = 16
HEADER_BYTES = 4 + VERSION_BYTES
_MAGIC, _FORMAT = b"TQ", 1


class Mode(StrEnum):
    """Where a list is ranked, and what leaves the client for it."""

    ON_DEVICE = "on_device"  # nothing: public candidates are sent, the client ranks
    KRR = "krr"  # the strongest interest, by randomised response
    DPA = "dpa"  # noisy attention over public interests
    VDP = "vdp"  # the noisy user vector


_CODES = {Mode.KRR: 1, Mode.DPA: 2, Mode.VDP: 3}
_MODES = {code: mode for mode, code in _CODES.items()}


@dataclass(frozen=True)
class Query:
    """One query, as it leaves a client and reaches the server."""

    version: bytes
    mode: Mode
    payload: bytes

    def __post_init__(self) -> None:
        if len(self.version) != VERSION_BYTES:
            raise BadValue(
                f"a version of {len(self.version)} bytes; it has {VERSION_BYTES}"
            )
        if self.mode not in _CODES:
            raise BadValue(
                f"mode={self.mode!r} sends no query; it must be one of "
                f"{', '.join(_CODES)}"
            )

    def encode(self) -> bytes:
        """The bytes of the query."""
        head = _MAGIC + bytes((_FORMAT, _CODES[self.mode]))
        return head + self.version + self.payload

    @classmethod
    def decode(cls, message: bytes) -> Query:
        """The query of these bytes; refuses what is none."""
        if len(message) < HEADER_BYTES or message[:2] != _MAGIC:
            raise BadMessage(f"{len(message)} bytes that are no query")
        if message[2] != _FORMAT or message[3] not in _MODES:
            raise BadMessage(
                f"a query of format {message[2]} and mode {message[3]}; known are "
                f"format {_FORMAT} and modes {', '.join(map(str, _MODES))}"
            )
        body = message[4:]
        mode = _MODES[message[3]]
        return cls(body[:VERSION_BYTES], mode, body[VERSION_BYTES:])
