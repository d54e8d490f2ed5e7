"""Ways to harm a file, each given its bytes and a source of chance."""

from __future__ import annotations

from collections.abc import Callable

from numpy.random import Generator

Harm = Callable[[bytes, Generator], bytes]

_MARKS = (b"::", b"\t", b"|", b",", b" ")
_ODD = (
    *(b"\0", b"\xff", b"\xc3", b'"', b"\n", b"\r", b"\t", b",", b"::", b" ", b"-"),
    *(b"nan", b"null", b"inf", b"", b"-1", b"1e9", b"0.1", b"9" * 30, b"\xef\xbb\xbf"),
)


def flip(raw: bytes, draw: Generator) -> bytes:
    """Other bits in a few places."""
    out = bytearray(raw)
    for place in draw.integers(len(out), size=draw.integers(1, 5)):
        out[place] ^= 1 << int(draw.integers(8))
    return bytes(out)


def garble(raw: bytes, draw: Generator) -> bytes:
    """Random bytes instead."""
    return draw.bytes(len(raw))


def cut(raw: bytes, draw: Generator) -> bytes:
    """Only a beginning."""
    return raw[: draw.integers(len(raw))]


def insert(raw: bytes, draw: Generator) -> bytes:
    """Something odd, anywhere."""
    place = int(draw.integers(len(raw) + 1))
    return raw[:place] + _odd(draw) + raw[place:]


def replace_field(raw: bytes, draw: Generator) -> bytes:
    """NaN, null, a blank or worse instead of one field."""
    lines, mark = _table(raw, draw)
    line = lines[draw.integers(len(lines))]
    line[draw.integers(len(line))] = _odd(draw)
    return _text(lines, mark)


def swap_columns(raw: bytes, draw: Generator) -> bytes:
    """Two columns in each other's place, header included."""
    lines, mark = _table(raw, draw)
    a, b = draw.integers(min(map(len, lines)), size=2)
    for line in lines:
        line[a], line[b] = line[b], line[a]
    return _text(lines, mark)


def drop_column(raw: bytes, draw: Generator) -> bytes:
    """One column less."""
    lines, mark = _table(raw, draw)
    place = draw.integers(min(map(len, lines)))
    return _text([[*line[:place], *line[place + 1 :]] for line in lines], mark)


def double_column(raw: bytes, draw: Generator) -> bytes:
    """One column twice."""
    lines, mark = _table(raw, draw)
    place = draw.integers(min(map(len, lines)))
    return _text([[*line[:place], line[place], *line[place:]] for line in lines], mark)


def shuffle_lines(raw: bytes, draw: Generator) -> bytes:
    """Lines in another order, some twice and some not at all."""
    lines = raw.splitlines(keepends=True)
    return b"".join(
        lines[place] for place in draw.integers(len(lines), size=len(lines))
    )


def long_line(raw: bytes, draw: Generator) -> bytes:
    """A line of ten million characters, at the beginning, inside or at the end."""
    lines = raw.splitlines(keepends=True)
    place = int(draw.integers(len(lines) + 1))
    filler = (b"x", b"1,", b"7 ", b"a\t")[draw.integers(4)]
    lines.insert(place, filler * (10_000_000 // len(filler)) + b"\n")
    return b"".join(lines)


def long_field(raw: bytes, draw: Generator) -> bytes:
    """A field of a hundred thousand characters."""
    lines, mark = _table(raw, draw)
    line = lines[draw.integers(len(lines))]
    line[draw.integers(len(line))] *= 100_000
    return _text(lines, mark)


def in_utf_16(raw: bytes, draw: Generator) -> bytes:
    """As other programs save text."""
    return _read(raw).encode("utf-16")


def in_utf_16_without_mark(raw: bytes, draw: Generator) -> bytes:
    """Plain letters with zero bytes between them."""
    return _read(raw).encode("utf-16-le")


def in_the_other_encoding(raw: bytes, draw: Generator) -> bytes:
    """Latin-1 where it was UTF-8, and UTF-8 where it was Latin-1."""
    try:
        return raw.decode().encode("latin-1", errors="replace")
    except UnicodeDecodeError:
        return raw.decode("latin-1").encode()


def emptied(raw: bytes, draw: Generator) -> bytes:
    """No bytes at all."""
    return b""


def _odd(draw: Generator) -> bytes:
    return _ODD[draw.integers(len(_ODD))]


def _table(raw: bytes, draw: Generator) -> tuple[list[list[bytes]], bytes]:
    """The fields of each line, cut at the first mark that the first line has."""
    lines = raw.splitlines()
    mark = next((mark for mark in _MARKS if mark in lines[0]), b" ")
    return [line.split(mark) for line in lines], mark


def _text(lines: list[list[bytes]], mark: bytes) -> bytes:
    return b"\n".join(mark.join(line) for line in lines) + b"\n"


def _read(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
