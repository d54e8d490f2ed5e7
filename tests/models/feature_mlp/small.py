"""A network with every kind of field, clients of every size, and the literal loop."""

from __future__ import annotations

import numpy as np

from tacit.data.features import Categories, Category, Numeric
from tacit.keys import Key
from tacit.models.feature_mlp import Encoded, Examples, Fields, Network

USERS = {"age": 0, "gender": 2, "hobbies": 3}
SITUATIONS = {"weather": 4, "hour": 0}
ITEMS = {"genres": 5, "maker": 6, "year": 0}
SIDES = {"person": USERS, "situation": SITUATIONS, "item": ITEMS}
LENGTHS = (7, 0, 1, 40, 3, 8, 16, 2)  # clients with nothing, one, and many


def features(counts, n, seed):
    """Invented columns: one label, several or none, a number, some unknown."""
    draws = np.random.default_rng(seed)
    found = {}
    for name, labels in counts.items():
        if not labels:
            found[name] = Numeric(draws.normal(size=n).astype(np.float32))
        elif name in ("genres", "hobbies"):
            rows = [draws.permutation(labels)[: i % 4] for i in range(n)]
            text = [[str(code) for code in sorted(row)] for row in rows]
            found[name] = Categories.of([*text, [str(i) for i in range(labels)]])
            found[name] = found[name].take(np.arange(n))
        else:
            codes = draws.integers(-1, labels, n)
            text = ["" if c < 0 else str(c) for c in codes]
            known = Category.of([*text, *(str(i) for i in range(labels))])
            found[name] = known.take(np.arange(n))
    return found


def network(*, without=(), **changes) -> Network:
    sides, rows = [], 0
    for side, labels in SIDES.items():
        sides.append(Fields({} if side in without else labels, rows))
        rows += sides[-1].n_rows
    small = {"embedding": 3, "widths": (6, 5, 4, 3), "dtype": "float64"}
    return Network(*sides, **small | changes)


def encoded(net: Network, side: str, n: int, seed: int) -> Encoded:
    fields = getattr(net, side)
    columns = features(fields.labels, n, seed)
    return fields.encode(columns, n, rows=net.n_rows, dtype=net.dtype)


def examples(net: Network, lengths=LENGTHS, *, head="sigmoid") -> Examples:
    draws, n = np.random.default_rng(5), sum(lengths)
    labels = draws.integers(0, 2, n) if head == "sigmoid" else draws.normal(size=n)
    return Examples(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        draws.integers(0, 30, n),
        labels.astype(np.float64),
        encoded(net, "situation", n, 1),
        encoded(net, "person", len(lengths), 2),
        encoded(net, "item", 30, 3),
    )


def literal(net, start, all_examples, schedule, keys):
    """Algorithm 1, lines 10 to 18, client by client, by torch's derivatives."""
    import torch

    from tacit.models.feature_mlp import torch_twin

    loss = {
        "sigmoid": torch.nn.functional.binary_cross_entropy_with_logits,
        "linear": lambda said, wanted: ((said - wanted) ** 2).mean() / 2,
    }[schedule.head]
    found = []
    for client in range(len(all_examples)):
        own = all_examples.take([client])
        theta = torch_twin.tensors({n: v[None] for n, v in start.items()})
        home = torch_twin.tensors(
            {n: v[None] for n, v in start.items()}, requires_grad=False
        )
        for epoch in range(schedule.epochs):
            draws = keys[[client]].at("order", epoch).bits_ragged(own.lengths)
            order = np.argsort(draws, kind="stable")
            for first in range(0, len(order), schedule.batch):
                some = order[first : first + schedule.batch]
                inputs = {
                    "person": own.users,
                    "situation": own.situations.take(some),
                    "item": own.catalog.take(own.items[some]),
                }
                said = torch_twin.logits(net, theta, inputs)[0]
                objective = loss(said, torch.tensor(own.labels[some]))
                away = sum(((theta[n] - home[n]) ** 2).sum() for n in theta)
                if schedule.is_squared:
                    objective = objective + schedule.pull / 2 * away
                elif float(away.detach()) > 0:  # else a subgradient is zero
                    objective = objective + schedule.pull / 2 * away.sqrt()
                slopes = torch.autograd.grad(objective, [*theta.values()])
                with torch.no_grad():
                    for value, slope in zip(theta.values(), slopes, strict=True):
                        value -= schedule.rate * slope
        found.append({n: v.detach().numpy()[0] for n, v in theta.items()})
    return {n: np.stack([one[n] for one in found]) for n in start}


def keys(n=8):
    return Key.from_seed(4).each(np.arange(n))
