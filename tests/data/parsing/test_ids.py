from __future__ import annotations

import numpy as np
import pytest

from tacit.data.parsing.ids import Listing, anyone, find, gather, match, relations
from tacit.data.parsing.rows import Row
from tacit.errors import BadData

TABLE = np.array([30, 10, 20, 40])


def test_a_listing_keeps_the_order_of_the_file_and_refuses_twins():
    listing = Listing()
    for line, text in enumerate(("30", "7"), start=1):
        listing.add(Row("file", line, {"id": text}), "id")
    assert listing.ids.tolist() == [30, 7]
    assert list(listing.strings()) == ["30", "7"]
    with pytest.raises(BadData, match="file, line 3: id 7 occurs twice"):
        listing.add(Row("file", 3, {"id": "007"}), "id")


def test_match_leaves_out_rows_without_events():
    events = np.array([20, 40, 20, 30])
    places, rows = match(events, TABLE, what="movie", file="log", first=2)
    assert rows.tolist() == [0, 2, 3]  # 30, 20, 40
    assert TABLE[rows][places].tolist() == events.tolist()


def test_match_names_the_line_of_a_stranger():
    with pytest.raises(BadData, match="log, line 3: movie 50 is not in the table"):
        match(np.array([20, 50]), TABLE, what="movie", file="log", first=2)
    with pytest.raises(BadData, match="the table of movies has no rows"):
        match(np.array([20]), TABLE[:0], what="movie", file="log", first=2)


def test_find_says_what_is_there():
    place, is_listed = find(np.array([40, 5, 10, 99]), TABLE)
    assert is_listed.tolist() == [True, False, True, False]
    assert place[is_listed].tolist() == [3, 1]
    assert not find(np.array([1]), TABLE[:0])[1].any()


def test_anyone_is_whoever_occurs():
    ids, profiles = anyone(np.array([7, 3, 7]))
    assert ids.tolist() == [3, 7]
    assert list(profiles.ids) == ["3", "7"]


def test_relations_are_of_the_users_asked_for():
    who, whom = np.array([7, 3, 9, 7]), np.array([3, 50, 3, 9])
    found = relations(who, whom, np.array([3, 5, 7]))
    assert [found[row] for row in range(3)] == [("50",), (), ("3", "9")]


def test_gather_keeps_the_order_of_the_file():
    found = gather(np.array([5, 1, 4]), np.array([2, 0, 2]), 3)
    assert [row.tolist() for row in found] == [[1], [], [5, 4]]
