"""Histories as the clients that a run needs."""

from __future__ import annotations

import numpy as np

from tacit.attacks.leaks import Histories
from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Features
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings

Place = tuple[Catalog, Profiles, Shards]


def place_of(histories: Histories, features: Features | None = None) -> Place:
    """The same users as clients; nothing is known of them, of items the features."""
    people, items = (Strings.of([*map(str, range(n))]) for n in histories.shape)
    users, held = np.nonzero(histories)
    n_users, n_items = histories.shape
    log = Interactions.of_columns(users, held, n_users=n_users, n_items=n_items)
    catalog = Catalog(items, items, {} if features is None else features)
    return catalog, Profiles(people), Shards.of(log)
