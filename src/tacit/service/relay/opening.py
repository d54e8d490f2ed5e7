"""Batches of sealed messages to rows of opened ones, each distinct seal once.

A seal opens 20,000 times per second on one core and threads share a lock, so many
seals are opened in several processes. What does not open, or is no message that an
honest client may have sent, is left out and counted. A seal that is there twice counts
once.

Opened messages lie in a file that has no name: nothing of them is left on the disk when
the process has ended. In the memory are 16 bytes per message, by which repeated ones
are found (twice that while they come in), a few batches, and up to 128 MB of messages
that are sorted, with their places, which for the shortest take as much again.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from tacit.errors import BadMessage
from tacit.privacy.privacy import Legal
from tacit.service.hpke import opened
from tacit.service.relay.batches import batch_messages
from tacit.service.relay.messages import Rows, in_order
from tacit.service.relay.uploads import EpochManifest, seal_info

_MANY = 20_000  # seals for which processes are worth their start
_DIGEST_BYTES = 16
_AHEAD = 2  # batches per process that are in the memory at a time
_SORTED_BYTES = 2**27  # of messages that are sorted in the memory


@dataclass(frozen=True)
class Opened:
    """The legal messages of an epoch, and how many there were that are not."""

    rows: Rows
    dropped: int
    repeated: int


def open_all(
    bodies: Iterable[bytes],
    manifest: EpochManifest,
    private_key: bytes,
    legal: Callable[[Rows], Legal],
    *,
    folder: Path,
    processes: int = 2,
    expected: int = 0,
) -> Opened:
    """All messages of these batches that are `legal`, in an order that says nothing.

    `expected` is about how many there are, by which the way is chosen.
    """
    work = partial(open_batch, manifest=manifest, private_key=private_key)
    size, seen, dropped = manifest.fields.report_bytes, bytearray(), 0
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        if processes > 1 and expected >= _MANY:
            spawn = multiprocessing.get_context("spawn")  # a fork would have threads
            pool = ProcessPoolExecutor(processes, mp_context=spawn)
            stack.enter_context(pool)
            results = _ahead(pool, work, bodies, processes * _AHEAD)
        else:
            results = map(work, bodies)
        for digests, texts in results:
            rows = np.frombuffer(texts, np.uint8).reshape(
                -1, manifest.fields.report_bytes + 1
            )
            fine = rows[:, -1] == 1
            if fine.any():
                fine[fine] = legal(rows[fine, :-1])
            dropped += int((~fine).sum())
            file.write(rows[fine, :-1].tobytes())
            names = np.frombuffer(digests, np.uint8).reshape(-1, _DIGEST_BYTES)
            seen += names[fine].tobytes()
        file.flush()
        if not seen:
            nothing = np.zeros((0, size), np.uint8)
            return Opened(nothing, dropped, 0)
        shape = (len(seen) // _DIGEST_BYTES, size)
        found = np.memmap(file, np.uint8, "r", shape=shape)
    is_first = _first_of_each(seen)
    repeated = len(found) - int(is_first.sum())
    once = found[is_first] if repeated else found
    rows = in_order(once) if once.nbytes <= _SORTED_BYTES else once
    return Opened(rows, dropped, repeated)


def open_batch(
    body: bytes, *, manifest: EpochManifest, private_key: bytes
) -> tuple[bytes, bytes]:
    """Digests of the seals of a batch, and their texts, each with a 1 if it opened."""
    info, size = seal_info(manifest.round_id), manifest.fields.report_bytes
    digests, texts = bytearray(), bytearray()
    for seal in batch_messages(body, sealed_bytes=manifest.fields.sealed_bytes):
        digests += sha256(seal).digest()[:_DIGEST_BYTES]
        try:
            text = opened(seal, private_key, info)
        except BadMessage:
            text = b""
        texts += text + b"\1" if len(text) == size else bytes(size + 1)
    return bytes(digests), bytes(texts)


def _first_of_each(digests: bytearray) -> Bool[np.ndarray, "seals"]:
    """Which of the digests stand there for the first time.

    By their first byte, 256 parts of about one size: sorting them all at once would
    take three times the memory that they have.
    """
    halves = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    first = np.frombuffer(digests, np.uint8).reshape(-1, _DIGEST_BYTES)[:, 0]
    found: Bool[np.ndarray, "seals"] = np.ones(len(halves), bool)
    for byte in range(256):
        places = np.flatnonzero(first == byte)
        own = halves[places]
        order = np.lexsort((own[:, 1], own[:, 0]))  # stable: the first stays first
        is_again = (own[order[1:]] == own[order[:-1]]).all(axis=1)
        found[places[order[1:][is_again]]] = False
    return found


Batch = tuple[bytes, bytes]


def _ahead(
    pool: ProcessPoolExecutor,
    work: Callable[[bytes], Batch],
    bodies: Iterable[bytes],
    most: int,
) -> Iterator[Batch]:
    """Results in the order of the bodies, of which few are in the memory at a time."""
    waiting: list[Future[Batch]] = []
    for body in bodies:
        waiting.append(pool.submit(work, body))
        if len(waiting) >= most:
            yield waiting.pop(0).result()
    for one in waiting:
        yield one.result()
