from __future__ import annotations

import pytest
from data.sources.releases import LASTFM, edited, parsed, write

from tacit.data.sources import load
from tacit.errors import BadData


@pytest.mark.parametrize("packed", [True, False])
def test_weights_are_values_in_the_order_of_the_file(packed, tmp_path):
    write("lastfm", tmp_path, LASTFM, packed=packed)
    found = load("lastfm", where=tmp_path, cache=tmp_path / "cache")
    log, catalog = found.interactions, found.catalog
    assert list(found.profiles.ids) == ["2", "7"]
    assert list(catalog.ids) == ["53", "51"]  # of the table; nobody played 52
    assert list(catalog.titles) == ['"Weird Al"', "Björk"]
    assert catalog.features["url"][1] == "http://last/bjork"
    assert log.offsets.tolist() == [0, 2, 3]
    assert log.items.tolist() == [1, 0, 1]
    assert log.values.tolist() == [13_883, 4, 90]
    assert log.times is None


def test_tags_stay_with_the_event_of_who_gave_them(tmp_path):
    tags = parsed("lastfm", tmp_path).interactions.contexts["tags"]
    # Left out: on an artist not played, on one not listed, by a stranger.
    assert [tags[row] for row in range(3)] == [(), ("métal",), ("pop", "métal")]


def test_friends_are_ids_also_of_strangers(tmp_path):
    friends = parsed("lastfm", tmp_path).profiles.features["friends"]
    assert [friends[row] for row in range(2)] == [("7",), ("2", "8")]


@pytest.mark.parametrize(
    ("member", "old", "new", "line", "problem"),
    [
        ("user_artists.dat", b"2\t53", b"2\t99", 3, "artist 99 is not in the table"),
        ("user_artists.dat", b"\t4\r", b"\t-4\r", 3, "weight='-4' must be a whole"),
        ("user_artists.dat", b"weight", b"plays", 1, "must be 'userID\tartistID"),
        ("artists.dat", b"52\t", b"53\t", 3, "id 53 occurs twice"),
        ("artists.dat", "ö".encode(), b"\xf6", 4, "is not utf-8"),
        ("artists.dat", b"\thttp://p", b"", 2, "3 fields separated by"),
        ("tags.dat", b"2\tpop", b"1\tpop", 3, "tagID 1 occurs twice"),
        ("tags.dat", b"2\tpop", b"2", 3, "1 fields separated by"),
        ("user_taggedartists.dat", b"53\t1\t1", b"53\t3\t1", 3, "tag 3 is not in"),
        ("user_taggedartists.dat", b"day", b"tag", 1, "header"),
        ("user_friends.dat", b"7\t8", b"7\tx", 4, "friendID='x' must be a whole"),
    ],
)
def test_odd_input_is_named(member, old, new, line, problem, tmp_path):
    with pytest.raises(BadData) as caught:
        parsed("lastfm", tmp_path, edited("lastfm", member, old, new))
    assert problem in str(caught.value)
    assert member in caught.value.file
    assert caught.value.line == line


@pytest.mark.data
def test_the_real_one(real):
    found = real("lastfm")
    log = found.interactions
    assert (log.n_users, log.n_items, len(log)) == (1892, 17_632, 92_834)
    assert len(log.distinct()) == 92_834
    tags = log.contexts["tags"].codes
    assert (len(tags.values), (tags.lengths > 0).sum()) == (73_358, 20_665)
    friends = found.profiles.features["friends"]
    assert len(friends.codes.values) == 25_434
    assert friends.labels == found.profiles.ids  # so a code is a place among the users
