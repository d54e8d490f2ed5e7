from __future__ import annotations

import pytest
from data.sources.releases import CITEULIKE, edited, parsed, write

from tacit.data.sources import load
from tacit.errors import BadData


@pytest.mark.parametrize("packed", [True, False])
def test_the_first_number_of_a_line_is_no_article(packed, tmp_path):
    write("citeulike-a", tmp_path, CITEULIKE, packed=packed)
    found = load("citeulike-a", where=tmp_path, cache=tmp_path / "cache")
    log = found.interactions
    assert list(found.profiles.ids) == ["0", "2", "3"]  # user 1 keeps nothing
    assert list(found.catalog.ids) == ["0", "2", "3"]  # nobody keeps article 1
    assert log.offsets.tolist() == [0, 2, 5, 6]
    assert log.items.tolist() == [1, 0, 0, 2, 0, 2]  # in the order of the file
    assert log.times is None


def test_tags_and_citations_of_articles(tmp_path):
    features = parsed("citeulike-a", tmp_path).catalog.features
    tags, citations = features["tags"], features["citations"]
    assert [tags[n] for n in range(3)] == [
        ("bayesian", "réseau"),
        ("old_idea",),
        ("réseau",),
    ]
    assert [citations[n] for n in range(3)] == [("2", "3"), ("0",), ("0",)]


@pytest.mark.parametrize(
    ("member", "old", "new", "line", "problem"),
    [
        ("users.dat", b"3 0 3 0", b"2 0 3 0", 3, "says that 2 numbers follow"),
        ("users.dat", b"3 0 3 0", b"4 0 3 0", 3, "says that 4 numbers follow"),
        ("users.dat", b"3 0 3 0", b"3 0 4 0", 3, "article 4 must be < 4"),
        ("users.dat", b"3 0 3 0", b"3 0 3  0", 3, "'' must be a whole number"),
        ("users.dat", b"3 0 3 0", b"3 0 -3 0", 3, "'-3' must be a whole number"),
        ("users.dat", b"3 0 3 0", b"3 0 nan 0", 3, "'nan' must be a whole number"),
        ("users.dat", b"\n0\n", b"\n\n", 2, "'' must be a whole number"),
        ("item-tag.dat", b"1 2", b"1 3", 3, "tag 3 must be < 3"),
        ("citations.dat", b"2 2 3", b"2 2 9", 1, "article 9 must be < 4"),
        ("citations.dat", b"\n0", b"", 4, "3 lines, item-tag.dat has 4"),
        ("tags.dat", "é".encode(), b"\xe9", 1, "is not utf-8"),
    ],
)
def test_odd_input_is_named(member, old, new, line, problem, tmp_path):
    with pytest.raises(BadData) as caught:
        parsed("citeulike-a", tmp_path, edited("citeulike-a", member, old, new))
    assert problem in str(caught.value)
    assert member in caught.value.file
    assert caught.value.line == line


def test_users_who_keep_nothing_at_all_are_refused(tmp_path):
    with pytest.raises(BadData, match="nobody keeps an article"):
        parsed("citeulike-a", tmp_path, CITEULIKE | {"users.dat": b"0\n0\n"})


@pytest.mark.data
def test_the_real_one(real):
    found = real("citeulike-a")
    log, features = found.interactions, found.catalog.features
    assert (log.n_users, log.n_items, len(log)) == (5551, 16_980, 204_986)
    assert len(log.distinct()) == 204_986
    assert log.per_user.min() == 10
    assert len(features["tags"].labels) == 46_391
    assert len(features["citations"].codes.values) == 2 * 44_709
    assert features["citations"][0] == ("2", "485", "3284")
