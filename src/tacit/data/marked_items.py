"""Which items of a catalog have one of some labels, such as sensitive categories.

Labels are public facts of items. An item whose label is not known counts as having one:
nobody has said that it has not.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from jaxtyping import Bool

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category
from tacit.errors import BadValue


def marked_items(
    catalog: Catalog, feature: str, labels: Collection[str]
) -> Bool[np.ndarray, "items"]:
    """Which items have one of these labels, or none that is known."""
    column = check_labels(catalog, feature, labels)
    marked = np.array([label in labels for label in column.labels], bool)
    if isinstance(column, Category):
        # A code below zero stands for an unknown category.
        return np.where(column.codes < 0, True, marked[column.codes])
    found = np.zeros(len(catalog), bool)
    np.logical_or.at(found, column.codes.owners, marked[column.codes.values])
    return found | (column.codes.lengths == 0)


def check_labels(
    catalog: Catalog, feature: str, labels: Collection[str]
) -> Category | Categories:
    """The column of this feature; an unknown feature or label is refused by name."""
    column = catalog.features.get(feature)
    if not isinstance(column, Category | Categories):
        kinds = [
            name
            for name, one in catalog.features.items()
            if isinstance(one, Category | Categories)
        ]
        raise BadValue(
            f"feature {check.unknown(feature, kinds)}"
            if kinds
            else f"feature '{feature}' is not known: the items have no categories"
        )
    for name in labels:
        if name not in set(column.labels):
            raise BadValue(f"category {check.unknown(name, [*column.labels])}")
    return column
