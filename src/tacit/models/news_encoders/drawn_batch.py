"""Batches drawn from impressions: one click beside k sampled others of its slate.

    a client's slates  →  some of them  →  a click of each, k that were not clicked
    the history of the first of them    →  its last news, some replaced by padding

Slates in which nothing or everything was clicked teach nothing and are left out. Which
of the candidates counts as clicked may be told wrongly on purpose (`labels`).

Source: Liu et al. 2022, Algorithm 2, lines 2 to 5; Algorithm 3, lines 16 to 18.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import ArrayLike

from tacit import check
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged, offsets_of
from tacit.keys import Keys
from tacit.mechanisms.label_choice import impression_sizes, negatives, with_labels
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.randomized_response import one_of_each
from tacit.models.news_encoders.batch import (
    NO_NEWS,
    NO_SLATE,
    Batch,
    as_rows,
    last_read,
    with_padding,
)
from tacit.models.news_similarity import chosen_slates


class Labels(Protocol):
    """Draws candidates around a click, the one that counts as clicked first."""

    @property
    def negatives(self) -> int:
        """How many candidates there are beside the click, at the most."""

    def privatize(self, clicks: ArrayLike, keys: Keys, *, sizes: ArrayLike) -> Ragged:
        """Positions in each slate: the label, then the others."""


@dataclass(frozen=True)
class TrueLabels:
    """The click as it is, and `negatives` others; nothing is hidden."""

    negatives: int

    def __post_init__(self) -> None:
        check.count(negatives=self.negatives)

    def privatize(self, clicks: ArrayLike, keys: Keys, *, sizes: ArrayLike) -> Ragged:
        """The clicked position of each slate, then others that are drawn."""
        size = impression_sizes(sizes, len(keys))
        clicked = one_of_each(clicks, size)
        drawn = keys.at("negatives")
        return with_labels(
            clicked, negatives(clicked, drawn, sizes=size, count=self.negatives)
        )


@dataclass(frozen=True)
class Draws:
    """How a client draws what it learns from in a round."""

    labels: Labels
    most_impressions: int
    most_read: int  # news of a history that count, the last ones
    padding: float = 0.0  # probability that one of them is replaced

    def __post_init__(self) -> None:
        check.count(most_impressions=self.most_impressions, most_read=self.most_read)

    def batch(
        self,
        impressions: Impressions,
        keys: Keys,
        *,
        noise: Float[np.ndarray, "clients interests"] | None = None,
    ) -> Batch:
        """One row per key; a client without a usable slate has none."""
        most = self.most_impressions
        kept, places = chosen_slates(impressions, most, keys.at("chosen"))
        clients = impressions.users[kept].astype(np.int64)
        own = keys[clients].at("candidates").at_each(places)
        drawn = self._candidates(impressions, kept, own)
        shape = len(keys), most, 1 + self.labels.negatives
        candidates, labels = np.full(shape, NO_NEWS), np.full(shape[:2], NO_SLATE)
        place = np.arange(len(drawn.values)) - drawn.offsets[drawn.owners]
        candidates[clients[drawn.owners], places[drawn.owners], place] = drawn.values
        labels[clients, places] = 0
        histories = self._histories(impressions, kept[places == 0], keys.at("padding"))
        return Batch(histories, candidates, labels, noise)

    def _candidates(
        self, impressions: Impressions, kept: Int64[np.ndarray, "slates"], keys: Keys
    ) -> Ragged:
        """The news of each slate that are compared, the label first."""
        pools = click_and_others(impressions, kept, keys.at("click"))
        clicks = np.zeros(len(pools), np.int64)
        chosen = self.labels.privatize(clicks, keys, sizes=pools.lengths)
        news = pools.values[chosen.values + pools.offsets[chosen.owners]]
        return Ragged(chosen.offsets, news)

    def _histories(
        self, impressions: Impressions, first: Int64[np.ndarray, "some"], keys: Keys
    ) -> Int64[np.ndarray, "clients read"]:
        """What each client had read before the first of its slates; none, if none."""
        slates, clients = impressions.slates, len(keys)
        rows = np.full((clients, self.most_read), NO_NEWS)
        users = slates.users[first].astype(np.int64)
        read = last_read(
            slates.histories.take(slates.history_of[first]), self.most_read
        )
        if self.padding:
            is_padded = Padding(self.padding).pad(read.lengths, keys[users])
            read = with_padding(read, is_padded, n_news=slates.n_items)
        rows[users] = as_rows(read, self.most_read)
        return rows


def click_and_others(
    impressions: Impressions, kept: Int64[np.ndarray, "slates"], keys: Keys
) -> Ragged:
    """One clicked news of each slate, then all that were not clicked in it.

    Where several were clicked, one is drawn and the others are left out.
    """
    shown = impressions.slates.shown.take(kept)
    clicked = impressions.clicked[impressions.slates.shown.places(kept)]
    clicks = Ragged.of_lengths(
        np.bincount(shown.owners[clicked], minlength=len(kept)), shown.values[clicked]
    )
    share = keys.uniform(1)[:, 0]
    drawn = clicks.offsets[:-1] + (share * clicks.lengths).astype(np.int64)
    others = np.bincount(shown.owners[~clicked], minlength=len(kept))
    offsets = offsets_of(others + 1)
    values = np.empty(offsets[-1], shown.values.dtype)
    is_click = np.zeros(len(values), bool)
    is_click[offsets[:-1]] = True
    values[is_click] = clicks.values[drawn]
    values[~is_click] = shown.values[~clicked]
    return Ragged(offsets, values)
