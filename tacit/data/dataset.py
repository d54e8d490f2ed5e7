"""A data set as it is used: the log, the catalog and the people."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Dataset:
    """Users × items and what is known of both; indices agree across the parts."""

    name: str
    interactions: Interactions
    catalog: Catalog
    profiles: Profiles

    def __post_init__(self) -> None:
        log = self.interactions
        if (len(self.profiles), len(self.catalog)) != (log.n_users, log.n_items):
            raise BadValue(
                f"{self.name}: the log speaks of {log.n_users} users and {log.n_items} "
                f"items, the tables list {len(self.profiles)} and {len(self.catalog)}"
            )

    def filtered(
        self, *, min_value: float | None = None, min_interactions: int = 1
    ) -> Dataset:
        """Events of at least `min_value`, of users who keep enough of them.

        Users with fewer than `min_interactions` distinct items and items that nobody is
        left to have touched are dropped, and both are numbered anew. One pass each, in
        this order, as in the Mult-VAE protocol.
        """
        check.at_least(0, min_interactions=min_interactions)
        log = self.interactions
        if min_value is not None:
            log = log.keep(log.values >= min_value)
        users = np.flatnonzero(log.distinct().per_user >= min_interactions)
        log = log.take_users(users)
        items = np.flatnonzero(log.per_item > 0)
        if not len(users) or not len(items):
            raise BadValue(
                f"{self.name}: min_value={min_value}, min_interactions="
                f"{min_interactions} leaves nobody; lower them"
            )
        place = np.full(log.n_items, -1, np.int32)
        place[items] = np.arange(len(items), dtype=np.int32)
        log = replace(log, items=place[log.items], n_items=len(items))
        return Dataset(
            self.name, log, self.catalog.take(items), self.profiles.take(users)
        )
