"""Bodies within limits, refusals in one form, and logs that hold nothing of them."""

import asyncio
import gc
import json
import logging
import weakref

import pytest

from tacit.service import http
from tacit.service.http import (
    Asked,
    Endpoint,
    Endpoints,
    Failure,
    Gone,
    IncomingBody,
    Reply,
    bearer,
    check_bearer,
    has_tag,
    header,
)

SECRET = b"s" * 32
CANARY = "canary-5f1d"


def scope(path="/v1/thing", method="POST", **headers) -> dict:
    pairs = [
        (name.replace("_", "-").encode(), value) for name, value in headers.items()
    ]
    return {"type": "http", "path": path, "method": method, "headers": pairs}


def receiver(*pieces: bytes, then=None):
    """What arrives, piece by piece; `then` is waited for instead of an end."""
    left = [*pieces]

    async def receive():
        if not left:
            assert then is not None
            return await then()
        piece = left.pop(0)
        is_last = not left and then is None
        return {"type": "http.request", "body": piece, "more_body": not is_last}

    return receive


async def for_ever():
    await asyncio.sleep(60)


async def gone():
    return {"type": "http.disconnect"}


def body(receive, size=6, seconds=5.0) -> bytes:
    one = IncomingBody(receive, size, seconds=seconds, what="thing")
    return bytes(asyncio.run(one.read()))


def asked(application, given: dict, receive=None) -> tuple[int, dict, bytes]:
    """Status, headers and body of an answer; status 0 if there is none."""
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(application(given, receive or receiver(b""), send))
    if not sent:
        return 0, {}, b""
    start, content = sent
    return start["status"], dict(start["headers"]), content["body"]


def error_of(content: bytes) -> dict:
    return json.loads(content)["error"]


# --- Bodies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces", [[b"abcdef"], [b"abc", b"def"], [b"", b"abcdef", b""]]
)
def test_a_body_is_read_in_any_pieces(pieces):
    assert body(receiver(*pieces)) == b"abcdef"


@pytest.mark.parametrize(
    ("pieces", "status"), [([b"abcde"], 400), ([b""], 400), ([b"abc", b"defg"], 413)]
)
def test_a_body_of_another_length_is_refused(pieces, status):
    with pytest.raises(Failure) as found:
        body(receiver(*pieces))
    assert found.value.status == status
    assert "every thing has 6" in found.value.message


def test_a_body_that_is_too_long_is_not_read_to_its_end():
    with pytest.raises(Failure) as found:
        body(receiver(b"x" * 7, then=for_ever))
    assert found.value.headers == {"connection": "close"}


def test_a_slow_body_is_late():
    with pytest.raises(Failure) as found:
        body(receiver(b"abc", then=for_ever), seconds=0.02)
    assert (found.value.status, found.value.kind) == (408, "TooLate")


def test_an_idle_body_is_refused_long_before_its_time_is_over(monkeypatch):
    """What has arrived must keep up with the time; a byte now and then does not."""
    monkeypatch.setattr(http, "_GRACE", 0.05)
    with pytest.raises(Failure) as found:
        body(receiver(b"a", then=for_ever), size=10**6, seconds=20.0)
    assert (found.value.status, found.value.kind) == (408, "TooLate")


def test_a_slow_body_that_keeps_up_is_read(monkeypatch):
    monkeypatch.setattr(http, "_GRACE", 0.5)
    left = [b"a"] * 6

    async def receive():
        await asyncio.sleep(0.15)
        return {"type": "", "body": left.pop(), "more_body": bool(left)}

    # Time enough: a busy machine may sleep for longer.
    assert body(receive, seconds=30.0) == b"aaaaaa"


def test_a_server_that_stops_is_not_taken_for_a_slow_client():
    async def cancelled():
        reading = IncomingBody(receiver(then=for_ever), 6, seconds=5, what="thing")
        task = asyncio.create_task(reading.read())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_the_timer_of_a_body_does_not_ring_afterwards():
    async def both():
        await IncomingBody(receiver(b"abcdef"), 6, seconds=0.01, what="thing").read()
        await asyncio.sleep(0.05)
        return True

    assert asyncio.run(both())


def test_whoever_leaves_gets_no_answer():
    with pytest.raises(Gone):
        body(receiver(b"abc", then=gone))

    async def handler(one: Asked) -> Reply:
        return Reply(200, await one.body(6, seconds=1, what="thing"))

    app = Endpoints([Endpoint("thing", "POST", "/v1/thing", handler)])
    found = asked(app, scope(content_length=b"6"), receiver(b"abc", then=gone))
    assert found == (0, {}, b"")


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (None, 411),
        (b"", 411),
        (b"-1", 411),
        (b"+5", 411),
        (b"1e1", 411),
        ("٣".encode(), 411),  # a digit, and none of HTTP
        (b"7", 413),
        (b"9" * 4000, 413),  # longer than Python would read
    ],
)
def test_a_length_is_declared_and_within_its_limit(told, status):
    headers = {} if told is None else {"content_length": told}
    with pytest.raises(Failure) as found:
        Asked(scope(**headers), receiver(), ()).length(6, "thing")
    assert found.value.status == status


# --- Who asks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (b"Bearer abc", b"abc"),
        (b"bearer  abc ", b"abc"),
        (b"Basic abc", b""),
        (b"Bearer", b""),
        (b"", b""),
    ],
)
def test_a_token_follows_bearer(told, found):
    assert bearer(scope(authorization=told)) == found


@pytest.mark.parametrize("given", [b"", b"Bearer " + b"s" * 31, b"Bearer " + b"t" * 32])
def test_without_the_secret_nobody_is_let_in(given):
    with pytest.raises(Failure) as found:
        check_bearer(scope(authorization=given), (SECRET,))
    assert found.value.status == 401


def test_one_of_several_secrets_is_enough():
    check_bearer(scope(authorization=b"Bearer " + SECRET), (b"t" * 32, SECRET))


def test_a_secret_that_was_left_out_opens_nothing():
    with pytest.raises(Failure) as found:
        check_bearer(scope(), (b"",))
    assert found.value.status == 401


def test_headers_are_found_by_name():
    given = scope(content_type=b"x")
    assert header(given, b"content-type") == b"x"
    assert header(given, b"content") is None


@pytest.mark.parametrize(
    ("known", "is_there"),
    [
        ('"a"', True),
        ('W/"a"', True),
        ('"b", "a"', True),
        ("*", True),
        ("a", False),
        ("", False),
    ],
)
def test_an_etag_names_content(known, is_there):
    assert has_tag(known, '"a"') is is_there


# --- Endpoints ------------------------------------------------------------------------


def things(handler, **settings) -> Endpoints:
    return Endpoints(
        [Endpoint("things", "POST", "/v1/things/([0-9a-f]{4})", handler, **settings)]
    )


async def parts(one: Asked) -> Reply:
    return Reply(200, ",".join(one.parts).encode())


def test_a_path_is_matched_whole():
    app = things(parts)
    assert asked(app, scope("/v1/things/00ff"))[::2] == (200, b"00ff")
    for path in (
        "/v1/things/00ff/",
        "/v1/things/00FF",
        "/x/v1/things/00ff",
        "/v1/things/00ff\n",
    ):
        assert asked(app, scope(path))[0] == 404, path


def test_another_method_is_told_which_one():
    status, headers, _ = asked(things(parts), scope("/v1/things/00ff", "GET"))
    assert (status, headers[b"allow"]) == (405, b"POST")


def test_the_secret_is_asked_for_before_the_body():
    app = things(parts, secrets=(SECRET,))
    status, _, content = asked(app, scope("/v1/things/00ff"), receiver(then=for_ever))
    assert (status, error_of(content)["kind"]) == (401, "Unauthorized")
    right = scope("/v1/things/00ff", authorization=b"Bearer " + SECRET)
    assert asked(app, right)[0] == 200


@pytest.mark.parametrize("version", [b"0", b"2", b"", b"1.0", b"x" * 5000])
def test_another_protocol_is_told_so(version):
    given = scope("/v1/things/00ff", tacit_protocol=version)
    status, headers, content = asked(things(parts), given)
    assert (status, headers[b"upgrade"]) == (426, b"tacit/1")
    assert "this server speaks 1" in error_of(content)["message"]
    assert len(content) < 300


@pytest.mark.parametrize("headers", [{}, {"tacit_protocol": b"1"}])
def test_this_protocol_or_none_is_answered(headers):
    assert asked(things(parts), scope("/v1/things/00ff", **headers))[0] == 200


def test_of_a_bug_neither_answer_nor_log_has_a_word(caplog):
    async def broken(one: Asked) -> Reply:
        raise KeyError(CANARY)

    with caplog.at_level(logging.DEBUG):
        status, _, content = asked(things(broken), scope("/v1/things/00ff"))
    assert (status, error_of(content)["kind"]) == (500, "Broken")
    assert CANARY not in content.decode()
    assert "things failed: KeyError" in caplog.text
    assert CANARY not in caplog.text


def test_requests_are_counted_by_endpoint_and_status():
    counted = []
    app = Endpoints(
        [Endpoint("things", "POST", "/v1/things", parts)],
        count=lambda *one: counted.append(one),
    )
    asked(app, scope("/v1/things"))
    asked(app, scope(f"/v1/{CANARY}"))
    assert counted == [("things", 200), ("unknown", 404)]


def test_a_refusal_that_is_raised_again_keeps_nothing_of_a_request():
    """A refusal that is made once, at import, would keep every frame it passed."""

    class Half:
        """What somebody sent."""

    refusal, kept = Failure(409, "Closed", "the round is closed"), []

    async def refuse(one: Asked) -> Reply:
        half = Half()
        kept.append(weakref.ref(half))
        raise refusal

    app = things(refuse)
    for _ in range(3):
        assert asked(app, scope("/v1/things/00ff"))[0] == 409
    gc.collect()
    assert [one() for one in kept] == [None] * 3
    assert refusal.__traceback__ is None


def test_only_http_is_answered():
    assert asked(things(parts), {"type": "websocket"}) == (0, {}, b"")
