"""Many short texts in two arrays, so that they can be memory-mapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from jaxtyping import Int64, UInt8
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.data.ragged import Ragged, offsets_of
from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Strings(Sequence[str]):
    """A read-only sequence of strings: one UTF-8 buffer and where each begins.

    >>> Strings.of(["Alien", "", "Amélie"])[2]
    'Amélie'
    """

    buffer: UInt8[np.ndarray, "bytes"]
    offsets: Int64[np.ndarray, "strings_and_one"]

    def __post_init__(self) -> None:
        arrays.typed(np.uint8, buffer=self.buffer)
        Ragged(self.offsets, self.buffer)  # checks the offsets

    @classmethod
    def of(cls, texts: Iterable[str]) -> Strings:
        """The given texts, packed into one UTF-8 buffer."""
        encoded = [_encode(text) for text in texts]
        offsets = offsets_of([len(text) for text in encoded])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def check(self) -> None:
        """Refuse bytes that are not UTF-8, or cut within a character.

        What `of` packs is always sound; what a file holds need not be.
        """
        begins = self.buffer[self.offsets[self.offsets < len(self.buffer)]]
        try:
            self.buffer.tobytes().decode()
        except UnicodeDecodeError as error:
            raise BadValue(f"a text is not UTF-8 ({error.reason})") from None
        if (begins & 0xC0 == 0x80).any():  # a byte that only continues a character
            raise BadValue("a text begins within a character")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Strings: ...
    def __getitem__(self, index: int | slice) -> str | Strings:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        start = range(len(self))[index]
        piece = self.buffer[self.offsets[start] : self.offsets[start + 1]]
        return piece.tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        text = self.buffer.tobytes()
        for start, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield text[start:end].decode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strings):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(
            self.buffer, other.buffer
        )

    __hash__ = None  # type: ignore[assignment]  # compared by value

    def take(self, rows: ArrayLike) -> Strings:
        """Some of the strings, in the order given."""
        taken = Ragged(self.offsets, self.buffer).take(rows)
        return Strings(taken.values, taken.offsets)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The index of each string; refuses duplicates."""
        found = {text: i for i, text in enumerate(self)}
        if len(found) != len(self):
            twice = next(text for i, text in enumerate(self) if found[text] != i)
            raise BadValue(
                f"{len(self) - len(found)} of {len(self)} ids are duplicates, "
                f"the first is {twice!r}"
            )
        return found


def _encode(text: str) -> bytes:
    if not isinstance(text, str):
        raise BadValue(f"{text!r} is not a text; write ids as strings")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadValue(f"{text!r} is not valid Unicode") from None
