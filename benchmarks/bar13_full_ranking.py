"""Bar 13: our default metrics of everybody on the whole catalog, five factors.

Both sides get factors, histories and one target a user, and end at the three means.
The baseline is the usual one: a matrix product, the seen to minus infinity, `topk` of
the 100 that NDCG@100 needs. Counting costs the same for every k; `topk` does not: at
k = 10 the same comparison gave 6.1 to 11.1 on one machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.evaluation.evaluate import METRICS, evaluate
from tacit.evaluation.ranking import Factors

K, FACTORS, SEEN, BATCH = 100, 5, 20, 1000


def measure(quick: bool) -> list[Case]:
    n_users, n_items = (10_000, 5_000) if quick else (50_000, 5_000)
    rng = np.random.default_rng(0)
    users = rng.normal(size=(n_users, FACTORS)).astype(np.float32)
    items = rng.normal(size=(n_items, FACTORS)).astype(np.float32)
    heldout = _users(rng, n_users, n_items)
    expected, found = _torch(users, items, heldout), _ours(users, items, heldout)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    best = fastest(
        {
            "torch": lambda: _torch(users, items, heldout),
            "ours": lambda: _ours(users, items, heldout),
        }
    )
    name = f"{n_users} users × {n_items} items"
    return [Case(name, best["torch"] / best["ours"], best)]


def _users(rng: np.random.Generator, n_users: int, n_items: int) -> Heldout:
    """SEEN items of history, in no order, and one target each."""
    drawn = rng.integers(0, n_items - SEEN, (n_users, SEEN + 1))
    drawn = np.sort(drawn, axis=1) + np.arange(SEEN + 1)  # distinct in a row
    drawn = rng.permuted(drawn, axis=1)
    rows = np.arange(n_users)
    return Heldout(
        rows,
        _shards(np.repeat(rows, SEEN), drawn[:, 1:].reshape(-1), n_users, n_items),
        _shards(rows, drawn[:, 0], n_users, n_items),
    )


def _shards(users: Any, items: Any, n_users: int, n_items: int) -> Shards:
    return Shards.of(
        Interactions.of_columns(users, items, n_users=n_users, n_items=n_items)
    )


def _ours(users: Any, items: Any, heldout: Heldout) -> list[float]:
    score = Factors(lambda rows, _: users[rows], items)
    found = evaluate(score, heldout, metrics=METRICS).metrics()
    return [metric.mean for metric in found.values()]


def _torch(users: Any, items: Any, heldout: Heldout) -> list[float]:
    import torch

    factors, vectors = torch.from_numpy(users), torch.from_numpy(items).T
    targets = torch.from_numpy(heldout.targets.items).long()
    seen = torch.from_numpy(heldout.history.items).long().reshape(-1, SEEN)
    ndcg, recall_20, recall_50 = 0.0, 0.0, 0.0
    discount = torch.log2(torch.arange(K) + 2.0)
    for start in range(0, len(users), BATCH):
        batch = slice(start, start + BATCH)
        scores = factors[batch] @ vectors
        scores.scatter_(1, seen[batch], -torch.inf)
        top = torch.topk(scores, K).indices
        found = top == targets[batch, None]
        ndcg += (found / discount).sum().item()
        recall_20 += found[:, :20].sum().item()
        recall_50 += found[:, :50].sum().item()
    return [total / len(users) for total in (ndcg, recall_20, recall_50)]


BAR = Bar(13, "full-ranking evaluation against torch GEMM + topk, F=5", 8.0, measure)
