"""What a masked sum costs a client and the server: processor time and bytes.

    python -m benchmarks.masked_sum                                  # fifteen minutes
    python -m benchmarks.masked_sum --clients 1000 --numbers 3533 45150

Nine tenths of the clients must survive, a tenth may side with the server, and one in
twenty drops out after it has sent its shares. Every client plays every step in one
process, and the sum must be that of the survivors' numbers. A client's seconds are
means over all, the server's are its whole round: adding up, joining shares, and
drawing the masks of survivors and of pairs again. Noise is not drawn, since the
protocol is the same without it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tacit.keys import Key
from tacit.transport.neighbor_graph import GraphSize, NeighborGraph, bytes_of
from tacit.transport.pairwise_masks import (
    MaskedRound,
    MaskingClient,
    UnmaskingServer,
)
from tacit.transport.shared_sum import Numbers

NUMBERS = (3_533, 45_150)  # counts of ML-1M's items, and half of a square of 300
CLIENTS = (1_000, 10_000)
SURVIVE, COLLUDE, DROP = 0.9, 0.1, 0.05

_HEAD = (
    "| clients | numbers | neighbors | threshold | keys | shares | masks | answer | "
    "a client, s | the server, s | sent, kB | received, kB |"
)


@dataclass
class Clock:
    """Processor seconds of one kind of step, all clients together."""

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens inside."""
        start = time.process_time()
        yield
        self.seconds += time.process_time() - start


def row(n: int, size: int) -> str:
    """The line of the table for this many clients and numbers each."""
    least, key = int(SURVIVE * n), Key.from_seed(0)
    graph = GraphSize.least(n, survivors=least, colluders=int(COLLUDE * n))
    drawn = NeighborGraph.drawn(graph, key.at("graph"))
    agreed = MaskedRound(drawn, least, size, bytes(16))
    keys, share, mask, answer, server = (Clock() for _ in range(5))
    with keys.running():
        clients = [MaskingClient(i, agreed, key.at(i)) for i in range(n)]
        adverts = {client.number: client.advertise() for client in clients}
    gone = {int(i) for i in key.at("gone").permutation(n)[: int(DROP * n)]}
    with share.running():
        sealed = [client.share(adverts) for client in clients]
    summing = UnmaskingServer(agreed, adverts, np.ones(n, bool))
    wanted = np.zeros(size, np.uint32)
    for i, client in enumerate(clients):
        envelopes = {int(j): sealed[int(j)][i] for j in client.neighbors}
        vector = _numbers(size, i)
        with mask.running():
            masked = client.mask(vector, envelopes)
        if i not in gone:
            wanted += vector
            with server.running():
                summing.add(i, masked)
    alive = summing.survivors()
    with answer.running():
        replies = {i: clients[i].unmask(alive) for i in range(n) if i not in gone}
    with server.running():
        total = summing.unmasked(replies)
    if not np.array_equal(total, wanted):
        raise SystemExit("the unmasked sum is not that of the survivors")
    steps = [1e3 * step.seconds / n for step in (keys, share, mask, answer)]
    up, down = bytes_of(graph, size)
    cells = [f"{n:,}", f"{size:,}", str(graph.neighbors), str(graph.threshold)]
    cells += [f"{ms:.2f} ms" for ms in steps]
    cells += [f"{sum(steps) / 1e3:.4f}", f"{server.seconds:.2f}"]
    cells += [f"{up / 1e3:.1f}", f"{down / 1e3:.1f}"]
    return f"| {' | '.join(cells)} |"


def _numbers(size: int, client: int) -> Numbers:
    """Numbers of a client, different from everybody's."""
    return np.arange(size, dtype=np.uint32) * np.uint32(2 * client + 1)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
    options.add_argument("--numbers", type=int, nargs="+", default=NUMBERS)
    asked = options.parse_args()
    print(_HEAD)
    print("|" + " --: |" * _HEAD.count(" | ") + " --: |")
    for n in asked.clients:
        for size in asked.numbers:
            print(row(n, size), flush=True)


if __name__ == "__main__":
    main()
