"""A user's items and slates over a catalog: what it lacks is left out and counted."""

import re

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.errors import BadValue
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.privaterec_local import PrivateRecLocal
from tacit.service.federation.history import (
    MOST_SLATES,
    History,
    Slate,
    history_of,
    refuse_without_slates,
)
from tacit.service.federation.history_file import read_ids

CATALOG = Catalog.of_ids(["1", "20", "a, b"])
NEWS = Catalog.of_ids([f"n{i}" for i in range(8)])


def read_history(file, catalog) -> History:
    return history_of(read_ids(file), catalog)


def test_what_the_catalog_lacks_is_left_out_and_named(tmp_path):
    file = tmp_path / "h"
    file.write_text("7\n20\n8\n7\n9\n10\n")
    found = read_history(file, CATALOG)
    assert found == History(("20",), ("7", "8", "9", "10"))
    assert found.said_of_unknown() == (
        "4 items are not in the catalog and left out: 7, 8, 9, …"
    )
    assert History(("20",)).said_of_unknown() == ""
    assert "1 item is" in History((), ("7",)).said_of_unknown()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file has no item: this client takes part with an empty history"),
        (b"\n \n", "the file has no item"),
        (
            b"x\ny\n",
            r"2 items are not in the catalog.*x, y\. None is left: this client",
        ),
    ],
)
def test_what_has_no_known_item_is_an_empty_history_and_said(tmp_path, content, said):
    """A refusal would tell whoever was asked for the catalog something of the file."""
    file = tmp_path / "h"
    file.write_bytes(content)
    found = read_history(file, CATALOG)
    assert found.items == ()
    assert re.search(said, found.said_of_unknown())


def test_a_slate_comes_after_what_was_read_by_then():
    """What was clicked in a slate or later is not in the slate's history."""
    slates = (
        Slate(("n0", "n1", "n2"), ("n1",)),
        Slate(("n3", "n1")),
        Slate(("n4", "n5"), ("n5", "n4")),
    )
    history = history_of(["n7", "n4", "n6"], NEWS, slates)
    assert history.items == ("n7", "n4", "n6", "n1", "n5")
    shards = history.shards(NEWS, value=1.0)
    found = shards.impressions
    assert [row.tolist() for row in found.slates.shown] == [[0, 1, 2], [3, 1], [4, 5]]
    np.testing.assert_array_equal(found.clicked, [0, 1, 0, 0, 0, 1, 1])
    read = [found.slates.histories[row].tolist() for row in found.slates.history_of]
    assert read == [[7, 6], [7, 6, 1], [7, 6, 1]]
    assert shards.items.tolist() == [7, 4, 6, 1, 5]


def test_a_slate_without_unknown_items_is_what_is_left():
    slates = (Slate(("n0", "x", "n1"), ("x", "n1")), Slate(("y",), ("y",)))
    history = history_of(["z"], NEWS, slates)
    assert history.slates == (Slate(("n0", "n1"), ("n1",)),)
    assert (history.items, history.unknown) == (("n1",), ("z", "x", "y"))


def test_only_the_newest_slates_are_kept():
    slates = [Slate((f"n{i % 8}",)) for i in range(MOST_SLATES + 3)]
    history = history_of([], NEWS, slates)
    assert history.slates == tuple(slates[3:])


@pytest.mark.parametrize("slates", [None, (), (Slate(("n0", "n1"), ("n1",)),)])
def test_a_history_is_read_as_it_was_written(slates):
    history = History(("n1", "n2"), slates=slates)
    assert History.from_json(history.to_json()) == history
    shown = history.shards(NEWS, value=1.0).impressions
    assert (shown is None) == (slates is None)
    assert slates is None or len(shown) == len(slates)


def test_a_history_of_an_earlier_version_has_no_slates():
    assert History.from_json({"items": ["n1"]}) == History(("n1",))


def test_slates_are_given_where_they_are_needed_and_nowhere_else():
    news, counts = PrivateRecLocal(content=("title",)), FederatedPopularity()
    refuse_without_slates(news, ())
    refuse_without_slates(counts, None)
    with pytest.raises(BadValue, match="--impressions"):
        refuse_without_slates(news, None)
    with pytest.raises(BadValue, match="leave --impressions out"):
        refuse_without_slates(counts, ())
