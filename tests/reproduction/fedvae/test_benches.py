from __future__ import annotations

import pytest

from tacit.errors import MissingData
from tacit.reproduction.fedvae import benches
from tacit.reproduction.fedvae.benches import SMALL_WORLD, Bench
from tacit.reproduction.fedvae.datasets import _row, table_2
from tacit.reproduction.fedvae.published import EPOCHS, GAMMAS, TABLE_2


@pytest.fixture
def at_hand(monkeypatch):
    """Says which archives are there; nothing is opened."""

    def said(*sources: str) -> None:
        benches.benches.cache_clear()
        monkeypatch.setattr(benches, "is_here", lambda source: source in sources)

    yield said
    benches.benches.cache_clear()


def test_full_has_every_set_with_the_papers_rounds(at_hand):
    at_hand(*TABLE_2)
    found = {bench.source: bench for bench in benches.benches("full")}
    assert {name: bench.cohort for name, bench in found.items()} == {
        "movielens-1m": 250,
        "citeulike-a": 250,
        "steam-200k": 250,
        "lastfm": 150,
        "filmtrust": 150,
    }
    assert {bench.epochs for bench in found.values()} == {EPOCHS}
    assert found["filmtrust"].gammas == GAMMAS
    assert benches.left_out("full") == ()


def test_quick_has_the_two_smallest_and_says_what_it_leaves_out(at_hand):
    at_hand("movielens-1m", "lastfm", "filmtrust")
    found = {bench.source: bench for bench in benches.benches("quick")}
    assert [*found] == ["lastfm", "filmtrust"]
    assert max(bench.epochs for bench in found.values()) < EPOCHS
    reasons = {row.label: row.reason for row in benches.left_out("quick")}
    assert "--scale full" in reasons["movielens-1m"]
    assert "not at hand" in reasons["steam-200k"]
    assert "tacit data describe citeulike-a" in reasons["citeulike-a"]


def test_without_archives_quick_takes_the_small_world(at_hand):
    at_hand()
    assert [bench.source for bench in benches.benches("quick")] == [SMALL_WORLD]
    assert benches.benches("full") == ()
    assert len(benches.left_out("full")) == 5


def test_an_archive_that_is_missing_is_noticed(monkeypatch):
    def absent(source):
        raise MissingData("no")

    monkeypatch.setattr(benches, "_kept", absent)
    assert not benches.is_here("lastfm")
    (table,) = table_2("quick").tables
    assert [row.label for row in table.rows] == [*TABLE_2]
    assert all(row.reason for row in table.rows)


def test_the_small_world_is_divided_as_the_others():
    bench = Bench(SMALL_WORLD, cohort=150)
    split = bench.split()
    assert len(split.validation.users) == len(split.test.users) == 100
    assert bench.metrics == ("ndcg@100", "recall@100")
    assert bench.rounds_an_epoch * 150 >= len(split.users)
    assert (bench.rounds_an_epoch - 1) * 150 < len(split.users)
    assert Bench("filmtrust", 150).metrics == ("ndcg@20", "recall@20")


@pytest.mark.data
def test_table_2_on_filmtrust(real_data, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(real_data))
    only = {"filmtrust": TABLE_2["filmtrust"]}
    monkeypatch.setattr("tacit.reproduction.fedvae.datasets.TABLE_2", only)
    (table,) = table_2("quick").tables
    people, items, ratings = table.rows
    assert (people.paper, people.ok) == (1_400, True)
    assert items.paper < 2_069
    assert items.ok
    assert ratings.paper < 35_386
    assert ratings.ok


def test_a_count_that_differs_says_why_where_it_is_known():
    near = _row("lastfm, items", 1_000, 960, within=0.05)
    assert (near.ok, near.reason) == (True, "")
    far = _row("citeulike-a, ratings", 1_000, 960, within=0.01)
    assert not far.ok
    assert "one more a person" in far.reason
    assert not _row("lastfm, people", 1_000, 999, within=0.0).ok
