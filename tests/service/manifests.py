"""Manifests with changes, and those of both channels by a seed.

Every draw is made from `getrandbits`, whose stream no version of Python changes.
"""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tacit.service.manifest import AnyManifest

CHANNELS = ("two_servers", "shuffle")
_LEAVES = ("counts", "relations", "über", "a b", 'quo"te', "")
_URLS = ("https://leader.example", "http://127.0.0.1:8001", "https://ü.example/a?b")
_ODD: tuple[Any, ...] = (
    *(0, 1, -1, 1.0, True, False, None, "", "x", [], {}, 2**53, 2**53 - 1, 65536),
    *("00" * 16, "00" * 32, "AB" * 16, b64encode(bytes(32)).decode(), "A===", [1], "1"),
)


def changed(manifest: AnyManifest, **changes: Any) -> AnyManifest:
    """The manifest with these values, by the name of a field or as `leader_key`."""
    keys = {
        name.removesuffix("_key"): changes.pop(name)
        for name in [*changes]
        if name.endswith("_key")
    }
    fields = {n: changes.pop(n) for n in [*changes] if hasattr(manifest.fields, n)}
    return replace(
        manifest,
        fields=replace(manifest.fields, **fields),
        keys={**manifest.keys, **keys},
        **changes,
    )


class Draws:
    """A seeded stream of small choices."""

    def __init__(self, seed: int) -> None:
        self._bits = random.Random(seed).getrandbits

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return self._bits(64) % n

    def bytes(self, n: int) -> bytes:
        """Some random bytes."""
        return self._bits(8 * n).to_bytes(n, "big")

    def pick(self, values: Any) -> Any:
        """One of several values."""
        return values[self.below(len(values))]


def tables(channel: str, seed: int, n: int) -> Iterator[dict[str, Any]]:
    """The JSON tables of `n` sound manifests of a channel."""
    draw = Draws(seed)
    for _ in range(n):
        yield _table(channel, draw)


def _table(channel: str, draw: Draws) -> dict[str, Any]:
    opens = draw.below(2**33)
    least = 1 + draw.below(1000)
    table = {
        "v": 1,
        "run": draw.bytes(16).hex(),
        "n_min": least,
        "n_max": least + draw.below(10**6),
        "opens": opens,
        "closes": opens + 1 + draw.below(10**6),
        "broadcast": draw.bytes(32).hex(),
        "prev": draw.bytes(32).hex() if draw.below(2) else "",
    }
    number, url = draw.below(5), draw.pick(_URLS)
    keys = [b64encode(draw.bytes(32)).decode() for _ in range(2)]
    if channel == "two_servers":
        return table | {
            "round": number,
            "leaf": draw.pick(_LEAVES),
            "d": 1 + draw.below(500_000),
            "r": 2 ** draw.below(21),
            "limit": 1 + draw.below(2**40),
            "sigma": 1 + draw.below(2**30),
            "leader": {"url": url, "key": keys[0]},
            "helper": {"key": keys[1]},
        }
    return table | {
        "task": "reports",
        "epoch": number,
        "report_len": 8 * (1 + draw.below(100)),
        "reports_per_user": 1 + draw.below(2**16 - 1),
        "tickets": bool(draw.below(2)),
        "relay": {"url": url},
        "collector": {"key": keys[0]},
    }


def canonical(table: Mapping[str, Any]) -> bytes:
    """The one form of a table, written without the code under test."""
    return json.dumps(table, sort_keys=True, separators=(",", ":")).encode()


def damaged(channel: str, seed: int, n: int) -> Iterator[bytes]:
    """Documents that were sound before one or two things were changed in each."""
    draw = Draws(seed)
    for _ in range(n):
        table = _table(channel, draw)
        if draw.below(3):
            yield _other_bytes(canonical(table), draw)
            continue
        for _ in range(1 + draw.below(2)):
            table = _other_table(table, draw)
        if draw.below(8) == 0:
            yield json.dumps(table).encode()  # with spaces, in no order
        else:
            yield canonical(table)


def _other_bytes(document: bytes, draw: Draws) -> bytes:
    place, kind = draw.below(len(document)), draw.below(4)
    if kind == 0:
        bit = bytes([document[place] ^ 1 << draw.below(8)])
        return document[:place] + bit + document[place + 1 :]
    if kind == 1:
        return document[:place] + document[place + 1 + draw.below(8) :]
    if kind == 2:
        return document[:place] + draw.bytes(1 + draw.below(3)) + document[place:]
    digit = str(draw.below(10)).encode()
    return document[:place] + digit + document[place + 1 :]


def _other_table(table: dict[str, Any], draw: Draws) -> dict[str, Any]:
    changed, name, kind = dict(table), draw.pick(sorted(table)), draw.below(6)
    if kind == 0:
        del changed[name]
    elif kind == 1:
        changed[name] = draw.pick(_ODD)
    elif kind == 2:
        changed["more"] = draw.pick(_ODD)
    elif kind == 3:
        other = draw.pick(sorted(table))
        changed[name], changed[other] = table[other], table[name]
    elif kind == 4 and isinstance(table[name], dict):
        changed[name] = table[name] | {draw.pick(("url", "key")): draw.pick(_ODD)}
    elif isinstance(table[name], int):
        changed[name] = max(0, table[name] + draw.below(5) - 2)
    return changed


def compared(
    channel: str, seed: int, n: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any], int, dict[int, bytes]]]:
    """What a client agreed to, what it is shown, the time, and the rounds it knows.

    The first two are tables of manifests of which a few numbers differ.
    """
    draw = Draws(seed)
    for _ in range(n):
        agreed = _table(channel, draw)
        shown, number = dict(agreed), "round" if "round" in agreed else "epoch"
        for _ in range(draw.below(3)):
            name = draw.pick(_COMPARED[channel])
            shown[name] = _near(name, agreed[name], draw)
        if shown["n_min"] > shown["n_max"]:
            shown["n_max"] = shown["n_min"]
        window = shown["closes"] - shown["opens"]
        now = shown["opens"] + draw.below(window + 2) - 1
        known = {}
        if draw.below(2) and shown[number]:
            # Half of them name the round before.
            name = shown["prev"] if draw.below(2) else ""
            known[shown[number] - 1] = bytes.fromhex(name) or draw.bytes(32)
        yield agreed, shown, now, known


_COMPARED = {
    "two_servers": ("run", "leaf", "d", "r", "limit", "sigma", "n_min", "prev"),
    "shuffle": ("run", "report_len", "reports_per_user", "n_min", "tickets", "prev"),
}


def _near(name: str, value: Any, draw: Draws) -> Any:
    if name == "leaf":
        return draw.pick(_LEAVES)
    if name == "prev":
        return "" if value else draw.bytes(32).hex()
    if name == "run":
        return draw.bytes(16).hex()
    if isinstance(value, bool):
        return not value
    return max(1, min(value + draw.below(3) - 1, 2**16 - 1 if "per" in name else 2**52))
