from dataclasses import replace

import pytest
from dp_accounting import GaussianDpEvent
from ledger.small import in_turn

from tacit.errors import BadValue
from tacit.ledger.terms import (
    PLACES,
    Charge,
    Promise,
    Terms,
    implying,
    parts,
)


def test_a_user_covers_an_item_and_collusion_covers_all_views():
    assert implying(("user", "collusion")) == [("user", "collusion")]
    assert implying(("item", "server")) == [
        *(("item", "server"), ("item", "collusion")),
        *(("user", "server"), ("user", "collusion")),
    ]
    assert {*implying(("item", "release"))} == {*PLACES}
    for place in PLACES:
        assert implying(place)[0] == place


@pytest.mark.parametrize("place", [("people", "server"), ("user", "all")])
def test_other_places_are_unknown(place):
    with pytest.raises(BadValue, match="is not known"):
        implying(place)


def charge(**own: Promise) -> Charge:
    """Promises by "unit/view" with a slash written as an underscore; else nothing."""
    promises = dict.fromkeys(PLACES, Promise.nothing("bare"))
    return Charge(
        "x", "server", promises | {tuple(k.split("_")): p for k, p in own.items()}
    )


def test_a_promise_is_borrowed_from_what_implies_it_and_never_the_other_way():
    strong = Promise(GaussianDpEvent(3.0))
    made = charge(user_server=strong)
    assert made.promise(("item", "server")) is strong
    assert made.promise(("user", "release")) is strong
    assert made.promise(("user", "collusion")).event is None
    only_item = charge(item_collusion=strong)
    assert all(
        only_item.promise(("user", v)).event is None for v in ("release", "server")
    )
    own = Promise(GaussianDpEvent(9.0))
    assert (
        charge(user_server=strong, item_server=own).promise(("item", "server")) is own
    )


def test_every_place_must_be_spoken_for():
    with pytest.raises(BadValue, match="'x' says nothing for user/server"):
        Charge("x", "server", {p: Promise(None) for p in PLACES if p != PLACES[1]})


def test_releases_of_one_run_have_different_names():
    with pytest.raises(BadValue, match="two releases have one name"):
        Terms((charge(), charge()))


# --- Rounds that are not alike -------------------------------------------------------


def test_a_release_is_made_in_its_rounds():
    counts, updates = in_turn(2, 9).charges
    assert [counts.is_made_in(r) for r in (0, 1, 2, 8)] == [True, True, False, False]
    assert (counts.times([0, 4, 5]), updates.times([0, 4, 5])) == (1, 2)
    assert charge().times([0, 4, 5]) == 3


def test_parts_begin_where_a_release_begins_or_ends():
    assert parts(9, [None]) == (range(9),)
    assert parts(9, [range(2), None, range(4, 9)]) == (
        *(range(2), range(2, 4), range(4, 9)),
    )


@pytest.mark.parametrize("made", [range(0), range(3, 10), range(-1, 4), range(0, 9, 2)])
def test_rounds_that_are_not_in_the_plan(made):
    with pytest.raises(BadValue, match=r"must be one or more of range\(0, 9\)"):
        parts(9, [made])


def test_no_round_may_go_uncounted():
    counts, updates = in_turn(2, 9).charges
    with pytest.raises(BadValue, match="round 2 has none of the releases: counts"):
        Terms((counts,), rounds=9)
    assert Terms((), rounds=9).charges == ()  # nothing is said at all
    short = replace(updates, rounds=range(2, 8))
    with pytest.raises(BadValue, match="round 8 has none"):
        Terms((counts, short), rounds=9)


@pytest.mark.parametrize("field", ["rounds", "most", "population"])
def test_counts_are_counts(field):
    with pytest.raises(BadValue, match=field):
        Terms((charge(),), **{field: 0})
