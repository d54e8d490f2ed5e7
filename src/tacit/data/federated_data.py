"""A data set as clients see it: public items, and each user's profile and shard.

Audits, attacks and contract tests all run a method on such a set. It comes after
`shards`, and knows neither methods nor plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Features
from tacit.data.impressions import Impressions
from tacit.data.interactions import Interactions
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.strings import Strings


@dataclass(frozen=True, eq=False)
class FederatedData:
    """A public catalog, and one private profile and one private shard per client."""

    catalog: Catalog
    profiles: Profiles
    shards: Shards

    @classmethod
    def of_histories(
        cls, histories: Sequence[Sequence[int]], *, n_items: int
    ) -> FederatedData:
        """One client per history, which lists item indices in the order of time."""
        lengths = [len(history) for history in histories]
        log = Interactions.of_columns(
            np.repeat(np.arange(len(histories)), lengths),
            np.array([item for history in histories for item in history], np.int64),
            n_users=len(histories),
            n_items=n_items,
        )
        # Readable ids: they stand in the messages of failing contract tests.
        users = Strings.of(f"user {i}" for i in range(len(histories)))
        catalog = Catalog.of_ids([f"item {i}" for i in range(n_items)])
        return cls(catalog, Profiles(users), Shards.of(log))

    @classmethod
    def of_matrix(
        cls,
        histories: UInt8[np.ndarray, "clients items"],
        features: Features | None = None,
    ) -> FederatedData:
        """One client per row, which holds the items whose entry is not zero.

        Profiles know nothing but an id; the catalog gets the given item features.
        """
        users, items = (Strings.of([*map(str, range(n))]) for n in histories.shape)
        rows, held = np.nonzero(histories)
        n_users, n_items = histories.shape
        log = Interactions.of_columns(rows, held, n_users=n_users, n_items=n_items)
        catalog = Catalog(items, items, {} if features is None else features)
        return cls(catalog, Profiles(users), Shards.of(log))

    def repeated(self, n: int) -> FederatedData:
        """The same items and `n` clients: the clients of this set, cyclically."""
        rows = np.arange(n) % len(self.shards)
        return FederatedData(
            self.catalog, self.profiles.take(rows), self.shards.take(rows)
        )

    def all_holding(self, items: Sequence[int], n: int) -> FederatedData:
        """The same items and `n` clients whose histories are exactly these items.

        Where clients have impressions, each of these was shown its items and one other,
        and clicked all of its items.
        """
        log = Interactions.of_columns(
            np.repeat(np.arange(n), len(items)),
            np.tile(np.asarray(items, np.int64), n),
            n_users=n,
            n_items=len(self.catalog),
        )
        shown = None if self.shards.impressions is None else self._clicking(items, n)
        profiles = self.repeated(n).profiles
        return FederatedData(self.catalog, profiles, Shards.of(log, shown))

    def _clicking(self, items: Sequence[int], n: int) -> Impressions:
        """One impression of each of `n` clients, without a history."""
        own = np.unique(np.asarray(items, np.int32))
        other = np.setdiff1d(np.arange(len(self.catalog), dtype=np.int32), own)[:1]
        row = np.concatenate([own, other])
        return Impressions.of_columns(
            np.arange(n),
            Ragged.of_lengths([len(row)] * n, np.tile(row, n)),
            clicked=np.tile(np.isin(row, own), n),
            histories=Ragged.of_lengths([0], np.zeros(0, np.int32)),
            history_of=np.zeros(n, np.int64),
            times=np.zeros(n, np.int64),
            n_users=n,
            n_items=len(self.catalog),
        )
