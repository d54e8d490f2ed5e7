"""Where items stand that a model does not know."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Category, Numeric
from tacit.data.strings import Strings
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.serving.new_items import NewItem, content_names, items_of, with_new_items
from tacit.serving.recommender import Recommendation

DRAMA, CRIME, SPACE = (("genre", one) for one in ("drama", "crime", "space"))
KNOWN = [
    NewItem("a", "A", frozenset({DRAMA})),
    NewItem("b", "B", frozenset({CRIME})),
    NewItem("c", "C", frozenset({DRAMA})),
    NewItem("d", "D", frozenset({CRIME, DRAMA})),
]
RANKED = [
    Recommendation(one.id, one.title, score)
    for one, score in zip(KNOWN, (4.0, 3.0, 1.0, 0.5), strict=True)
]


def ids(*new: NewItem, held=()) -> list[str]:
    return [one.id for one in with_new_items(RANKED, new, KNOWN, held=held)]


def test_it_has_the_mean_score_of_those_most_alike():
    made = with_new_items(RANKED, [NewItem("n", "N", frozenset({DRAMA}))], KNOWN)
    assert [one.id for one in made] == ["a", "b", "n", "c", "d"]
    assert made[2].score == 2.5


def test_most_alike_is_by_the_cosine_of_labels():
    assert ids(NewItem("n", "N", frozenset({DRAMA, CRIME}))) == [*"abcdn"]


def test_without_labels_or_anything_alike_it_stands_in_the_tail():
    new = [NewItem("x", "X"), NewItem("y", "Y", frozenset({SPACE}))]
    assert ids(*new) == [*"abcdxy"]


def test_what_is_known_or_held_is_left_out():
    new = [NewItem("a", "again"), NewItem("mine", "mine"), NewItem("n", "N")]
    assert ids(*new, held=["mine"]) == [*"abcdn"]


def test_for_nobody_with_an_empty_list_the_new_ones_are_all():
    assert [one.id for one in with_new_items([], [NewItem("n", "N")], [])] == ["n"]


@given(st.lists(st.sets(st.sampled_from([DRAMA, CRIME, SPACE])), max_size=6))
def test_known_items_keep_their_order(labels):
    new = [NewItem(f"n{i}", "", frozenset(one)) for i, one in enumerate(labels)]
    found = ids(*new)
    assert [one for one in found if len(one) == 1] == [*"abcd"]
    assert len(found) == 4 + len(new)


def test_labels_are_those_of_the_methods_content():
    catalog = Catalog(
        Strings.of(["1", "2"]),
        Strings.of(["one", "two"]),
        {
            "genre": Categories.of([["drama", "crime"], []]),
            "land": Category.of(["x", "y"]),
            "year": Numeric(np.array([1990.0, 2000.0], np.float32)),
        },
    )
    names = content_names(Gram(content=("genre", "year")))
    assert [*items_of(catalog, names)] == [
        NewItem("1", "one", frozenset({DRAMA, CRIME})),
        NewItem("2", "two"),
    ]
    assert content_names(FederatedPopularity()) == ()
