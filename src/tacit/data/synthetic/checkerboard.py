"""A world with an obvious answer, for tests."""

from __future__ import annotations

import numpy as np

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.strings import Strings


def checkerboard(users: int, items: int, groups: int) -> Dataset:
    """Users of a group have exactly its items.

    User i and item j are of the groups `i % groups` and `j % groups`. A user takes
    the items in order of their number, a second apart.
    """
    check.at_least(1, groups=groups)
    check.at_least(groups, users=users, items=items)
    user_group, item_group = np.arange(users) % groups, np.arange(items) % groups
    who, what = np.nonzero(user_group[:, None] == item_group)  # by user, then item
    log = Interactions.of_columns(who, what, times=what, n_users=users, n_items=items)
    labels = Strings.of(f"group {g}" for g in range(groups))
    item_ids = Strings.of(f"i{n}" for n in range(items))
    catalog = Catalog(
        item_ids, item_ids, {"group": Category(item_group.astype(np.int32), labels)}
    )
    profiles = Profiles(
        Strings.of(f"u{n}" for n in range(users)),
        {"group": Category(user_group.astype(np.int32), labels)},
    )
    return Dataset("checkerboard", log, catalog, profiles, listed=catalog)
