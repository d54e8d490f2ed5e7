"""The endpoints: a model to fetch, candidates to rank, and lists for private queries.

    GET  /v1/model                     what is served, as JSON
    GET  /v1/candidates[/SHA256]       weights and catalog; with its digest, for ever
    GET  /v1/basis[/SHA256]            the public numbers of the mechanism of queries
    POST /v1/topk?count=N              a query of fixed length; the best N of the pool
    GET  /v1/health, /v1/metrics

| status | when | the client then |
|---|---|---|
| 200 | | |
| 304 | the content is the one that the client has | uses its own |
| 400 | a count, a length or a number that no query has | drops the query |
| 404 | an unknown path, digest, or a server that ranks nothing | reads the message |
| 405 | another method; `Allow` has the right ones | uses one of them |
| 408 | the query did not arrive in time | sends the same bytes again |
| 409 | a query for another model | fetches the model again |
| 413 | a body longer than any query | drops the query |
| 429, 503 | too many queries at once; `Retry-After` | sends the same bytes again |

An error is `{"error": {"kind", "message"}}`; the message says what was given, what is
allowed and what to do. It goes to whoever asked and into no log: of a query nothing is
stored, and only counts by endpoint and status remain.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tacit.errors import BadMessage, OtherVersion
from tacit.service.answer import Answer
from tacit.service.batches import Batches
from tacit.service.http import (
    ASK_AGAIN,
    BINARY,
    FOR_EVER,
    JSON,
    Failure,
    Gone,
    IncomingBody,
    Reply,
    has_tag,
    header,
    send_reply,
)
from tacit.service.intake_room import IntakeRoom
from tacit.service.metrics import Metrics
from tacit.service.offer import Offer, RankedItems, Ranking, Resource

LOG = logging.getLogger("tacit.service")
COUNT = 10  # items in an answer unless the client asks for another number
_ENDPOINTS = frozenset(("model", "candidates", "basis", "topk", "health", "metrics"))
_KINDS = {404: "NotFound", 405: "BadMethod"}


@dataclass(frozen=True)
class Limits:
    """What a server takes on at once."""

    open: int = 512  # queries that are being read or ranked
    bytes: int = 64 * 2**20  # of these
    seconds: float = 10.0  # for a query to arrive


def application(offer: Offer, *, limits: Limits | None = None) -> ASGIApp:
    """The ASGI application that serves an offer."""
    metrics = Metrics()
    top_k = TopK(offer.ranking, limits or Limits(), metrics)
    rest = _everything_else(offer, metrics)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        # Past the router, which took a third of what HTTP costs a query.
        is_query = scope["type"] == "http" and scope["path"] == "/v1/topk"
        await (top_k if is_query else rest)(scope, receive, send)

    return app


def _everything_else(offer: Offer, metrics: Metrics) -> Starlette:
    """What is the same for everybody, and what is refused."""
    fixed = {"model": offer.model, "candidates": offer.candidates}
    if offer.basis is not None:
        fixed["basis"] = offer.basis
    routes = []
    for name, resource in fixed.items():
        get = _counted(name, _resource(resource), metrics)
        routes += [Route(f"/v1/{name}", get), Route(f"/v1/{name}/{{digest}}", get)]
    routes += [
        Route("/v1/health", _counted("health", _health(offer), metrics)),
        Route("/v1/metrics", _counted("metrics", _metrics(metrics), metrics)),
    ]

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        metrics.count(_endpoint(request.url.path), error.status_code)
        allowed = dict(error.headers or {})
        return _failure(_of_starlette(request, error.status_code, allowed))

    found = Starlette(routes=routes, exception_handlers={HTTPException: refused})
    found.router.redirect_slashes = False  # a redirected query would be sent twice
    return found


class TopK:
    """`POST /v1/topk`, as plain ASGI: it is the only endpoint that is asked often."""

    def __init__(
        self, ranking: Ranking | None, limits: Limits, metrics: Metrics
    ) -> None:
        self.ranking, self.limits, self.metrics = ranking, limits, metrics
        self.batches = None if ranking is None else Batches(ranking.ranker, metrics)
        self.room = IntakeRoom("queries", bytes=limits.bytes, requests=limits.open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever happens, nothing of the query remains."""
        self.metrics.open += 1
        try:
            reply = await self._reply(scope, receive)
        except Failure as error:
            reply = error.reply()
        except Gone:
            return
        except Exception as error:
            # Without its message and traceback, which may hold numbers of the query.
            LOG.error("a query could not be ranked: %s", type(error).__name__)
            reply = _BROKEN.reply()
        finally:
            self.metrics.open -= 1
        self.metrics.count("topk", reply.status)
        await send_reply(send, reply)

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        if scope["method"] != "POST":
            raise _bad_method(scope["method"], "topk", "POST")
        if (ranking := self.ranking) is None or self.batches is None:
            raise Failure(404, "NotFound", _RANKS_NOTHING)
        count = _count(scope["query_string"], ranking.most)
        size, seconds = ranking.query_bytes, self.limits.seconds
        body = IncomingBody(receive, size, seconds=seconds, what=_QUERY)
        with self.room.hold(body):
            message = bytes(await body.read())
            try:
                best = await self.batches.best(message, count)
            except OtherVersion as error:
                raise Failure(409, "OtherVersion", str(error)) from None
            except BadMessage as error:
                raise Failure(400, "BadMessage", str(error)) from None
        if _wants_json(scope):
            return Reply(200, _readable(ranking, best))
        answer = Answer(ranking.version, best.items, best.scores)
        return Reply(200, answer.encode(), BINARY.encode())


@lru_cache(maxsize=64)  # most clients ask for one of a few numbers
def _count(query_string: bytes, most: int) -> int:
    """How many items are asked for; the only parameter there is."""
    if not query_string:
        return min(COUNT, most)
    name, _, value = query_string.partition(b"=")
    if name != b"count" or not value.isdigit() or not 1 <= int(value[:9]) <= most:
        given = query_string[:40].decode("latin-1")
        said = f"?{given} must be ?count=N with N from 1 to {most}"
        raise Failure(400, "BadValue", said)
    return int(value[:9])


def _wants_json(scope: Scope) -> bool:
    return JSON.encode() in (header(scope, b"accept") or b"")


def _readable(ranking: Ranking, best: RankedItems) -> bytes:
    """The answer for people; its length varies with the list."""
    pairs = zip(best.items.tolist(), best.scores.tolist(), strict=True)
    items = [{"id": ranking.ids[place], "score": score} for place, score in pairs]
    document = {"version": ranking.version.hex(), "items": items}
    return msgspec.json.encode(document)


# --- What is the same for everybody --------------------------------------------------

Endpoint = Callable[[Request], Awaitable[Response]]


def _resource(resource: Resource) -> Endpoint:
    tag = f'"{resource.digest}"'

    async def get(request: Request) -> Response:
        asked = request.path_params.get("digest")
        if asked not in (None, resource.digest):
            message = (
                f"no content with digest {str(asked)[:64]} is served; it is "
                f"{resource.digest}: get /v1/model again, which has the digests"
            )
            raise Failure(404, "NotFound", message)
        kept = ASK_AGAIN if asked is None else FOR_EVER
        headers = {"etag": tag, "cache-control": kept}
        if has_tag(request.headers.get("if-none-match", ""), tag):
            return Response(status_code=304, headers=headers)
        return Response(resource.content, media_type=resource.kind, headers=headers)

    return get


def _health(offer: Offer) -> Endpoint:
    version = None if offer.ranking is None else offer.ranking.version.hex()
    state = {"status": "ok", "model": offer.model.digest, "version": version}
    content = msgspec.json.encode(state)

    async def get(_: Request) -> Response:
        headers = {"cache-control": "no-store"}
        return Response(content, media_type=JSON, headers=headers)

    return get


def _metrics(metrics: Metrics) -> Endpoint:
    async def get(_: Request) -> Response:
        kind, headers = "text/plain; version=0.0.4", {"cache-control": "no-store"}
        return Response(metrics.text(), media_type=kind, headers=headers)

    return get


def _counted(name: str, endpoint: Endpoint, metrics: Metrics) -> Endpoint:
    """The endpoint, whose answers are counted and whose refusals are answers."""

    async def counted(request: Request) -> Response:
        try:
            found = await endpoint(request)
        except Failure as error:
            found = _failure(error)
        metrics.count(name, found.status_code)
        return found

    return counted


# --- Refusals -------------------------------------------------------------------------

_RANKS_NOTHING = (
    "this server ranks nothing: its model is served on_device; get /v1/candidates and "
    "rank on the client"
)
_QUERY = "query of the model that GET /v1/model describes"
_BROKEN = Failure(
    500,
    "Broken",
    "the query could not be ranked, which is a bug; nothing of it is kept",
)


def _bad_method(method: str, name: str, allowed: str) -> Failure:
    said = f"{method} is not allowed for /v1/{name}; use {allowed}"
    return Failure(405, "BadMethod", said, allow=allowed)


def _of_starlette(request: Request, status: int, headers: dict[str, str]) -> Failure:
    """What Starlette refuses by itself: unknown paths and other methods."""
    path = request.url.path
    if status == 405:
        return _bad_method(request.method, _endpoint(path), headers.get("Allow", "GET"))
    known = ", ".join(f"/v1/{name}" for name in sorted(_ENDPOINTS))
    said = f"{path[:80]} is not known; there are {known}"
    return Failure(status, _KINDS.get(status, "Refused"), said)


def _endpoint(path: str) -> str:
    """The name under which a request is counted; strangers' paths have one name."""
    name = path.removeprefix("/v1/").partition("/")[0]
    return name if path.startswith("/v1/") and name in _ENDPOINTS else "unknown"


def _failure(error: Failure) -> Response:
    return Response(error.document(), error.status, error.headers, media_type=JSON)
