"""Tests of items by their labels."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Category
from tacit.data.marked_items import check_labels, marked_items
from tacit.errors import BadValue

CATALOG = replace(
    Catalog.of_ids(["a", "b", "c"]),
    features={"kind": Category.of(["health", "sport", "health"])},
)


def test_items_with_the_label_are_marked_and_those_without_any():
    assert marked_items(CATALOG, "kind", ["health"]).tolist() == [True, False, True]
    column = replace(CATALOG.features["kind"], codes=np.array([0, 1, -1], np.int32))
    unknown = replace(CATALOG, features={"kind": column})
    assert marked_items(unknown, "kind", []).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("feature", "label", "named"),
    [("kind", "weather", "sport"), ("color", "red", "kind")],
)
def test_what_is_unknown_is_refused_with_what_is_known(feature, label, named):
    with pytest.raises(BadValue, match=named):
        check_labels(CATALOG, feature, [label])
    bare = replace(CATALOG, features={})
    with pytest.raises(BadValue, match="no categories"):
        check_labels(bare, feature, [label])
