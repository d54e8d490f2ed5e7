"""Leaving a run: history, keys, ticket and unsent reports go, whatever else is broken.

Somebody who wants out must get out, also after a crash, with a ledger that is lost or
in doubt, and with files that cannot be read. What could not be done is said, and so is
what nobody can do: reports that were sent stay in what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tacit.errors import TacitError
from tacit.ledger.durable import ClientLedger
from tacit.runtime.ledger import statements
from tacit.service.federation.client_folder import ClientFolder
from tacit.statement import Statement

T = TypeVar("T")
_UNREADABLE = (TacitError, OSError, ValueError, LookupError, TypeError)


@dataclass
class Left:
    """What was erased, and what the releases so far still hold.

    None stands for what could not be found out; `problems` says why.
    """

    ledger: Path
    n_items: int | None = None
    never_sent: int | None = None
    rounds: int | None = None  # that were answered
    spent: tuple[Statement, ...] = ()
    problems: list[str] = field(default_factory=list)


def leave(folder: str | Path) -> Left:
    """Erase a client's history, keys, ticket and what was not sent.

    The account stays in the ledger, and the run is not answered again, also not after
    joining it anew with the same ledger. What was sent cannot be called back.
    """
    place = ClientFolder(Path(folder))
    place.refuse_without_files()
    with place.alone():
        left = Left(place.default_ledger)
        found = _tried("the history", place.history, left)
        left.n_items = None if found is None else len(found.items)
        run = _run(place, left)
        _leave_ledger(run, left, is_own=left.ledger == place.default_ledger.absolute())
        place.clear()
    return left


def _run(place: ClientFolder, left: Left) -> str | None:
    """The name of the run; the ledger is the one that it was joined with."""
    membership = _tried("what was kept of the run", place.membership, left)
    if membership is None:
        left.ledger = place.default_ledger.absolute()
        return None
    left.ledger = membership.ledger
    found = _tried(
        "the invitation", lambda: place.invitation(membership.invitation), left
    )
    return None if found is None else found.run.hex()


def _leave_ledger(run: str | None, left: Left, *, is_own: bool) -> None:
    """Erase state and reports in the ledger, also in one that is in doubt."""
    path = left.ledger
    try:
        with ClientLedger(path, create=False) as ledger:
            if run is None and not is_own:
                left.problems.append(
                    f"which run it was could not be read, so {path} is as it was; "
                    f"erase its reports with: tacit ledger forget --keep-ledger {path}"
                )
                return
            # Nobody else uses the ledger in the client's own folder.
            runs = [*ledger.runs()] if run is None else [run]
            answered = {(one.run, one.round) for one in ledger.entries()}
            left.never_sent = sum(ledger.leave(one) for one in runs)
            if ledger.doubt is None:
                left.rounds = sum(one in runs for one, _ in answered)
            else:
                left.problems.append(
                    f"{path} is in doubt: {ledger.doubt}; it may have less than was "
                    "sent, and stays in doubt"
                )
            left.spent = statements(ledger)
    except _UNREADABLE as error:
        left.problems.append(
            f"the ledger could not be read or written: {error}. If the file is still "
            "there, it may hold reports that were not sent, and no program sends them "
            f"any more; erase them with: tacit ledger forget {path}"
        )


def _tried(what: str, read: Callable[[], T], left: Left) -> T | None:
    try:
        return read()
    except _UNREADABLE as error:
        left.problems.append(f"{what} could not be read, and is erased: {error}")
        return None
