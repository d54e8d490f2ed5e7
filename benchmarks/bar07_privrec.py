"""Bar 7: PrivRec's cohort of 100, one local epoch, against one client at a time.

The loop is the paper's Algorithm 1 in plain torch: a module, SGD, mini-batches of 32,
inputs made ready beforehand, the module reused from client to client. Both start from
the same weights and take the same batches; in float64 they end at the same weights
within 1e-9, which is checked on some clients before anything is timed. Users, films
and histories are invented and as large as those of MovieLens 1M: 22,273 weights.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.keys import Key, Keys
from tacit.models.feature_mlp import Examples, Fields, Network, Schedule, train
from tacit.tree import Arrays

CLIENTS, KINDS, BATCH, RATE = 100, 300, 32, 0.05
USERS, GENRES = {"age_group": 7, "gender": 2, "occupation": 21}, 18


def measure(quick: bool) -> list[Case]:
    clients = CLIENTS // 4 if quick else CLIENTS
    _check_equal()
    network = _network("float32")
    start, examples = network.start(Key.from_seed(0)), _examples(network, clients)
    keys = Key.from_seed(1).each(np.arange(clients))
    schedule, loop = Schedule(1, BATCH, RATE), Loop(network, start, examples)

    def ours() -> Arrays:
        return train(network, start, examples, schedule=schedule, keys=keys)

    best = fastest({"one client at a time": lambda: loop.run(keys), "ours": ours})
    ratio = best["one client at a time"] / best["ours"]
    return [Case(f"{clients} clients, {len(examples.items):,} examples", ratio, best)]


class Loop:
    """Clients one after another, by torch."""

    def __init__(self, network: Network, start: Arrays, examples: Examples) -> None:
        import torch

        self.examples, self.model = examples, _model(network)
        self.start = _state(start)
        bags = examples.catalog.shares.toarray()[:, network.item.first :]
        self.bags = torch.tensor(bags)[torch.tensor(examples.items)]
        codes = examples.users.shares.indices.reshape(len(examples), -1)
        self.users = torch.tensor(codes.astype(np.int64))
        self.labels = torch.tensor(examples.labels.astype(network.dtype))

    def run(self, keys: Keys) -> list[dict[str, Any]]:
        """What every client has learnt, on one thread: two are slower here."""
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self._run(keys)
        finally:
            torch.set_num_threads(threads)

    def _run(self, keys: Keys) -> list[dict[str, Any]]:
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits as loss

        found, offsets = [], self.examples.offsets
        draws = keys.at("order").at(0).bits_ragged(self.examples.lengths)
        for client in range(len(self.examples)):
            self.model.load_state_dict(self.start)
            sgd = torch.optim.SGD(self.model.parameters(), lr=RATE)
            own = slice(offsets[client], offsets[client + 1])
            order = torch.tensor(np.argsort(draws[own], kind="stable") + own.start)
            for batch in order.split(BATCH):
                sgd.zero_grad()
                said = self.model(self.users[client], self.bags[batch])
                loss(said, self.labels[batch]).backward()
                sgd.step()
            state = self.model.state_dict()
            found.append({name: state[name] - self.start[name] for name in state})
        return found


def _model(network: Network) -> Any:
    """Equation 1 as a torch module."""
    import torch
    from torch import nn

    widths = [network.embedding * 4, *network.widths, 1]

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(network.n_rows, network.embedding)
            sizes = pairwise(widths)
            self.layers = nn.ModuleList(nn.Linear(*size) for size in sizes)

        def forward(self, codes: Any, bags: Any) -> Any:
            user = self.table(codes).reshape(1, -1).expand(len(bags), -1)
            item = bags @ self.table.weight[network.item.first :]
            x = torch.cat([user, item], dim=1)
            for layer in self.layers[:-1]:
                x = torch.relu(layer(x))
            return self.layers[-1](x)[:, 0]

    return Model().to(getattr(torch, network.dtype))


def _state(start: Arrays) -> dict[str, Any]:
    """Our weights under the module's names."""
    import torch

    first = np.concatenate([start["first.person"], start["first.item"]])
    named = {"table.weight": start["embeddings"], "layers.0.weight": first.T}
    for layer in range(1, 6):
        if layer > 1:
            named[f"layers.{layer - 1}.weight"] = start[f"weights.{layer}"].T
        named[f"layers.{layer - 1}.bias"] = start[f"bias.{layer}"]
    return {name: torch.tensor(np.array(value)) for name, value in named.items()}


def _check_equal() -> None:
    network = _network("float64")
    start, examples = network.start(Key.from_seed(0)), _examples(network, 8)
    keys = Key.from_seed(1).each(np.arange(8))
    schedule = Schedule(1, BATCH, RATE)
    ours = train(network, start, examples, schedule=schedule, keys=keys)
    for client, moved in enumerate(Loop(network, start, examples).run(keys)):
        mine = _state({name: value[client] for name, value in ours.items()})
        home = _state(start)
        for name, value in moved.items():
            away = (mine[name] - home[name] - value).abs().max()
            assert away < 1e-9, f"client {client}: {name} differs by {away}"


def _network(dtype: str) -> Network:
    users, rows = Fields(USERS), sum(USERS.values())
    items = Fields({"genres": GENRES}, rows)
    return Network(users, Fields({}, rows), items, dtype=dtype)


def _examples(network: Network, clients: int) -> Examples:
    """Histories as long as in MovieLens 1M: at least 20, most about 96, some 1,000."""
    rng, rows, dtype = np.random.default_rng(0), network.n_rows, network.dtype
    lengths = np.maximum(20, rng.lognormal(np.log(96), 1.06, clients)).astype(int)
    events = int(lengths.sum())
    genres = (rng.random((KINDS, GENRES)) < 0.1).astype(np.uint8)
    genres[np.arange(KINDS), np.arange(KINDS) % GENRES] = 1
    told = {
        name: rng.integers(0, n, clients, dtype=np.int32) for name, n in USERS.items()
    }
    return Examples(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        rng.integers(0, KINDS, events),
        (rng.random(events) < 0.57).astype(np.float64),
        network.situation.encode({}, events, rows=rows, dtype=dtype),
        network.person.encode(told, clients, rows=rows, dtype=dtype),
        network.item.encode({"genres": genres}, KINDS, rows=rows, dtype=dtype),
    )


BAR = Bar(7, "PrivRec cohort of 100, one epoch, against the loop", 6.0, measure)
