"""The papers' protocols by name: data kept, split, candidates and metrics.

    privrec   new users; half of each one's items adapts; each target alone
    dpvae     everyone's items divided 8:1:1; full ranking
    fedvae    new users, a fifth of their items to find; items of training users only
    fmf-ldp   one random item of everyone, among 99 drawn ones

A protocol is defined for the data sets that its paper used. Its figures stand beside
the paper's and nowhere else. What the papers leave open: docs/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tacit import check
from tacit.data.dataset import Dataset
from tacit.data.splits import Split, adapt_half, leave_one_out, new_users, ratio
from tacit.errors import BadValue
from tacit.evaluation.candidate_sets import (
    EachTargetAlone,
    FullRanking,
    SampledCandidates,
)
from tacit.evaluation.ranking import Candidates
from tacit.keys import Key


class Divide(Protocol):
    """A split with all its settings but the key."""

    def __call__(self, dataset: Dataset, *, key: Key) -> Split:
        """The data set, divided into training and held-out users or items."""
        ...


@dataclass(frozen=True)
class NamedProtocol:
    """A data filter, a split, candidates and metrics that belong together."""

    paper: str
    divide: Divide
    metrics: tuple[str, ...]
    candidates: Callable[[Key], Candidates]
    min_value: float | None = None
    min_interactions: int = 1
    min_users: int = 1  # users who must have an item, else it is dropped

    def kept(self, dataset: Dataset) -> Dataset:
        """The data that the paper keeps: one pass over items, then one over users."""
        return dataset.filtered(
            min_value=self.min_value,
            min_interactions=self.min_interactions,
            min_users=self.min_users,
        )


def named(name: str, dataset: str) -> NamedProtocol:
    """The protocol of a paper on one of the data sets that it used.

    >>> named("fedvae", "filmtrust").metrics
    ('ndcg@20', 'recall@20')
    """
    if name not in _PROTOCOLS:
        raise BadValue(f"protocol {check.unknown(name, _PROTOCOLS)}")
    on = _PROTOCOLS[name]
    if dataset not in on:
        raise BadValue(
            f"protocol '{name}' on data set {check.unknown(dataset, on)}; for another "
            "set choose split, protocol and metrics yourself"
        )
    return on[dataset]


def names() -> tuple[str, ...]:
    """Every name that `named` accepts."""
    return tuple(_PROTOCOLS)


def datasets(name: str) -> tuple[str, ...]:
    """The data sets that the protocol of this name is defined for."""
    check.one_of(_PROTOCOLS, protocol=name)
    return tuple(_PROTOCOLS[name])


def _full(_: Key) -> Candidates:
    return FullRanking()


def _each_alone(_: Key) -> Candidates:
    return EachTargetAlone()


def _privrec(min_target_value: float | None) -> NamedProtocol:
    kinds, cuts = ("hr_each", "ndcg_each"), (5, 10, 20, 30)
    return NamedProtocol(
        "Wang et al. 2021, Section 3.3",
        partial(adapt_half, train_share=0.8, min_target_value=min_target_value),
        tuple(f"{kind}@{k}" for kind in kinds for k in cuts),
        _each_alone,
    )


def _fedvae(
    n_heldout: int,
    *,
    k: int = 100,
    min_value: float | None = None,
    min_interactions: int = 2,
) -> NamedProtocol:
    # The paper's one set of held-out users validates and tests; here half does either.
    half = n_heldout // 2
    return NamedProtocol(
        "Polato 2021, Section V-A and Table II",
        partial(new_users, n_validation=half, n_test=half, catalog="training"),
        (f"ndcg@{k}", f"recall@{k}"),
        _full,
        min_value=min_value,
        min_interactions=min_interactions,
    )


_DPVAE = NamedProtocol(
    "Fang et al. 2022, Section 4.1",
    partial(ratio, shares=(0.8, 0.1, 0.1)),
    ("ndcg@100", "recall@20", "recall@50"),
    _full,
)

_FMF_LDP = NamedProtocol(
    "Minto et al. 2021, Section 4.2",
    partial(leave_one_out, which="random"),
    ("hr@2", "hr@5", "hr@10"),
    partial(SampledCandidates, 99),
    min_interactions=60,
    min_users=60,
)

_PROTOCOLS: Mapping[str, Mapping[str, NamedProtocol]] = {
    # "Ratings greater than 3 stars" are positive; an app that was used is.
    # The invented world stands in where a whole study runs in seconds.
    "privrec": {
        "movielens-1m": _privrec(4.0),
        "frappe": _privrec(None),
        "synthetic": _privrec(4.0),
    },
    # ML-20M and Netflix are reduced by a formula of each user's budget: not here.
    "dpvae": {"movielens-100k": _DPVAE},
    "fedvae": {
        "movielens-1m": _fedvae(400, min_value=4.0, min_interactions=5),
        "citeulike-a": _fedvae(800),
        "steam-200k": _fedvae(1000),
        "lastfm": _fedvae(200),
        "filmtrust": _fedvae(200, k=20),
        "synthetic": _fedvae(200),  # stands in where none of them is at hand
    },
    # Only ML-20M is the paper's; the others stand in where it is not at hand.
    "fmf-ldp": dict.fromkeys(
        (
            "movielens-20m",
            "movielens-1m",
            "synthetic-fmf-ldp",
            "synthetic-fmf-ldp-small",
        ),
        _FMF_LDP,
    ),
}
