"""The bytes of an answer: their length follows from the number of items alone.

TA       2 bytes   these are an answer
format   1 byte    how the rest is read
zero     1 byte
count    4 bytes   the number of items, little-endian as all that follows
version  16 bytes  the digest of the model that ranked
items    4 bytes each, the best first: places in the catalog
scores   8 bytes each, in the same order
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int32

from tacit.errors import BadMessage

_HEADER = struct.Struct("<2sBxI16s")
_MAGIC, _FORMAT = b"TA", 1
_EACH = 12  # bytes per item


@dataclass(frozen=True, eq=False)
class Answer:
    """The best items for one query, and the version of the model that ranked them."""

    version: bytes
    items: Int32[np.ndarray, "places"]
    scores: Float[np.ndarray, "places"]

    def encode(self) -> bytes:
        """The bytes of the answer."""
        head = _HEADER.pack(_MAGIC, _FORMAT, len(self.items), self.version)
        items = self.items.astype("<i4", copy=False).tobytes()
        return head + items + self.scores.astype("<f8", copy=False).tobytes()

    @classmethod
    def decode(cls, message: bytes, *, n_items: int) -> Answer:
        """The answer in these bytes; refuses what no server of this catalog says."""
        if len(message) < _HEADER.size:
            raise BadMessage(f"{len(message)} bytes that are no answer")
        magic, form, count, version = _HEADER.unpack(message[: _HEADER.size])
        if (magic, form) != (_MAGIC, _FORMAT):
            raise BadMessage(f"an answer that begins with {message[:3]!r}")
        if len(message) != answer_bytes(count):
            raise BadMessage(
                f"an answer of {len(message)} bytes; {count} items have "
                f"{answer_bytes(count)}"
            )
        items = np.frombuffer(message, "<i4", count, _HEADER.size).astype(np.int32)
        scores = np.frombuffer(message, "<f8", count, _HEADER.size + 4 * count)
        _check(items, scores, n_items)
        return cls(version, items, scores.astype(np.float64))


def answer_bytes(count: int) -> int:
    """The length of every answer with so many items."""
    return _HEADER.size + _EACH * count


def _check(
    items: Int32[np.ndarray, "places"], scores: Float[np.ndarray, "places"], n: int
) -> None:
    if len(items) and not 0 <= items.min() <= items.max() < n:
        raise BadMessage(f"an answer with items outside of the {n} of the catalog")
    if len(np.unique(items)) < len(items):
        raise BadMessage("an answer that names an item twice")
    if not np.isfinite(scores).all() or (np.diff(scores) > 0).any():
        raise BadMessage("an answer whose scores are not finite, from the best down")
