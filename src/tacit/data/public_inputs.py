"""What a released model would take from private events without saying so.

The account protects what clients contribute. All else that goes into a model or stands
beside it must be public: declared before anybody's data was looked at, or released
under an account of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.data.dataset import Dataset
from tacit.data.digest import content_digest
from tacit.data.splits import Split
from tacit.errors import BadValue


def private_inputs(
    dataset: Dataset,
    split: Split,
    *,
    protocol: str | None = None,
    min_users: int = 1,
    has_subset: bool = False,
    has_construction: bool = False,
    has_metadata: bool = False,
) -> list[str]:
    """What data and filters would tell in a release: one sentence each, with a remedy.

    `protocol` is the paper whose filters were used. What a user decides alone is not
    listed: to leave out events of a low value, or to stay away with too few of them.
    """
    found = [*_catalog(dataset, split)]
    if protocol is not None:
        found.append(
            f"data.protocol = '{protocol}' filters and divides the data as its paper "
            "did, by counts over users; leave it out and set data.min_value and "
            "data.min_interactions."
        )
    if min_users > 1:
        found.append(
            f"data.min_users = {min_users} drops items by how many users have them; "
            "leave it out, and declare the items or select them under noise."
        )
    if has_subset:
        found.append(
            "data.subset leaves users out by a draw over all who are in the data, and "
            "may choose items by what they did; leave it out."
        )
    if has_construction:
        found.append(
            "data.construction drops users and items by counts over all users; leave "
            "it out."
        )
    if has_metadata:
        found.append(
            "data.metadata_vectors reads the labels of all users' profiles, and its "
            "means tell of them; leave it out."
        )
    return found


def undeclared(
    dataset: Dataset, split: Split, *, population: int | None, **filters: Any
) -> list[str]:
    """What would not be public in a release: `private_inputs`, and who counts.

    `population` is what was declared, of all groups together.
    """
    found = private_inputs(dataset, split, **filters)
    if population is None:
        found.append(
            "The population is counted in the data, and one user more or less shows "
            "in every mean; declare it with data.population, a number of users that "
            "you would publish."
        )
    # A user may validate and test, and counts once.
    held_out = len(np.union1d(split.validation.users, split.test.users))
    if held_out:
        found.append(
            f"The split holds out items of {held_out:,} users to measure with; a "
            "metric of them would be a release of its own, and who is held out may "
            "depend on who else is there; set data.split = 'none', so that everyone "
            "trains on all they have."
        )
    return found


def with_selected_items(dataset: Dataset, items: ArrayLike) -> Dataset:
    """The data set over items that a release of their own has chosen.

    They stand in the order of their ids and nothing else is known of them: in which
    order users came upon them, and what they wrote beside them, was not released.
    """
    catalog, log = dataset.catalog, dataset.interactions
    if dataset.listed is not None or dataset.impressions is not None:
        raise BadValue(
            f"{dataset.name} has a list of items or impressions, which name them; "
            "items are selected where nothing but events does"
        )
    if catalog.features or catalog.titles != catalog.ids:
        raise BadValue(
            f"titles and features in {dataset.name} are what users wrote in their "
            "events, and selecting items does not make them public; leave title and "
            "item_columns out"
        )
    rows = arrays.rows(items, len(catalog))
    ids = catalog.ids.take(rows)
    # By id, not by first appearance: that order would tell who came first.
    rows = rows[np.argsort(np.array(list(ids), object), kind="stable")]
    renumbering = np.full(len(catalog), -1, np.int32)
    renumbering[rows] = np.arange(len(rows), dtype=np.int32)
    log = log.keep(renumbering[log.items] >= 0)
    log = replace(log, items=renumbering[log.items], n_items=len(rows))
    chosen = catalog.take(rows)
    return replace(dataset, interactions=log, catalog=chosen, listed=chosen)


def _catalog(dataset: Dataset, split: Split) -> Iterator[str]:
    """What is not public about the items or what is known of them."""
    catalog, listed = split.catalog, dataset.listed
    if listed is None:
        yield (
            f"The catalog of {dataset.name} is collected from the events, so it names "
            "each item that a single user has, with its title and features; declare "
            "the items in a table [data.table.items], or have them selected under "
            "noise with [data.selection]."
        )
    elif catalog.ids != listed.ids:
        yield (
            f"The catalog has {len(catalog):,} of the {len(listed):,} items that are "
            f"listed for {dataset.name}: those that somebody has; set data.items = "
            "'declared'."
        )
    elif content_digest(catalog) != content_digest(listed):  # by content, not identity
        yield (
            f"Titles or features of the catalog are not those that are listed for "
            f"{dataset.name}; take both from the same table."
        )
