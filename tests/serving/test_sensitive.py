"""Tests of sensitive categories: what enters the encoder, and what is covered."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category
from tacit.data.shards import Shards
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.methods.fmf_ldp import FmfLdp
from tacit.release import Unit
from tacit.serving.query import Mode
from tacit.serving.query_server import QueryServer
from tacit.serving.queryable import space_of
from tacit.serving.recommender import Recommender
from tacit.serving.sensitive import Marks, Protection, without
from tacit.serving.serve import padded, trial, vector_of
from tacit.serving.served_model import ServedModel
from tacit.serving.settings import ServingSettings
from tacit.transport.messages import Broadcast

KIND = Category.of(["sport", "health", "", "sport"])
TAGS = Categories.of([["sport"], ["health", "sport"], [], ["sport"]])
CATALOG = replace(
    Catalog.of_ids(["a", "b", "c", "d"]), features={"kind": KIND, "tags": TAGS}
)
VECTORS = np.array([[1.0, 0], [0, 1.0], [0.5, 0.5], [1.0, 0.2]])
RECOMMENDER = Recommender(
    FmfLdp(), Broadcast(1, bytes(16), {"items": VECTORS}), CATALOG
)


def marks(protection: Protection, feature: str = "kind") -> Marks:
    return Marks.of(CATALOG, feature, ["health"], protection=protection)


@pytest.mark.parametrize("feature", ["kind", "tags"])
def test_marked_and_unknown_items_are_sensitive(feature):
    found = marks(Protection.ALL, feature).is_sensitive(CATALOG)
    assert found.tolist() == [False, True, True, False]


def test_left_out_a_sensitive_item_changes_nothing_that_is_said():
    """The user vector is the same bits, whatever was read of health."""
    own = marks(Protection.LEAVE_OUT)
    one = vector_of(RECOMMENDER, ["a", "b"], marks=own)
    two = vector_of(RECOMMENDER, ["a", "c"], marks=own)
    none = vector_of(RECOMMENDER, ["a"], marks=own)
    assert one.tobytes() == two.tobytes() == none.tobytes()
    assert one.tobytes() != vector_of(RECOMMENDER, ["d"], marks=own).tobytes()


def test_protected_items_enter_the_encoder():
    own = marks(Protection.ALL)
    assert (
        vector_of(RECOMMENDER, ["a", "b"], marks=own).tobytes()
        != vector_of(RECOMMENDER, ["a"], marks=own).tobytes()
    )


def test_only_sensitive_items_are_padded():
    history = Shards.of_history([0, 1, 2, 3] * 500, n_items=4)
    only = marks(Protection.PAD_SENSITIVE).may_be_padded(CATALOG)
    nearly_all = Padding(1 - 1e-9)
    found = padded(history, nearly_all, Key.from_seed(0), value=1.0, only=only)
    is_open = np.isin(history.items, [0, 3])
    assert (found.items[is_open] == history.items[is_open]).all()
    # A random item of four is the old one in one case of four.
    assert np.mean(found.items[~is_open] == history.items[~is_open]) < 0.35


def test_what_is_replaced_leaves_nothing_of_itself():
    """Value and time are public or gone."""
    history = replace(
        Shards.of_history([1, 1, 1], n_items=4, value=5.0), times=np.arange(3)
    )
    found = padded(history, Padding(1 - 1e-9), Key.from_seed(0), value=1.0)
    assert found.values.tolist() == [1.0, 1.0, 1.0]
    assert found.times is None


def test_histories_without_some_items_keep_the_order_of_the_rest():
    history = Shards.of_history([3, 1, 0, 2, 3], n_items=4)
    left = without(history, np.array([False, True, True, False]))
    assert sorted(left.items.tolist()) == [0, 3, 3]
    assert left.lengths.tolist() == [3]


def test_what_is_covered_is_said_for_each_protection():
    half = Padding(0.5)
    item = np.log(1 + 0.5 * np.expm1(2.0))
    told = {
        protection: [
            (one.neighbours, round(one.epsilon, 4))
            for one in marks(protection).covered(2.0, half)
        ]
        for protection in Protection
    }
    assert all(lines[0] == ("any two histories", 2.0) for lines in told.values())
    exchange = round(item, 4)
    assert told[Protection.ALL][1:] == [
        ("histories that exchange one interaction for another one", exchange)
    ]
    assert told[Protection.PAD_SENSITIVE][1][1] == exchange
    assert "sensitive" in told[Protection.PAD_SENSITIVE][1][0]
    assert told[Protection.LEAVE_OUT][1][1] == 0.0
    assert "open" in marks(Protection.PAD_SENSITIVE).not_covered()


def test_unknown_names_are_refused():
    with pytest.raises(BadValue, match="did you mean 'health'"):
        Marks.of(CATALOG, "kind", ["helth"])
    with pytest.raises(BadValue, match="kind"):
        Marks.of(CATALOG, "colour", ["red"])


def test_an_account_that_promises_padding_for_all_is_not_given_less(tmp_path):
    """For one interaction of any kind, padding of some earns nothing."""
    users = np.random.default_rng(0).normal(size=(40, 2))
    space = space_of(RECOMMENDER)
    own = marks(Protection.PAD_SENSITIVE)
    for pads, is_refused in (("all", True), ("sensitive", False)):
        settings = ServingSettings(Mode.DPA, 1.0, interests=2, padding=0.5, pads=pads)
        mechanism = settings.mechanism(space, users, Key.from_seed(0))
        model = ServedModel(space, mechanism)
        ask = QueryServer(model).answer
        costs = [settings.event(unit).epsilon for unit in (Unit.ITEM, Unit.USER)]
        assert (costs[0] < costs[1]) is is_refused
        if is_refused:
            with pytest.raises(Refused, match="every interaction padded"):
                trial(RECOMMENDER, ["a"], 2, model=model, ask=ask, marks=own)
        else:
            assert trial(RECOMMENDER, ["a"], 2, model=model, ask=ask, marks=own)
