"""The durable form: one client's ledger, in one file that its owner can read.

    with ledger.transaction():
        held = ledger.permits(run, round, asked=question)  # writes the entries
    if held:                                               # the charge is on the disk
        report, state = ...                                # the client computes
        report = ledger.keep(run, round, report=report, state=state)
    # only now may the report be sent
    ledger.delivered(run, round)

The charge is on the disk before the history is touched, and the report before it is
sent. Killed before the charge, nothing was said. Killed after it, the round is answered
without the history, because whether the client died may depend on that. Killed after
the report was kept, a retry finds the bytes that were meant to be sent and sends those.

All rows that count are authenticated and chained (`rows`, `anchor`). A ledger that is
not known to be the last one says no to everything until its owner decides.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tacit.codes import Code
from tacit.errors import BadData, BadValue, Refused
from tacit.ledger.budget import (
    Cap,
    Excess,
    Spent,
    allowed_rounds,
    first_excess,
    fits,
    spent,
)
from tacit.ledger.records import GIVEN_UP, Answer, Doubt, Entry, Joined, Refusal
from tacit.ledger.rows import ANSWERS, CAPS, ENTRIES, RUNS, TABLES, WHAT_TO_DO, digest
from tacit.ledger.schema import NAMES, connect, in_one_sentence
from tacit.ledger.snapshot import Link, Snapshot, dearest_rounds, take
from tacit.ledger.terms import Terms, read_terms, write_terms
from tacit.release import CellName, Release, cell_name
from tacit.text import nth_round


@dataclass(frozen=True)
class _Run:
    """A row of the table `runs`, without its key."""

    joined: str
    terms: str
    state: bytes | None
    counted: str  # 'rounds': those that were answered; 'all': all that were agreed
    assumes: str | None


@dataclass(frozen=True)
class _Answered:
    """A row of `answers`, without the bytes of the report."""

    asked: bytes
    said: bytes | None  # a digest of the report
    sent: str | None
    multiplier: float | None


class ClientLedger:
    """What one client has said and may still say. One process at a time writes."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._store = connect(path, create=create)
        self._file = self._store.connection
        self._terms: dict[str, Terms] = {}
        self._now: Snapshot | None = None  # inside a transaction

    def close(self) -> None:
        """Closes the file; another process may write from now on."""
        self._store.close()

    def __enter__(self) -> ClientLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what happens inside, or nothing; other processes wait.

        When it ends, what was changed is on the disk and its anchor is final.
        """
        if self._now is not None:
            yield
            return
        with in_one_sentence(self.path):
            try:
                with self._store.transaction():
                    self._begin()
                    yield
                    changed = self._expect()
            finally:
                self._now = None
            if changed is not None:
                self._settle(changed)

    # whether it can be relied on

    @property
    def doubt(self) -> Doubt | None:
        """Why it says no until its owner decides; None if it is the last one."""
        return self._look().doubt

    @property
    def link(self) -> Link | None:
        """Where its chain stands; files of an older format have none."""
        return self._look().link

    # runs

    def join(self, run: str, terms: Terms, *, state: bytes) -> None:
        """Agrees to a run; a run can be joined once only."""
        with self.transaction():
            if (run,) in self._trusted().rows["runs"]:
                raise Refused(f"{self.path}: run '{run}' was joined before")
            row = _Run(_now(), write_terms(terms), state, "rounds", None)
            self._put_run(run, row)

    def joined(self, run: str) -> Joined | None:
        """What was agreed, if the client ever joined this run."""
        found = self._runs().get(run)
        return None if found is None else Joined(self._terms_of(found), found.state)

    def runs(self) -> dict[str, Terms]:
        """Every run that was joined, the oldest first."""
        found = sorted(self._runs().items(), key=lambda one: one[1].joined)
        return {run: self._terms_of(row) for run, row in found}

    # rounds

    def permits(
        self,
        run: str,
        round: int,
        *,
        asked: bytes,
        phase: int = 0,
        multiplier: float | None = None,
        target: Sequence[Cap] = (),
    ) -> bool:
        """Whether the client may answer; if so it is charged, if not the no is noted.

        For a round without an answer: an answered one is not asked again but looked
        up. `phase` is the index of the round's, and `multiplier` its noise where a
        method chooses it as it goes.
        `target` holds for this run by itself, the caps of the owner for all together.
        """
        with self.transaction():
            why = self._refusal(run, round, multiplier, target)
            if why is not None:
                self.refuse(run, why)
                return False
            terms = self._terms_of(self._runs()[run])
            # Charged before the history is touched: the report comes with `keep`.
            row = (question_digest(asked), None, None, multiplier)
            now = self._trusted()
            now.put(self._file, ANSWERS, run, round, *row)
            for release in terms.releases:
                if release.is_made_in(round):
                    what = release.named(phase)
                    now.put(self._file, ENTRIES, run, round, what, _now())
            return True

    def keep(
        self,
        run: str,
        round: int,
        *,
        report: bytes,
        state: bytes | None = None,
        before: bytes | None = None,
    ) -> bytes | None:
        """Keep the bytes of an answer, once; the bytes that are kept.

        Another process may have been first, and its bytes are the answer then. `state`
        is the client's next private state, after one that was computed from `before`;
        it moves with the report or not at all. Nothing is kept, and nothing said, if
        the run was forgotten or the ledger came into doubt in the meantime.
        """
        with self.transaction():
            now, mine = self._look(), self._runs().get(run)
            row = self._answers().get((run, round))
            if now.doubt is not None:
                self.refuse(run, Refusal.DOUBT)
                return None
            if row is None or mine is None or mine.state is None:
                return None
            if row.said is not None:
                return self._report(run, round, row)
            said = replace(row, said=digest(report))
            now.put(self._file, ANSWERS, run, round, *vars(said).values())
            self._file.execute(
                "UPDATE answers SET report = ? WHERE run = ? AND round = ?",
                (report, run, round),
            )
            if state is not None and before in (None, mine.state):
                self._put_run(run, replace(mine, state=state))
            return report

    def answer(self, run: str, round: int) -> Answer | None:
        """What was said in this round, if something was."""
        with self._reading():
            row = self._answers().get((run, round))
            return None if row is None else self._answer(run, round, row)

    def pending(self) -> list[Answer]:
        """What is written down and not known to have arrived: send it again."""
        with self.transaction():  # what leaves has a final anchor
            if self._look().doubt is not None:
                return []
            return [self._answer(*where, row) for where, row in self._unsent().items()]

    def waiting(self) -> int:
        """How many reports are not known to have arrived."""
        return len(self._unsent())

    def delivered(self, run: str, round: int) -> None:
        """Notes that the report of this round has arrived."""
        with self.transaction():
            now, row = self._trusted(), self._answers().get((run, round))
            if row is None:
                raise Refused(f"nothing was said in {nth_round(round)} of {run}")
            if row.sent is None:
                sent = replace(row, sent=_now())
                now.put(self._file, ANSWERS, run, round, *vars(sent).values())

    def finish(self, run: str, round: int, *, arrived: bool) -> None:
        """Note how a report ended and erase its bytes; it is not sent again.

        A report that was given up counts like one that arrived: nobody can tell who
        has read it.
        """
        with self.transaction():
            now, row = self._trusted(), self._answers().get((run, round))
            if row is None:
                raise Refused(f"nothing was said in {nth_round(round)} of {run}")
            how = row.sent or (_now() if arrived else GIVEN_UP)
            ended = replace(row, said=None, sent=how)
            now.put(self._file, ANSWERS, run, round, *vars(ended).values())
            self._file.execute(
                "UPDATE answers SET report = NULL WHERE run = ? AND round = ?",
                (run, round),
            )

    def refuse(self, run: str, why: Refusal) -> None:
        """Count a no; one row per reason, so that nobody can fill the disk."""
        with in_one_sentence(self.path):
            self._file.execute(
                "INSERT INTO refusals VALUES (?, ?, 1, ?) ON CONFLICT (run, reason) "
                "DO UPDATE SET times = times + 1, last = excluded.last",
                (run, str(why), _now()),
            )

    # account

    def entries(self) -> list[Entry]:
        """All releases so far, the oldest first."""
        with self._reading():
            rows, answers = self._look().rows["entries"].items(), self._answers()
            runs = {run: self._terms_of(row) for run, row in self._runs().items()}
            return [
                Entry(
                    *(at, run, n, what),
                    self._release(runs, run, what),
                    answers[run, n].sent,
                )
                for (run, n, what), (at,) in sorted(rows, key=lambda one: one[1])
            ]

    def taken(self) -> list[tuple[Terms, list[int]]]:
        """Each run and the rounds of it in which the client took part.

        Of a run that was closed in doubt, as many as could have been.
        """
        return [*self._taken().values()]

    def spent(self, name: CellName, *, delta: float) -> Spent:
        """The epsilon of everything said so far, for one unit and view."""
        with self._reading():
            self._trusted()
            return spent(self.taken(), name, delta=delta)

    def refusals(self) -> list[tuple[str, str, int, str]]:
        """One row per run and reason: both, how often, and when last."""
        query = "SELECT run, reason, times, last FROM refusals ORDER BY last"
        with in_one_sentence(self.path):
            found = self._file.execute(query).fetchall()
        if not all(all(map(isinstance, row, _NO)) for row in found):
            raise BadData(self.path, None, f"a refusal cannot be read; {WHAT_TO_DO}")
        return found

    def explained_refusals(self) -> list[tuple[str, str, int, str]]:
        """The same rows for the owner: a cap that still refuses has its figures."""
        return [
            (run, self._explained(run, reason), times, last)
            for run, reason, times, last in self.refusals()
        ]

    def _explained(self, run: str, reason: str) -> str:
        if reason != Refusal.CAP or self._look().doubt is not None:
            return reason
        left, found = self.allowance(run) if run in self._runs() else (0, None)
        return reason if left or found is None else f"{reason}: {found}"

    def excess(
        self, run: str, rounds: Sequence[int], *, target: Sequence[Cap] = ()
    ) -> Excess | None:
        """The cap that answering these rounds too would pass, with its figures."""
        with self._reading():
            taken = self._taken()
            terms = self._terms_of(self._runs()[run])
            _, mine = taken.pop(run, (terms, []))
            after, caps = (terms, [*mine, *rounds]), self.caps()
            return first_excess(after, [*taken.values()], target=target, caps=caps)

    def allowance(
        self, run: str, *, target: Sequence[Cap] = ()
    ) -> tuple[int, Excess | None]:
        """How many more rounds the caps allow, and what the one after those would pass.

        The owner's caps count all runs together, the plan's `target` this one alone.
        """
        with self._reading():
            taken = self._taken()
            terms = self._terms_of(self._runs()[run])
            _, mine = taken.pop(run, (terms, []))
            part = range(max(mine, default=-1) + 1, terms.rounds)
            left = min(
                allowed_rounds(terms, some, before=before, part=part, earlier=mine)
                for some, before in (
                    (target, []),
                    (self.caps(), [*taken.values()]),
                )
            )
            if left == min(len(part), terms.most - len(mine)):
                return left, None
            return left, self.excess(run, part[: left + 1], target=target)

    def caps(self) -> list[Cap]:
        """The caps that the owner has set."""
        rows = sorted(self._look().rows["caps"].items())
        try:
            return [
                Cap(epsilon, delta, *cell_name(unit, view))
                for (unit, view), (epsilon, delta) in rows
            ]
        except BadValue as error:
            said = f"a cap cannot be read: {error}; {WHAT_TO_DO}"
            raise BadData(self.path, None, said) from error

    def set_cap(self, cap: Cap) -> None:
        """Sets a cap from now on; what was said before counts towards it."""
        row = (str(cap.unit), str(cap.view), float(cap.epsilon), float(cap.delta))
        with self.transaction():
            now = self._trusted()
            if now.rows["caps"].get(row[:2]) != row[2:]:
                now.put(self._file, CAPS, *row)

    def remove_cap(self, name: CellName) -> bool:
        """Removes the cap of one unit and view, and says whether there was one."""
        with self.transaction():
            now, key = self._trusted(), (*map(str, name),)
            is_there = key in now.rows["caps"]
            if is_there:
                now.remove(self._file, CAPS, key)
            return is_there

    # deletion

    def forget(self, *, keep_ledger: bool) -> None:
        """Erase private state and reports; the account too, unless it is kept.

        What was not sent never leaves. A forgotten run is not answered again: a round
        that was answered would be answered a second time. A ledger in doubt is erased
        all the same, and stays in doubt.
        """
        with self.transaction():
            if self._look().doubt is not None:
                self._erase(keep_ledger=keep_ledger)
            elif keep_ledger:
                self._forget_private()
            else:
                self._forget_all()
        with in_one_sentence(self.path):
            self._file.execute(
                "VACUUM"
            )  # no page keeps what was erased, in older files too

    def leave(self, run: str) -> int:
        """Erase state and reports of one run, which is not answered again.

        The account of it stays. Gives the number of reports that were never sent. A
        ledger in doubt is erased all the same, and stays in doubt.
        """
        with self.transaction():
            unsent = sum(one == run for one, _ in self._unsent())
            if self._look().doubt is None:
                self._forget_run(run)
            else:
                self._erase_private("WHERE run = ?", run)
        with in_one_sentence(self.path):
            self._file.execute("VACUUM")
        return unsent

    def _forget_private(self) -> None:
        for run in self._runs():
            self._forget_run(run)

    def _forget_run(self, run: str) -> None:
        row = self._runs().get(run)
        if row is None:
            return
        self._put_run(run, replace(row, state=None))
        for where, answered in self._answers().items():
            if where[0] == run:
                silent = vars(replace(answered, said=None))
                self._trusted().put(self._file, ANSWERS, *where, *silent.values())
        self._file.execute("UPDATE answers SET report = NULL WHERE run = ?", (run,))

    def _forget_all(self) -> None:
        now = self._trusted()
        for table in reversed(TABLES):
            for key in [*now.rows[table.name]]:
                now.remove(self._file, table, key)
        self._file.execute("DELETE FROM refusals")

    def _erase(self, *, keep_ledger: bool) -> None:
        """Erases the same in a file whose rows cannot be relied on."""
        if not keep_ledger:
            found = self._file.execute("SELECT name FROM sqlite_master").fetchall()
            for table in [one for one in NAMES if (one,) in found and one != "chain"]:
                self._file.execute(f"DELETE FROM {table}")
            return
        self._erase_private()

    def _erase_private(self, where: str = "", *given: str) -> None:
        """Erases state and reports in such a file, of all runs or of some."""
        had_keys = self._look().doubt is Doubt.OLD
        key = "key = NULL, " if had_keys else ""
        self._file.execute(f"UPDATE runs SET {key}state = NULL {where}", given)
        self._file.execute(f"UPDATE answers SET report = NULL {where}", given)

    # the file, its chain and its anchor

    def _look(self) -> Snapshot:
        """The ledger as it is now; inside a transaction, as it is there."""
        if self._now is not None:
            return self._now
        with in_one_sentence(self.path), self._store.transaction("DEFERRED"):
            return take(self._store)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Within it the file is looked at once, and nothing newer is seen."""
        before = self._now
        self._now = self._look()
        try:
            yield
        finally:
            self._now = before

    def _trusted(self) -> Snapshot:
        """The ledger as it is now; refuses one that is in doubt."""
        now = self._look()
        if now.doubt is not None:
            raise Refused(
                f"{self.path} is not relied on: {now.doubt}. Its owner decides: "
                "`tacit ledger show` tells what it says, `tacit ledger accept` goes on "
                "from it"
            )
        return now

    def _begin(self) -> None:
        """Look at the file as its only writer; settle what a killed process left."""
        now = self._now = take(self._store)
        if now.anchor is not None and now.doubt is None:
            settled = now.anchor.at(self.path, current=now.mark(), pending=None)
            if settled != now.anchor:
                settled.save()
                now.anchor = settled

    def _expect(self) -> Snapshot | None:
        """Let chain and anchor know what was changed, if something that counts was.

        The anchor before the commit: killed in between, the file is still at `current`.
        """
        now = self._now
        assert now is not None
        if not now.is_changed:
            return None
        assert now.anchor is not None
        current = now.anchor.current
        now.link = now.following()
        self._file.execute(
            "UPDATE chain SET id = ?, number = ?, previous = ?, head = ?",
            (*vars(now.link).values(),),
        )
        now.anchor = now.anchor.at(self.path, current=current, pending=now.mark())
        now.anchor.save()
        return now

    def _settle(self, now: Snapshot) -> None:
        """Make the anchor final, unless another process has done so and gone on.

        It is done as the only writer: the anchor of whoever comes next is never
        overwritten.
        """
        assert now.link is not None
        assert now.anchor is not None
        with self._store.transaction():
            [(head,)] = self._file.execute("SELECT head FROM chain")
            if head == now.link.head:
                now.anchor.at(self.path, current=now.mark(), pending=None).save()

    # details

    def _refusal(
        self, run: str, round: int, multiplier: float | None, target: Sequence[Cap]
    ) -> Refusal | None:
        if self._look().doubt is not None:
            return Refusal.DOUBT
        joined = self._runs().get(run)
        if joined is None:
            raise Refused(f"{self.path}: run '{run}' was never joined")
        if (run, round) in self._answers():
            raise Refused(
                f"{self.path}: {nth_round(round)} of '{run}' was answered before"
            )
        if joined.state is None:
            return Refusal.LEFT
        terms = self._terms_of(joined)
        if not 0 <= round < terms.rounds:
            return Refusal.TOO_LATE
        _, mine = self._taken().get(run, (terms, []))
        if len(mine) >= terms.most:
            return Refusal.TOO_OFTEN
        if not self._has_budget(run, terms, multiplier):
            return Refusal.BUDGET
        found = self.excess(run, [round], target=target)
        if found is None:
            return None
        return Refusal.TARGET if found.is_target else Refusal.CAP

    def _has_budget(self, run: str, terms: Terms, multiplier: float | None) -> bool:
        """Whether the noise chosen for a round fits into what the run has left."""
        if terms.total_multiplier is None:
            return True
        rows = self._answers().items()
        chosen = [row.multiplier for (name, _), row in rows if name == run]
        found = [z for z in (*chosen, multiplier) if z is not None]
        if len(found) <= len(chosen):
            return False  # nobody can say what the round costs
        return fits(found, total=terms.total_multiplier)

    def _taken(self) -> dict[str, tuple[Terms, list[int]]]:
        """Terms and rounds by run; runs in which nothing was said are left out."""
        with self._reading():
            rounds: dict[str, list[int]] = {}
            for run, round_ in sorted(self._answers()):
                rounds.setdefault(run, []).append(round_)
            found: dict[str, tuple[Terms, list[int]]] = {}
            for run, row in sorted(self._runs().items()):
                terms = self._terms_of(row)
                is_all = row.counted == "all"
                mine = dearest_rounds(terms) if is_all else rounds.get(run, [])
                if mine:
                    found[run] = (terms, mine)
            return found

    def _runs(self) -> dict[str, _Run]:
        return {run: _Run(*row) for (run,), row in self._look().rows["runs"].items()}

    def _answers(self) -> dict[tuple[str, int], _Answered]:
        rows = self._look().rows["answers"].items()
        return {(run, round_): _Answered(*row) for (run, round_), row in rows}

    def _unsent(self) -> Mapping[tuple[str, int], _Answered]:
        rows = self._answers().items()
        return {k: one for k, one in rows if one.sent is None and one.said is not None}

    def _answer(self, run: str, round: int, row: _Answered) -> Answer:
        report = self._report(run, round, row)
        return Answer(run, round, row.asked, report, row.sent, row.multiplier)

    def _report(self, run: str, round: int, row: _Answered) -> bytes | None:
        """The bytes of an answer; refuses others than were kept."""
        if row.said is None:
            return None
        query = (
            "SELECT report FROM answers NOT INDEXED WHERE run = ? AND round = ? LIMIT 1"
        )
        with in_one_sentence(self.path):
            found = self._file.execute(query, (run, round)).fetchone()
        if found is None or type(found[0]) is not bytes or digest(found[0]) != row.said:
            said = f"the report of {nth_round(round)} of '{run}' is not as it was kept"
            raise BadData(self.path, None, f"{said}, and is not sent; {WHAT_TO_DO}")
        report: bytes = found[0]
        return report

    def _put_run(self, run: str, row: _Run) -> None:
        self._trusted().put(self._file, RUNS, run, *vars(row).values())

    def _terms_of(self, row: _Run) -> Terms:
        if row.terms not in self._terms:
            self._terms[row.terms] = read_terms(row.terms, file=self.path)
        terms = self._terms[row.terms]
        if row.assumes is None:
            return terms
        word = Code("owners_word", (row.assumes,))
        return replace(terms, releases=tuple(r.assuming(word) for r in terms.releases))

    def _release(self, runs: Mapping[str, Terms], run: str, what: str) -> Release:
        found = next((one for one in runs[run].releases if what in one.names), None)
        if found is None:
            said = f"'{what}' was never agreed to in run '{run}'; {WHAT_TO_DO}"
            raise BadData(self.path, None, said)
        return found


_NO = (str, str, int, str)  # the columns of a refusal


def question_digest(asked: bytes) -> bytes:
    """A digest of 16 bytes that tells one question from another."""
    return hashlib.blake2b(asked, digest_size=16).digest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
