"""The durable form: one device's ledger, in one file that its owner can read.

    with ledger.transaction():
        if ledger.permits(run, round, asked=question):    # writes the entries
            report, state = ...                           # the device computes
            ledger.keep(run, round, report=report, state=state)
    # only now may the report be sent
    ledger.delivered(run, round)

Entries, report and the device's next state are on the disk together or not at all.
Killed before the commit, nothing was said; killed after it, a retry finds the bytes
that were meant to be sent and sends those.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import Refused
from tacit.ledger.budget import Cap, Spent, fits, spent
from tacit.ledger.records import Answer, Entry, Joined, Refusal
from tacit.ledger.schema import connect
from tacit.ledger.terms import Terms, read_terms, write_terms
from tacit.release import CellName, Release, cell_name

_TOO_LARGE = 2**63  # a round that SQLite cannot write; no plan goes so far


class DeviceLedger:
    """What one device has said and may still say. One process at a time writes."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._file = connect(path, create=create)
        self._terms: dict[str, Terms] = {}

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> DeviceLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what happens inside, or nothing; other processes wait."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            if self._file.in_transaction:  # SQLite ends it by itself on a full disk
                self._file.execute("ROLLBACK")
            raise

    # runs

    def join(self, run: str, terms: Terms, *, key: bytes, state: bytes) -> None:
        """Agree to a run, once; `key` comes from the operating system."""
        row = (run, _now(), write_terms(terms), key, state)
        self._file.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", row)

    def joined(self, run: str) -> Joined | None:
        """What was agreed, if the device ever joined this run."""
        row = self._one("SELECT terms, key, state FROM runs WHERE run = ?", run)
        if row is None:
            return None
        return Joined(read_terms(row[0], file=self.path), row[1], row[2])

    def runs(self) -> dict[str, Terms]:
        """Every run that was joined, the oldest first."""
        rows = self._file.execute("SELECT run FROM runs ORDER BY joined, rowid")
        return {run: self._terms_of(run) for (run,) in rows.fetchall()}

    # rounds

    def permits(
        self,
        run: str,
        round: int,
        *,
        asked: bytes,
        multiplier: float | None = None,
        target: Sequence[Cap] = (),
    ) -> bool:
        """Whether the device may answer; if so it is charged, if not the no is noted.

        Call it inside a transaction, for a round without an answer: an answered one is
        not asked again but looked up. `multiplier` is the noise of the round where a
        method chooses it as it goes. `target` holds for this run by itself, the caps
        of the owner for all of them together.
        """
        why = self._refusal(run, round, multiplier, target)
        if why is not None:
            self.refuse(run, why)
            return False
        self._file.execute(
            "INSERT INTO answers VALUES (?, ?, ?, NULL, NULL, ?)",
            (run, round, question_digest(asked), multiplier),
        )
        self._file.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?)",
            [
                (run, round, release.what, _now())
                for release in self._terms_of(run).releases
                if release.is_made_in(round)
            ],
        )
        return True

    def keep(self, run: str, round: int, *, report: bytes, state: bytes) -> None:
        """The bytes of the answer and the device's next state."""
        self._file.execute(
            "UPDATE answers SET report = ? WHERE run = ? AND round = ?",
            (report, run, round),
        )
        self._file.execute("UPDATE runs SET state = ? WHERE run = ?", (state, run))

    def answer(self, run: str, round: int) -> Answer | None:
        """What was said in this round, if something was."""
        query = "SELECT * FROM answers WHERE run = ? AND round = ?"
        row = self._one(query, run, round) if round < _TOO_LARGE else None
        return None if row is None else Answer(*row)

    def pending(self) -> list[Answer]:
        """What is written down and not known to have arrived: send it again."""
        rows = self._file.execute(
            "SELECT * FROM answers WHERE sent IS NULL AND report IS NOT NULL"
        )
        return [Answer(*row) for row in rows.fetchall()]

    def delivered(self, run: str, round: int) -> None:
        """The report has arrived."""
        changed = self._file.execute(
            "UPDATE answers SET sent = coalesce(sent, ?) WHERE run = ? AND round = ?",
            (_now(), run, round),
        )
        if not changed.rowcount:
            raise Refused(f"nothing was said in round {round} of {run}")

    def refuse(self, run: str, why: Refusal) -> None:
        """Count a no; a row a reason, so that nobody can fill the disk."""
        self._file.execute(
            "INSERT INTO refusals VALUES (?, ?, 1, ?) ON CONFLICT (run, reason) "
            "DO UPDATE SET times = times + 1, last = excluded.last",
            (run, str(why), _now()),
        )

    # account

    def entries(self) -> list[Entry]:
        """Every release, the oldest first."""
        rows = self._file.execute(
            "SELECT at, run, round, release, sent FROM entries JOIN answers "
            "USING (run, round) ORDER BY at, entries.rowid"
        )
        return [
            Entry(at, run, round_, self._release(run, what), sent)
            for at, run, round_, what, sent in rows.fetchall()
        ]

    def taken(self) -> list[tuple[Terms, list[int]]]:
        """Each run and the rounds of it in which the device took part."""
        rows = self._file.execute("SELECT run, round FROM answers ORDER BY run, round")
        rounds: dict[str, list[int]] = {}
        for run, round_ in rows.fetchall():
            rounds.setdefault(run, []).append(round_)
        return [(self._terms_of(run), mine) for run, mine in rounds.items()]

    def spent(self, name: CellName, *, delta: float) -> Spent:
        """What all of it amounts to for one unit and view."""
        return spent(self.taken(), name, delta=delta)

    def refusals(self) -> list[tuple[str, str, int, str]]:
        """Run, reason, how often, and when last."""
        return self._file.execute("SELECT * FROM refusals ORDER BY last").fetchall()

    def caps(self) -> list[Cap]:
        """What the owner allows."""
        query = "SELECT epsilon, delta, unit, view FROM caps ORDER BY unit, view"
        rows = self._file.execute(query).fetchall()
        return [Cap(e, d, *cell_name(unit, view)) for e, d, unit, view in rows]

    def set_cap(self, cap: Cap) -> None:
        """Allow so much from now on; what was said before counts towards it."""
        row = (str(cap.unit), str(cap.view), cap.epsilon, cap.delta)
        self._file.execute("INSERT OR REPLACE INTO caps VALUES (?, ?, ?, ?)", row)

    def remove_cap(self, name: CellName) -> bool:
        """Allow anything again; whether there was a cap."""
        query = "DELETE FROM caps WHERE unit = ? AND view = ?"
        return bool(self._file.execute(query, [*map(str, name)]).rowcount)

    # deletion

    def forget(self, *, keep_ledger: bool) -> None:
        """Erase keys, private state and reports; the account too, unless it is kept.

        What was not sent never leaves. A forgotten run is not answered again: fresh
        randomness for a round that was answered would say a second thing.
        """
        with self.transaction():
            if keep_ledger:
                self._file.execute("UPDATE runs SET key = NULL, state = NULL")
                self._file.execute("UPDATE answers SET report = NULL")
            else:
                for table in ("entries", "answers", "runs", "caps", "refusals"):
                    self._file.execute(f"DELETE FROM {table}")
                self._terms.clear()
        self._file.execute("VACUUM")

    # details

    def _refusal(
        self, run: str, round: int, multiplier: float | None, target: Sequence[Cap]
    ) -> Refusal | None:
        row = self._one("SELECT key IS NULL FROM runs WHERE run = ?", run)
        if row is None:
            raise Refused(f"{self.path}: run '{run}' was never joined")
        if row[0]:
            return Refusal.LEFT
        terms = self._terms_of(run)
        if not 0 <= round < terms.rounds:
            return Refusal.TOO_LATE
        taken = self.taken()
        mine = [r for one, rounds in taken if one is terms for r in rounds]
        if len(mine) >= terms.most:
            return Refusal.TOO_OFTEN
        if not self._has_budget(run, terms, multiplier):
            return Refusal.BUDGET
        here = (terms, [*mine, round])
        if not all(cap.holds([here]) for cap in target):
            return Refusal.TARGET
        others = [(one, rounds) for one, rounds in taken if one is not terms]
        held = all(cap.holds([*others, here]) for cap in self.caps())
        return None if held else Refusal.CAP

    def _has_budget(self, run: str, terms: Terms, multiplier: float | None) -> bool:
        """Whether the noise chosen for a round fits into what the run has left."""
        if terms.total_multiplier is None:
            return True
        if multiplier is None:
            return False  # nobody can say what the round costs
        rows = self._file.execute(
            "SELECT multiplier FROM answers WHERE run = ?", (run,)
        ).fetchall()
        return fits([*(z for (z,) in rows), multiplier], total=terms.total_multiplier)

    def _terms_of(self, run: str) -> Terms:
        if run not in self._terms:
            row = self._one("SELECT terms FROM runs WHERE run = ?", run)
            assert row is not None  # every answer belongs to a run
            self._terms[run] = read_terms(row[0], file=self.path)
        return self._terms[run]

    def _release(self, run: str, what: str) -> Release:
        return next(r for r in self._terms_of(run).releases if r.what == what)

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._file.execute(query, values).fetchone()
        return row


def question_digest(asked: bytes) -> bytes:
    """16 bytes that tell one question from another."""
    return hashlib.blake2b(asked, digest_size=16).digest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
