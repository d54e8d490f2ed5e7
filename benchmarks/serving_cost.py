"""What being served costs a client and a server: bytes and milliseconds.

    python -m benchmarks.serving_cost
    TACIT_DATA=… python -m benchmarks.serving_cost --accuracy ml-1m

For 1,000, 10,000 and 100,000 items of 32 factors: what is sent down once (the item
table in single precision, or one byte per factor and a step per item; or only the
interests, where a server ranks), what goes up and down for a list of 10, and the time
of one list on the client and of one query at the server, the median of many. Item
vectors are drawn at random: neither bytes nor an exact scan depend on them much.
`--accuracy` ranks test users of a set with the table of bytes, on the device.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks.served_sets import SETS, served_set
from tacit.keys import Key
from tacit.method import ItemSpace
from tacit.serving.interests import find_interests
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.query_server import QueryServer
from tacit.serving.serve import OVERFETCH
from tacit.serving.served_model import ServedModel
from tacit.serving.topk import FactorIndex

FACTORS, K, INTERESTS = 32, 10, 20
TIMES = 200


def main() -> None:
    """Print one line per size of the catalog, and the accuracy of a table of bytes."""
    asked = _options()
    print("| items | table | in bytes | interests | up | down | client | server |")
    print("|" + "---|" * 8)
    for n_items in asked.items:
        print(_line(n_items), flush=True)
    if asked.accuracy is not None:
        print(_accuracy(asked.accuracy))


def _line(n_items: int) -> str:
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(n_items, FACTORS)).astype(np.float32)
    space = ItemSpace(vectors, np.zeros(n_items, np.float32))
    users = draw.normal(size=(500, FACTORS))
    interests = find_interests(space, users, count=INTERESTS, key=Key.from_seed(0))
    model = ServedModel(space, InterestResponse(2.0, interests))
    server, index = QueryServer(model), FactorIndex.of(vectors)
    [query] = model.release(users[:1], Key.from_os().alone())
    message, user = query.encode(), users[0].astype(np.float32)
    best = server.answer(message, K * OVERFETCH)
    shared = sum(array.nbytes for array in model.mechanism.arrays().values())
    sizes = (
        vectors.nbytes + 4 * n_items,  # an offset per item
        n_items * (FACTORS + 8),  # one byte per factor, a step and an offset
        shared,
        len(message),
        best.items.nbytes + best.scores.astype(np.float32).nbytes,
    )
    nothing = np.zeros(0, np.int32)
    on_client = _milliseconds(lambda: index.best(user, nothing, k=K))
    at_server = _milliseconds(lambda: server.answer(message, K * OVERFETCH))
    told = " | ".join(f"{size:,}" for size in sizes)
    return f"| {n_items:,} | {told} | {on_client:.2f} ms | {at_server:.2f} ms |"


def _milliseconds(ask: Callable[[], object]) -> float:
    """The median of many calls, after one that compiles."""
    ask()
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        ask()
        found.append(time.perf_counter() - start)
    return 1000 * float(np.median(found))


def _accuracy(name: str) -> str:
    """The metric on the device with the table as it is, and in bytes."""
    served = served_set(name)
    part, vectors = served.parts["test"], served.space.vectors
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 127
    steps[steps == 0] = 1.0
    coarse = np.rint(vectors / steps) * steps
    exact = part.values(part.users)
    table = ItemSpace(coarse, served.space.offsets)
    rough = served.values_with(table, "test")(part.users)
    apart = rough - exact
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    return (
        f"{name}, {served.metric}: {exact.mean():.4f} as it is, {rough.mean():.4f} in "
        f"bytes ({apart.mean():+.4f} ± {error:.4f})"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving_cost")
    sizes = [1_000, 10_000, 100_000]
    parser.add_argument("--items", nargs="+", type=int, default=sizes)
    parser.add_argument("--accuracy", choices=[*SETS])
    return parser.parse_args()


if __name__ == "__main__":
    main()
