from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from data.sources.releases import RELEASES, parsed

from tacit.data import cache
from tacit.data.sources import load, names, source
from tacit.data.sources.source import Archived
from tacit.data.synthetic.world import World
from tacit.errors import BadValue, MissingData


def test_every_name_has_a_source_that_says_what_it_is():
    for name in names():
        found = source(name)
        assert found.name == name
        for fact in (found.title, found.home, found.terms, found.citation):
            assert fact
            assert "\n" not in fact


def test_an_unknown_name_lists_the_known_ones_and_the_table():
    with pytest.raises(BadValue, match="did you mean 'movielens-1m'") as caught:
        load("movilens-1m")
    assert all(name in str(caught.value) for name in names())
    assert "EventsTable" in str(caught.value)


def test_listing_imports_no_parser():
    code = (
        "import sys; from tacit.data.sources import names; names();"
        "assert not [m for m in sys.modules if 'movielens' in m or 'synthetic' in m]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def made(name: str = "made", **facts) -> Archived:
    return Archived(
        name=name,
        title="",
        home="https://example.org",
        terms="",
        citation="",
        archives=("made.zip",),
        folder="made",
        parse=lambda path: World(users=10, items=20, events_per_user=5).dataset(
            path.name
        ),
        **facts,
    )


def test_a_prepared_set_needs_its_archive_no_more(tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    archive, kept = tmp_path / "made.zip", tmp_path / "cache"
    archive.touch()
    assert made().open(where=archive, cache=kept).name == "made.zip"
    archive.unlink()
    assert made().open(cache=kept).name == "made.zip"
    with pytest.raises(MissingData):  # a place that was given must have it
        made().open(where=tmp_path, cache=kept)


def test_another_archive_is_parsed_anew(tmp_path):
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    for archive in (one, two):
        archive.touch()
        found = made().open(where=archive, cache=tmp_path / "cache")
        assert found.name == archive.name


def test_without_an_official_address_download_is_missing_data(tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    with pytest.raises(MissingData, match=r"made\.zip"):
        made().open(cache=tmp_path, download=True)


def test_nothing_is_downloaded_unasked(tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: 1 // 0)
    with pytest.raises(MissingData, match="movielens-1m --download"):
        load("movielens-1m", cache=tmp_path)


def test_a_generated_set_ignores_places_and_leaves_no_trace(tmp_path):
    found = load("synthetic", where=Path("/nowhere"), cache=tmp_path, download=True)
    assert found.name == "synthetic"
    assert not list(tmp_path.iterdir())
    assert not cache.entry(cache.folder(), "synthetic").exists()


FROM_EVENTS = {"steam-200k", "filmtrust", "citeulike-a"}  # or from what users tagged


@pytest.mark.parametrize("name", sorted(RELEASES))
def test_which_sources_list_their_items_apart_from_the_events(name, tmp_path):
    """One that does keeps its whole list, of which the catalog is what occurs."""
    found = parsed(name, tmp_path)
    assert (found.listed is None) == (name in FROM_EVENTS)
    if found.listed is not None:
        assert set(found.catalog.ids) <= set(found.listed.ids)
        assert found.declared().catalog.ids == found.listed.ids


@pytest.mark.parametrize("name", ["synthetic", "synthetic-news"])
def test_an_invented_catalog_follows_from_its_seed_alone(name):
    found = load(name)
    assert found.listed is found.catalog
