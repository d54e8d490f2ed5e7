"""Bar 4: Krum of 250 gradients from their factors, against gradients written out.

The baseline writes every gradient down, layer by layer so that it fits in memory (the
whole would be 4.6 GB), and multiplies them: it is timed once. The same users must be
chosen. Ours holds the factors and 250 × 250 numbers.
"""

from __future__ import annotations

import tracemalloc

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.fedvae_cohort import Cohort, users
from benchmarks.timing import fastest, seconds
from tacit.aggregation.krum import Krum, krum_scores
from tacit.tree import Tree

ATTACKERS = 25


def measure(quick: bool) -> list[Case]:
    # Written out, the reports of a user take 18 MB.
    reports = (Cohort(users(60)) if quick else Cohort.usual()).factored()
    krum = Krum(ATTACKERS)
    found: list[np.ndarray] = []
    slow = seconds(lambda: found.append(_written_out(reports)))
    np.testing.assert_array_equal(found[0], krum.chosen(reports))
    best = fastest({"ours": lambda: krum.chosen(reports)}, repeats=7)
    extra = _allocated(lambda: krum.chosen(reports))
    note = f"baseline once; ours allocates {extra:.0f} MB at its peak"
    times = {"written out": slow, **best}
    name = f"{len(reports)} users, 4.6 million weights"
    return [Case(name, slow / best["ours"], times, note)]


def _written_out(reports: Tree) -> np.ndarray:
    n = len(reports)
    gram = np.zeros((n, n))
    for leaf in reports.leaves.values():
        flat = leaf.dense().values.reshape(n, -1)
        gram += flat @ flat.T
    scores = krum_scores(gram, attackers=ATTACKERS)
    return np.sort(np.argsort(scores, kind="stable")[: n - ATTACKERS])


def _allocated(run: object) -> float:
    """The most memory that numpy held at once beyond what was there, in MB."""
    assert callable(run)
    tracemalloc.start()
    run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


BAR = Bar(4, "Krum from factors, against gradients written out", 100.0, measure)
