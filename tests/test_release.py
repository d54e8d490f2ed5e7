from dataclasses import replace

import pytest
from dp_accounting import GaussianDpEvent

from tacit.errors import BadValue
from tacit.release import (
    CELLS,
    EVERYONE,
    Adjacency,
    Cell,
    Release,
    Standing,
    Unit,
    View,
    cell_name,
    implying,
    stretches,
)

EVENT = GaussianDpEvent(1.0)
BARE = dict.fromkeys(CELLS, Cell.none("bare_reports", "bare"))


def proven(z: float = 1.0) -> Cell:
    return Cell(Standing.PROVEN, "Theorem 1", GaussianDpEvent(z))


@pytest.mark.parametrize("standing", [Standing.PROVEN, Standing.CLAIMED])
def test_a_guarantee_needs_an_event(standing):
    with pytest.raises(BadValue, match="a guarantee needs an event"):
        Cell(standing, "Theorem 1")
    assert Cell(standing, "Theorem 1", EVENT).event is EVENT


def test_no_guarantee_has_no_event():
    with pytest.raises(BadValue, match="no guarantee has none"):
        Cell(Standing.NONE, "bare", EVENT)
    assert Cell.none("bare_reports", "bare").adjacency is Adjacency.ZERO_OUT


def test_only_what_is_proven_is_counted():
    assert proven().has_epsilon
    assert not Cell(Standing.CLAIMED, "the paper", EVENT).has_epsilon
    assert not Cell.none("bare_reports", "bare").has_epsilon


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("view", View)
def test_a_release_must_speak_for_every_unit_and_view(unit, view):
    cells = {**BARE}
    del cells[unit, view]
    with pytest.raises(BadValue, match=f"'votes' says nothing for {unit}/{view}"):
        Release("votes", "server", "each round", cells)


# --- What implies what ---------------------------------------------------------------


def test_a_user_covers_an_item_and_collusion_covers_all_views():
    user = [(Unit.USER, view) for view in View]
    item = [(Unit.ITEM, view) for view in View]
    assert implying((Unit.USER, View.COLLUSION)) == user[2:]
    assert implying((Unit.ITEM, View.SERVER)) == [*item[1:], *user[1:]]
    assert {*implying((Unit.ITEM, View.RELEASE))} == {*CELLS}
    for name in CELLS:
        assert implying(name)[0] == name


@pytest.mark.parametrize(
    ("unit", "view", "complaint"),
    [
        ("people", "server", "unit='people' is not known"),
        ("user", "all", "view='all' is not known"),
        ("user", "servers", "did you mean 'server'"),
    ],
)
def test_other_cells_are_unknown(unit, view, complaint):
    for ask in (lambda: cell_name(unit, view), lambda: implying((unit, view))):
        with pytest.raises(BadValue, match=complaint):
            ask()


def test_a_cell_is_found_by_its_words():
    for unit, view in CELLS:
        found = cell_name(str(unit), str(view))
        assert found == (unit, view)
        assert [*map(type, found)] == [Unit, View]
        assert implying((str(unit), str(view))) == implying((unit, view))


def release(**own: Cell) -> Release:
    """Cells by "unit/view" with a slash written as an underscore; else nothing."""
    cells = {cell_name(*name.split("_")): cell for name, cell in own.items()}
    return Release("x", "server", "each round", BARE | cells)


def test_a_guarantee_is_borrowed_from_what_implies_it_and_never_the_other_way():
    strong = proven(3.0)
    made = release(user_server=strong)
    assert made.guarantee((Unit.ITEM, View.SERVER)) is strong
    assert made.guarantee((Unit.USER, View.RELEASE)) is strong
    assert made.guarantee((Unit.USER, View.COLLUSION)).event is None
    only_item = release(item_collusion=strong)
    assert all(
        only_item.guarantee((Unit.USER, v)).event is None
        for v in (View.RELEASE, View.SERVER)
    )
    own = proven(9.0)
    both = release(user_server=strong, item_server=own)
    assert both.guarantee((Unit.ITEM, View.SERVER)) is own


def test_what_a_paper_claims_is_not_borrowed():
    claimed = Cell(Standing.CLAIMED, "the paper", EVENT)
    made = release(user_collusion=claimed)
    assert not made.guarantee((Unit.USER, View.SERVER)).has_epsilon
    strong = proven()
    both = release(user_server=claimed, user_collusion=strong)
    assert both.guarantee((Unit.USER, View.SERVER)) is strong


# --- Rounds that are not alike -------------------------------------------------------


def test_a_release_is_made_in_its_rounds():
    always = release()
    counts = replace(always, rounds=range(2))
    updates = replace(always, rounds=range(2, 9))
    assert [counts.is_made_in(r) for r in (0, 1, 2, 8)] == [True, True, False, False]
    assert (counts.times([0, 4, 5]), updates.times([0, 4, 5])) == (1, 2)
    assert always.times([0, 4, 5]) == 3
    assert always.is_made_in(8)
    assert always.group == EVERYONE


def test_stretches_begin_where_a_release_begins_or_ends():
    assert stretches(9, [None]) == (range(9),)
    assert stretches(9, [range(2), None, range(4, 9)]) == (
        *(range(2), range(2, 4), range(4, 9)),
    )


@pytest.mark.parametrize("made", [range(0), range(3, 10), range(-1, 4), range(0, 9, 2)])
def test_rounds_that_are_not_in_the_plan(made):
    with pytest.raises(BadValue, match=r"must be one or more of range\(0, 9\)"):
        stretches(9, [made])
