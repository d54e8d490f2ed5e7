"""Digests of one length, sorted: which there are, and nothing of when they came.

A table of SQLite would say that: within a page, rows lie in the order in which they
came, whatever their keys are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Digests:
    """Digests of so many bytes each, a multiple of eight, one after the other."""

    width: int
    content: bytes = field(default=b"", repr=False)

    def __len__(self) -> int:
        return len(self.content) // self.width

    def __contains__(self, digest: bytes) -> bool:
        place = bisect_left(range(len(self)), digest, key=self._at)
        return place < len(self) and self._at(place) == digest

    def with_more(self, digests: Iterable[bytes]) -> Digests:
        """These and some more, of which none is there yet."""
        joined = self.content + b"".join(digests)
        rows = np.frombuffer(joined, np.uint8).reshape(-1, self.width)
        words = rows.view(">u8")
        order = np.lexsort(words.T[::-1])
        return Digests(self.width, rows[order].tobytes())

    def _at(self, place: int) -> bytes:
        return self.content[place * self.width : (place + 1) * self.width]
