"""New items between rounds: from the operator's table to a client's list."""

from __future__ import annotations

from types import SimpleNamespace

import httpx
import pytest
from service.federation import services
from service.federation.services import Place

from tacit.data.sources.listed_tables import ItemsTable
from tacit.errors import BadMessage, Refused, Unanswered
from tacit.methods.gram import Gram
from tacit.service.federation.client import FederationClient
from tacit.service.federation.new_items import (
    new_items_of,
    read_new_items,
    write_new_items,
)
from tacit.service.federation.services import serve_coordinator
from tacit.serving.new_items import NewItem

NEW = (NewItem("n", "N", frozenset({("genre", "drama")})), NewItem("m", "M"))


def experiment(tmp_path):
    table = ItemsTable(tmp_path / "items.csv", "film", "title", lists=("genre",))
    return SimpleNamespace(table=SimpleNamespace(items=table))


def test_written_and_read_they_are_the_same():
    assert read_new_items(write_new_items(NEW)) == NEW


@pytest.mark.parametrize(
    "sent",
    [
        *(b"", b"[]", b'{"v":2,"items":[]}', b'{"v":1,"items":[{"id":1}]}'),
        b'{"v":1,"items":[{"id":"' + b"x" * 1001 + b'","title":"","labels":[]}]}',
        b'{"v":1,"items":[],"more":1}',
    ],
)
def test_what_is_no_list_is_refused(sent):
    with pytest.raises(BadMessage, match="list of new items"):
        read_new_items(sent)


def test_more_than_clients_take_is_refused():
    many = (NewItem(str(n), "t" * 900) for n in range(5000))
    with pytest.raises(Refused, match="time for a run with a new catalog"):
        write_new_items(many)


def test_the_operators_table_has_the_columns_of_the_catalog(tmp_path):
    """It is read whenever somebody asks: the operator may add a line at any time."""
    path = tmp_path / "new.csv"
    path.write_text("film,title,genre\nn,N,drama\n")
    read = new_items_of(path, experiment(tmp_path), Gram(content=("genre",)))
    assert read is not None
    assert read_new_items(read()) == NEW[:1]
    path.write_text("film,title,genre\nn,N,drama\nm,M,\n")
    assert len(read_new_items(read())) == 2


def test_the_table_is_read_once_for_everybody_who_asks(tmp_path, monkeypatch):
    path, read_tables = tmp_path / "new.csv", []
    path.write_text("film,title,genre\nn,N,drama\n")
    parse = ItemsTable.parse
    monkeypatch.setattr(
        ItemsTable, "parse", lambda self: read_tables.append(1) or parse(self)
    )
    read = new_items_of(path, experiment(tmp_path), Gram(content=("genre",)))
    assert len({read() for _ in range(5)}) == 1
    assert len(read_tables) == 1


def test_without_declared_columns_they_are_refused(tmp_path):
    made = SimpleNamespace(table=None)
    with pytest.raises(Refused, match=r"data\.table\.items"):
        new_items_of(tmp_path / "new.csv", made, Gram())
    assert new_items_of(None, made, Gram()) is None


def test_a_coordinator_serves_them_to_everybody(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = Place(tmp_path)
    content = write_new_items(NEW)
    used = serve_coordinator.__globals__
    monkeypatch.setitem(used, "new_items_of", lambda *_: lambda: content)
    run = services.a_run(place)
    with services.in_thread(serve_coordinator, place.coordinator(), run) as urls:
        found = httpx.get(f"{urls['public']}/v1/new_items")
        assert found.content == content
        tag = {"if-none-match": found.headers["etag"]}
        again = httpx.get(f"{urls['public']}/v1/new_items", headers=tag)
        assert again.status_code == 304
    monkeypatch.setitem(used, "new_items_of", lambda *_: None)
    with services.in_thread(serve_coordinator, place.coordinator(), run) as urls:
        assert httpx.get(f"{urls['public']}/v1/new_items").status_code == 404


def test_a_client_that_reaches_nobody_ranks_what_it_has(monkeypatch):
    client = FederationClient.__new__(FederationClient)

    def away(*_, **__):
        raise Unanswered("nobody is there")

    monkeypatch.setattr(FederationClient, "_get", away)
    assert client._new_items() == ()
