"""A data set as it is used: the log, the catalog, the users, and what was shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.impressions import Impressions
from tacit.data.interactions import Interactions
from tacit.data.left_out import LeftOut
from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Dataset:
    """Users × items and what is known of both; indices agree across the parts.

    `listed` are all items as somebody declared them, apart from what users did: a
    publisher's table of films, a shop's own list. None: there is no such list, and the
    catalog was collected from the events.
    """

    name: str
    interactions: Interactions
    catalog: Catalog
    profiles: Profiles
    impressions: Impressions | None = None
    listed: Catalog | None = None
    left_out: LeftOut | None = None  # of the table that it was read from

    def __post_init__(self) -> None:
        log = self.interactions
        if (len(self.profiles), len(self.catalog)) != (log.n_users, log.n_items):
            raise BadValue(
                f"{self.name}: the log speaks of {log.n_users} users and {log.n_items} "
                f"items, the tables list {len(self.profiles)} and {len(self.catalog)}"
            )
        if self.impressions is not None:
            slates = self.impressions.slates
            if (slates.n_users, slates.n_items) != (log.n_users, log.n_items):
                raise BadValue(
                    f"{self.name}: the impressions speak of {slates.n_users} users and "
                    f"{slates.n_items} items, the log of {log.n_users} and "
                    f"{log.n_items}"
                )

    def declared(self) -> Dataset:
        """The same events over the whole list of items, also those that nobody has."""
        if self.listed is None:
            raise BadValue(
                f"{self.name} has no list of items: its catalog is collected from the "
                "events; give one, such as a table [data.table.items]"
            )
        # From the index among events to the index in the whole list.
        renumbering = self.listed.indices(list(self.catalog.ids)).astype(np.int32)
        n_items, shown = len(self.listed), self.impressions
        log = self.interactions
        return replace(
            self,
            interactions=replace(log, items=renumbering[log.items], n_items=n_items),
            catalog=self.listed,
            impressions=None
            if shown is None
            else shown.renumbered(renumbering, n_items=n_items),
        )

    def filtered(
        self,
        *,
        min_value: float | None = None,
        min_interactions: int = 1,
        min_users: int = 1,
        keep_items: bool = False,
    ) -> Dataset:
        """Events of at least `min_value`, of users who keep enough of them.

        Events with items that fewer than `min_users` have are dropped first. Users with
        fewer than `min_interactions` distinct items and items that nobody is left to
        have touched are dropped, and both are numbered anew. One pass each, in this
        order, as in the Mult-VAE protocol. Users keep all their impressions, and what
        was shown in them or read before stays in the catalog. With `keep_items` all
        items stay: then who is dropped is for each user alone to decide.
        """
        check.at_least(0, min_interactions=min_interactions, min_users=min_users)
        log = self.interactions
        if min_value is not None:
            log = self._valued(min_value)
        if min_users > 1:
            log = self._common(log, min_users)
        # Distinct items: a repeat does not make a user more active.
        users = np.flatnonzero(log.distinct().per_user >= min_interactions)
        log = log.take_users(users)  # items are counted among those who stay
        shown, is_left = self.impressions, (log.per_item > 0) | keep_items
        if shown is not None:
            shown = shown.take_users(users)
            is_left |= shown.named_items()
        items = np.flatnonzero(is_left)
        if not len(users) or not len(items):
            raise BadValue(
                f"{self.name}: min_value={min_value}, min_interactions="
                f"{min_interactions}, min_users={min_users} leaves nobody; lower them"
            )
        renumbering = np.full(log.n_items, -1, np.int32)  # -1: the item is gone
        renumbering[items] = np.arange(len(items), dtype=np.int32)
        return Dataset(
            self.name,
            replace(log, items=renumbering[log.items], n_items=len(items)),
            self.catalog.take(items),
            self.profiles.take(users),
            None if shown is None else shown.take_items(items),
            self.listed,
            self.left_out,
        )

    def _valued(self, min_value: float) -> Interactions:
        """The events of at least `min_value`; impressions do not tell how much."""
        is_kept = self.interactions.values >= min_value
        if self.impressions is not None and not is_kept.all():
            raise BadValue(
                f"min_value={min_value} would drop clicks that the impressions of "
                f"{self.name} have; leave it out"
            )
        return self.interactions.keep(is_kept)

    def _common(self, log: Interactions, min_users: int) -> Interactions:
        """The events with items that at least `min_users` have."""
        if self.impressions is not None:
            raise BadValue(
                f"min_users={min_users} would drop clicks that the impressions of "
                f"{self.name} have; leave it out"
            )
        is_common = log.distinct().per_item >= min_users
        return log.keep(is_common[log.items])
