"""Tests of the endpoints, over a real server on this machine."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from service.worlds import IDS, MOST, offer, query, running, served_model

from tacit.errors import BadMessage
from tacit.service.answer import Answer, answer_bytes
from tacit.service.application import Limits
from tacit.serving.query import HEADER_BYTES
from tacit.serving.query_server import QueryServer

SIZE = served_model().query_bytes


@pytest.fixture(scope="module")
def url():
    with running(offer()) as found:
        yield found


@pytest.fixture
def http(url):
    with httpx.Client(base_url=url) as client:
        yield client


def refusal(response):
    """The error that an answer has; nothing else is in it."""
    document = response.json()
    assert document.keys() == {"error"}
    assert document["error"].keys() == {"kind", "message"}
    return document["error"]


# --- Lists ---------------------------------------------------------------------------


@pytest.mark.parametrize("user", range(4))
@pytest.mark.parametrize("count", [1, 7, MOST])
def test_a_query_is_answered_as_in_the_same_process(http, user, count):
    message = query(user=user).encode()
    found = http.post(f"/v1/topk?count={count}", content=message)
    assert found.status_code == 200
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["cache-control"] == "no-store"
    answer = Answer.decode(found.content, n_items=len(IDS))
    best = QueryServer(served_model()).answer(message, count)
    assert answer.items.tolist() == best.items.tolist()
    assert answer.scores.tolist() == best.scores.tolist()
    assert answer.version == served_model().version


def test_answers_have_one_length_whoever_asks(http):
    sizes = {
        len(http.post("/v1/topk?count=5", content=query(user=n).encode()).content)
        for n in range(12)
    }
    assert sizes == {answer_bytes(5)}


def test_people_get_ids_if_they_accept_json(http):
    message = query().encode()
    accept = {"accept": "application/json"}
    found = http.post("/v1/topk?count=3", content=message, headers=accept).json()
    best = QueryServer(served_model()).answer(message, 3)
    assert [one["id"] for one in found["items"]] == [IDS[i] for i in best.items]
    assert found["version"] == served_model().version.hex()


@pytest.mark.parametrize(
    "asked", ["count=0", f"count={MOST + 1}", "count=x", "count=-1", "k=3", "count="]
)
def test_a_count_that_is_none_is_refused_with_what_is_allowed(http, asked):
    found = http.post(f"/v1/topk?{asked}", content=query().encode())
    assert found.status_code == 400
    assert asked in refusal(found)["message"]
    assert f"from 1 to {MOST}" in refusal(found)["message"]


def test_a_query_of_another_model_is_told_to_get_the_model_again(http):
    found = http.post("/v1/topk", content=query(served_model(3.0)).encode())
    assert found.status_code == 409
    assert refusal(found)["kind"] == "OtherVersion"
    assert served_model().version.hex() in refusal(found)["message"]


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES, SIZE - 1])
def test_a_short_body_is_told_the_right_length(http, length):
    found = http.post("/v1/topk", content=query().encode()[:length])
    assert found.status_code == 400
    assert f"a body of {length} bytes" in refusal(found)["message"]
    assert str(SIZE) in refusal(found)["message"]


@pytest.mark.parametrize("length", [SIZE + 1, 100_000])
def test_a_long_body_is_refused(http, length):
    found = http.post("/v1/topk", content=bytes(length))
    assert found.status_code == 413
    assert str(SIZE) in refusal(found)["message"]


def test_a_body_without_end_is_not_read_to_its_end(url):
    sent = 0

    def for_ever():
        nonlocal sent
        while sent < 2**30:
            sent += 2**16
            yield bytes(2**16)

    with contextlib.suppress(httpx.WriteError):  # closed while we were still sending
        assert httpx.post(f"{url}/v1/topk", content=for_ever()).status_code == 413
    assert sent < 2**30


@pytest.mark.parametrize(
    ("place", "byte"), [(0, b"X"), (2, b"\x09"), (3, b"\x09"), (HEADER_BYTES, b"\xff")]
)
def test_a_query_that_no_client_makes_is_refused(http, place, byte):
    message = bytearray(query().encode())
    message[place : place + 1] = byte
    found = http.post("/v1/topk", content=bytes(message))
    assert found.status_code == 400
    assert refusal(found)["kind"] == "BadMessage"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(number):
    """By whatever the ranker of numbers says; the status is the application's."""

    class Numbers:
        def answers(self, messages, count):
            if not np.isfinite(np.frombuffer(b"".join(messages), "<f4")).all():
                raise BadMessage("a payload with a number that is not finite")

    ranking = offer().ranking
    with running(offer(ranking=_with(ranking, ranker=Numbers(), query_bytes=8))) as url:
        body = np.array([0.0, number], "<f4").tobytes()
        found = httpx.post(f"{url}/v1/topk", content=body)
    assert found.status_code == 400
    assert "not finite" in refusal(found)["message"]


def test_a_server_without_a_ranking_says_so():
    with running(offer(ranking=None, basis=None)) as url:
        found = httpx.post(f"{url}/v1/topk", content=query().encode())
        assert httpx.get(f"{url}/v1/basis").status_code == 404
    assert found.status_code == 404
    assert "on_device" in refusal(found)["message"]


# --- What is the same for everybody --------------------------------------------------


@pytest.mark.parametrize("name", ["model", "candidates", "basis"])
def test_content_is_fetched_once(http, name):
    content = getattr(offer(), name)
    first = http.get(f"/v1/{name}")
    assert first.content == content.content
    assert first.headers["etag"] == f'"{content.digest}"'
    assert "no-cache" in first.headers["cache-control"]
    again = http.get(f"/v1/{name}", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = http.get(f"/v1/{name}", headers={"if-none-match": '"other", W/"more"'})
    assert other.status_code == 200


def test_content_by_its_digest_may_be_kept_for_ever(http):
    digest = offer().candidates.digest
    found = http.get(f"/v1/candidates/{digest}")
    assert "immutable" in found.headers["cache-control"]
    wrong = http.get("/v1/candidates/00ff")
    assert wrong.status_code == 404
    assert digest in refusal(wrong)["message"]


def test_health_says_which_model_is_served(http):
    found = http.get("/v1/health").json()
    assert found["status"] == "ok"
    assert found["version"] == served_model().version.hex()


def test_metrics_count_by_endpoint_and_status():
    with running(offer()) as url:
        for n in range(3):
            httpx.post(f"{url}/v1/topk", content=query(user=n).encode())
        httpx.post(f"{url}/v1/topk", content=b"")
        httpx.get(f"{url}/secret-path")
        lines = httpx.get(f"{url}/v1/metrics").text.splitlines()
    assert 'tacit_requests_total{endpoint="topk",status="200"} 3' in lines
    assert 'tacit_requests_total{endpoint="topk",status="400"} 1' in lines
    assert 'tacit_requests_total{endpoint="unknown",status="404"} 1' in lines
    assert not any("secret" in line for line in lines)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/topk", "POST"),
        ("PUT", "/v1/topk", "POST"),
        ("POST", "/v1/model", "GET"),
        ("DELETE", "/v1/candidates", "GET"),
    ],
)
def test_another_method_is_told_the_right_one(http, method, path, allowed):
    found = http.request(method, path)
    assert found.status_code == 405
    assert allowed in found.headers["allow"]
    assert method in refusal(found)["message"]
    assert allowed in refusal(found)["message"]


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/topk/"])
def test_an_unknown_path_is_told_the_known_ones(http, path):
    found = http.post(path, content=query().encode())
    assert found.status_code == 404
    assert "/v1/topk" in refusal(found)["message"]


# --- Many at once, slow ones, broken ones --------------------------------------------


def test_many_at_once_all_get_their_own_list(url):
    asked = [query(user=n % 60).encode() for n in range(200)]
    server = QueryServer(served_model())
    with httpx.Client(base_url=url) as client, ThreadPoolExecutor(16) as pool:
        send = lambda message: client.post("/v1/topk", content=message)  # noqa: E731
        found = [*pool.map(send, asked)]
    for message, response in zip(asked, found, strict=True):
        answer = Answer.decode(response.content, n_items=len(IDS))
        assert answer.items.tolist() == server.answer(message, 10).items.tolist()


def begin(url, *, sent):
    """A connection on which this much of a query has been sent."""
    host, _, port = url.removeprefix("http://").partition(":")
    found = socket.create_connection((host, int(port)), timeout=20)
    head = f"POST /v1/topk HTTP/1.1\r\nHost: x\r\nContent-Length: {SIZE}\r\n\r\n"
    found.sendall(head.encode() + query().encode()[:sent])
    return found


def test_a_query_that_never_arrives_is_given_up():
    with running(offer(), limits=Limits(seconds=0.2)) as url:
        with begin(url, sent=5) as slow:
            said = b"".join(iter(lambda: slow.recv(10_000), b""))  # it is closed
        assert said.startswith(b"HTTP/1.1 408")
        assert b"send the same bytes again" in said


def test_a_client_that_goes_away_harms_nobody():
    with running(offer()) as url:
        begin(url, sent=5).close()
        assert httpx.post(f"{url}/v1/topk", content=query().encode()).is_success
        lines = httpx.get(f"{url}/v1/metrics").text.splitlines()
    assert "tacit_queries_open 0" in lines


def test_too_many_at_once_are_told_to_come_again():
    with running(offer(), limits=Limits(open=2)) as url:
        waiting = [begin(url, sent=5) for _ in range(2)]
        until_open(url, 2)
        found = httpx.post(f"{url}/v1/topk", content=query().encode())
        assert found.status_code == 429
        assert found.headers["retry-after"] == "1"
        assert refusal(found)["kind"] == "Busy"
        for one in waiting:
            one.sendall(query().encode()[5:])
            assert one.recv(10_000).startswith(b"HTTP/1.1 200")
            one.close()


def until_open(url, count):
    """Wait until the server has this many queries open."""
    for _ in range(200):
        if f"tacit_queries_open {count}" in httpx.get(f"{url}/v1/metrics").text:
            return
    raise AssertionError(f"never {count} queries open")


# --- Nothing of a query remains ------------------------------------------------------


class Careless:
    """A ranker with a bug whose message has the query in it."""

    def answers(self, messages, count):
        raise ZeroDivisionError(f"cannot rank {messages!r} {messages[0].hex()}")


def test_nothing_of_a_query_remains(tmp_path, caplog, capfd, monkeypatch):
    """Not in a log at any level, on a stream, in a file or among the counters."""
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    secret = query().encode()
    broken = _with(offer().ranking, ranker=Careless())
    texts = []
    for one in (offer(), offer(ranking=broken)):
        with running(one) as url, httpx.Client(base_url=url) as client:
            for body in (secret, secret[:-1], secret + b"x", b"X" + secret[1:]):
                client.post("/v1/topk", content=body)
            texts.append(client.get("/v1/metrics").text)
    own = [r for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))]
    written = capfd.readouterr()
    texts += [r.getMessage() + str(r.exc_info) for r in own]
    texts += [written.out, written.err]
    assert any("ZeroDivisionError" in text for text in texts)  # a bug is noticed
    for trace in (secret.hex(), secret[4:20].hex(), repr(secret)[2:-1], "cannot rank"):
        assert not any(trace in text for text in texts)
    assert [*tmp_path.iterdir()] == []


def test_a_bug_is_answered_and_the_server_goes_on():
    broken = offer(ranking=_with(offer().ranking, ranker=Careless()))
    with running(broken) as url:
        found = httpx.post(f"{url}/v1/topk", content=query().encode())
        assert found.status_code == 500
        assert "cannot rank" not in found.text
        assert httpx.get(f"{url}/v1/health").is_success


def test_the_stopped_server_has_answered_what_was_begun():
    """The port is closed at once; the query that had begun gets its list."""
    with running(offer()) as url:
        begun = begin(url, sent=5)
        until_open(url, 1)
        later = threading.Timer(0.3, begun.sendall, [query().encode()[5:]])
        later.start()
    said = begun.recv(10_000)
    later.join()
    assert said.startswith(b"HTTP/1.1 200")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/v1/health")
    begun.close()


def test_errors_are_json_that_says_kind_and_message(http):
    text = http.post("/v1/topk?count=0", content=b"").text
    assert json.loads(text)["error"]["kind"] == "BadValue"


def _with(ranking, **changes):
    return type(ranking)(**{**vars(ranking), **changes})
