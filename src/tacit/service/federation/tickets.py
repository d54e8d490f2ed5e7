"""Tickets: 16 random bytes that an operator gave a client, for one report per round.

The leader keeps digests. They are handed out beside a running leader, so the file is
opened here without counting a start of the service.
"""

from __future__ import annotations

import secrets
import sqlite3
from hashlib import sha256
from pathlib import Path

from tacit import check
from tacit.errors import BadRun
from tacit.service.federation.store import FILE_NAME
from tacit.service.http import Failure
from tacit.service.own_trouble import own_trouble
from tacit.storage.sqlite_file import in_one_sentence
from tacit.storage.store import Store, writing_beside

_BYTES = 16


def hand_out(
    folder: Path, count: int, *, file_name: str = FILE_NAME, state: Path | None = None
) -> list[str]:
    """So many new tickets of the leader or relay in this folder, in hexadecimal.

    `state` is the folder of the service's anchors, if it is not this process's.
    """
    check.count(count=count)
    path = folder / file_name
    if not path.exists():
        raise BadRun(f"{folder} has no {file_name}; start the service there once")
    made = [secrets.token_hex(_BYTES) for _ in range(count)]
    with writing_beside(path, state=state) as file:
        rows = ((ticket_digest(one.encode()),) for one in made)
        file.executemany("INSERT INTO tickets VALUES (?)", rows)
    return made


def ticket_digest(ticket: bytes) -> bytes:
    """The digest that is kept of a ticket, which is hexadecimal text of 16 bytes."""
    return sha256(b"tacit/ticket/v1\0" + ticket.lower()).digest()


def is_handed_out(file: sqlite3.Connection, digest: bytes) -> bool:
    """Whether the ticket of this digest was handed out."""
    query = "SELECT 1 FROM tickets WHERE ticket = ?"
    return file.execute(query, (digest,)).fetchone() is not None


class TicketCheck:
    """Refuses a request without a ticket before anything of its body is read.

    It reads beside the thread that writes. Whether the ticket was used by another
    report is decided with the report, in that thread.
    """

    def __init__(self, store: Store, refusal: Failure, *, is_needed: bool) -> None:
        self._store, self._refusal, self._is_needed = store, refusal, is_needed
        self._file: sqlite3.Connection | None = None

    def check(self, ticket: bytes) -> bool:
        """Whether tickets are needed; refuses one that was not handed out."""
        if not self._is_needed:
            return False
        with own_trouble(), in_one_sentence(self._store.path):
            if self._file is None:
                self._file = self._store.reading()
            if not is_handed_out(self._file, ticket_digest(ticket)):
                raise self._refusal
        return True
