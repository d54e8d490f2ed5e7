"""Bar 3: FedVAE's clipped gradient, against ghost clipping by Opacus.

Opacus (Yousefpour et al. 2021) computes norms without single gradients too, with a
second backward pass for the clipped sum. Both get the same batch and clip.

The limit: of a dense layer ours needs three matrix products (forward, backward, sum)
where Opacus needs five, and of the sparse first layer none where Opacus needs three.
The three alone are timed in the same run; with nothing else to do, ours would be as far
ahead of Opacus as the note says.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.bar import Bar, Case
from benchmarks.bar02_fedvae_gradient import ours, ready
from benchmarks.fedvae_cohort import CLIP, Cohort, MultVae
from benchmarks.timing import fastest
from tacit.mechanisms.clipping import clip_by_norm


def measure(_quick: bool) -> list[Case]:
    try:
        from opacus.grad_sample import GradSampleModuleFastGradientClipping as Ghost
    except ImportError as error:
        raise RuntimeError(
            "opacus is not installed: pip install 'tacit-recommender[bench]'"
        ) from error

    cohort = ready()
    module = cohort.module()
    ghost = Ghost(
        module,
        loss_reduction="sum",
        max_grad_norm=CLIP,
        use_ghost_clipping=True,
    )

    def opacus() -> None:
        _by_opacus(cohort, ghost)

    opacus()
    _assert_same(cohort, module)
    best = fastest(
        {
            "opacus": opacus,
            "ours": lambda: ours(cohort),
            "products": _products(cohort),
        },
        repeats=9,
    )
    limit = best["opacus"] / best["products"]
    note = f"the matrix products alone would be {limit:.2f}"
    return [Case("250 users", best["opacus"] / best["ours"], best, note)]


def _products(cohort: Cohort) -> Callable[[], None]:
    """The matrix products of the dense layers: forward, backward, and the sum."""
    users = len(cohort.shards)
    weights = [w for name, w in cohort.weights.items() if name != "encoder/0"]
    ends = [[np.ones((users, n), w.dtype) for n in w.shape] for w in weights]

    def multiply() -> None:
        for w, (a, b) in zip(weights, ends, strict=True):
            _ = a @ w, b @ w.T, a.T @ b

    return multiply


def _by_opacus(cohort: Cohort, ghost: Any) -> None:
    """Two backward passes: the first for the norms, the second for the clipped sum."""
    warnings.filterwarnings("ignore", message="Full backward hook")
    ghost.zero_grad()
    ghost.enable_hooks()
    losses = _losses(cohort, ghost)
    losses.sum().backward(retain_graph=True)
    coefficients = ghost.get_clipping_coef()
    ghost.zero_grad()
    ghost.disable_hooks()
    (coefficients * losses).sum().backward()
    ghost.enable_hooks()


def _losses(cohort: Cohort, ghost: Any) -> torch.Tensor:
    scores, kl = ghost(cohort.inputs, cohort.noise)
    return -(cohort.targets * torch.log_softmax(scores, -1)).sum(-1) + 0.2 * kl


def _assert_same(cohort: Cohort, module: MultVae) -> None:
    expected, found = module.gradient(), clip_by_norm(cohort.factored(), CLIP).sum()
    for name, value in expected.items():
        off = np.linalg.norm(found[name] - value) / np.linalg.norm(value)
        assert off < 1e-4, (name, off)  # Opacus adds 1e-6 to every norm


BAR = Bar(3, "FedVAE's clipped gradient, against Opacus' ghost clipping", 2.0, measure)
