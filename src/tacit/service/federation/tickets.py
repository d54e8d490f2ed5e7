"""Tickets: 16 random bytes that an operator gave a client, for one report per round.

The leader keeps digests. They are handed out beside a running leader, so the file is
opened here without counting a start of the service.
"""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from tacit import check
from tacit.errors import BadRun
from tacit.service.database import told
from tacit.service.federation.aggregator import ticket_digest
from tacit.service.federation.store import FILE_NAME

_BYTES = 16
_PATIENCE = 30  # seconds to wait for the leader, which may write just now


def hand_out(folder: Path, count: int, *, file_name: str = FILE_NAME) -> list[str]:
    """So many new tickets of the leader or relay in this folder, in hexadecimal."""
    check.count(count=count)
    path = folder / file_name
    if not path.exists():
        raise BadRun(f"{folder} has no {file_name}; start the service there once")
    made = [secrets.token_hex(_BYTES) for _ in range(count)]
    with told(path), closing(sqlite3.connect(path, timeout=_PATIENCE)) as file, file:
        file.execute("PRAGMA synchronous = FULL")
        rows = ((ticket_digest(one.encode()),) for one in made)
        file.executemany("INSERT INTO tickets VALUES (?)", rows)
    return made
