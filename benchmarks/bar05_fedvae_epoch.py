"""Bar 5: an epoch of FedVAE under noise, against a plain centralised torch epoch.

Both go through 23 batches of 250 users with Adam. The centralised one is what users
publish for Mult-VAE in torch: rows of a sparse matrix made dense batch by batch, then
autograd and `torch.optim.Adam` as it comes; with `fused=True` stands beside it. It
protects nobody. Ours runs the engine: cohorts, clients, clipping twice, noise, Adam.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.bar import Bar, Case
from benchmarks.fedvae_cohort import COHORT, ITEMS, USERS, Cohort, simulation, users
from benchmarks.timing import fastest


def measure(quick: bool) -> list[Case]:
    batches = 4 if quick else -(-USERS // COHORT)
    plan = simulation()
    start, _ = plan.step(plan.start())
    central, fused = _Central(fused=False), _Central(fused=True)

    def ours() -> None:
        state = start
        for _ in range(batches):
            state, _ = plan.step(state)

    best = fastest(
        {
            "centralised": lambda: central.epoch(batches),
            "with fused Adam": lambda: fused.epoch(batches),
            "ours": ours,
        },
        repeats=7,
    )
    name = f"{batches} batches of {COHORT}"
    return [Case(name, best["ours"] / best["centralised"], best)]


class _Central:
    """Mult-VAE, trained where all the data is."""

    def __init__(self, *, fused: bool) -> None:
        held = Cohort(users()).held
        shape = len(held), ITEMS
        ones = np.ones(len(held.columns), np.float32)
        self.rows = sp.csr_matrix((ones, held.columns, held.offsets), shape)
        self.module = Cohort(users(2)).module()
        parameters = self.module.parameters()
        self.adam = torch.optim.Adam(parameters, lr=1e-3, fused=fused)

    def epoch(self, batches: int) -> None:
        order = np.random.default_rng(0).permutation(self.rows.shape[0])
        for number in range(batches):
            self._step(order[number * COHORT : (number + 1) * COHORT])

    def _step(self, chosen: np.ndarray) -> None:
        targets = torch.from_numpy(self.rows[chosen].toarray())
        x = torch.nn.functional.normalize(targets)
        dropped = torch.nn.functional.dropout(x, 0.5)
        noise = torch.randn(len(x), 200)
        self.adam.zero_grad()
        self.module.losses(dropped, targets, noise).mean().backward()
        self.adam.step()


BAR = Bar(
    5, "a FedVAE epoch under noise, against a centralised one", 1.3, measure, sense="<="
)
