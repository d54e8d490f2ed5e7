"""How large a file from outside may become in memory, and streams that hold to it.

A few megabytes of gzip can unpack to a thousand times as much. So a row has a longest
length, and what is unpacked has a largest size in proportion to what was packed.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tacit.errors import BadData, BadValue

LONGEST_ROW = 1 << 20  # characters of one row of a table, over all lines it takes
MOST_COLUMNS = 10_000  # far beyond any table of events; a header is read whole
UNPACKED = "TACIT_MOST_UNPACKED"  # the variable of the environment that raises it

_BLOCK = 1 << 16  # bytes read at once
_ALWAYS = 1 << 28  # bytes that any archive may unpack to
_RATIO = 100  # text packs to a tenth; deflate can reach 1,032


def most_unpacked(packed: int) -> int:
    """How many bytes may be unpacked from a file of `packed` bytes."""
    given = os.environ.get(UNPACKED)
    if given is None:
        return max(_ALWAYS, _RATIO * packed)
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):
        raise BadValue(f"${UNPACKED}={given[:40]!r} must be a whole number of bytes")
    return int(given)


def refuse_unpacked(file: str | Path, most: int) -> BadData:
    """The error for a file that unpacks to more than it may."""
    return BadData(
        file,
        None,
        f"unpacks to more than {most:,} bytes; if you trust it, unpack it yourself or "
        f"set ${UNPACKED} to the bytes that are allowed",
    )


class LineBlocks:
    r"""The lines of a text in blocks, with their ends: \n, \r or \r\n.

    Whoever makes rows of them sets `allowed` to the bytes that the next rows may need
    at most, so that a row without an end is given up before it fills the memory.
    """

    def __init__(
        self,
        raw: IO[bytes],
        file: Path,
        *,
        most: int | None,
        encoding: str = "utf-8",
    ) -> None:
        self.allowed = LONGEST_ROW
        self._raw, self._file = raw, file
        self._most, self._read = most, 0
        self._decoder = text_decoder(encoding)
        self._rest = ""  # a line whose end was not seen yet

    def __iter__(self) -> Iterator[list[str]]:
        while block := self._raw.read(_BLOCK):
            self._count(block)
            decoded = self._decoder.decode(block)
            if "\0" in decoded:
                raise ZeroByte
            text = self._rest + decoded
            lines = io.StringIO(text, newline="").readlines()
            is_whole = text.endswith("\n")  # after \r there may follow \n
            self._rest = "" if is_whole or not lines else lines.pop()
            yield lines
        self._decoder.decode(b"", final=True)
        if self._rest:
            yield [self._rest]

    def _count(self, block: bytes) -> None:
        if self.allowed < 0 or len(self._rest) > LONGEST_ROW:
            raise RowTooLong
        self.allowed -= len(block)
        self._read += len(block)
        if self._most is not None and self._read > self._most:
            raise refuse_unpacked(self._file, self._most)


def text_decoder(encoding: str) -> codecs.IncrementalDecoder:
    """A decoder of bytes that come in pieces; a byte order mark is no text."""
    name = codecs.lookup(encoding).name
    return codecs.getincrementaldecoder("utf-8-sig" if name == "utf-8" else name)()


class RowTooLong(Exception):
    """A row is longer than `LONGEST_ROW`; whoever counts lines says which."""


class ZeroByte(Exception):
    """A character is zero; whoever counts lines says where."""
