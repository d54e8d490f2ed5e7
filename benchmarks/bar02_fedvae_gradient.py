"""Bar 2: FedVAE's clipped gradient, against the plain gradient of the same batch.

The plain one clips nobody: a dense batch through torch and one backward pass. Ours has
every user's norm, clips it and sums. Memory: the extra peak of ours, in a process of
its own, must stay within 150 MB; what a plain gradient needs stands beside it.
"""

from __future__ import annotations

from benchmarks.bar import Bar, Case
from benchmarks.fedvae_cohort import CLIP, Cohort, MultVae, extra, peak_of
from benchmarks.timing import fastest
from tacit.mechanisms.clipping import clip_by_norm

__all__ = ["extra", "ours", "plain", "ready"]  # for a process of its own

MOST_MB = 150.0


def measure(_quick: bool) -> list[Case]:
    cohort = ready()
    module = cohort.module()
    best = fastest(
        {"plain batch": lambda: plain(cohort, module), "ours": lambda: ours(cohort)},
        repeats=9,
    )
    ours_mb, plain_mb = (
        peak_of("ours(cohort)"),
        peak_of("plain(cohort, module)"),
    )
    if ours_mb > MOST_MB:
        raise AssertionError(f"ours needs {ours_mb:.0f} MB more; allowed {MOST_MB:.0f}")
    note = f"extra peak {ours_mb:.0f} MB, plain {plain_mb:.0f} MB"
    return [Case("250 users", best["ours"] / best["plain batch"], best, note)]


def ready() -> Cohort:
    """A cohort whose data is in memory."""
    cohort = Cohort.usual()
    _ = cohort.weights, cohort.inputs, cohort.targets, cohort.noise
    return cohort


def plain(cohort: Cohort, module: MultVae) -> None:
    """The gradient of the summed loss; nobody is clipped."""
    module.zero_grad()
    module.losses(cohort.inputs, cohort.targets, cohort.noise).sum().backward()


def ours(cohort: Cohort) -> None:
    """Every norm, every clip, one sum."""
    clip_by_norm(cohort.factored(), CLIP).sum()


BAR = Bar(
    2, "FedVAE's clipped gradient, against an unclipped batch", 1.1, measure, sense="<="
)
