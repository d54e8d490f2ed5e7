"""Messages of one length at random places of a file that has room for a whole epoch.

    make      a file of this many places on the disk, all of them free
    put       each message at a free place that is drawn at random
    pieces    what lies at the taken places, from the first to the last
    clean     nothing is left at places that are free
    is_whole  whether the file is there, and as long as it was made

Which places are taken is known to the caller, one bit per place; the file itself says
nothing of it. Places are drawn from the operating system's randomness and nobody notes
when. So the order of messages is a random one of the whole epoch, in which they are
forwarded, and a copy of the file does not say which of them came first or together.
The room is reserved when the file is made: blocks are not added as messages come, and
an epoch that was opened does not run out of room for them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

_BLOCK = 2**20  # bytes that are read or overwritten at a time
_SPARE = 4  # one more place for every so many: a free one is found in few draws
_NEW = os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
Bits = UInt8[np.ndarray, "bytes"]  # one per place, beginning with the lowest
Rows = UInt8[np.ndarray, "messages bytes"]
Places = Int64[np.ndarray, "messages"]


@dataclass(frozen=True)
class ScatteredFile:
    """One file of `places` places for messages of `size` bytes each."""

    path: Path
    places: int
    size: int

    @classmethod
    def for_messages(cls, path: Path, most: int, size: int) -> ScatteredFile:
        """A file for at most so many messages: it has a few places more."""
        return cls(path, most + -(-most // _SPARE), size)

    @property
    def length(self) -> int:
        """The length of the file."""
        return self.places * self.size

    def make(self) -> Bits:
        """Reserve the room on the disk; all places are free."""
        with self._opened(_NEW) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, self.length)
            else:  # macOS: the blocks are added later, as they are written
                os.truncate(file, self.length)
            os.fsync(file)
        return np.zeros(-(-self.places // 8), np.uint8)

    def put(self, messages: Rows, taken: Bits) -> None:
        """Write messages at places that are free, and mark these as `taken`.

        They are on the disk only after `flush`.
        """
        places = _drawn(len(messages), taken, self.places)
        order = np.argsort(places)  # neighbours on the disk one after the other
        content = memoryview(messages[order].tobytes())
        with self._opened(os.O_WRONLY) as file:
            for n, place in enumerate(places[order].tolist()):
                one = content[n * self.size : (n + 1) * self.size]
                os.pwrite(file, one, place * self.size)

    def flush(self) -> None:
        """Have everything that was put on the disk."""
        with self._opened(os.O_WRONLY) as file:
            os.fsync(file)

    def pieces(self, taken: Bits, *, messages: int) -> Iterator[bytes]:
        """All messages by their places, so many in each piece; fewer in the last."""
        most, left = messages * self.size, b""
        with self._opened(os.O_RDONLY) as file:
            for first, n in self._blocks():
                left += self._read(file, first, n)[_are_set(taken, first, n)].tobytes()
                while len(left) >= most:
                    yield left[:most]
                    left = left[most:]
        if left:
            yield left

    def clean(self, taken: Bits) -> None:
        """Overwrite what lies at places that are free.

        A process that was killed may have left copies of messages there.
        """
        with self._opened(os.O_RDWR) as file:
            for first, n in self._blocks():
                rows = self._read(file, first, n)
                is_left = ~_are_set(taken, first, n) & rows.any(axis=1)
                if is_left.any():
                    rows[is_left] = 0
                    os.pwrite(file, rows.tobytes(), first * self.size)
            os.fsync(file)

    @property
    def is_whole(self) -> bool:
        """Whether the file is there, and as long as it was made."""
        try:
            return self.path.stat().st_size == self.length
        except FileNotFoundError:
            return False

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        file = os.open(self.path, flags, 0o600)
        try:
            yield file
        finally:
            os.close(file)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """The first place of each block, and how many it has."""
        step = max(1, _BLOCK // self.size)
        for first in range(0, self.places, step):
            yield first, min(step, self.places - first)

    def _read(self, file: int, first: int, n: int) -> Rows:
        content = bytearray(os.pread(file, n * self.size, first * self.size))
        return np.frombuffer(content, np.uint8).reshape(n, self.size)


def erase(path: Path) -> None:
    """Overwrite a file, flush that, and delete it."""
    nothing = bytes(_BLOCK)
    file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        length = os.fstat(file).st_size
        for place in range(0, length, _BLOCK):
            os.pwrite(file, nothing[: length - place], place)
        os.fsync(file)  # else the disk would never hear of it
    finally:
        os.close(file)
    path.unlink()


def mixed(messages: Rows) -> Rows:
    """The messages in random order."""
    return messages[np.argsort(_random(len(messages)), kind="stable")]


def _drawn(n: int, taken: Bits, places: int) -> Places:
    """So many distinct free places in random order, all equally likely; now taken.

    A draw that finds its place taken is repeated. The remainder of a division makes
    places unequal by less than places / 2⁶⁴.
    """
    found = np.zeros(0, np.int64)
    while len(found) < n:
        drawn = (_random(n - len(found)) % np.uint64(places)).astype(np.int64)
        drawn = drawn[(taken[drawn >> 3] >> (drawn & 7)) & 1 == 0]
        _, first = np.unique(drawn, return_index=True)
        drawn = drawn[np.sort(first)]  # in the order in which they were drawn
        np.bitwise_or.at(taken, drawn >> 3, (1 << (drawn & 7)).astype(np.uint8))
        found = np.concatenate([found, drawn])
    return found


def _random(n: int) -> np.ndarray:
    return np.frombuffer(os.urandom(8 * n), np.uint64)


def _are_set(taken: Bits, first: int, n: int) -> np.ndarray:
    some = taken[first // 8 : -(-(first + n) // 8)]
    bits = np.unpackbits(some, bitorder="little").astype(bool)
    return bits[first % 8 : first % 8 + n]
