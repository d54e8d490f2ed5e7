"""What adapting costs one device: time of its processor, and memory, by its history.

The network is PrivRec's as we train it on MovieLens 1M, with its first weights: what
they are changes no time. Histories are of films drawn at random. Times are of one
thread if numpy has one (OMP_NUM_THREADS=1), the best of a few runs.
"""

from __future__ import annotations

import logging
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.data.shards import Shards
from tacit.method import Candidates, Clients, Tastes, enrol
from tacit.methods.privrec import PrivRec
from tacit.plan import Plan
from tacit.reproduction import Scale
from tacit.reproduction.privrec.benches import Bench
from tacit.reproduction.privrec.settings import AsWeWould
from tacit.reproduction.tables import ReproducedTable, Reproduction, Row
from tacit.transport.codec import encode_broadcast
from tacit.transport.messages import Broadcast

EVENTS = (0, 10, 50, 100, 500, 1000)
_RUNS = 5

_LOG = logging.getLogger("tacit.reproduction")


def one_device(_: Scale) -> Reproduction:
    """A row a length of history."""
    bench = Bench("movielens-1m", "quick")
    split, method = bench.split(), AsWeWould(bench).privrec
    server = method.start(Plan(1), split.catalog, bench.key)
    keys = bench.key.at("device").each(split.users[:1])
    clients = enrol(method, Plan(1), split.profiles.take(split.users[:1]), keys)
    device = Device(method, method.broadcast(server), clients)
    rows = tuple(device.row(n, bench) for n in EVENTS if n <= len(split.catalog))
    name = "PrivRec, one device: milliseconds to adapt, by events of its history"
    return Reproduction((ReproducedTable(name, rows),), ())


@dataclass(frozen=True)
class Device:
    """One device, and what everybody knows."""

    method: PrivRec
    broadcast: Broadcast
    clients: Clients

    def row(self, events: int, bench: Bench) -> Row:
        """What a history of so many events costs."""
        _LOG.info("adapting with %d events", events)
        catalog = bench.split().catalog
        draws = bench.key.at("films", events).generator()
        films = draws.permutation(len(catalog))[:events]
        shards = Shards.of_history(films, n_items=len(catalog), value=self.method.liked)
        keys = bench.key.at("adapt").each(np.zeros(1, np.int64))

        def adapt() -> Tastes:
            return self.method.represent(self.broadcast, self.clients, shards, keys)

        taste, everything = adapt(), Candidates.all_of(catalog)
        beside = {
            "ms to score all": _milliseconds(
                lambda: self.method.score(self.broadcast, taste, everything)
            ),
            "MB at most": _peak(adapt) / 1e6,
            "kB of taste": sum(_bytes(taste)) / 1e3,
            "kB of broadcast": len(encode_broadcast(self.broadcast)) / 1e3,
        }
        return Row(
            f"{events} events",
            None,
            None,
            _milliseconds(adapt),
            ok=True,
            beside=beside,
        )


def _bytes(taste: Tastes) -> list[int]:
    return [taste.tree[name].nbytes for name in taste.tree.leaves]


def _milliseconds(work: Callable[[], object]) -> float:
    """Of the processor, the best of a few runs."""
    found = []
    for _ in range(_RUNS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


def _peak(work: Callable[[], object]) -> int:
    """Bytes of all arrays that are held at once while working."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
