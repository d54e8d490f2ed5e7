"""What an operator hears of another one: an answer, a refusal, or nothing yet."""

import httpx
import pytest

from tacit.errors import BadMessage, Refused, Unanswered
from tacit.service.federation import operator_client
from tacit.service.federation.operator_client import (
    OperatorClient,
    Over,
    Persistent,
    Status,
)

ROUND, BATCH = bytes(range(32)), bytes(16)
SECRET = b"s" * 32


class Operator:
    """Answers as it is told, one answer after another, and notes what was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.asked = [*answers], list[httpx.Request]()
        self.client = OperatorClient("helper", "http://helper.test", SECRET)
        headers = self.client._http.headers
        self.client._http.close()
        self.client._http = httpx.Client(
            base_url="http://helper.test",
            headers=headers,
            transport=httpx.MockTransport(self._answer),
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        if not found.is_closed:
            return found
        return httpx.Response(found.status_code, content=iter([found.content]))


def refusal(status: int, said: str = "because") -> httpx.Response:
    return httpx.Response(status, json={"error": {"kind": "X", "message": said}})


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_be_asked_again_is_unanswered(status):
    """A proxy whose service is away says 502: no reason to give a round up."""
    with pytest.raises(Unanswered, match=f"helper at .*: {status}, because"):
        Operator(refusal(status)).client.close(ROUND)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 426])
def test_what_somebody_can_put_right_is_refused_and_not_over(status):
    with pytest.raises(Refused, match="because") as found:
        Operator(refusal(status)).client.close(ROUND)
    assert not isinstance(found.value, Over)


@pytest.mark.parametrize("status", [409, 410, 412])
def test_what_never_changes_is_over(status):
    with pytest.raises(Over, match="because"):
        Operator(refusal(status)).client.close(ROUND)


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused"), httpx.ReadTimeout("late")]
)
def test_who_cannot_be_reached_is_unanswered(error):
    with pytest.raises(Unanswered, match="cannot be reached"):
        Operator(error).client.status(ROUND)


def test_a_round_that_is_not_known_needs_no_deletion():
    Operator(refusal(404)).client.delete(ROUND)
    with pytest.raises(Refused):
        Operator(refusal(401)).client.delete(ROUND)


def test_the_secret_and_the_protocol_go_with_every_request():
    operator = Operator(httpx.Response(202), httpx.Response(200, content=b"sum"))
    assert operator.client.close(ROUND, b"ids") is None
    assert operator.client.close(ROUND, b"ids") == b"sum"
    request = operator.asked[0]
    assert request.headers["authorization"] == f"Bearer {SECRET.decode()}"
    assert request.headers["tacit-protocol"] == "1"
    assert request.url.path == f"/v1/rounds/{ROUND.hex()}/close"
    assert SECRET.decode() not in repr(operator.client)


@pytest.mark.parametrize("content", [b"", b"k" * 31, b"k" * 33])
def test_an_answer_of_another_size_is_refused(content):
    operator = Operator(httpx.Response(200, content=content))
    with pytest.raises(BadMessage, match="needed are 32"):
        operator.client.round_key(bytes(16), 0)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"7", b'{"state": "open", "reports": null}', b"[" * 9999],
)
def test_a_status_that_is_none_is_refused(content):
    with pytest.raises(BadMessage, match="says nothing of a round"):
        Operator(httpx.Response(200, content=content)).client.status(ROUND)


def test_a_status_is_read():
    told = httpx.Response(200, json={"state": "open", "reports": 7})
    assert Operator(told).client.status(ROUND) == Status("open", 7)


def test_a_peer_cannot_fill_the_memory(monkeypatch):
    monkeypatch.setattr(operator_client, "_MOST_BYTES", 1000)
    many = httpx.Response(200, content=iter([b"x" * 400] * 100))
    with pytest.raises(BadMessage, match="more than 1000 bytes"):
        Operator(many).client.close(ROUND)


def test_a_peer_that_drips_is_left(monkeypatch):
    operator = Operator(httpx.Response(200, content=iter([b"x"] * 100)))
    operator.client.seconds = -1.0
    with pytest.raises(Unanswered, match="took longer than"):
        operator.client.close(ROUND)


def test_what_a_peer_says_cannot_write_to_a_terminal():
    with pytest.raises(Refused) as found:
        Operator(refusal(403, "\x1b[2J" + "x" * 9000)).client.close(ROUND)
    assert "\x1b" not in str(found.value)
    assert len(str(found.value)) < 700


# --- A helper that is away ------------------------------------------------------------


def persistent(operator, **settings) -> Persistent:
    return Persistent(operator.client, sleep=lambda _: None, **settings)


def test_a_batch_is_sent_again_until_it_is_answered():
    taken = httpx.Response(200, content=b"\x01")
    operator = Operator(refusal(503), httpx.ConnectError("gone"), taken)
    assert persistent(operator)(ROUND, BATCH, b"seeds") == b"\x01"
    assert {one.url.path for one in operator.asked} == {
        f"/v1/rounds/{ROUND.hex()}/batches/{BATCH.hex()}"
    }
    assert {one.content for one in operator.asked} == {b"seeds"}


def test_while_it_is_away_each_batch_is_tried_once():
    operator = Operator(*[refusal(503)] * 3, httpx.Response(200), *[refusal(503)] * 2)
    pass_on = persistent(operator, seconds=0.0)
    for n in (1, 2, 3):
        with pytest.raises(Unanswered):
            pass_on(ROUND, BATCH, b"seeds")
        assert len(operator.asked) == n
    assert pass_on(ROUND, BATCH, b"seeds") == b""
    with pytest.raises(Unanswered):
        pass_on(ROUND, BATCH, b"seeds")


def test_a_refusal_is_not_asked_again():
    operator = Operator(refusal(409))
    with pytest.raises(Over):
        persistent(operator)(ROUND, BATCH, b"seeds")
    assert len(operator.asked) == 1


@pytest.mark.parametrize("reports", ["1e400", "-1", "1.5", '"3"', "true", "9" * 23])
def test_a_count_that_cannot_be_one_is_refused(reports):
    """Whatever an operator says, it ends no thread of the coordinator."""
    answer = httpx.Response(200, content=f'{{"state":"open","reports":{reports}}}')
    with pytest.raises(BadMessage, match="says nothing of a round"):
        Operator(answer).client.status(ROUND)
