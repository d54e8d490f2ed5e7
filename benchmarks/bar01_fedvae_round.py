"""Bar 1: a round of FedVAE under user-level noise, against one user after the other.

Both are a whole round at the paper's size: 250 users, 3,520 items, 600 and 200 units.
The loop is what the algorithm says: a backward pass a user, its norm, its clip, its
share of the sum; then noise and Adam. It is timed on 25 users and multiplied by ten;
with `--quick` on 5, and multiplied by fifty.
"""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.bar import Bar, Case
from benchmarks.fedvae_cohort import (
    CLIP,
    COHORT,
    Cohort,
    MultVae,
    clipped_sum_by_loop,
    simulation,
    users,
)
from benchmarks.timing import fastest
from tacit.mechanisms.clipping import clip_by_norm

FEW, FEWER = 25, 5


def measure(quick: bool) -> list[Case]:
    timed = FEWER if quick else FEW
    few = Cohort(users(COHORT).take(np.arange(timed)))
    module = few.module()
    _assert_same(few, module)
    adam = torch.optim.Adam(module.parameters(), lr=1e-3, fused=True)

    def tail() -> None:
        """Noise and step, of which the literal round has one as well."""
        for p in module.parameters():
            p.grad = torch.randn_like(p) * CLIP / COHORT
        adam.step()

    plan = simulation(1_000 if quick else 5_634)
    state, _ = plan.step(plan.start())
    best = fastest(
        {
            f"loop of {timed}": lambda: clipped_sum_by_loop(few, module),
            "its noise and step": tail,
            "ours": lambda: plan.step(state),
        },
        repeats=7,
    )
    literal = best[f"loop of {timed}"] * COHORT / timed + best["its noise and step"]
    name = f"{COHORT} users, 3,520-600-200"
    note = f"the loop on {timed} users, times {COHORT // timed}"
    return [Case(name, literal / best["ours"], best, note)]


def _assert_same(cohort: Cohort, module: MultVae) -> None:
    """The clipped sum is the same, to 1e-5."""
    literal = clipped_sum_by_loop(cohort, module)
    for p, total in zip(module.parameters(), literal, strict=True):
        p.grad = total
    expected, found = module.gradient(), clip_by_norm(cohort.factored(), CLIP).sum()
    for name, value in expected.items():
        off = np.linalg.norm(found[name] - value) / np.linalg.norm(value)
        assert off < 1e-5, (name, off)


BAR = Bar(1, "a FedVAE round under noise, against the literal loop", 25.0, measure)
