"""What a release may not take from private events is named, all of it."""

from dataclasses import replace

import pytest

from tacit.data.public_inputs import undeclared
from tacit.data.sources.synthetic import World
from tacit.data.splits import everyone_trains, leave_one_out, new_users
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
        ("collected from the events", "counts over people", "counted", "5 people"),
        ("[data.csv.items]", "data.min_value", "data.population", "data.split"),
        strict=True,
    ):
        assert word in sentence
        assert remedy in sentence
        assert sentence.endswith(".")
        assert sentence[0].isupper() or sentence.startswith("data.")


def test_a_catalog_that_people_cut_is_named():
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
    assert "holds out items of 20 people" in sentence


def test_selected_items_are_public_and_their_titles_are_not():
    own = replace(DATA, listed=None)
    [sentence] = asked(own, has_selected_items=True)
    assert "what people wrote" in sentence
    bare = replace(own.catalog, titles=own.catalog.ids, features={})
    assert asked(replace(own, catalog=bare), has_selected_items=True) == []
