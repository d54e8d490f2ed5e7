"""Histories as labelled examples: what was liked, what was not, what was never seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float32, Int64

from tacit import check
from tacit.data.ragged import Ragged, offsets_of, skip_taken
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Keys
from tacit.models.feature_mlp.inputs import Encoded
from tacit.models.feature_mlp.schedule import Head

Dislikes = Literal["negative", "unused"]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Examples end to end, client by client, each with the event it comes from."""

    offsets: Int64[np.ndarray, "clients_and_one"]
    items: Int64[np.ndarray, "examples"]
    labels: Float32[np.ndarray, "examples"]
    events: Int64[np.ndarray, "examples"]
    is_drawn: Bool[np.ndarray, "examples"]  # a drawn negative: never touched


@dataclass(frozen=True)
class Labelling:
    """How the events of a history become examples.

    A "linear" head learns values, such as stars, of all events and of nothing else.
    `positive_from` still says which of them are liked, for counting and for lists.
    """

    positive_from: float | None = None  # the least value that is liked; None: any
    negatives: int = 2  # items never touched, for each that is liked
    dislikes: Dislikes = "negative"  # what becomes of events that are not liked
    head: Head = "sigmoid"

    def __post_init__(self) -> None:
        check.not_negative(negatives=self.negatives)
        check.one_of(("negative", "unused"), dislikes=self.dislikes)
        if self.head == "linear":
            self._check_values()
        else:
            self._check_likes()

    def _check_values(self) -> None:
        learns = "head='linear' learns the values of events"
        if self.negatives:
            raise BadValue(
                f"negatives={self.negatives}: {learns}, and an item never touched has "
                "none; use negatives = 0"
            )
        if self.dislikes != "negative":
            raise BadValue(
                f"dislikes='{self.dislikes}': {learns}, low ones too; leave it out"
            )
        if self.positive_from is None:
            raise BadValue(
                f"{learns}: say from which on one is liked, such as positive_from = 4"
            )

    def _check_likes(self) -> None:
        has_dislikes = self.positive_from is not None and self.dislikes == "negative"
        if not has_dislikes and not self.negatives:
            raise BadValue(
                "every example would be liked and none disliked: draw negatives, or "
                "set positive_from (such as 4 stars) with dislikes='negative'"
            )

    def of(self, shards: Shards, keys: Keys) -> Labelled:
        """Every event with its label, and for each liked one `negatives` others.

        Those are items that the client has no event with, drawn at random, with label 0
        and in the situation of the event. A client who has every item gets none.
        """
        is_liked = self._is_liked(shards)
        labels = shards.values if self.head == "linear" else is_liked.astype(np.float32)
        events, items = drawn(shards, is_liked, each=self.negatives, keys=keys)
        is_used = is_liked if self.dislikes == "unused" else np.ones_like(is_liked)
        used = np.flatnonzero(is_used)
        whose = np.concatenate([shards.owners[used], shards.owners[events]])
        order = np.argsort(whose, kind="stable")
        nothing = np.zeros(len(events), np.float32)
        return Labelled(
            offsets_of(np.bincount(whose, minlength=len(shards))),
            np.concatenate([shards.items[used], items])[order].astype(np.int64),
            np.concatenate([labels[used], nothing])[order],
            np.concatenate([used, events])[order],
            order >= len(used),  # negatives stand behind all events before the sort
        )

    def liked(self, shards: Shards) -> Shards:
        """The histories with liked events alone."""
        return Shards.of(shards.log.keep(self._is_liked(shards)))

    @property
    def least_liked(self) -> float:
        """The value of an item that somebody likes and names without a value."""
        return 1.0 if self.positive_from is None else self.positive_from

    def _is_liked(self, shards: Shards) -> Bool[np.ndarray, "events"]:
        if self.positive_from is None:
            return np.ones(len(shards.values), bool)
        return shards.values >= self.positive_from


def drawn(
    shards: Shards, is_positive: Bool[np.ndarray, "events"], *, each: int, keys: Keys
) -> tuple[Int64[np.ndarray, "drawn"], Int64[np.ndarray, "drawn"]]:
    """For every positive event `each` items that its client never touched."""
    taken = _distinct(shards)
    free = shards.n_items - taken.lengths
    positive = np.flatnonzero(is_positive & (free > 0)[shards.owners])
    events = np.repeat(positive, each)
    who = shards.owners[events]
    counts = np.bincount(who, minlength=len(shards))
    # The n-th item that is free; `skip_taken` steps over those that are not.
    numbers = (keys.uniform_ragged(counts) * free[who]).astype(np.int64)
    return events, skip_taken(numbers, who, taken)


def _distinct(shards: Shards) -> Ragged:
    """The items of each client, sorted, each once."""
    # One sort for all clients: owner and item as one number.
    pairs = np.unique(shards.owners * shards.n_items + shards.items)
    owners, items = np.divmod(pairs, max(1, shards.n_items))
    return Ragged.of_lengths(np.bincount(owners, minlength=len(shards)), items)


def usual(situations: Encoded, shards: Shards) -> Encoded:
    """The mean of each client's situations, in which its lists are ranked."""
    n, events, fields = len(shards), len(shards.items), situations.n_fields
    share = 1.0 / np.maximum(1, shards.lengths)[shards.owners]
    mean = sp.csr_array((share, (shards.owners, np.arange(events))), shape=(n, events))
    numbers = np.asarray(mean @ situations.numbers, situations.numbers.dtype)
    each = sp.kron(mean, sp.eye_array(fields), format="csr")  # field by field
    shares = sp.csr_array(each @ situations.shares, dtype=situations.shares.dtype)
    return Encoded(shares, numbers, fields)
