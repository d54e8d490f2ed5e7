"""What a release may not take from private events is named, all of it."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.public_inputs import undeclared, with_selected_items
from tacit.data.splits import everyone_trains, leave_one_out, new_users
from tacit.data.synthetic.world import World
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(1)
DATA = World(users=20, items=60, events_per_user=6, fewest_events=4).dataset()


def asked(dataset, split=None, **declared):
    split = everyone_trains(dataset) if split is None else split
    return undeclared(dataset, split, **{"population": 30} | declared)


def test_what_is_declared_is_not_named():
    assert asked(DATA) == []
    kept = DATA.filtered(min_value=3, min_interactions=3, keep_items=True)
    assert asked(kept) == []


def test_everything_that_would_not_be_public_is_named():
    """The four ways of a table without declarations, each with its remedy."""
    data = replace(DATA.filtered(), listed=None)
    split = new_users(data, n_validation=2, n_test=3, key=KEY)
    found = asked(data, split, population=None, protocol="fedvae")
    assert len(found) == 4
    for sentence, word, remedy in zip(
        found,
        ("collected from the events", "counts over users", "counted", "5 users"),
        ("[data.table.items]", "data.min_value", "data.population", "data.split"),
        strict=True,
    ):
        assert word in sentence
        assert remedy in sentence
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence.startswith("data.")


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"min_users": 3}, "data.min_users = 3"),
        ({"has_subset": True}, "data.subset"),
        ({"has_construction": True}, "data.construction"),
        ({"has_metadata": True}, "data.metadata_vectors"),
    ],
)
def test_choices_by_what_people_did_are_named(setting, word):
    [sentence] = asked(DATA, **setting)
    assert sentence.startswith(word)
    assert "leave it out" in sentence


def test_a_catalog_that_users_cut_is_named():
    [sentence] = asked(DATA.filtered(min_interactions=2))
    assert "of the 60 items that are listed for synthetic" in sentence
    assert "data.items = 'declared'" in sentence
    split = new_users(DATA, n_validation=2, n_test=3, catalog="training", key=KEY)
    assert any("those that somebody has" in one for one in asked(DATA, split))


def test_features_that_are_not_the_listed_ones_are_named():
    own = replace(DATA.catalog, titles=DATA.catalog.ids)
    [sentence] = asked(replace(DATA, catalog=own))
    assert "Titles or features of the catalog are not those" in sentence


@pytest.mark.parametrize("which", ["random", "latest"])
def test_held_out_items_are_named(which):
    [sentence] = asked(DATA, leave_one_out(DATA, which=which, key=KEY))
    assert "holds out items of 20 users" in sentence


def bare(dataset):
    """As a table yields it: ids in the order of their first events, and no more."""
    catalog = replace(dataset.catalog, titles=dataset.catalog.ids, features={})
    return replace(dataset, catalog=catalog, listed=None)


def test_selected_items_are_public_and_stand_in_the_order_of_their_ids():
    data = bare(DATA)
    turned = np.array([7, 3, 11])
    found = with_selected_items(data, turned)
    assert list(found.catalog.ids) == sorted(data.catalog.ids[int(i)] for i in turned)
    assert asked(found) == []
    assert len(asked(data)) == 1
    kept = data.interactions.keep(np.isin(data.interactions.items, turned))
    assert found.interactions.offsets.tolist() == kept.offsets.tolist()
    ids = [found.catalog.ids[i] for i in found.interactions.items]
    assert ids == [data.catalog.ids[i] for i in kept.items]


def test_only_bare_events_have_their_items_selected():
    with pytest.raises(BadValue, match="has a list of items"):
        with_selected_items(DATA, [1])
    with pytest.raises(BadValue, match="what users wrote"):
        with_selected_items(replace(DATA, listed=None), [1])
