import pytest
from dp_accounting import GaussianDpEvent

from tacit.accounting.ledger.terms import PLACES, Charge, Promise, Terms, implying
from tacit.errors import BadValue


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


@pytest.mark.parametrize("field", ["rounds", "most", "population"])
def test_counts_are_counts(field):
    with pytest.raises(BadValue, match=field):
        Terms((charge(),), **{field: 0})
