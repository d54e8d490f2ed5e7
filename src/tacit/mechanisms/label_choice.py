"""Which item of an impression was clicked, and what it is compared with.

The items of an impression are public; the click is not. It goes through randomised
response over the whole impression, and only then are negatives drawn, from what the
report left over. Negatives drawn around the *true* click would give it away: the
candidates would always hold it (see `published.PublishedLabels`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64
from numpy.typing import ArrayLike

from tacit import arrays, check
from tacit.data.ragged import Ragged, offsets_of
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.mechanisms.randomized_response import respond

if TYPE_CHECKING:
    from tacit.accounting.dp_events import DpEvent

Each = Int64[np.ndarray, "clients"]


@dataclass(frozen=True)
class LabelChoice:
    """Reports the clicked position of a public impression, and some it beats.

    Guarantee: `epsilon` pure local DP for the click, in every view; the candidates
        depend on the click through the report alone.
    Assumes: which items an impression has, and that there was a click, is public. Each
        impression of a client is a release of its own.
    Source: k-ary randomised response (Kairouz, Oh and Viswanath 2014), instead of
        Liu et al. 2022 (PrivateRec), Algorithm 3, lines 16 to 18.
    """

    epsilon: float
    negatives: int  # as many as the impression has, if it has fewer

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.count(negatives=self.negatives)

    @property
    def event(self) -> DpEvent:
        """The event of one impression, the same however many items it has."""
        from tacit.accounting.events import pure_local

        return pure_local(self.epsilon)

    def privatize(self, clicks: ArrayLike, keys: Keys, *, sizes: ArrayLike) -> Ragged:
        """Positions in each client's impression: the reported label, then negatives."""
        size = impression_sizes(sizes, len(keys))
        # First the report, then negatives that look at the report alone: post-
        # processing.
        labels = respond(clicks, keys.at("label"), sizes=size, epsilon=self.epsilon)
        others = negatives(
            labels, keys.at("negatives"), sizes=size, count=self.negatives
        )
        return with_labels(labels, others)


def impression_sizes(sizes: ArrayLike, clients: int) -> Each:
    """How many items each client was shown; at least one."""
    size = arrays.integers(sizes, "sizes", least=1, below=2**31).astype(np.int64)
    if len(size) != clients:
        raise BadValue(f"{len(size)} sizes for {clients} clients; give one each")
    return size


def negatives(labels: Each, keys: Keys, *, sizes: Each, count: int) -> Ragged:
    """Up to `count` positions other than the label, every set equally likely."""
    left = sizes - 1
    rows = Ragged.of_lengths(left, keys.bits_ragged(left))
    order = np.lexsort((rows.values, rows.owners))
    # Sorting random words shuffles every row; the first `count` of each are drawn.
    rank = np.arange(len(order)) - rows.offsets[rows.owners]
    drawn = (order - rows.offsets[rows.owners])[rank < count]
    kept = Ragged.of_lengths(np.minimum(left, count), drawn)
    # Numbers from the label on move up by one, which leaves the label out.
    return Ragged(kept.offsets, drawn + (drawn >= labels[kept.owners]))


def with_labels(labels: Each, others: Ragged) -> Ragged:
    """Each label in front of its negatives."""
    offsets = offsets_of(others.lengths + 1)
    positions = np.empty(offsets[-1], np.int64)
    is_label = np.zeros(len(positions), bool)
    is_label[offsets[:-1]] = True
    positions[is_label], positions[~is_label] = labels, others.values
    return Ragged(offsets, positions)
