"""What only the owner of a ledger decides: to go on from one in doubt, or to end it.

Accepting closes every run: none of them is answered again, because nobody knows which
of their rounds were answered after the copy was made. For the same reason each counts
as if the client had taken part as often as was agreed. The terms and the caps are those
of the anchor, where there is one: it knows what was agreed, whatever the file says.

Without an anchor nothing shows that the file is whole, and the figures rest on the word
of the owner, which stands in them as an assumption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import BadData, Refused
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Doubt
from tacit.ledger.rows import TABLES, Row, Rows
from tacit.ledger.schema import (
    KIND,
    NAMES,
    NO_FILE,
    begin_chain,
    connect,
    finish_chain,
    in_one_sentence,
    make,
)
from tacit.ledger.snapshot import Snapshot, take
from tacit.ledger.terms import read_terms
from tacit.storage import anchor as anchors
from tacit.storage.anchor import Anchor
from tacit.storage.sqlite_file import SqliteFile, is_gone

GONE = "it is gone or empty"


@dataclass(frozen=True)
class Accepted:
    """Why a ledger was in doubt, and which runs were closed."""

    doubt: str
    closed: tuple[str, ...]
    is_as_written: bool


def accept(path: Path, *, as_written: bool = False) -> Accepted:
    """Go on from a ledger in doubt, with a new chain; all its runs are closed.

    `as_written` is the word of the owner that nothing else was said: the rounds are
    counted that stand in the file. It is refused where the anchor shows otherwise.
    """
    if is_gone(path):
        return _begin_anew(path, as_written=as_written)
    with in_one_sentence(path):
        file = connect(path, create=False)
        try:
            found = _rebuild(file, as_written=as_written)
            file.connection.execute(
                "VACUUM"
            )  # the keys of older formats are in no page any more
            return found
        finally:
            file.close()


def erase(path: Path, *, keep_ledger: bool = False) -> int:
    """Erases a ledger or its private rows, and counts the reports never sent.

    Where the account is not kept, the file and its anchor go too.
    """
    was_here = anchors.at_place(KIND, path)[:1]  # the newest
    if is_gone(path) and was_here:
        path.unlink(missing_ok=True)
        was_here[0].drop()
        return 0
    with ClientLedger(path, create=False) as ledger:
        unsent, link = ledger.waiting(), ledger.link
        ledger.forget(keep_ledger=keep_ledger)
    if not keep_ledger:
        path.unlink()
        for id_ in {one.id for one in (link, *was_here) if one is not None}:
            anchors.drop(KIND, id_)
    return unsent


def _begin_anew(path: Path, *, as_written: bool) -> Accepted:
    """An empty ledger in which every run of the lost one counts in full."""
    evidence = anchors.at_place(KIND, path)[:1]
    if not evidence:
        raise BadData(path, None, NO_FILE)
    _check_no_evidence(path, evidence, GONE, as_written=as_written)
    rows = _accepted({one.name: {} for one in TABLES}, evidence, path=path)
    with in_one_sentence(path):
        file = SqliteFile(path)
        try:
            make(file, rows)
        finally:
            file.close()
    evidence[0].drop()
    return Accepted(GONE, _names(rows), is_as_written=False)


def _rebuild(file: SqliteFile, *, as_written: bool) -> Accepted:
    """The same file with new tables, in one transaction."""
    path = file.path
    with file.transaction("EXCLUSIVE") as connection:
        now = take(file)
        if now.doubt is None:
            raise Refused(f"{path} is the last one that was written: nothing to decide")
        evidence = _evidence(now, path)
        _check_no_evidence(path, evidence, now.doubt, as_written=as_written)
        rows = _accepted(now.rows, evidence, path=path, as_written=as_written)
        query = "SELECT run, reason, times, last FROM refusals"
        refused = connection.execute(query).fetchall()
        for name in NAMES:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        # Before the commit: a copy of the old file is in doubt from now on.
        fresh = begin_chain(connection, path, rows)
        connection.executemany("INSERT INTO refusals VALUES (?, ?, ?, ?)", refused)
    finish_chain(fresh, path)
    for id_ in _earlier(now, evidence):  # other copies have none from now on
        anchors.drop(KIND, id_)
    return Accepted(now.doubt, _names(rows), as_written)


def _evidence(now: Snapshot, path: Path) -> tuple[Anchor, ...]:
    """What this machine knows of the file, and of one that was here before it."""
    if now.anchor is not None:
        return (now.anchor, *anchors.others_at(path, now.anchor))
    return anchors.at_place(KIND, path)[:1]


def _check_no_evidence(
    path: Path, evidence: tuple[Anchor, ...], doubt: str, *, as_written: bool
) -> None:
    if as_written and doubt == Doubt.BAD_ANCHOR:
        raise Refused(
            f"{path}: {doubt}, and it may know of more than stands there; accept the "
            "ledger without --as-written"
        )
    if as_written and evidence:
        raise Refused(
            f"{path}: this machine knows that more was written than stands there "
            f"({doubt}); accept it without --as-written"
        )


def _accepted(
    rows: Rows, evidence: tuple[Anchor, ...], *, path: Path, as_written: bool = False
) -> Rows:
    """The rows to go on with: all runs closed, and counted in full or as written.

    Refuses terms that cannot be read: nobody could count them.
    """
    agreed, caps = _agreed(evidence), _caps(evidence) if evidence else rows["caps"]
    # In full unless the owner vouches: rounds after the copy are not in the file.
    counted = "rounds" if as_written else "all"
    joined = rows["runs"].items()
    runs = {key: _closed(key, row, agreed, counted) for key, row in joined}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for run, (text, assumes) in agreed.items():  # those that the file does not have
        runs.setdefault((run,), (now, text, None, counted, assumes))
    releases = {
        run: {n for one in read_terms(row[1], file=path).releases for n in one.names}
        for (run,), row in runs.items()
    }
    entries = {
        (run, round_, what): row
        for (run, round_, what), row in rows["entries"].items()
        if what in releases[run]
    }
    return {"runs": runs, "answers": _silent(rows), "entries": entries, "caps": caps}


def _agreed(evidence: tuple[Anchor, ...]) -> dict[str, Sequence[str | None]]:
    """Every run that an anchor knows; of two with one name both are counted."""
    found: dict[str, Sequence[str | None]] = {}
    for number, anchor in enumerate(evidence, start=1):
        for run, terms in _notes(anchor)["runs"].items():
            name = run if run not in found else f"{run} (ledger {number})"
            found[name] = terms
    return found


def _caps(evidence: tuple[Anchor, ...]) -> dict[Row, Row]:
    """The caps of all of them; of two for one unit and view the smaller epsilon."""
    found: dict[Row, Row] = {}
    for cap in sorted(tuple(c) for one in evidence for c in _notes(one)["caps"]):
        found.setdefault(cap[:2], cap[2:])
    return found


def _notes(anchor: Anchor) -> Mapping[str, Any]:
    """The last state that an anchor is sure of; of a file that was never made, none."""
    return anchor.current.notes if anchor.current else {"runs": {}, "caps": ()}


def _closed(
    key: Row, row: Row, agreed: Mapping[str, Sequence[str | None]], counted: str
) -> Row:
    """A run that is not answered again, under the terms that the anchor knows."""
    joined, text, *_ = row
    if key[0] in agreed:
        known, assumes = agreed[key[0]]
        return (joined, known, None, counted, assumes)
    what = "nothing else was said" if counted == "rounds" else "no other run was joined"
    today = datetime.now(UTC).date().isoformat()
    word = f"the owner's word of {today} that the file is whole and {what}"
    return (joined, text, None, counted, word)


def _silent(rows: Rows) -> dict[Row, Row]:
    """The answers without their reports: what was not sent never leaves."""
    found = rows["answers"].items()
    return {key: (asked, None, sent, z) for key, (asked, _, sent, z) in found}


def _names(rows: Rows) -> tuple[str, ...]:
    return tuple(run for (run,) in rows["runs"])


def _earlier(now: Snapshot, evidence: tuple[Anchor, ...]) -> set[str]:
    """The ids of the anchors that the new one replaces."""
    own = set() if now.link is None else {now.link.id}
    return own | {anchor.id for anchor in evidence}
