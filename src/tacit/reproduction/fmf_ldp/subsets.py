"""Who and what is in a cell of the paper: people × items, and the item each must find.

People stand in an order drawn once for a data set, and a smaller cell has the first of
them: the same person has the same number in every cell, so cells can be compared person
by person.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Int64

from tacit.data import sources
from tacit.data.dataset import Dataset
from tacit.data.splits import Heldout, Split, leave_one_out
from tacit.errors import BadValue
from tacit.evaluation.paper_protocols import named
from tacit.keys import Key

Choice = Literal["popular", "random"]
Which = Literal["random", "latest"]


@dataclass(frozen=True)
class Subset:
    """A cell: its data set, sizes, and how items and tests are chosen.

    The paper "samples" items, which we read as at random; `choice` has both readings.
    """

    source: str
    people: int | None = None  # None: all
    items: int | None = None
    choice: Choice = "random"
    which: Which = "random"  # item to find
    is_filtered: bool = True  # people and items with at least 60 events only
    seed: int = 0

    @property
    def key(self) -> Key:
        """What decides the split and the candidates; the same in cells of one seed."""
        return Key.from_seed(self.seed).at("fmf-ldp")

    def split(self) -> Split:
        """The cell, divided."""
        return _split(self)

    def __str__(self) -> str:
        split = self.split()
        rule = "most popular " if self.choice == "popular" else ""
        filtered = "" if self.is_filtered else ", not filtered"
        people, items = f"{len(split.users):,}", f"{len(split.catalog):,}"
        return f"{people} people × {items} {rule}items{filtered}"


def first(heldout: Heldout, most: int, *, free: int = 0) -> Heldout:
    """At most so many people, of those who lack at least `free` items."""
    held = heldout.history.lengths + heldout.targets.lengths  # all distinct
    rows = np.flatnonzero(heldout.history.n_items - held >= free)[:most]
    return Heldout(
        heldout.users[rows], heldout.history.take(rows), heldout.targets.take(rows)
    )


@lru_cache(maxsize=2)
def kept(source: str, is_filtered: bool) -> Dataset:
    """A data set as the paper keeps it: 60 events an item, then 60 a person."""
    whole = sources.load(source)
    return named("fmf-ldp", source).kept(whole) if is_filtered else whole


@lru_cache(maxsize=2)
def _split(subset: Subset) -> Split:
    dataset = kept(subset.source, subset.is_filtered)
    log = dataset.interactions
    order = Key.from_seed(0).at("people").generator().permutation(log.n_users)
    people = order[: _size(subset.people, log.n_users, "people")]
    part = restricted(dataset, people, _items(subset, dataset))
    return leave_one_out(part, which=subset.which, key=subset.key.at("split"))


def _items(subset: Subset, dataset: Dataset) -> Int64[np.ndarray, "items"]:
    n = dataset.interactions.n_items
    size = _size(subset.items, n, "items")
    order = Key.from_seed(0).at("items").generator().permutation(n)
    if subset.choice == "popular":
        order = np.argsort(-dataset.interactions.per_item, kind="stable")
    return np.sort(order[:size])


def restricted(
    dataset: Dataset,
    people: Int64[np.ndarray, "people"],
    items: Int64[np.ndarray, "items"],
) -> Dataset:
    """Some people, in the order given, and some items, numbered anew."""
    log = dataset.interactions.take_users(people)
    place = np.full(log.n_items, -1, np.int32)
    place[items] = np.arange(len(items), dtype=np.int32)
    log = log.keep(place[log.items] >= 0)
    return Dataset(
        dataset.name,
        replace(log, items=place[log.items], n_items=len(items)),
        dataset.catalog.take(items),
        dataset.profiles.take(people),
    )


def _size(wanted: int | None, there: int, what: str) -> int:
    if wanted is not None and wanted > there:
        raise BadValue(f"{what}={wanted:,} must be <= {there:,}, what the data set has")
    return there if wanted is None else wanted
