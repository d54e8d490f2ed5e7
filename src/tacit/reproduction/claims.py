"""Claims that one contender is above another, on the same people."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.evaluation.significance import Difference, paired_bootstrap
from tacit.keys import Key
from tacit.reproduction.tables import Claim
from tacit.results import Evaluation

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


def evidence(found: Difference, name: str) -> str:
    """A difference in words."""
    return (
        f"{name} {found.mean:+.3f}, 95 % interval {found.low:+.3f} to "
        f"{found.high:+.3f}, {found.n:,} people"
    )
