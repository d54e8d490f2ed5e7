"""Bar 3: FedVAE's clipped gradient, against ghost clipping by Opacus.

Opacus (Yousefpour et al. 2021) computes norms without single gradients too, with a
second backward pass for the clipped sum. Both get the same batch and clip.
"""

from __future__ import annotations

import warnings
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
    best = fastest({"opacus": opacus, "ours": lambda: ours(cohort)}, repeats=9)
    return [Case("250 users", best["opacus"] / best["ours"], best)]


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
