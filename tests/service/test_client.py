"""Tests of the client, against a real server on this machine."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from datetime import timedelta

import msgspec
import pytest
from service.worlds import running
from serving.worlds import item_space, population

from tacit import load
from tacit.errors import (
    BadMessage,
    BadValue,
    OtherVersion,
    Refused,
    Unanswered,
)
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.release import Unit, View
from tacit.service.client import Connection, refuse_dearer
from tacit.service.http import JSON
from tacit.service.model_document import ModelDocument
from tacit.service.offer import Offer, Resource
from tacit.service.run_offer import run_offer
from tacit.serving.query import Mode, Query
from tacit.serving.settings import ServingSettings, served_model

HISTORY = ["item 1", "item 4"]
KRR = ServingSettings(Mode.KRR, 2.0, interests=3)


@pytest.fixture(scope="module")
def offer(vectors_run):
    return run_offer(vectors_run, KRR)


@pytest.fixture(scope="module")
def url(offer):
    with running(offer) as found:
        yield found


@pytest.fixture
def server(url, tmp_path):
    with Connection(url, tmp_path / "fetched") as found:
        yield found


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


class Overheard:
    """A connection that remembers what it sent."""

    def __init__(self, server, monkeypatch):
        self.bodies = []
        post = server._http.post

        def heard(path, *, content):
            self.bodies.append(content)
            return post(path, content=content)

        monkeypatch.setattr(server._http, "post", heard)


def test_without_a_ledger_the_client_ranks_and_sends_nothing(
    server, vectors_run, monkeypatch
):
    heard = Overheard(server, monkeypatch)
    found = server.recommend(HISTORY, 5)
    assert found.items == load(vectors_run).recommend(HISTORY, 5)
    assert found.ranked_by == "client"
    assert heard.bodies == []


def test_what_the_list_is_for_is_decided_here_and_not_told(
    server, vectors_run, ledger, monkeypatch
):
    """The public model is the same, a query as long, and the local list another."""
    heard = Overheard(server, monkeypatch)
    session = load(vectors_run, list_for="session")
    turned = HISTORY[::-1]
    lists = [
        server.recommend(h, 5, list_for="session").items for h in (HISTORY, turned)
    ]
    assert lists == [session.recommend(h, 5) for h in (HISTORY, turned)]
    assert lists[0] != lists[1]
    assert heard.bodies == []
    found = server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0, list_for="session")
    assert (found.ranked_by, len(heard.bodies)) == ("server", 1)
    assert served_model(session, KRR).version == server.served_model.version


def test_content_is_fetched_once(server, url, tmp_path, monkeypatch):
    first = server.recommender
    with Connection(url, tmp_path / "fetched") as again:
        asked = []
        got = again._got
        monkeypatch.setattr(
            again, "_got", lambda path, **_: asked.append(path) or got(path, **_)
        )
        assert again.recommender.digest == first.digest
    assert asked == ["/v1/model"]


def test_a_damaged_file_is_fetched_again(server, url, tmp_path):
    before = server.recommender.digest
    [file] = (tmp_path / "fetched").rglob("model.safetensors")
    file.write_bytes(b"harmed")
    with Connection(url, tmp_path / "fetched") as again:
        assert again.recommender.digest == before


def test_one_query_a_period_and_the_server_ranks(server, ledger, monkeypatch):
    heard = Overheard(server, monkeypatch)
    for _ in range(3):
        found = server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0)
        assert found.ranked_by == "server"
        assert len(found.items) == 5
        assert not {*HISTORY} & {one.id for one in found.items}
    assert len({*heard.bodies}) == 1
    assert {len(body) for body in heard.bodies} == {server.document.queries.bytes}
    with ClientLedger(ledger) as kept:
        [entry] = kept.entries()
        assert entry.sent is not None


def test_a_query_says_nothing_of_the_number_of_items_or_the_history(
    server, tmp_path, monkeypatch
):
    heard = Overheard(server, monkeypatch)
    for number, (history, k) in enumerate([([], 1), (HISTORY, 3), (HISTORY * 3, 2)]):
        server.recommend(history, k, ledger=tmp_path / str(number), epsilon=2.0)
    assert len({len(body) for body in heard.bodies}) == 1


def test_a_cap_lets_the_client_rank_and_say_so(server, ledger, monkeypatch):
    heard = Overheard(server, monkeypatch)
    with ClientLedger(ledger) as kept:
        kept.set_cap(Cap(1.0, 1e-6, Unit.USER, View.SERVER))
    found = server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0)
    assert found.ranked_by == "client"
    assert "cap" in found.why
    assert found.items
    assert heard.bodies == []


def test_a_dearer_mechanism_than_agreed_is_refused(server, ledger, monkeypatch):
    heard = Overheard(server, monkeypatch)
    with pytest.raises(Refused, match=r"epsilon 2\.0, and 1\.5 is allowed"):
        server.recommend(HISTORY, 5, ledger=ledger, epsilon=1.5)
    with pytest.raises(BadValue, match="needs epsilon"):
        server.recommend(HISTORY, 5, ledger=ledger)
    assert heard.bodies == []
    assert not ledger.exists()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("mode", [Mode.DPA, Mode.VDP])
def test_a_budget_that_is_just_met_is_no_refusal(server, mode, delta):
    settings = ServingSettings(mode, 2.0, delta=delta)
    made = settings.mechanism(item_space(), population(), Key.from_seed(0))
    refuse_dearer(made, 2.0)
    with pytest.raises(Refused):
        refuse_dearer(made, 1.9)


def test_the_answer_of_another_model_is_an_error(server, ledger):
    other = Query(bytes(16), Mode.KRR, bytes(2))
    with pytest.raises(OtherVersion, match="get the model again"):
        server.ask(other, 3)


def test_a_refusal_of_the_server_is_told(server):
    query = Query(server.served_model.version, Mode.KRR, b"\xff\xff")
    with pytest.raises(Unanswered, match="400, interest 65535 is not known"):
        server.ask(query, 3)


def test_nobody_there_is_one_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with (
        Connection(f"http://127.0.0.1:{port}", tmp_path) as server,
        pytest.raises(Unanswered, match="cannot be reached"),
    ):
        server.recommend(HISTORY, 5)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x", "http://["])
def test_what_is_no_url_is_refused(url, tmp_path):
    with pytest.raises(BadValue, match="url="):
        Connection(url, tmp_path)


def test_a_server_that_ranks_nothing_refuses_queries(vectors_run, tmp_path, ledger):
    with running(run_offer(vectors_run)) as url, Connection(url, tmp_path) as server:
        with pytest.raises(Refused, match="on_device"):
            server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0)
        assert server.recommend(HISTORY, 5).items


def test_a_digest_from_elsewhere_is_compared(url, offer, tmp_path):
    digest = offer.candidates.digest
    with Connection(url, tmp_path, expected=digest) as server:
        assert server.recommend(HISTORY, 3).items
    with (
        Connection(url, tmp_path, expected="0" * 64) as server,
        pytest.raises(Refused, match="another model"),
    ):
        server.recommend(HISTORY, 3)


# --- Servers that lie ----------------------------------------------------------------


def lying(offer, **changes):
    """An offer whose document was changed."""
    document = ModelDocument.decode(offer.model.content)
    told = msgspec.structs.replace(document, **changes)
    return Offer(
        Resource(told.encode(), JSON), offer.candidates, offer.basis, offer.ranking
    )


def other_content(offer):
    return Offer(offer.model, Resource(b"other"), offer.basis, offer.ranking)


def a_longer_one(offer):
    content = ModelDocument.decode(offer.model.content).candidates
    return lying(offer, candidates=msgspec.structs.replace(content, bytes=5))


def another_mode(offer):
    queries = ModelDocument.decode(offer.model.content).queries
    return lying(offer, queries=msgspec.structs.replace(queries, mode="vdp"))


def no_document(offer):
    return Offer(Resource(b"<html>", JSON), offer.candidates, offer.basis, None)


@pytest.mark.parametrize(
    "lie", [other_content, a_longer_one, another_mode, no_document]
)
def test_a_server_that_lies_gets_no_query(lie, offer, tmp_path, ledger, monkeypatch):
    with running(lie(offer)) as url, Connection(url, tmp_path / "f") as server:
        heard = Overheard(server, monkeypatch)
        with pytest.raises((BadMessage, Unanswered)):
            server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0)
    assert heard.bodies == []
    assert not ledger.exists()


def test_a_basis_with_a_larger_budget_is_dearer_whatever_the_document_says(
    vectors_run, offer, tmp_path, ledger
):
    """What a query costs is reckoned from the mechanism, not read in the document."""
    dear = run_offer(vectors_run, ServingSettings(Mode.KRR, 9.0, interests=3))
    document = ModelDocument.decode(dear.model.content)
    cheap = ModelDocument.decode(offer.model.content).queries.costs
    queries = msgspec.structs.replace(document.queries, costs=cheap)
    with (
        running(lying(dear, queries=queries)) as url,
        Connection(url, tmp_path) as server,
        pytest.raises(Refused, match=r"epsilon 9\.0"),
    ):
        server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0)
    assert not ledger.exists()


# --- The same bytes again ------------------------------------------------------------


class Moody(threading.Thread):
    """A server that breaks off, says 503, and then passes on what a real one says."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.real, self.heard = url, []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"

    def run(self):
        busy = b"HTTP/1.1 503 x\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
        for said in (b"", busy, None):
            connection, _ = self.listening.accept()
            with connection:
                request = whole(connection)
                self.heard.append(request.partition(b"\r\n\r\n")[2])
                connection.sendall(self._real(request) if said is None else said)
        self.listening.close()

    def _real(self, request):
        host, _, port = self.real.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as real:
            real.sendall(request)
            return whole(real)


def whole(connection):
    """A request or an answer with its body, in however many pieces it comes."""
    found, missing = b"", 1
    while missing > 0:
        found += connection.recv(65536)
        head, _, body = found.partition(b"\r\n\r\n")
        told = re.search(rb"(?i)content-length: (\d+)", head)
        missing = int(told[1]) - len(body) if told else 1
    return found


def test_a_query_without_an_answer_is_sent_again_byte_for_byte(server, ledger):
    expected = server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0)
    moody = Moody(server.url)
    moody.start()
    server._http.base_url = moody.url
    found = server.recommend(HISTORY, 5, ledger=ledger, epsilon=2.0)
    moody.join(10)
    assert found == expected
    assert len(moody.heard) == 3
    assert len({*moody.heard}) == 1
    with ClientLedger(ledger) as kept:
        assert len(kept.entries()) == 1


def test_a_new_period_is_a_new_entry(server, ledger):
    short = timedelta(microseconds=1)
    for _ in range(3):
        server.recommend([], 2, ledger=ledger, epsilon=2.0, refresh=short, releases=2)
    with ClientLedger(ledger) as kept:
        assert len(kept.entries()) == 2  # the third is refused, and the client ranks


# --- What it needs -------------------------------------------------------------------


def test_neither_client_nor_server_import_torch(vectors_run):
    code = (
        "import sys, tacit.service.client, tacit.service.server\n"
        "from pathlib import Path\n"
        "from tacit.service.run_offer import run_offer\n"
        f"assert run_offer(Path({str(vectors_run)!r})).candidates\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("missing", ["httpx", "msgspec"])
def test_a_missing_extra_is_named(missing):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from tacit.errors import MissingExtra\n"
        "try:\n    import tacit.service.client\n"
        "except MissingExtra as error:\n    assert '[serve]' in str(error)\n"
        "else:\n    raise AssertionError('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
