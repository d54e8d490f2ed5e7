"""Bar 17: an invented world's picks, against noise for every user and item.

The baseline is the textbook method: Gumbel noise on all log weights, the largest are
the picks. Ours draws as many numbers as there are picks, times two. Both are exact
(`tests/data/synthetic/test_weighted_sampling.py` compares them), so here only counts
are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.data.synthetic.ground_truth import Oracle
from tacit.data.synthetic.weighted_sampling import pick
from tacit.keys import Key, Keys

RANK, MEAN_PICKS, BLOCK = 9, 144, 150


def measure(quick: bool) -> list[Case]:
    n_users, n_items = (150, 27_000) if quick else (600, 27_000)
    rng = np.random.default_rng(0)
    users = rng.normal(size=(n_users, RANK))
    oracle = Oracle(users, rng.normal(size=(n_items, RANK)) * 0.6)
    counts = rng.integers(20, 2 * MEAN_PICKS - 20, n_users)
    keys = Key.from_seed(1).each(np.arange(n_users))
    runs = {
        "noise": lambda: _noise(oracle, counts, keys),
        "ours": lambda: pick(oracle, np.arange(n_users), counts=counts, keys=keys),
    }
    assert len(runs["noise"]()) == len(runs["ours"]()) == counts.sum()
    best = fastest(runs, repeats=7)
    name = f"{n_users} users × {n_items} items, {counts.sum()} picks"
    return [Case(name, best["noise"] / best["ours"], best)]


def _noise(oracle: Oracle, counts: Any, keys: Keys) -> Any:
    n_items, picked = len(oracle.items), []
    for start in range(0, len(counts), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(counts)))
        race = np.log(oracle.weights(block))
        race -= np.log(-np.log1p(-keys[block].uniform(n_items)))
        order = np.argsort(-race, axis=1)
        picked.append(order[np.arange(n_items) < counts[block, None]])
    return np.concatenate(picked)


BAR = Bar(17, "picks without replacement against noise on every weight", 3.0, measure)
