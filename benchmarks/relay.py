"""`python -m benchmarks.relay [--clients 50000]`: reports per second through a relay.

Relay and collector are processes of their own on this machine; other processes play
clients, each of which seals 50 one-bit reports by itself and sends them in one upload.
The votes are random, and their sum is known, so it is compared in every number with
what the collector has learnt from.

What a relay alone can take is measured first, with uploads of random bytes, which it
cannot tell from sealed ones: sealing takes clients longer than everything takes a
relay. Beside it stands a handler that reads an upload and answers 202, on the same
stack: what HTTP costs without a relay. Figures are wall time and CPU time of each
process, and the memory of relay and collector; that of the collector at its highest
before the fold, in it, and while the model is published. The first and the last are the
account of the run: they depend on the plan, and not on how many messages there are.

The targets are 10 minutes of wall time for 50,000 clients on 2 idle cores, 1,000
uploads per second of relay CPU, and a relay whose memory is flat: from a tenth of the
clients to all of them, and while it forwards, it grows by less than 64 MB. The second
is judged by the flood. Where uploads come slowly, few of them share a flush of the disk
and each costs more: that figure is printed too, and it is lower. The other two are
judged with 50,000 clients or more only. The exit code is 1 if a target is missed, or if
the sum is wrong. `--smoke` plays 200 clients and judges the sum alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.relay_place import COLLECTOR, RELAY, RelayPlace
from benchmarks.serving import empty
from tacit.aggregation.votes import tally
from tacit.errors import Unanswered
from tacit.service import hpke
from tacit.service.federation.posting import NO_ANSWER, Posting
from tacit.service.federation.settings import read_secret, read_signing_key
from tacit.service.manifest import (
    Manifest,
    attach_signatures,
    read_document,
    read_manifest,
)
from tacit.service.relay.relay_client import RelayClient
from tacit.service.relay.relay_intake import RelayIntakeLimits
from tacit.service.relay.relay_store import upload_counts
from tacit.service.relay.services import serve_collector, serve_relay
from tacit.service.relay.uploads import MAGIC, EpochManifest, MessageFields, upload
from tacit.service.server import Address, listen, serve
from tacit.service.signed_document import signature

CLIENTS, VOTES, ITEMS, FACTORS, LEAST = 50_000, 50, 1000, 5, 1000
MOST_SECONDS, LEAST_RATE, MOST_GROWTH = 600.0, 1000.0, 64
CONNECTIONS, PLAYERS = 64, 2
_MOST_FLOOD = 10_000  # uploads
_PATIENCE = 900.0  # seconds; all of a run of 50,000 clients takes six minutes


@dataclass(frozen=True)
class Played:
    """What one process of clients did."""

    votes: np.ndarray  # the sum, by coordinate
    cpu: float  # seconds
    posted: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all clients, print a table; 1 if a target is missed or the sum is wrong."""
    asked = _asked(arguments)
    clients = 200 if asked.smoke else asked.clients
    least = min(LEAST, clients // 2)
    print(f"{clients:,} clients × {asked.votes} reports", flush=True)
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        os.environ["TACIT_STATE"] = str(Path(name) / "anchors")
        place = RelayPlace.made_in(Path(name))
        run = place.run(people=clients, votes=asked.votes, items=ITEMS, least=least)
        bare = _bare(max(1000, clients // 10), asked.votes)
        flood = _flood(place.elsewhere(Path(name) / "flood"), clients, asked.votes)
        with (
            process(_relay, place) as relay,
            process(_collector, place, clients, asked.votes, least) as collector,
        ):
            found = _played(place, run.invitation, clients, asked.votes, relay)
            began = time.monotonic()
            stages = {"before the fold": peak_since(collector)}
            _patiently("the fold", lambda: _folded(place))
            stages["in the fold"] = peak_since(collector)
            _patiently("the model", lambda: _got(f"{place.url(2)}/v1/model"))
            stages["published"] = peak_since(collector)
            after = time.monotonic() - began
            at_rest = resident(collector)
            cpu = {RELAY: cpu_seconds(relay), COLLECTOR: cpu_seconds(collector)}
            peaks = {RELAY: peak(relay), COLLECTOR: max(stages.values())}
        is_right = _is_right(place, run, found.votes, clients)
    rate = 1 / flood
    total = found.wall + after
    print(f"uploads           {found.wall:8.1f} s wall, {clients / found.wall:,.0f}/s")
    print(f"forward and fold  {after:8.1f} s wall, {total:,.1f} s in all")
    print(f"clients           {found.clients_cpu:8.1f} s CPU in {PLAYERS} processes")
    print(
        f"relay             {cpu[RELAY]:8.1f} s CPU, {found.relay_cpu:.1f} s of them "
        f"for uploads at this rate: {clients / found.relay_cpu:,.0f}/s of CPU"
    )
    print(f"relay, flooded    {rate:8,.0f} uploads/s of CPU")
    print(
        f"empty handler     {bare * clients:8.1f} s CPU for as many: "
        f"{1 / bare:,.0f} uploads/s of CPU"
    )
    print(
        f"collector         {cpu[COLLECTOR]:8.1f} s CPU, without the processes that "
        "open seals"
    )
    for role in (RELAY, COLLECTOR):
        said = f"{found.early_mb} MB at a tenth of the clients"
        if role == COLLECTOR:
            said = ", ".join(f"{name} {mb}" for name, mb in stages.items())
            said += f", {at_rest} at the end"
        print(f"memory, {role:10}{peaks[role]:8} MB at most; {said}")
    print("the sum is " + ("equal in every number" if is_right else "WRONG"))
    if asked.smoke:
        return 0 if is_right else 1
    growth, are_many = peaks[RELAY] - found.early_mb, clients >= CLIENTS
    judged = {f"{LEAST_RATE:,.0f} uploads/s of CPU, flooded": rate >= LEAST_RATE}
    if are_many:
        judged[f"{MOST_SECONDS:.0f} s for {CLIENTS:,} clients"] = total <= MOST_SECONDS
        judged[f"memory of the relay grows by {growth} MB"] = growth < MOST_GROWTH
    for what, is_reached in judged.items():
        print(f"{what}: {is_reached}")
    if not are_many:
        print(f"time and memory are not judged below {CLIENTS:,} clients")
    return 0 if is_right and all(judged.values()) else 1


@dataclass(frozen=True)
class Uploaded:
    """What all clients did, and what it cost the relay meanwhile."""

    votes: np.ndarray
    wall: float
    clients_cpu: float
    relay_cpu: float
    early_mb: int


def _played(
    place: RelayPlace, invitation: Any, clients: int, votes: int, relay: int
) -> Uploaded:
    keys = {"relay": invitation.leader, "collector": invitation.helper}
    sent = _patiently(
        "a manifest that both operators signed",
        lambda: _got(f"{place.url(2)}/v1/manifest"),
    )
    manifest = read_manifest(sent, MessageFields, keys)
    before, began = cpu_seconds(relay), time.monotonic()
    spawn = multiprocessing.get_context("spawn")
    shares = [clients // PLAYERS + (n < clients % PLAYERS) for n in range(PLAYERS)]
    early = 0
    with spawn.Pool(PLAYERS) as pool:
        results = [
            pool.apply_async(play, (manifest.document(), place.url(0), n, votes))
            for n in shares
        ]
        while not all(one.ready() for one in results):
            time.sleep(0.5)
            if not early and _uploads(place) >= clients // 10:
                early = resident(relay)
        cpu, wall = cpu_seconds(relay) - before, time.monotonic() - began
        found = [one.get() for one in results]
    total = sum((one.votes for one in found), start=np.zeros(ITEMS * FACTORS, np.int64))
    return Uploaded(total, wall, sum(one.cpu for one in found), cpu, early)


def _uploads(place: RelayPlace) -> int:
    path = place.folder / RELAY / "relay.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        return sum(upload_counts(file).values())


def _folded(place: RelayPlace) -> bytes | None:
    """What was learnt, once the messages are in it."""
    path = place.folder / COLLECTOR / "collector.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        [(learnt,)] = file.execute("SELECT learnt FROM epochs")
    return learnt


def _is_right(place: RelayPlace, run: Any, votes: np.ndarray, clients: int) -> bool:
    """Whether the model is that of exactly the votes that were sent."""
    path = place.folder / COLLECTOR / "collector.db"
    with contextlib.closing(sqlite3.connect(path)) as file:
        [(learnt, messages, dropped)] = file.execute(
            "SELECT learnt, messages, dropped FROM epochs"
        )
    form = run.form(run.start)
    # A few votes that add up to the same: the sum is all that the method reads.
    signs = np.repeat(np.sign(votes) * np.arange(1, len(votes) + 1), np.abs(votes))
    rows = np.zeros((len(signs), form.message_bytes), np.uint8)
    rows[:, :4] = signs.astype("<i4").view(np.uint8).reshape(-1, 4)
    after = run.next(run.start, rows, uploads=clients)
    is_equal = run.to_bytes(after) == learnt
    return is_equal and messages == clients * form.count and not dropped


# --- Clients --------------------------------------------------------------------------


def play(document: bytes, url: str, clients: int, votes: int) -> Played:
    """So many clients, in a process of its own."""
    began = time.process_time()
    manifest = read_document(document, MessageFields)
    total, posted = asyncio.run(_all(manifest, url, clients, votes))
    return Played(total, time.process_time() - began, posted)


async def _all(
    manifest: EpochManifest, url: str, clients: int, votes: int
) -> tuple[np.ndarray, int]:
    draws = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))
    total = np.zeros(ITEMS * FACTORS, np.int64)
    left, posted = [clients], [0]

    async def work() -> None:
        with contextlib.closing(Posting(url)) as posting:
            while left[0]:
                left[0] -= 1
                signs = draws.choice([-1, 1], votes)
                own = (signs * draws.integers(1, len(total) + 1, votes)).astype("<i4")
                total[:] += tally(own.astype(np.int32), len(total))
                texts = [one.tobytes() + bytes(4) for one in own]
                posted[0] += await _sent(posting, upload(texts, manifest))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(CONNECTIONS, clients)):
            tasks.create_task(work())
    return total, posted[0]


async def _sent(posting: Posting, body: bytes) -> int:
    for tries in range(1, 1000):
        with contextlib.suppress(*NO_ANSWER):
            found = await posting.post("/v1/reports", body)
            if found.status in (200, 202):
                return tries
        await asyncio.sleep(0.05)
    raise RuntimeError("an upload was never taken")


# --- Servers --------------------------------------------------------------------------


def _relay(place: RelayPlace) -> None:
    serve_relay(place.relay(poll=0.2, linger=RelayIntakeLimits().linger))


def _collector(place: RelayPlace, clients: int, votes: int, least: int) -> None:
    run = place.run(people=clients, votes=votes, items=ITEMS, least=least)
    serve_collector(place.collector(poll=0.2), run)


def _bare(uploads: int, votes: int) -> float:
    """The CPU seconds of an empty handler for one upload of the same size."""
    with listen(Address(port=0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with process(_empty, port) as server:
        _patiently("the empty handler", lambda: _got(url))
        before = cpu_seconds(server)
        content = bytes(40 + votes * 56)
        asyncio.run(_post_all(url, uploads, lambda: content))
        return (cpu_seconds(server) - before) / uploads


def _flood(place: RelayPlace, clients: int, votes: int) -> float:
    """The CPU seconds of a relay for one upload, as many at once as it can take."""
    uploads, now = min(clients, _MOST_FLOOD), int(time.time())
    manifest = Manifest(
        run=bytes(16),
        round=0,
        fields=MessageFields(8, votes),
        least_reports=2,
        most_reports=2 * uploads,
        opens=now - 60,
        closes=now + 24 * 3600,
        broadcast=bytes(32),
        url=place.url(0),
        keys={"collector": hpke.public_key(hpke.new_private_key())},
    )
    secret = read_secret(place.secrets / "pair.secret")
    key = read_signing_key(place.secrets / COLLECTOR / "signing.key")
    with process(_relay, place) as server:
        relay = RelayClient("relay", place.url(1), secret)
        _patiently(
            "the signature of the relay",
            lambda: _tried(lambda: relay.sign(manifest.document())),
        )
        own = relay.sign(manifest.document())
        signatures = {"relay": own, "collector": signature(manifest, key)}
        relay.open(attach_signatures(manifest, signatures))
        relay.close_connection()
        before = cpu_seconds(server)
        asyncio.run(_post_all(place.url(0), uploads, partial(_random, manifest)))
        return (cpu_seconds(server) - before) / uploads


def _random(manifest: EpochManifest) -> bytes:
    """An upload of random bytes, in the form of a sealed one."""
    count = manifest.fields.reports_per_user.to_bytes(2, "little")
    head = MAGIC + manifest.round_id + count
    return head + os.urandom(manifest.fields.body_bytes - len(head) - 2) + bytes(2)


def _tried(ask: Callable[[], bytes]) -> bytes | None:
    with contextlib.suppress(Unanswered):
        return ask()
    return None


async def _post_all(url: str, uploads: int, body: Callable[[], bytes]) -> None:
    left = [uploads]

    async def work() -> None:
        with contextlib.closing(Posting(url)) as posting:
            while left[0]:
                left[0] -= 1
                await posting.post("/v1/reports", body())

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(work())


def _empty(port: int) -> None:
    serve(empty(), listen(Address(port=port)))


@contextlib.contextmanager
def process(work: Callable[..., None], *args: object) -> Iterator[int]:
    """A process that does this until the end of the block; its id."""
    spawn = multiprocessing.get_context("spawn")  # as a command starts
    made = spawn.Process(target=work, args=args)
    made.start()
    assert made.pid is not None
    try:
        yield made.pid
    finally:
        made.terminate()
        made.join(60)


def cpu_seconds(id: int) -> float:
    """The time that processors have spent on a process so far."""
    fields = Path(f"/proc/{id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(id: int) -> int:
    """The most memory that a process has had, in MB."""
    return _memory(id, "VmHWM")


def peak_since(id: int) -> int:
    """The most memory, in MB, since this was asked before; then it begins anew."""
    found = peak(id)
    Path(f"/proc/{id}/clear_refs").write_text("5")  # what VmHWM begins with
    return found


def resident(id: int) -> int:
    """The memory that a process has now, in MB."""
    return _memory(id, "VmRSS")


def _memory(id: int, name: str) -> int:
    lines = Path(f"/proc/{id}/status").read_text().splitlines()
    [line] = [one for one in lines if one.startswith(f"{name}:")]
    return int(line.split()[1]) // 1024


def _got(url: str) -> bytes | None:
    with contextlib.suppress(httpx.HTTPError):
        found = httpx.get(url, timeout=30)
        if found.status_code == 200:
            return found.content
    return None


def _patiently(awaited: str, look: Callable[[], bytes | None]) -> bytes:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        found = look()
        if found is not None:
            return found
        time.sleep(0.1)
    raise RuntimeError(f"{awaited} did not come within {_PATIENCE:.0f} s")


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relay")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--votes", type=int, default=VOTES, help="reports of each")
    parser.add_argument("--folder", type=Path, help="where files are; a real disk")
    parser.add_argument("--smoke", action="store_true", help="a few, not judged")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
