"""Bar 12: one user's exact top 10 without the seen, one query after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest_each
from tacit.serving.topk import FactorIndex

K, FACTORS, SEEN, QUERIES = 10, 64, 100, 50


def measure(quick: bool) -> list[Case]:
    return [_case(n) for n in ((10_000,) if quick else (10_000, 100_000))]


def _case(n_items: int) -> Case:
    rng = np.random.default_rng(0)
    items = rng.normal(size=(n_items, FACTORS)).astype(np.float32)
    users = rng.normal(size=(QUERIES, FACTORS)).astype(np.float32)
    seen = np.sort(rng.choice(n_items, SEEN, replace=False)).astype(np.int32)
    index = FactorIndex.of(items)
    for user in users:
        same = index.best(user, seen, k=K).items == _argpartition(user, items, seen)
        if not same.all():
            raise AssertionError("the lists differ")
    best = fastest_each(
        {
            "argpartition": lambda i: _argpartition(users[i], items, seen),
            "ours": lambda i: index.best(users[i], seen, k=K),
        },
        QUERIES,
        repeats=30,
    )
    ratio = best["argpartition"] / best["ours"]
    return Case(f"{n_items} items × {FACTORS}", ratio, best)


def _argpartition(user: Any, items: Any, seen: Any) -> Any:
    scores = items @ user
    scores[seen] = -np.inf
    best = np.argpartition(scores, -K)[-K:]
    return best[np.argsort(-scores[best])]


BAR = Bar(12, "exact top 10, seen excluded, against numpy argpartition", 1.8, measure)
