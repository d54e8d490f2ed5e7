"""The client's side of a private query: one release per refresh period, and its ledger.

    client = ServingClient(path, model, refresh=timedelta(days=1), releases=365)
    said = client.query(lambda: user_vector)     # Query, or why there is none
    served = serve(recommender, history, k, client=client, ask=ask)

A query is made once per refresh period and reused freely until the next one begins: the
same bytes tell nothing new. A fresh one is

0  asked of the ledger, which refuses before a cap would be passed;
1  charged, on the disk, before the history is touched;
2  made from the history with noise from the operating system; if that fails, or a crash
   cut it short, from the public mean instead: silence would tell something too;
3  kept on the disk before it leaves. A retry sends the same bytes.

Where the ledger refuses, or the query of the period is for an earlier model, nothing is
sent: the client ranks by itself and says why. Neither depends on the history.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
from jaxtyping import Float

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.ledger.durable import ClientLedger, question_digest
from tacit.ledger.records import Answer, Refusal
from tacit.ledger.terms import agreed_terms
from tacit.serving.query import Query
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_account import serving_terms

Vector = Float[np.ndarray, "factors"]

_FAILURES = 16  # the last ones, for the owner; errors must not fill the memory


@dataclass(frozen=True)
class Unasked:
    """The reason why no query leaves, so that the client ranks by itself."""

    reason: str


class ServingClient:
    """The program that asks for one user's lists; it never asks for more than agreed.

    `releases` is how many fresh queries the user agrees to under this mechanism, and
    `refresh` how long each is used. `run` names the agreement in the ledger. `now` is
    the time in seconds; a clock that is put back gets the old query again.
    """

    def __init__(
        self,
        path: Path,
        model: ServedModel,
        *,
        refresh: timedelta = timedelta(days=1),
        releases: int = 365,
        run: str = "serving",
        now: Callable[[], float] = time.time,
    ) -> None:
        check.count(releases=releases)
        if refresh <= timedelta(0):
            raise BadValue(f"refresh={refresh} must be longer than 0")
        self.model, self.refresh, self.run, self._now = model, refresh, run, now
        self.terms = serving_terms(model.mechanism, releases)
        # For the owner, as texts: an exception holds on to the history.
        self.failures: deque[str] = deque(maxlen=_FAILURES)
        self.ledger = ClientLedger(path)
        try:
            self._join()
        except BaseException:
            self.close()
            raise

    def query(self, user: Callable[[], Vector]) -> Query | Unasked:
        """The query of this period; `user` is called only if a fresh one is made."""
        number, found = self._charge()
        if isinstance(found, Unasked):
            return found
        if found is not None and found.report is not None:
            return self._of_this_model(found.report)
        # Made first and always, so that the answer to a failure takes no longer.
        nothing = self._encoded(self.model.mechanism.nobody)
        # Charged by a process that died: the history may have been read for it.
        said = self._own(user) if found is None else None
        kept = self.ledger.keep(self.run, number, report=said or nothing)
        if kept is None:
            return Unasked(str(Refusal.LEFT))
        return self._of_this_model(kept)

    def delivered(self, query: Query) -> None:
        """Note in the ledger that the query has reached the server."""
        message = query.encode()
        with self.ledger.transaction():
            for number in range(self._made()):
                said = self.ledger.answer(self.run, number)
                if said is not None and said.report == message and said.sent is None:
                    self.ledger.delivered(self.run, number)

    def close(self) -> None:
        """Close the file of the ledger."""
        self.ledger.close()

    def __enter__(self) -> ServingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _join(self) -> None:
        with self.ledger.transaction():
            if self.ledger.doubt is not None:
                return
            before = self.ledger.joined(self.run)
            if before is None:
                self.ledger.join(self.run, self.terms, state=b"")
            elif agreed_terms(before.terms) != agreed_terms(self.terms):
                raise Refused(
                    f"'{self.run}' was agreed to under other terms: another mechanism "
                    "or number of queries needs another name, and counts beside it"
                )

    def _charge(self) -> tuple[int, Answer | Unasked | None]:
        """The number of this period's query, and what the ledger has of it.

        None: it was charged just now, and is to be made.
        """
        asked = self._period()
        with self.ledger.transaction():
            if self.ledger.doubt is not None:
                self.ledger.refuse(self.run, Refusal.DOUBT)
                return 0, Unasked(str(Refusal.DOUBT))
            made = self._made()
            for number in reversed(range(made)):
                said = self.ledger.answer(self.run, number)
                if said is not None and said.asked == question_digest(asked):
                    return number, said
            if self.ledger.permits(self.run, made, asked=asked):
                return made, None
            return made, Unasked(self._last_refusal())

    def _made(self) -> int:
        """How many queries were charged so far; they are numbered from 0."""
        number = 0
        while self.ledger.answer(self.run, number) is not None:
            number += 1
        return number

    def _period(self) -> bytes:
        """The refresh period of this moment; all clients' begin at the same time."""
        seconds = self.refresh.total_seconds()
        return f"{seconds:g} s, period {int(self._now() // seconds)}".encode()

    def _last_refusal(self) -> str:
        own = [
            why
            for run, why, _, _ in self.ledger.explained_refusals()
            if run == self.run
        ]
        return own[-1]

    def _own(self, user: Callable[[], Vector]) -> bytes | None:
        """The query from the history; None if that fails."""
        try:
            return self._encoded(user())
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            return None

    def _encoded(self, user: Vector) -> bytes:
        [query] = self.model.release(user[None], Key.from_os().alone())
        return query.encode()

    def _of_this_model(self, message: bytes) -> Query | Unasked:
        query = Query.decode(message)
        if query.version == self.model.version:
            return query
        return Unasked(
            "the query of this period is for an earlier model, and a second one would "
            "be a second release"
        )
