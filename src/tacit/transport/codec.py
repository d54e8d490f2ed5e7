"""Messages to bytes and back: versioned, checked for size, kind, digest and content.

    offset  bytes  field
    0       4      magic, b"TCIT"
    4       1      version
    5       1      kind: 1 Broadcast, 2 Report, 3 PartialSum, 4 Reports
    6       2      phase of a Broadcast (unsigned), else zero
    8       8      round (unsigned)
    16      8      body length (unsigned)
    24      16     agreement digest
    40      …      body: safetensors
    end-16  16     BLAKE2b of all before

The checksum finds damage, not forgery: it carries no secret. Whatever the bytes are,
a decoder returns exactly what an encoder was given or raises `BadMessage`. A message
has one encoding only, so its length is a function of the declared layout and says
nothing else.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from safetensors.numpy import load, save

from tacit.errors import BadMessage, Refused
from tacit.transport.messages import (
    Broadcast,
    Layout,
    PartialSum,
    Reports,
)
from tacit.tree import Array, Arrays, Tree
from tacit.wire_names import DIGEST_BYTES

VERSION = 1
MAGIC = b"TCIT"
_HEADER = struct.Struct("<4sBBHQQ16s")
_CHECKSUM = 16  # bytes; against damage, where 2**-128 is far more than enough
_BROADCAST, _REPORT, _PARTIAL, _STACK = 1, 2, 3, 4
_KINDS = {
    _BROADCAST: "Broadcast",
    _REPORT: "Report",
    _PARTIAL: "PartialSum",
    _STACK: "Reports",
}

_MOST_DIGITS = 4096  # bytes by which the lengths of stacked arrays may be longer

Message = TypeVar("Message", Broadcast, Reports, PartialSum)
Stored = Mapping[str, tuple[str, tuple[int, ...]]]  # dtype and shape of named arrays


def encode_broadcast(broadcast: Broadcast) -> bytes:
    """The bytes of a broadcast."""
    _only(Broadcast, broadcast)
    return _encode(
        _BROADCAST,
        broadcast.round,
        broadcast.agreement,
        broadcast.weights,
        phase=broadcast.phase,
    )


def decode_broadcast(message: bytes) -> Broadcast:
    """The broadcast in these bytes."""
    round_, digest, arrays, phase = _decode(_BROADCAST, message)
    return Broadcast(round_, digest, arrays, phase)


def encode_reports(broadcast: Broadcast, reports: Reports) -> list[bytes]:
    """One message per client, in answer to `broadcast`."""
    return _encode_rows(broadcast, _only(Reports, reports).tree)


def decode_reports(
    broadcast: Broadcast, messages: Sequence[bytes], layout: Layout
) -> Reports:
    """The stacked reports of these messages; each must answer `broadcast`."""
    return Reports(_decode_rows(broadcast, messages, layout))


def encode_partial(broadcast: Broadcast, partial: PartialSum) -> bytes:
    """The sum of one machine's reports, without noise, in answer to `broadcast`."""
    total = _only(PartialSum, partial).total
    return _encode(_PARTIAL, broadcast.round, broadcast.agreement, total)


def decode_partial(broadcast: Broadcast, message: bytes, slots: Stored) -> PartialSum:
    """The partial sum in these bytes, which must have exactly these arrays."""
    if len(message) != (size := _size(slots)):  # before anything is parsed
        raise BadMessage(f"{len(message):,} bytes; every such sum has {size:,}")
    arrays = _decode_answer(_PARTIAL, broadcast, message)
    found = {name: (str(a.dtype), a.shape) for name, a in arrays.items()}
    if found != dict(slots):
        raise BadMessage(f"a sum of {found}; agreed is {dict(slots)}")
    return PartialSum(arrays)


def partial_size(slots: Stored) -> int:
    """How many bytes a partial sum with these arrays has."""
    return _size(slots)


def encode_stack(broadcast: Broadcast, reports: Reports) -> bytes:
    """The reports of many clients of one machine in one message."""
    tree = _only(Reports, reports).tree
    return _encode(_STACK, broadcast.round, broadcast.agreement, _parts(tree))


def decode_stack(
    broadcast: Broadcast, message: bytes, layout: Layout, *, most: int
) -> Reports:
    """The reports in these bytes, of at least one client and at most of `most`."""
    largest = stack_size(layout, most)
    if len(message) > largest:  # before anything is parsed or allocated
        raise BadMessage(
            f"{len(message):,} bytes; the reports of {most:,} clients have no more "
            f"than {largest:,}"
        )
    arrays = _decode_answer(_STACK, broadcast, message)
    layout.check_stored({n: (str(a.dtype), a.shape[1:]) for n, a in arrays.items()})
    counts = sorted({a.shape[0] for a in arrays.values() if a.ndim})
    if len(counts) != 1 or not 1 <= counts[0] <= most:
        raise BadMessage(
            f"arrays of {counts} clients; from 1 to {most:,} may report, all in the "
            "same number"
        )
    return Reports(_tree(layout, arrays))


def stack_size(layout: Layout, most: int) -> int:
    """No message with the reports of `most` clients has more bytes."""
    return wire_size(layout) + _MOST_DIGITS + most * layout.stored_bytes


def wire_size(layout: Layout) -> int:
    """How many bytes every message of this layout has."""
    return _size(layout.stored())


def broadcast_size(public: Stored) -> int:
    """How many bytes a broadcast of these arrays has."""
    return _size(public)


def _size(stored: Stored) -> int:
    return _size_of(tuple((name, *kind) for name, kind in stored.items()))


@lru_cache(maxsize=64)  # asked of the same few layouts in every round
def _size_of(stored: tuple[tuple[str, str, tuple[int, ...]], ...]) -> int:
    blank = {name: np.zeros(shape, dtype) for name, dtype, shape in stored}
    return len(_encode(_BROADCAST, 0, bytes(DIGEST_BYTES), blank))


def _only(kind: type[Message], message: object) -> Message:
    """The message, if it is of this kind; private types have the same fields."""
    if not isinstance(message, kind):
        raise Refused(f"{type(message).__name__} has no codec; needed: {kind.__name__}")
    return message


def _encode_rows(broadcast: Broadcast, tree: Tree) -> list[bytes]:
    stored = _parts(tree)
    return [
        _encode(
            _REPORT,
            broadcast.round,
            broadcast.agreement,
            {n: a[i] for n, a in stored.items()},
        )
        for i in range(len(tree))
    ]


def _decode_rows(
    broadcast: Broadcast, messages: Sequence[bytes], layout: Layout
) -> Tree:
    if not messages:
        return Tree({})
    size = wire_size(layout)
    rows = [_decode_row(broadcast, message, layout, size) for message in messages]
    stacked = {name: np.stack([row[name] for row in rows]) for name in layout.stored()}
    return _tree(layout, stacked)


def _parts(tree: Tree) -> dict[str, Array]:
    """The stored arrays of a tree by name; axis 0 is the client."""
    return {
        name + suffix: part
        for name, leaf in tree.leaves.items()
        for suffix, part in leaf.parts.items()
    }


def _tree(layout: Layout, arrays: Arrays) -> Tree:
    """The tree whose stored arrays these are."""
    return Tree(
        {
            name: slot.leaf({s: arrays[name + s] for s in slot.parts()})
            for name, slot in layout.slots.items()
        }
    )


def _decode_row(
    broadcast: Broadcast, message: bytes, layout: Layout, size: int
) -> dict[str, Array]:
    if len(message) != size:  # before anything is parsed or allocated
        raise BadMessage(f"{len(message)} bytes; every such message has {size}")
    arrays = _decode_answer(_REPORT, broadcast, message)
    layout.check_stored({n: (str(a.dtype), a.shape) for n, a in arrays.items()})
    return arrays


def _decode_answer(kind: int, broadcast: Broadcast, message: bytes) -> dict[str, Array]:
    """The arrays of a message that answers `broadcast` and no other."""
    round_, digest, arrays, _ = _decode(kind, message)
    if (round_, digest) != (broadcast.round, broadcast.agreement):
        raise BadMessage(
            f"answers round {round_} of agreement {digest.hex()}; "
            f"expected round {broadcast.round} of {broadcast.agreement.hex()}"
        )
    return arrays


def _encode(
    kind: int, round_: int, digest: bytes, arrays: Arrays, *, phase: int = 0
) -> bytes:
    body = save({name: _contiguous(value) for name, value in arrays.items()})
    head = _HEADER.pack(MAGIC, VERSION, kind, phase, round_, len(body), digest)
    return head + body + _checksum(head + body)


def _decode(kind: int, message: bytes) -> tuple[int, bytes, dict[str, Array], int]:
    if len(message) < _HEADER.size + _CHECKSUM:
        raise BadMessage(f"{len(message)} bytes are too few for a message")
    head, body = message[: _HEADER.size], message[_HEADER.size : -_CHECKSUM]
    magic, version, found, phase, round_, length, digest = _HEADER.unpack(head)
    if magic != MAGIC or (phase and kind != _BROADCAST):
        raise BadMessage("does not begin as a Tacit message does")
    if version != VERSION:
        raise BadMessage(f"version {version}; this program reads version {VERSION}")
    if found != kind:
        kinds = _KINDS.get(found, f"kind {found}"), _KINDS[kind]
        raise BadMessage(f"is a {kinds[0]}, expected a {kinds[1]}")
    if length != len(body):
        raise BadMessage(f"body has {len(body)} bytes, its header says {length}")
    if message[-_CHECKSUM:] != _checksum(head + body):
        raise BadMessage("was damaged on the way: its checksum does not match")
    arrays = _parse(body)
    _check_values(arrays)
    # Encoded again and compared: whatever safetensors would also accept, such as
    # another order or padding, could carry something beside the numbers.
    if _encode(kind, round_, digest, arrays, phase=phase) != message:
        raise BadMessage("is not in the one agreed encoding")
    return round_, digest, arrays, phase


def _parse(body: bytes) -> dict[str, Array]:
    try:
        return dict(load(body))
    except Exception as error:  # of whatever kind: these bytes came from outside
        raise BadMessage(f"body is not safetensors: {error}") from error


def _check_values(arrays: Arrays) -> None:
    for name, value in arrays.items():
        kind = value.dtype.kind
        if kind not in "biuf":
            raise BadMessage(f"'{name}' holds {value.dtype}; no message does")
        if kind == "f" and not np.isfinite(value).all():
            raise BadMessage(f"'{name}' holds NaN or infinity")
        if kind == "b" and (value.view(np.uint8) > 1).any():  # a second way to say true
            raise BadMessage(f"'{name}' holds bytes that are neither true nor false")


def _contiguous(value: Array) -> Array:
    # safetensors writes the buffer as it lies; numpy >= 2 keeps 0-d arrays 0-d here.
    return np.asarray(value, order="C")


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM).digest()
