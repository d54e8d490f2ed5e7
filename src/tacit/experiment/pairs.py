"""Pairs of contenders: one computation for every page, table and file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from tacit.evaluation.significance import paired_differences
from tacit.reporting.pairs import Paired
from tacit.results import Evaluation


def pair_of(
    one: str,
    other: str,
    evaluations: Mapping[str, Sequence[Evaluation]],
    *,
    n_pairs: int,
) -> tuple[Paired, ...]:
    """Both for each metric, the one with the larger mean first.

    `evaluations` has one per seed for each of them; the intervals of `n_pairs` pairs
    hold together.
    """
    found = paired_differences(evaluations[one], evaluations[other], pairs=n_pairs)
    figures = {metric: asdict(difference) for metric, difference in found.items()}
    return tuple(
        Paired(one, other, metric, n_users=own.pop("n"), **own).best_first
        for metric, own in figures.items()
    )


def pairs_with(
    own: str, evaluations: Mapping[str, Evaluation], others: Sequence[str]
) -> tuple[Paired, ...]:
    """One contender beside each of the others; all that it could be beside count."""
    each = {name: [evaluation] for name, evaluation in evaluations.items()}
    n_pairs = max(1, len(each) - 1)
    return tuple(
        pair for other in others for pair in pair_of(own, other, each, n_pairs=n_pairs)
    )
