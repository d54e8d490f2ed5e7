"""Harm for bytes and for JSON: what a fuzzer does to a sound input."""

from __future__ import annotations

import copy
import json
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

_EXTREMES = (
    *(0, 1, 2**7 - 1, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1),
    *(2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1),
)
_TOKENS = (
    *(b"\0", b"\n", b"\r", b'"', b"'", b",", b"\t", b"::", b"{", b"}", b"[", b"]"),
    *(b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"9" * 30, b"\xff\xfe", b"\xed"),
    *(b"\xed\xa0\x80", b"\xc0\x80", b"\\ud800", b"__metadata__", b"[" * 3000),
    *("\u202e".encode(), "é".encode(), b"0x10", b"1_000", b"\x1f\x8b", b"PK\x03\x04"),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, -0.0),
    *(float("nan"), float("inf"), float("-inf"), 1e308, 5e-324, "", "x", "\ud800"),
    *("\0", "9" * 400, [], {}, [[]], [None], {"": None}, {"column": "x"}, "column"),
    *([0] * 300, ["x", 1, None], {"part": "Strings", "fields": {}}, "GaussianDpEvent"),
)


def harmed(draw: random.Random, corpus: Sequence[bytes]) -> bytes:
    """One of the sound inputs after one to four harms."""
    data = bytearray(corpus[int(draw.random() * len(corpus))])
    for _ in range(1 + int(draw.random() ** 2 * 4)):
        _BYTES[int(draw.random() * len(_BYTES))](draw, data, corpus)
    return bytes(data)


def _place(draw: random.Random, data: bytearray) -> int:
    return int(draw.random() * len(data)) if data else 0


def _flip(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_place(draw, data)] ^= 1 << int(draw.random() * 8)


def _set(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_place(draw, data)] = int(draw.random() * 256)


def _cut(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_place(draw, data) :]


def _drop(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    first = _place(draw, data)
    del data[first : first + 1 + int(draw.random() ** 3 * 64)]


def _repeat(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    first = _place(draw, data)
    piece = data[first : first + 1 + int(draw.random() ** 3 * 64)]
    data[first:first] = piece * (1 + int(draw.random() ** 4 * 20))


def _insert(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    first = _place(draw, data)
    data[first:first] = draw.randbytes(1 + int(draw.random() * 8))


def _token(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    first, token = _place(draw, data), draw.choice(_TOKENS)
    data[first : first + (len(token) if draw.random() < 0.5 else 0)] = token


def _number(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A length field, perhaps, set to an extreme; either end may come first."""
    size, kind = draw.choice(((1, "B"), (2, "H"), (4, "I"), (8, "Q")))
    first = _place(draw, data) if draw.random() < 0.7 else 8 * (_place(draw, data) // 8)
    value = draw.choice(_EXTREMES) % 256**size
    data[first : first + size] = struct.pack(draw.choice("<>") + kind, value)


def _splice(draw: random.Random, data: bytearray, corpus: Sequence[bytes]) -> None:
    other = corpus[int(draw.random() * len(corpus))]
    first = int(draw.random() * (len(other) + 1))
    data[_place(draw, data) :] = other[first:]


_BYTES: tuple[Callable[[random.Random, bytearray, Sequence[bytes]], None], ...] = (
    *(_flip, _flip, _set, _cut, _drop, _repeat, _insert, _token, _number, _splice),
)


def harmed_document(draw: random.Random, text: str) -> Any:
    """A JSON document with one to three of its values, keys or lists changed."""
    document = json.loads(text)
    for _ in range(1 + int(draw.random() ** 2 * 3)):
        document = _edit(draw, document)
    return document


def harmed_json(draw: random.Random, corpus: Sequence[bytes]) -> bytes:
    """A JSON text harmed as a document, as bytes, or in ways only a text can be."""
    chance = draw.random()
    if chance < 0.3:
        return harmed(draw, corpus)
    text = corpus[int(draw.random() * len(corpus))].decode()
    if chance < 0.33:
        depth = draw.choice((10, 900, 100_000))
        return (draw.choice(("[", '{"a":')) * depth + text).encode()
    written = json.dumps(harmed_document(draw, text))
    if chance < 0.4 and '": ' in written:  # a key twice
        key = written[written.index('"') : written.index('": ') + 3]
        written = "{" + key + "null, " + written[1:]
    return written.encode("utf-8", "surrogatepass")


def _edit(draw: random.Random, document: Any) -> Any:
    """Walk down to a random place and change what is there."""
    holder: Any = None
    key: Any = None
    here = document
    while isinstance(here, dict | list) and here and draw.random() < 0.85:
        holder = here
        key = draw.choice(list(here)) if isinstance(here, dict) else _index(draw, here)
        here = here[key]
    if holder is None:
        return _value(draw) if draw.random() < 0.2 else document
    chance = draw.random()
    if chance < 0.6:
        holder[key] = _value(draw)
    elif chance < 0.75:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, _value(draw))
    else:
        holder[draw.choice(("", "x", "unit", "\ud800", f"{key} "))] = _value(draw)
    return document


def _index(draw: random.Random, here: Sequence[Any]) -> int:
    return int(draw.random() * len(here))


def _value(draw: random.Random) -> Any:
    value = draw.choice(_VALUES)
    return copy.deepcopy(value) if isinstance(value, dict | list) else value
