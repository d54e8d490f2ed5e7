"""The client's side: fetches a model, checks it, and ranks or asks with its query.

    with Connection("http://127.0.0.1:8000", folder) as server:
        server.recommend(["item-1"], 10)                            # nothing is sent
        server.recommend(["item-1"], 10, ledger=path, epsilon=2.0)  # a private query

Public content is fetched once, compared with its digest and kept in `folder`; the files
that a model needs are those of a run directory. A query is made at most once per
refresh period, entered in the ledger before it leaves (`serving.serving_client`), and
sent again byte for byte where the server gave no answer.

What the client does not take from the server: how much a query may cost. It reckons the
cost of the mechanism that it was sent, and refuses one above `epsilon`.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from tacit import check
from tacit.errors import (
    BadMessage,
    BadValue,
    MissingExtra,
    OtherVersion,
    Refused,
    Unanswered,
)
from tacit.experiment.saved_run import load
from tacit.files import make_folders, write_atomically
from tacit.method import ListFor
from tacit.release import Unit, View
from tacit.runtime.run import RunDirectory
from tacit.service.urls import public_url
from tacit.serving.query import Query
from tacit.serving.query_mechanism import QueryMechanism
from tacit.serving.queryable import space_of
from tacit.serving.recommender import Holding, Recommender
from tacit.serving.serve import OVERFETCH, Served, serve
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_account import outlook, run_name
from tacit.serving.serving_client import ServingClient
from tacit.serving.topk import Best
from tacit.serving.trained_basis import basis_size

try:
    import httpx

    from tacit.service.answer import Answer
    from tacit.service.basis import read_basis
    from tacit.service.connections import HEADERS, may_use_proxy, no_cookies
    from tacit.service.model_document import Content, ModelDocument
except ImportError as error:
    raise MissingExtra("httpx or msgspec", "serve") from error

MOST_BYTES = 1 << 31  # of public content
_MOST_DOCUMENT = 1 << 24  # bytes of a model's document or of an error
_AGAIN = (408, 429, 503)  # statuses after which the same bytes are sent again
_LONGEST_WAIT = 30.0  # seconds, whatever Retry-After says
_SENT_NOTHING = "nothing was sent: no ledger was given"


@dataclass(frozen=True, eq=False)
class FetchedModel(ServedModel):
    """A served model with the version that its server gave it.

    The version tells the server's models apart. It is not computed again: item vectors
    that are computed on another processor may differ in their last bits.
    """

    told: bytes

    @property
    def version(self) -> bytes:
        """The version that queries for this server carry."""
        return self.told


class Connection:
    """A server, the public files that came from it, and a way to ask it.

    `expected` is the SHA-256 of the candidates, if their digest is known from
    elsewhere, such as the page on which the model was released: then no server can hand
    this client another model. `tries` is how often a query is sent in all.
    """

    def __init__(
        self,
        url: str,
        folder: str | Path,
        *,
        expected: str | None = None,
        tries: int = 3,
        seconds: float = 10.0,
    ) -> None:
        check.count(tries=tries)
        check.positive(seconds=seconds)
        self.url, self.folder, self.expected = public_url(url), Path(folder), expected
        self.tries = tries
        self._http = httpx.Client(
            base_url=self.url,
            timeout=seconds,
            headers=HEADERS,
            cookies=no_cookies(),
            trust_env=may_use_proxy(self.url),
        )

    def close(self) -> None:
        """Close the connection to the server."""
        self._http.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # public content

    @cached_property
    def document(self) -> ModelDocument:
        """What the server says of its model, as it was when first asked."""
        text = self._got("/v1/model", most=_MOST_DOCUMENT)
        found = ModelDocument.decode(text)
        if self.expected not in (None, found.candidates.sha256):
            raise Refused(
                f"{self.url} serves candidates with digest {found.candidates.sha256}, "
                f"and {self.expected} is expected; it is another model"
            )
        return found

    @cached_property
    def recommender(self) -> Recommender:
        """The model, fetched once and compared with its digest; it ranks here."""
        document = self.document
        folder = self.folder / document.candidates.sha256[:32]
        directory = RunDirectory(folder)
        self._fetch(document.candidates, directory.model)
        text = json.dumps(document.model, indent=2, ensure_ascii=False) + "\n"
        write_atomically(directory.model_facts, text.encode())
        return load(folder)

    @cached_property
    def served_model(self) -> FetchedModel:
        """The mechanism of queries and the items that the server ranks."""
        queries = self.document.queries
        if queries is None:
            raise Refused(
                f"{self.url} ranks nothing: its model is served on_device; leave the "
                "ledger out and rank on the client"
            )
        path = self.folder / f"basis-{queries.basis.sha256[:32]}.safetensors"
        self._fetch(queries.basis, path)
        mechanism, space = read_basis(path), space_of(self.recommender)
        found = FetchedModel(space, mechanism, bytes.fromhex(queries.version))
        if (found.mechanism.mode, found.query_bytes) != (queries.mode, queries.bytes):
            raise BadMessage(f"{self.url} describes other queries than its basis makes")
        if mechanism.nobody.shape != space.vectors.shape[1:]:
            raise BadMessage(f"{self.url} has a basis for other items than it serves")
        if mechanism.has_trained_basis and not basis_size(self.recommender.method):
            name = type(self.recommender.method).__name__
            raise BadMessage(f"{self.url} has a basis that {name} did not train")
        return found

    # lists

    def recommend(
        self,
        history: Sequence[str] | Holding,
        k: int = 10,
        *,
        ledger: str | Path | None = None,
        epsilon: float | None = None,
        refresh: timedelta = timedelta(days=1),
        releases: int = 365,
        overfetch: int = OVERFETCH,
        list_for: ListFor = "any",
    ) -> Served:
        """The best `k` items; without a ledger they are ranked here.

        With one, a query is sent that may cost `epsilon` at the most for a whole user,
        and a fresh one at most `releases` times, once per `refresh`. `Served` says who
        ranked, and why it was the client where it had to be.

        What the list is for decides what the query is made of, here; nobody is told.
        """
        recommender = self.recommender.ranking_for(list_for)
        if ledger is None:
            items = recommender.recommend(history, k)
            return Served(items, "client", _SENT_NOTHING)
        if epsilon is None:
            raise BadValue("a query needs epsilon: what one may cost at the most")
        model = self.served_model
        refuse_dearer(model.mechanism, epsilon)
        run = run_name(model.mechanism)
        with ServingClient(
            Path(ledger), model, refresh=refresh, releases=releases, run=run
        ) as client:
            return serve(
                recommender,
                history,
                k,
                client=client,
                ask=self.ask,
                overfetch=overfetch,
            )

    def ask(self, query: Query, count: int) -> Best:
        """The server's list for a query; the same bytes are sent until it answers."""
        path, message = f"/v1/topk?count={count}", query.encode()
        for _ in range(self.tries - 1):
            with contextlib.suppress(httpx.TransportError):
                found = self._http.post(path, content=message)
                if found.status_code not in _AGAIN:
                    return self._best(found, query)
                time.sleep(_wait(found.headers.get("retry-after", "")))
        with self._reached():
            return self._best(self._http.post(path, content=message), query)

    def _best(self, found: httpx.Response, query: Query) -> Best:
        if found.status_code == 409:
            raise OtherVersion(_said(found))
        if found.status_code != 200:
            raise Unanswered(f"{self.url}: {found.status_code}, {_said(found)}")
        n_items = len(self.recommender.catalog)
        answer = Answer.decode(found.content, n_items=n_items)
        if answer.version != query.version:
            raise BadMessage("an answer of another model than the query's")
        return Best(answer.items, answer.scores)

    # details

    def _fetch(self, content: Content, path: Path) -> None:
        """The content in this file, fetched unless the file has it already."""
        if path.exists() and sha256(path.read_bytes()).hexdigest() == content.sha256:
            return
        if content.bytes > MOST_BYTES:
            raise BadMessage(f"{content.bytes} bytes of content; at most {MOST_BYTES}")
        found = self._got(content.path, most=content.bytes)
        if sha256(found).hexdigest() != content.sha256:
            raise BadMessage(
                f"{self.url}{content.path} has not the digest {content.sha256} that "
                "/v1/model tells; it was damaged on the way, or exchanged"
            )
        make_folders(path.parent)
        write_atomically(path, found)

    def _got(self, path: str, *, most: int) -> bytes:
        """The body of a GET, of at most so many bytes."""
        with self._reached(), self._http.stream("GET", path) as found:
            body = bytearray()
            limit = most if found.status_code == 200 else _MOST_DOCUMENT
            for piece in found.iter_bytes():
                body += piece
                if len(body) > limit:
                    raise BadMessage(
                        f"{self.url}{path} has more than the {limit} bytes agreed"
                    )
        if found.status_code != 200:
            raise Unanswered(f"{self.url}{path}: status {found.status_code}")
        return bytes(body)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """Turns errors of the network into one that names the server."""
        try:
            yield
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise Unanswered(
                f"{self.url} cannot be reached: {why}; does `tacit serve "
                "recommendations` run there?"
            ) from error


def refuse_dearer(mechanism: QueryMechanism, epsilon: float) -> None:
    """Refuse a mechanism whose query costs a user more than this."""
    check.positive(epsilon=epsilon)
    for line in outlook(mechanism, horizons=(1,)):
        if (line.unit, line.view) != (Unit.USER, View.SERVER):
            continue
        if line.epsilon is None or line.epsilon > epsilon * (1 + 1e-9):
            raise Refused(
                f"one query would cost epsilon {line.epsilon}, and {epsilon} is "
                "allowed; ask a server with another mechanism, or rank on the client"
            )


def _wait(retry_after: str) -> float:
    """Seconds to wait: as told, and up to twice that, so that not all come at once."""
    told = float(retry_after) if retry_after.isdigit() else 1.0
    return min(told * random.uniform(1, 2), _LONGEST_WAIT)


def _said(found: httpx.Response) -> str:
    """The message of an error."""
    try:
        return str(found.json()["error"]["message"])[:500]
    except (ValueError, LookupError, TypeError):
        return "without a message"
