"""Tables of plain numbers, read fast and strictly: bytes in, columns out.

A block of lines is cut and converted with array operations, a digit position at a time,
so there is no Python work for a line. What is not exactly the layout is refused with
the number of its line. Memory holds one block and the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NoReturn

import numpy as np
from jaxtyping import Bool, Int64, UInt8
from numpy.typing import NDArray

from tacit.data.parsing.archive_members import Members
from tacit.data.parsing.quote import quoted
from tacit.errors import BadData

MOST_DIGITS = 18  # of a number; more might not fit 64 bits

_BLOCK = 1 << 22  # bytes read at once; no line may be longer
_NEWLINE, _RETURN, _POINT, _ZERO = b"\n\r.0"

Places = Int64[np.ndarray, "lines"]


@dataclass(frozen=True)
class Layout:
    """Columns in order, what separates them, and the header line if there is one."""

    columns: tuple[str, ...]
    separator: str
    decimals: frozenset[str] = frozenset()  # columns that may have a decimal point
    header: bool = False

    @property
    def first_line(self) -> int:
        """The number of the line that holds row 0."""
        return 2 if self.header else 1


def numbers_of(members: Members, name: str, layout: Layout) -> dict[str, NDArray[Any]]:
    """The columns of a file in a release, read by `read_numbers`."""
    with members.open(name) as stream:
        return read_numbers(stream, layout, members.label(name))


def read_numbers(
    stream: IO[bytes], layout: Layout, file: str
) -> dict[str, NDArray[Any]]:
    """The columns: int64, or float64 for those with decimals. Row i is one line.

    Numbers are digits only: a sign, an exponent, `nan` or a blank is malformed. The
    last line may lack its line end; CRLF is accepted.
    """
    if layout.header:
        _check_header(stream.readline(_BLOCK), layout, file)
    line, pieces = layout.first_line, []
    for block in whole_lines(stream, line, file):
        pieces.append(_columns(block, layout, line, file))
        line += len(pieces[-1][0])
    if not pieces:
        raise BadData(file, None, "is empty; expected lines of " + _shape(layout))
    joined = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    return dict(zip(layout.columns, joined, strict=True))


def check_scale(
    column: NDArray[Any], what: str, *, step: float, most: float, file: str, first: int
) -> None:
    """Refuse numbers that are not in step, 2 step, …, most; `first` is row 0's line."""
    is_whole = column / step == np.round(column / step)
    bad = ~((column >= step) & (column <= most) & is_whole)
    if bad.any():
        row = int(bad.argmax())
        scale = (
            f"in {step:g}, {2 * step:g}, …, {most:g}" if most > step else f"{most:g}"
        )
        raise BadData(file, first + row, f"{what} {column[row]:g} must be {scale}")


def _check_header(line: bytes, layout: Layout, file: str) -> None:
    if not line:
        raise BadData(file, None, "is empty; expected the header " + _shape(layout))
    found = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
    expected = layout.separator.join(layout.columns)
    if found != expected.encode():
        raise BadData(file, 1, f"header {quoted(found)} must be '{expected}'")


def whole_lines(stream: IO[bytes], line: int, file: str) -> Iterator[bytes]:
    """Whole lines, a few megabytes at a time."""
    rest = b""
    while block := stream.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut and len(rest) + len(block) > _BLOCK:
            raise BadData(file, line, f"longer than {_BLOCK:,} bytes")
        if cut:
            whole, rest = rest + block[:cut], block[cut:]
            line += whole.count(b"\n")
            yield whole
        else:
            rest += block
    if rest:
        yield rest + b"\n"


def _columns(block: bytes, layout: Layout, line: int, file: str) -> list[NDArray[Any]]:
    """The columns of one block whose first line has number `line`."""
    text = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(text == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    # All separators of the block in one scan; each line must have as many.
    separators = _separators(text, layout.separator.encode())
    found = np.diff(np.searchsorted(separators, ends), prepend=0)
    if (wrong := found != len(layout.columns) - 1).any():
        row = int(wrong.argmax())
        shown = quoted(block[starts[row] : ends[row]].rstrip(b"\r"))
        raise BadData(file, line + row, f"{shown} is not {_shape(layout)}")
    ends = ends - (text[ends - 1] == _RETURN)  # CRLF
    cuts = separators.reshape(len(ends), -1).T
    firsts = [starts, *(cuts + len(layout.separator))]
    columns = []
    for name, first, last in zip(layout.columns, firsts, [*cuts, ends], strict=True):
        mantissa, places, bad = numbers_at(text, first, last, name in layout.decimals)
        if bad.any():
            row = int(bad.argmax())
            _refuse(block[first[row] : last[row]], name, layout, file, line + row)
        is_decimal = name in layout.decimals
        # Correctly rounded up to 15 digits: both integers are exact in float64.
        columns.append(mantissa / 10.0**places if is_decimal else mantissa)
    return columns


def _separators(text: UInt8[np.ndarray, "bytes"], mark: bytes) -> Places:
    """Where separators begin; of `:::` both pairs count, so the line is malformed."""
    here = text == mark[0]
    if len(mark) == 2:
        here[:-1] &= text[1:] == mark[1]
        here[-1] = False
    return np.flatnonzero(here)


def numbers_at(
    text: UInt8[np.ndarray, "bytes"], starts: Places, ends: Places, is_decimal: bool
) -> tuple[Places, Places, Bool[np.ndarray, "lines"]]:
    """All digits as one integer, how many follow the point, and what is no number."""
    width = ends - starts
    value, places = np.zeros_like(width), np.zeros_like(width)
    point = np.zeros(len(width), bool)
    bad = (width < 1) | (width > MOST_DIGITS)
    for k in range(min(int(width.max()), MOST_DIGITS)):  # the k-th byte of every field
        inside = k < width
        byte = text[np.minimum(starts + k, len(text) - 1)]
        is_digit = inside & (byte >= _ZERO) & (byte <= _ZERO + 9)
        is_point = inside & (byte == _POINT) & ~point & is_decimal
        value = np.where(is_digit, value * 10 + byte - _ZERO, value)
        places += is_digit & point
        point |= is_point
        bad |= inside & ~is_digit & ~is_point
    return value, places, bad | (width <= point)


def _refuse(field: bytes, name: str, layout: Layout, file: str, line: int) -> NoReturn:
    kind = "a number" if name in layout.decimals else "a whole number"
    raise BadData(file, line, f"{name}={quoted(field)} must be {kind} >= 0")


def _shape(layout: Layout) -> str:
    return f"'{layout.separator.join(layout.columns)}'"
