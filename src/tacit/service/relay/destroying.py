"""How a relay's operator ends a round: the running relay is asked to destroy it.

The file of a relay belongs to the process that has opened it, so it is only read here,
to find the round; the relay does the rest.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tacit.errors import BadRun, BadValue, Unanswered
from tacit.service.federation.settings import read_secret
from tacit.service.relay.relay_client import RelayClient
from tacit.service.relay.relay_store import FILE_NAME, EpochRow
from tacit.service.relay.settings import RelaySettings
from tacit.storage.sqlite_file import in_one_sentence
from tacit.text import nth_round

_LEAST_DIGITS = 4  # of a run's name


def destroy(settings: RelaySettings, run: str, number: int) -> str:
    """Have the running relay destroy a round; its state afterwards."""
    epoch = _found(settings, run.lower(), number)
    client = RelayClient(
        "relay", f"http://{settings.private}", read_secret(settings.pair_secret)
    )
    try:
        client.void(epoch)
        return client.epoch(epoch).state
    except Unanswered as error:
        raise Unanswered(f"{error}; start it: only a running relay destroys") from error
    finally:
        client.close_connection()


def _found(settings: RelaySettings, run: str, number: int) -> bytes:
    path = settings.folder / FILE_NAME
    if not path.exists():
        raise BadRun(f"{settings.folder} has no {FILE_NAME}; is it a relay's folder?")
    uri = f"file:{path}?mode=ro"
    with in_one_sentence(path), closing(sqlite3.connect(uri, uri=True)) as file:
        rows = [EpochRow(*row) for row in file.execute("SELECT * FROM epochs")]
    known = [row for row in rows if row.number == number]
    named = [row for row in known if row.run.hex().startswith(run)]
    if len(run) < _LEAST_DIGITS or len(named) != 1:
        runs = ", ".join(sorted(row.run.hex()[:8] for row in known)) or "none"
        raise BadValue(
            f"run={run!r} must name one run with a {nth_round(number)} by "
            f"{_LEAST_DIGITS} digits or more; there are: {runs}"
        )
    return named[0].id
