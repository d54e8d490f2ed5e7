"""The first users and items of an order that is drawn once for every data set.

Papers ask how a method fares with fewer users or fewer items. A smaller subset has the
first users of the same order, so a user has the same number in every subset of a data
set, and two subsets can be compared user by user.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data.dataset import Dataset
from tacit.errors import BadValue
from tacit.keys import Key

_ORDER = Key.from_seed(0).at("subset")  # one order for all seeds of an experiment


@dataclass(frozen=True)
class Subset:
    """How many users and items are left; None leaves all of them.

    Items are drawn at random, or are those that most events have. The second looks at
    what users did, so a subset belongs into a simulation only.
    """

    users: int | None = None
    items: int | None = None
    choose: Literal["random", "popular"] = "random"

    def __post_init__(self) -> None:
        for name in ("users", "items"):
            size = getattr(self, name)
            if size is not None:
                check.at_least(1, **{name: size})

    def of(self, dataset: Dataset) -> Dataset:
        """The data set with these users and items, numbered anew."""
        log = dataset.interactions
        order = _ORDER.at("users").generator().permutation(log.n_users)
        users = order[: _size(self.users, log.n_users, "users")]
        return restricted(dataset, users, self._items(dataset))

    def _items(self, dataset: Dataset) -> Int64[np.ndarray, "items"]:
        log = dataset.interactions
        size = _size(self.items, log.n_items, "items")
        if self.choose == "popular":
            order = np.argsort(-log.per_item, kind="stable")
        else:
            order = _ORDER.at("items").generator().permutation(log.n_items)
        return np.sort(order[:size])


def restricted(
    dataset: Dataset,
    users: Int64[np.ndarray, "users"],
    items: Int64[np.ndarray, "items"],
) -> Dataset:
    """Some users, in the order given, and some items, numbered anew."""
    if dataset.impressions is not None:
        raise BadValue(
            f"{dataset.name} has impressions, which name items that a subset would "
            "drop; leave data.subset out"
        )
    log = dataset.interactions.take_users(users)
    place = np.full(log.n_items, -1, np.int32)
    place[items] = np.arange(len(items), dtype=np.int32)
    log = log.keep(place[log.items] >= 0)
    return Dataset(
        dataset.name,
        replace(log, items=place[log.items], n_items=len(items)),
        dataset.catalog.take(items),
        dataset.profiles.take(users),
        listed=dataset.listed,
    )


def _size(wanted: int | None, there: int, what: str) -> int:
    if wanted is not None and wanted > there:
        raise BadValue(
            f"data.subset.{what}={wanted:,} must be <= {there:,}, what the data set "
            "has after its filters; ask for fewer, or leave it out for all"
        )
    return there if wanted is None else wanted
