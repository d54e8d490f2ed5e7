"""Krum: keep the reports that have the closest neighbors, drop the others.

    n, f, m   reports, assumed attackers among them, reports that are kept
    s(i)      the sum of |g_i - g_j|² over the n - f - 2 reports closest to i

The m reports with the smallest s are averaged: m = 1 is Krum, more is multi-Krum.
Distances come from inner products, |g_i|² + |g_j|² - 2 g_i·g_j, and those from the
factors: n × n numbers, and no report is ever written out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from tacit import check
from tacit.errors import Refused
from tacit.transport.channels import Delivery, Each, RoundContext
from tacit.tree import Array, Tree


@dataclass(frozen=True)
class Krum:
    """Averages the `keep` reports with the closest neighbors; by default all but f.

    Needs every report bare and holds them all, as factors. It looks at them before any
    noise, so no sensitivity follows and nobody's privacy can be proven behind it.
    Source: Blanchard, El Mhamdi, Guerraoui and Stainer 2017.
    """

    attackers: int
    keep: int | None = None
    accepts: tuple[type[Delivery], ...] = (Each,)
    is_plain_sum: bool = False

    def __post_init__(self) -> None:
        check.at_least(0, attackers=self.attackers)
        if self.keep is not None:
            check.count(keep=self.keep)

    def total(self, delivery: Delivery, context: RoundContext) -> dict[str, Array]:
        """The mean of the kept reports times the planned cohort; zeros of nobody."""
        if not isinstance(delivery, Each):
            raise Refused(
                f"Krum cannot read {type(delivery).__name__}: it compares reports; use "
                "the channel 'direct'"
            )
        if context.mechanism is not None:
            raise Refused("Krum looks at reports before the noise; use Bucketed")
        trees = [chunk.tree for chunk in delivery.chunks if len(chunk)]
        if not trees:
            return context.layout.zeros()
        reports = Tree.concatenate(trees)
        kept = self.chosen(reports)
        total = reports.select(kept).sum()
        # Callers divide a total by the planned cohort; this makes that the mean.
        share = context.planned / len(kept)
        return {name: value * share for name, value in total.items()}

    def chosen(self, reports: Tree) -> Int64[np.ndarray, "kept"]:
        """Which reports are kept, in their own order; the earlier one of equals."""
        n, f = len(reports), self.attackers
        if n < 2 * f + 3:  # Blanchard et al. 2017 prove it for 2 f + 2 < n
            raise Refused(
                f"{n} reports with attackers={f}: Krum needs at least {2 * f + 3}; ask "
                "more clients or assume fewer attackers"
            )
        keep = n - f if self.keep is None else self.keep
        if keep > n - f:
            raise Refused(
                f"keep={keep} of {n} reports with attackers={f} would keep one of "
                f"them; keep at most {n - f}"
            )
        scores = krum_scores(reports.gram(), attackers=f)
        return np.sort(np.argsort(scores, kind="stable")[:keep])


def krum_scores(
    gram: Float64[np.ndarray, "n n"], *, attackers: int
) -> Float64[np.ndarray, "n"]:
    """The sum of squared distances to the n - f - 2 closest others, for each report.

    A report that is not finite is infinitely far from all others.
    """
    squares = np.diag(gram)
    # Rounding can make a distance slightly negative; infinity less infinity is NaN.
    with np.errstate(invalid="ignore"):
        distances = np.maximum(squares[:, None] + squares - 2 * gram, 0.0)
    distances = np.nan_to_num(distances, nan=np.inf, posinf=np.inf)
    np.fill_diagonal(distances, np.inf)  # nobody is a neighbor of itself
    neighbors = len(gram) - attackers - 2
    return np.sort(distances, axis=1)[:, :neighbors].sum(axis=1)
