"""Claims that one contender is above another, on the same users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.evaluation.significance import Difference, paired_bootstrap
from tacit.keys import Key
from tacit.reproduction.tables import Claim
from tacit.results import Evaluation, Groups

_RESAMPLES = 2_000

Judged = Evaluation | Sequence[Evaluation]  # several: one a seed


def difference(more: Judged, less: Judged, metric: str) -> Difference:
    """A metric of the first less that of the second, with a 95 % interval."""
    key = Key.from_seed(0).at("bootstrap")
    return paired_bootstrap(more, less, key=key, resamples=_RESAMPLES)[metric]


def is_above(
    text: str, more: Judged, less: Judged, *, metric: str, name: str | None = None
) -> Claim:
    """Holds if the whole interval is above zero; `name` is what the paper calls it."""
    found = difference(more, less, metric)
    return Claim(text, found.low > 0, evidence(found, name or metric))


def is_close(
    text: str,
    one: Judged,
    other: Judged,
    *,
    metric: str,
    within: float,
    name: str | None = None,
) -> Claim:
    """Holds if the whole interval of one less the other is above `-within`."""
    found = difference(one, other, metric)
    return Claim(text, found.low >= -within, evidence(found, name or metric))


def on_shared_users(
    one: Sequence[Evaluation], other: Sequence[Evaluation]
) -> tuple[list[Evaluation], list[Evaluation]]:
    """Both with the users whom both were judged on, seed by seed.

    For cells of different sizes: `data.subset` gives a user the same number in each.
    """
    pairs = [_both(a, b) for a, b in zip(one, other, strict=True)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _both(a: Evaluation, b: Evaluation) -> tuple[Evaluation, Evaluation]:
    users = np.intersect1d(a.users, b.users)
    return _only(a, users), _only(b, users)


def _only(evaluation: Evaluation, users: np.ndarray) -> Evaluation:
    order = np.argsort(evaluation.users, kind="stable")
    rows = order[np.searchsorted(evaluation.users, users, sorter=order)]
    values = {name: value[rows] for name, value in evaluation.values.items()}
    return Evaluation(evaluation.protocol, users, values, Groups.everyone(len(users)))


def evidence(found: Difference, name: str) -> str:
    """A difference in words."""
    return (
        f"{name} {found.mean:+.3f}, 95 % interval {found.low:+.3f} to "
        f"{found.high:+.3f}, {found.n:,} users"
    )
