"""What being served costs a client and a server: bytes, milliseconds and accuracy.

    python -m benchmarks.serving_cost
    TACIT_DATA=… python -m benchmarks.serving_cost --items --accuracy ml-1m mind

For catalogs of 1,000, 10,000 and 100,000 items of 32 factors: bytes that a client gets
once, bytes that it sends for a list, and milliseconds on either side, as one table. All
bytes are those of real messages and files. Items are random, with a spectrum that falls
as those of trained models do; ids are short, and titles are the ids.

Item vectors of one byte per factor would be a quarter of the download. What they do to
lists is the share of the exact best 10 that is still among the best 10. What they do to
accuracy is measured with `--accuracy`: test users of these sets are ranked on the
device, with the item vectors as they are and with one byte per factor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.served_sets import SETS, served_set
from tacit.data.catalog import Catalog
from tacit.keys import Key
from tacit.method import ItemSpace
from tacit.service.answer import answer_bytes
from tacit.service.basis import write_basis
from tacit.service.run_offer import MOST
from tacit.serving.model_file import Model, save_model
from tacit.serving.query import Mode
from tacit.serving.query_server import QueryServer
from tacit.serving.serve import OVERFETCH
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient
from tacit.serving.settings import ServingSettings
from tacit.serving.topk import FactorIndex
from tacit.transport.messages import NO_PHASE, Broadcast

ITEMS, FACTORS, USERS, K, REPEATS = (1_000, 10_000, 100_000), 32, 2000, 10, 40
MODES = {
    "krr, 3 interests": ServingSettings(Mode.KRR, 2.0, interests=3),
    "krr, 100 interests": ServingSettings(Mode.KRR, 10.0, interests=100),
    "dpa, 20 interests": ServingSettings(Mode.DPA, 5.0, interests=20),
    "vdp, whole vector": ServingSettings(Mode.VDP, 5.0),
}
Row = list[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, one column per size of the catalog, and accuracies."""
    asked = _asked(arguments)
    if asked.items:
        _print_table(asked.items)
    for name in asked.accuracy:
        print(accuracy(name), flush=True)
    return 0


def _print_table(sizes: Sequence[int]) -> None:
    columns = [_column(n) for n in sizes]
    print("| | " + " | ".join(f"{n:,} items" for n in sizes) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


def _column(n_items: int) -> dict[str, str]:
    """One size of catalog: every row of the table."""
    draw = np.random.default_rng(0)
    spectrum = 1 / np.sqrt(np.arange(1, FACTORS + 1))
    vectors = (draw.normal(size=(n_items, FACTORS)) * spectrum).astype(np.float32)
    users = draw.normal(size=(USERS, FACTORS)).astype(np.float32)
    space = ItemSpace(vectors, np.zeros(n_items))
    codes = n_items * (FACTORS + 4)  # with one step per item
    found = {
        "down once, on_device: weights and catalog": _size(candidates_bytes(vectors)),
        "… of that, item vectors of four bytes per factor": _size(vectors.nbytes),
        "… with one byte per factor instead": _size(codes),
        "… and the share of the best 10 that it keeps": f"{kept(vectors, users):.3f}",
    }
    models = {
        name: ServedModel(space, settings.mechanism(space, users, Key.from_seed(0)))
        for name, settings in MODES.items()
    }
    for name, model in models.items():
        found[f"down once, basis: {name}"] = _size(len(write_basis(model.mechanism)))
    for name, model in models.items():
        found[f"up, a query: {name}"] = _size(model.query_bytes)
    found[f"down, an answer of {K * OVERFETCH} items"] = _size(
        answer_bytes(K * OVERFETCH)
    )
    index, nothing = FactorIndex.of(vectors), np.zeros(0, np.int32)
    found["client ranks by itself"] = _time(lambda i: index.best(users[i], nothing))
    model = models["vdp, whole vector"]
    found["client makes a fresh query, with its ledger"] = _fresh(model, users)
    count = K * OVERFETCH
    for name, model in models.items():
        found[f"server answers with {count} items: {name}"] = _answers(model, users)
    return found


def _answers(model: ServedModel, users: np.ndarray) -> str:
    """The time in which a server reads a query and has its list."""
    server = QueryServer(model).prepared(MOST)
    keys = Key.from_seed(1).each(np.arange(REPEATS + 1))
    queries = [one.encode() for one in model.release(users[: REPEATS + 1], keys)]
    return _time(lambda i: server.answer(queries[i], K * OVERFETCH))


def candidates_bytes(vectors: np.ndarray) -> int:
    """The length of the file that `GET /v1/candidates` gives."""
    catalog = Catalog.of_ids([f"item-{n}" for n in range(len(vectors))])
    method = {"name": "fmf_ldp", "factors": vectors.shape[1]}
    broadcast = Broadcast(0, bytes(16), {"items": vectors}, NO_PHASE)
    model = Model(method, {"mechanism": "none"}, broadcast, catalog)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "model.safetensors"
        save_model(model, weights, Path(folder) / "model.json")
        return weights.stat().st_size


def coarse(vectors: np.ndarray) -> np.ndarray:
    """Vectors in whole steps, of which each item has 127 to its largest factor."""
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 127
    steps[steps == 0] = 1.0
    return np.rint(vectors / steps) * steps


def kept(vectors: np.ndarray, users: np.ndarray) -> float:
    """The mean share of the exact best 10 among the best 10 by coarse vectors."""
    shares, rounded = [], coarse(vectors)
    for user in users[:200]:
        exact = np.argsort(-(vectors @ user), kind="stable")[:K]
        rough = np.argsort(-(rounded @ user), kind="stable")[:K]
        shares.append(len(np.intersect1d(exact, rough)) / K)
    return float(np.mean(shares))


def accuracy(name: str) -> str:
    """The metric on the device with the item vectors as they are, and in bytes."""
    served = served_set(name)
    part, space = served.parts["test"], served.space
    table = ItemSpace(coarse(space.vectors), space.offsets)
    exact = part.values(part.users)
    rough = served.values_with(table, "test")(part.users)
    apart = rough - exact
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    return (
        f"{name}, {served.metric}: {exact.mean():.4f} as it is, {rough.mean():.4f} in "
        f"bytes ({apart.mean():+.4f} ± {error:.4f})"
    )


def _fresh(model: ServedModel, users: np.ndarray) -> str:
    """The time of a query that is made, entered and kept; each on a new day."""
    now = [0.0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        with ServingClient(path, model, now=lambda: now[0]) as client:

            def ask(i: int) -> None:
                now[0] += 86_400.0
                client.query(lambda: users[i].astype(np.float64))

            return _time(ask)


def _time(run: Callable[[int], object]) -> str:
    """The shortest of some repeats, after one that compiles: when nobody else runs."""
    times = []
    for i in range(1 + REPEATS):
        began = time.perf_counter()
        run(i)
        times.append(time.perf_counter() - began)
    return f"{1e3 * min(times[1:]):.2f} ms"


def _size(count: int) -> str:
    """Bytes as people read them."""
    if count < 10_000:
        return f"{count:,} B"
    return f"{count / 1e3:,.0f} kB" if count < 10_000_000 else f"{count / 1e6:,.1f} MB"


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving_cost")
    parser.add_argument("--items", type=int, nargs="*", default=ITEMS)
    parser.add_argument("--accuracy", nargs="+", choices=[*SETS], default=[])
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
