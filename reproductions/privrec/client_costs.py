"""What adapting costs one client: processor time and memory, by its history.

The network is PrivRec's as we train it on MovieLens 1M, with its first weights: what
they are changes no time. Histories are of films drawn at random. Times are of one
thread if numpy has one (OMP_NUM_THREADS=1), the best of a few runs.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from tacit.data.shards import Shards
from tacit.experiment.assemble import Assembled, assemble, root_key
from tacit.method import Candidates, Tastes
from tacit.reproduction.cells import Results
from tacit.reproduction.study import Scale, Table
from tacit.reproduction.tables import ReproducedTable, Reproduction, Row
from tacit.transport.codec import encode_broadcast

from .beside import privrec
from .contenders import Bench

EVENTS = (0, 10, 50, 100, 500, 1000)
ADAPT = "ms to adapt"
_RUNS = 5


def one_client(scale: Scale) -> Table:
    """A row for each length of a history; a tenth of the users has all films."""
    bench = Bench("ml1m", "smoke" if scale == "smoke" else "quick")
    [experiment] = bench.cell("PrivRec").experiments()

    def make(results: Results) -> Reproduction:
        found = results.measured(
            f"one client {scale}",
            {"experiment": experiment.digest, "events": EVENTS, "runs": _RUNS},
            lambda: costs(assemble(experiment)),
        )
        rows = tuple(
            Row(
                f"{one.pop('events')} events",
                None,
                None,
                one.pop(ADAPT),
                ok=True,
                beside=one,
            )
            for one in found
        )
        name = "PrivRec, one client: milliseconds to adapt, by events of its history"
        return Reproduction((ReproducedTable(name, rows),), ())

    return Table(make)


def costs(assembled: Assembled) -> list[dict[str, float]]:
    """What each length of a history costs that the catalog has items for."""
    n_items = len(assembled.split.catalog)
    return [_cost(assembled, events) for events in EVENTS if events <= n_items]


def _cost(assembled: Assembled, events: int) -> dict[str, float]:
    method, catalog = privrec(assembled), assembled.split.catalog
    state = assembled.simulation.start()
    broadcast, client = method.broadcast(state.server), state.clients.take([0])
    key = root_key(assembled.experiment).at("one client")
    films = key.at("films", events).generator().permutation(len(catalog))[:events]
    shards = Shards.of_history(films, n_items=len(catalog), value=method.liked)
    keys = key.at("adapt").each(np.zeros(1, np.int64))

    def adapt() -> Tastes:
        return method.represent(broadcast, client, shards, keys)

    taste, everything = adapt(), Candidates.all_of(catalog)
    held = [taste.tree[name].nbytes for name in taste.tree.leaves]
    return {
        "events": events,
        ADAPT: _milliseconds(adapt),
        "ms to score all": _milliseconds(
            lambda: method.score(broadcast, taste, everything)
        ),
        "MB at most": peak(adapt) / 1e6,
        "kB of taste": sum(held) / 1e3,
        "kB of broadcast": len(encode_broadcast(broadcast)) / 1e3,
    }


def _milliseconds(work: Callable[[], object]) -> float:
    """Processor time, the best of a few runs."""
    found = []
    for _ in range(_RUNS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


def peak(work: Callable[[], object]) -> int:
    """Bytes of all arrays that are held at once while working."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
