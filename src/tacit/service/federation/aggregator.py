"""Leader and helper: one class with a role. What it does, without HTTP.

    round:   signed ──open──▶ open ──close──▶ closing ──▶ closed ──delete──▶ deleted

    both     round_key    a key for one round of a run
             sign         a manifest, if the operator's own limits allow it
             open         a round that both operators have signed
             close        choose batches, draw the noise, add it up: once
             delete       everything of a round that is published
    leader   admit        a batch of reports: open, pass the seeds on, count
    helper   take         a batch of sealed seeds

*Promise.* A report that was acknowledged is in the sum exactly once, one that never was
at most once, and no round is published twice with different noise: the chosen batches
and the seed of the noise are on the disk before anything is computed from them. The
step that keeps the result erases the seed, the halves and the key: nobody who gets the
disk later can take the noise off.

A leader keeps halves in memory until they are added up; what is on its disk is a sum.
A batch that the helper has and the leader has not counted is never chosen.

`passing` is called at named points; tests kill the process there.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from tacit import check
from tacit.cipher import SECRET_BYTES
from tacit.errors import BadMessage, Refused, Unanswered
from tacit.service.federation.sealing import (
    ID_BYTES,
    SEED_BYTES,
    Opener,
    Role,
    SealedReport,
    SumFields,
    SumManifest,
    new_private_key,
    public_key,
)
from tacit.service.federation.seed_batches import Closing, SeedBatch
from tacit.service.federation.store import (
    CLOSED,
    CLOSING,
    DELETED,
    OPEN,
    SIGNED,
    VOID,
    AggregatorStore,
    RoundRow,
)
from tacit.service.federation.tickets import is_handed_out, ticket_digest
from tacit.service.http import Failure
from tacit.service.signed_document import signature
from tacit.service.signing import (
    DAY,
    Signer,
    read_unsigned,
    refuse_fork,
    refuse_gap,
    refuse_limits,
    refuse_past,
    refuse_url,
    window_verdicts,
)
from tacit.text import nth_round
from tacit.transport.shared_sum import (
    MOST_NUMBERS,
    Numbers,
    add_stream,
    from_bytes,
    published,
    to_bytes,
)

Pass = Callable[[bytes, bytes, bytes], bytes]  # round, batch, body -> taken
_AWAY = 5  # seconds after which a client may ask again if the helper is away
_FULL = 30  # and if the disk is


@dataclass(frozen=True)
class Limits:
    """What an operator signs, and no more than it takes on."""

    least_multiplier: float  # σ / √L of its own noise
    least_reports: int = 1  # n_min
    most_reports: int = 1_000_000  # n_max
    least_window: int = 1  # seconds, from now or from the opening if that is later
    most_window: int = 31 * DAY  # until it closes
    most_wait: int = 31 * DAY  # after the window: then a round is void without a word
    most_numbers: int = MOST_NUMBERS
    free_bytes: int = 256 * 2**20  # with less room on the disk, nothing is taken
    needs_tickets: bool = False  # leader

    def __post_init__(self) -> None:
        check.positive(least_multiplier=self.least_multiplier)
        check.count(
            least_reports=self.least_reports,
            most_reports=self.most_reports,
            most_numbers=self.most_numbers,
        )
        check.not_negative(
            least_window=self.least_window,
            most_wait=self.most_wait,
            free_bytes=self.free_bytes,
        )
        check.count(most_window=self.most_window)

    def check(self, manifest: SumManifest, now: float) -> None:
        """Refuse a manifest that passes a limit."""
        noise = manifest.fields.multiplier
        verdicts = {
            "sigma over the root of limit": (
                noise >= self.least_multiplier * (1 - 1e-9),
                f"{noise:.6g}, at least {self.least_multiplier:.6g}",
            ),
            "n_min": (
                manifest.least_reports >= self.least_reports,
                f"{manifest.least_reports:,}, at least {self.least_reports:,}",
            ),
            "n_max": (
                manifest.most_reports <= self.most_reports,
                f"{manifest.most_reports:,}, at most {self.most_reports:,}",
            ),
            **window_verdicts(
                manifest, now, least=self.least_window, most=self.most_window
            ),
            "d": (
                manifest.fields.numbers <= self.most_numbers,
                f"{manifest.fields.numbers:,}, at most {self.most_numbers:,}",
            ),
        }
        refuse_limits("operator", verdicts)


@dataclass
class Tally:
    """Counts since the start; of nobody in particular."""

    counted: int = 0
    batches: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # by reason
    commits: list[float] = field(default_factory=list)  # seconds of the last ones
    last_commit: float | None = None  # seconds since 1970

    def refuse(self, kind: str) -> None:
        """Count one refusal of this kind."""
        self.refused[kind] = self.refused.get(kind, 0) + 1

    def commit(self, began: float, now: float) -> None:
        """Count one commit that began then, by the monotonic clock."""
        self.batches += 1
        self.last_commit = now
        self.commits = [*self.commits[-255:], time.monotonic() - began]


@dataclass(frozen=True)
class Upload:
    """One report as it arrived, with the ticket that came along."""

    report: SealedReport = field(repr=False)
    ticket: bytes = b""

    @property
    def id(self) -> bytes:
        """The random id of the report."""
        return self.report.report_id


class Aggregator:
    """One operator's half of every sum. All but `compute` runs in one thread."""

    def __init__(
        self,
        role: Role,
        store: AggregatorStore,
        signer: Signer,
        limits: Limits,
        *,
        url: str = "",
        pass_on: Pass | None = None,
        passing: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.role, self.store, self.signer, self.limits = role, store, signer, limits
        self.url = url  # of the leader, as clients reach it
        self.pass_on, self.clock = pass_on, clock
        self.tally = Tally()
        self.passing = passing or (lambda _: None)
        self._open: dict[bytes, _OpenRound] = {}
        # Of every round, for a thread that must not touch the file: its manifest, or
        # that it is over.
        self._known: dict[bytes, SumManifest | Failure] = {}
        self.expire()
        for row in store.rounds():
            is_begun = row.state in (OPEN, CLOSING)
            if is_begun and not store.has_key(row.run, row.number):
                self.delete(row.id)  # killed while it did, or the key was lost
            elif row.state == OPEN:
                self._open[row.id] = self._opened(row)
            self._note(self._row(row.id))

    # opening

    def round_key(self, run: bytes, number: int) -> bytes:
        """The public key of this operator for one round; the same until it is over."""
        known = self.store.public_key(run, number)
        if known is None:
            private = new_private_key()
            known = public_key(private)
            self.store.keep_key(run, number, private, known)
        return known

    def sign(self, document: bytes) -> bytes:
        """The signature of this operator, on what its own limits allow."""
        manifest = read_unsigned(document, SumFields)
        known = self.store.round_of(manifest.run, manifest.round)
        is_known = known is not None and known.id == manifest.round_id
        self._check_own(manifest)
        # Asked again, what is left of the window may be less than was signed.
        self.limits.check(manifest, manifest.opens if is_known else self.clock())
        refuse_gap(manifest, self.store.round_of(manifest.run, manifest.round - 1))
        if known is not None and not is_known:
            is_over = known.manifest.closes <= self.clock()
            refuse_fork(manifest, may_be_replaced=known.state == SIGNED and is_over)
        if not is_known:
            row = (manifest.round_id, manifest.run, manifest.round, document, SIGNED)
            with self.store.changing() as file:
                file.execute(
                    "DELETE FROM rounds WHERE run = ? AND number = ?",
                    (manifest.run, manifest.round),
                )
                file.execute(
                    "INSERT INTO rounds VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL)", row
                )
        return signature(manifest, self.signer.key)

    def open(self, sent: bytes) -> bytes:
        """Open the round of a manifest that both have signed; its id."""
        manifest = self.signer.read(sent, SumFields)
        row = self.store.round(manifest.round_id)
        if row is None:
            said = "this operator has not signed that round; ask it to sign first"
            raise Failure(403, "Unsigned", said)
        if row.state in (DELETED, VOID):
            raise _gone(row)
        if row.state == SIGNED:
            self.store.private_key(row.run, row.number)  # refuses a round without it
            with self.store.changing() as file:
                file.execute("UPDATE rounds SET state = ? WHERE id = ?", (OPEN, row.id))
                if self.role is Role.LEADER:
                    empty = bytes(4 * manifest.fields.numbers)
                    file.execute("INSERT INTO totals VALUES (?, ?, 0)", (row.id, empty))
            self._open[row.id] = self._opened(row)
            self._note(self._row(row.id))
        return row.id

    def _check_own(self, manifest: SumManifest) -> None:
        """Refuse a manifest with a key that is not this operator's for the round."""
        is_leader = self.role is Role.LEADER
        own = manifest.keys["leader" if is_leader else "helper"]
        if own != self.store.public_key(manifest.run, manifest.round):
            said = "the manifest has another key than this operator made for the round"
            raise Failure(403, "Key", said)
        if is_leader:
            refuse_url("leader", manifest.url, self.url)
        refuse_past(manifest, self.clock())

    def _opened(self, row: RoundRow) -> _OpenRound:
        manifest = row.manifest
        key = self.store.private_key(row.run, row.number)
        found = _OpenRound(manifest, Opener(self.role, row.id, key))
        if self.role is Role.LEADER:
            query = "SELECT halves, reports FROM totals WHERE round = ?"
            [(halves, n)] = self.store.file.execute(query, (row.id,))
            found.halves, found.reports = from_bytes(halves, manifest.fields.numbers), n
        else:
            query = "SELECT sum(reports) FROM batches WHERE round = ?"
            [(n,)] = self.store.file.execute(query, (row.id,))
            found.reports = n or 0
        return found

    def known(self, round_id: bytes) -> SumManifest:
        """The manifest of a round that is open or closed; refuses any other.

        It may be called from any thread.
        """
        found = self._known.get(round_id)
        if found is None:
            raise _unknown(round_id)
        if isinstance(found, Failure):
            raise found
        return found

    def _note(self, row: RoundRow) -> None:
        if row.state in (DELETED, VOID):
            self._known[row.id] = _gone(row)
        elif row.state != SIGNED:
            self._known[row.id] = row.manifest

    def status(self, round_id: bytes) -> tuple[str, int]:
        """The state of a round, and how many reports were counted; 404 if unknown."""
        row = self._row(round_id)
        found = self._open.get(round_id)
        if found is not None:
            return row.state, found.reports
        table = "totals" if self.role is Role.LEADER else "batches"
        query = f"SELECT sum(reports) FROM {table} WHERE round = ?"
        [(n,)] = self.store.file.execute(query, (round_id,))
        return row.state, n or 0

    # the leader's batches

    def admit(self, round_id: bytes, uploads: Sequence[Upload]) -> list[Failure | None]:
        """Count a batch of reports; for each, None if it is on both disks, or why not.

        A report that was counted before is acknowledged again.
        """
        verdicts: list[Failure | None] = [None] * len(uploads)
        row, found = self._row(round_id), self._open.get(round_id)
        if row.state in (DELETED, VOID):
            return [_gone(row)] * len(uploads)
        fresh = self._unseen(round_id, uploads)
        if found is None or found.manifest.closes <= self.clock():
            for i in fresh.values():
                verdicts[i] = _CLOSED
        else:
            self._admit(found, uploads, fresh.values(), verdicts)
        # Of two with one id, both hear what became of the first.
        return [verdicts[fresh[one.id]] if one.id in fresh else None for one in uploads]

    def _admit(
        self,
        found: _OpenRound,
        uploads: Sequence[Upload],
        fresh: Iterable[int],
        verdicts: list[Failure | None],
    ) -> None:
        tickets = self._tickets(found.manifest.round_id, uploads, fresh, verdicts)
        opened, batch_sum = self._opened_sum(found, uploads, tickets, verdicts)
        if opened and self.store.free_bytes < self.limits.free_bytes:
            for i in opened:
                verdicts[i] = _DISK
        elif opened:
            self._count(found, uploads, tickets, opened, batch_sum, verdicts)

    def _unseen(self, round_id: bytes, uploads: Sequence[Upload]) -> dict[bytes, int]:
        """Which reports have not been counted, and where each stands first."""
        # One query for all: .7 µs for each report, and 1.6 one by one.
        marks = ",".join("?" * len(uploads))
        query = f"SELECT report FROM seen WHERE round = ? AND report IN ({marks})"
        rows = self.store.file.execute(query, (round_id, *(one.id for one in uploads)))
        seen = {report for (report,) in rows}
        unseen: dict[bytes, int] = {}
        for i, one in enumerate(uploads):
            if one.id not in seen:
                unseen.setdefault(one.id, i)
        return unseen

    def _tickets(
        self,
        round_id: bytes,
        uploads: Sequence[Upload],
        fresh: Iterable[int],
        verdicts: list[Failure | None],
    ) -> dict[int, bytes]:
        """The digest of each upload's ticket, of those that may be counted."""
        found: dict[int, bytes] = {}
        for i in fresh:
            if not self.limits.needs_tickets:
                found[i] = b""
                continue
            ticket = ticket_digest(uploads[i].ticket)
            why = self._refused_ticket(round_id, uploads[i].id, ticket)
            if why is None and ticket in found.values():
                why = _TICKET_USED
            if why is None:
                found[i] = ticket
            verdicts[i] = why
        return found

    def _refused_ticket(
        self, round_id: bytes, report_id: bytes, ticket: bytes
    ) -> Failure | None:
        file = self.store.file
        if not is_handed_out(file, ticket):
            return NO_TICKET
        query = "SELECT report FROM used WHERE round = ? AND ticket = ?"
        used = file.execute(query, (round_id, ticket)).fetchone()
        return None if used in (None, (report_id,)) else _TICKET_USED

    def _opened_sum(
        self,
        found: _OpenRound,
        uploads: Sequence[Upload],
        admitted: Iterable[int],
        verdicts: list[Failure | None],
    ) -> tuple[list[int], Numbers]:
        """Which reports open and have room, and the sum of their leader's halves.

        Each half is added as soon as it is open: one at a time is in memory.
        """
        opened: list[int] = []
        total = np.zeros(found.manifest.fields.numbers, np.uint32)
        room = found.manifest.most_reports - found.reports
        for i in admitted:
            try:
                half = self._half(found, uploads[i])
            except BadMessage:
                verdicts[i] = _UNOPENED
                continue
            if len(opened) < room:
                opened.append(i)
                total += half
            else:
                verdicts[i] = _ROUND_FULL
        return opened, total

    @staticmethod
    def _half(found: _OpenRound, upload: Upload) -> Numbers:
        text = found.opener(upload.report.for_leader, upload.id)
        return from_bytes(text, found.manifest.fields.numbers)

    def _count(
        self,
        found: _OpenRound,
        uploads: Sequence[Upload],
        tickets: Mapping[int, bytes],
        opened: Sequence[int],
        batch_sum: Numbers,
        verdicts: list[Failure | None],
    ) -> None:
        """Pass the seeds on, count what the helper has taken, and commit."""
        round_id = found.manifest.round_id
        batch = SeedBatch({uploads[i].id: uploads[i].report.for_helper for i in opened})
        batch_id, body = os.urandom(ID_BYTES), batch.body()
        taken = self._passed_on(round_id, batch_id, batch, body)
        if taken is None:
            for i in opened:
                verdicts[i] = _HELPER_AWAY
            return
        counted = [i for i in opened if uploads[i].id in taken]
        total = found.halves + batch_sum
        for i in {*opened} - {*counted}:
            verdicts[i] = _UNOPENED
            total -= self._half(found, uploads[i])
        self.passing("before_commit")
        began = time.monotonic()
        with self.store.changing() as file:
            if not self._still_open(file, round_id):
                raise Refused("a round was closed while a batch of it was counted")
            ids = [uploads[i].id for i in counted]
            file.executemany(
                "INSERT INTO seen VALUES (?, ?)", ((round_id, id_) for id_ in ids)
            )
            if self.limits.needs_tickets:
                file.executemany(
                    "INSERT OR IGNORE INTO used VALUES (?, ?, ?)",
                    ((round_id, tickets[i], uploads[i].id) for i in counted),
                )
            if counted:
                file.execute(
                    "INSERT INTO batches VALUES (?, ?, ?, ?)",
                    (round_id, batch_id, len(counted), sha256(body).digest()),
                )
            file.execute(
                "UPDATE totals SET halves = ?, reports = reports + ? WHERE round = ?",
                (to_bytes(total), len(counted), round_id),
            )
        found.halves, found.reports = total, found.reports + len(counted)
        self.tally.counted += len(counted)
        self.tally.commit(began, self.clock())
        self.passing("after_commit")

    def _passed_on(
        self, round_id: bytes, batch_id: bytes, batch: SeedBatch, body: bytes
    ) -> set[bytes] | None:
        """The ids that the helper has taken; None if it is away."""
        assert self.pass_on is not None  # of a leader
        self.passing("before_put")
        try:
            answer = self.pass_on(round_id, batch_id, body)
            taken = {*batch.taken(answer)}
        except (Unanswered, Refused, BadMessage):
            return None
        self.passing("after_put")
        return taken

    @staticmethod
    def _still_open(file: sqlite3.Connection, round_id: bytes) -> bool:
        query = "SELECT state FROM rounds WHERE id = ?"
        return file.execute(query, (round_id,)).fetchone() == (OPEN,)

    # the helper's batches

    def take(self, round_id: bytes, batch_id: bytes, body: bytes) -> bytes:
        """Keep the seeds that open; one byte for each report says whether it does.

        The same batch gets the same answer; another one under its id is refused.
        """
        row, found = self._row(round_id), self._open.get(round_id)
        if row.state in (DELETED, VOID):
            raise _gone(row)
        batch, digest = _seed_batch(body), sha256(body).digest()
        query = "SELECT digest FROM batches WHERE round = ? AND batch = ?"
        known = self.store.file.execute(query, (round_id, batch_id)).fetchone()
        if known is not None:
            if known != (digest,):
                said = "another batch was sent under this id before; use a new id"
                raise Failure(409, "OtherBatch", said)
            return batch.answer(self._kept(round_id, batch_id))
        if found is None:
            raise _CLOSED
        if self.store.free_bytes < self.limits.free_bytes:
            raise _DISK
        opened = {
            id_: sealed
            for id_, sealed in batch.seeds.items()
            if self._opens(found, id_, sealed)
        }
        began = time.monotonic()
        self.passing("before_commit")
        with self.store.changing() as file:
            file.execute(
                "INSERT INTO batches VALUES (?, ?, ?, ?)",
                (round_id, batch_id, len(opened), digest),
            )
            file.executemany(
                "INSERT INTO seeds VALUES (?, ?, ?, ?)",
                ((round_id, id_, batch_id, sealed) for id_, sealed in opened.items()),
            )
        found.reports += len(opened)
        self.tally.counted += len(opened)
        self.tally.commit(began, self.clock())
        self.passing("after_commit")
        return batch.answer(opened)

    def _kept(self, round_id: bytes, batch_id: bytes) -> set[bytes]:
        query = "SELECT report FROM seeds WHERE round = ? AND batch = ?"
        found = self.store.file.execute(query, (round_id, batch_id))
        return {report for (report,) in found}

    @staticmethod
    def _opens(found: _OpenRound, report_id: bytes, sealed: bytes) -> bool:
        try:
            return len(found.opener(sealed, report_id)) == SEED_BYTES
        except BadMessage:
            return False

    # closing

    def close(self, round_id: bytes, chosen: bytes | None = None) -> bytes | None:
        """What this operator publishes; None while it must be computed.

        The batches (all of the leader's own, or those that the leader chose) and the
        seed of the noise are on the disk before anything is computed. Asked again, the
        answer is the same for ever.
        """
        row = self._row(round_id)
        if row.state in (DELETED, VOID):
            raise _gone(row)
        if row.state == SIGNED:
            raise Failure(409, "NotOpen", "the round is not open yet")
        if row.state == OPEN:
            self._choose(row, chosen)
            return None
        if self.role is Role.HELPER and chosen != row.chosen:
            said = "another set of batches was chosen for this round before"
            raise Failure(409, "OtherSet", said)
        return row.result

    def _choose(self, row: RoundRow, chosen: bytes | None) -> None:
        manifest = self._open[row.id].manifest
        if self.role is Role.LEADER:
            query = "SELECT batch FROM batches WHERE round = ? ORDER BY batch"
            found = self.store.file.execute(query, (row.id,))
            chosen = b"".join(batch for (batch,) in found)
            n = self._open[row.id].reports
        else:
            n = self._chosen_reports(row.id, chosen or b"")
        if n < manifest.least_reports:
            raise Failure(
                *(412, "TooFew"),
                f"fewer than {manifest.least_reports:,} reports were counted: nothing "
                "is published of this round",
            )
        noise = os.urandom(SECRET_BYTES)
        with self.store.changing() as file:
            file.execute(
                "UPDATE rounds SET state = ?, chosen = ?, noise = ? WHERE id = ?",
                (CLOSING, chosen, noise, row.id),
            )
        del self._open[row.id]
        self.passing("closing")

    def _chosen_reports(self, round_id: bytes, chosen: bytes) -> int:
        """How many reports these batches have; refuses one that would count twice."""
        ids = _batch_ids(chosen)
        query = "SELECT count(*) FROM batches WHERE round = ? AND batch = ?"
        file, n = self.store.file, 0
        reports: set[bytes] = set()
        for batch in ids:
            if file.execute(query, (round_id, batch)).fetchone() == (0,):
                said = f"batch {batch.hex()} is not known here"
                raise Failure(409, "UnknownBatch", said)
            own = self._kept(round_id, batch)
            reports |= own
            n += len(own)
        if len(reports) < n:
            said = "a report is in two of the batches: it would count twice"
            raise Failure(409, "Twice", said)
        return n

    def compute(self, round_id: bytes) -> bytes:
        """The bytes that are published of a round that is closing.

        A function of what is on the disk; it reads by a connection of its own, so that
        it may run beside everything else.
        """
        file = self.store.reading()
        try:
            query = "SELECT * FROM rounds WHERE id = ?"
            [row] = (RoundRow(*one) for one in file.execute(query, (round_id,)))
            assert row.noise is not None  # of a round that is closing
            manifest, chosen = row.manifest, row.chosen or b""
            if self.role is Role.LEADER:
                query = "SELECT halves FROM totals WHERE round = ?"
                [(halves,)] = file.execute(query, (round_id,))
                total = from_bytes(halves, manifest.fields.numbers)
            else:
                total = self._helpers_sum(file, row, manifest)
        finally:
            file.close()
        made = to_bytes(published(total, sigma=manifest.fields.sigma, seed=row.noise))
        if self.role is Role.LEADER:
            return Closing(tuple(_batch_ids(chosen)), made).body()
        return made

    def _helpers_sum(
        self, file: sqlite3.Connection, row: RoundRow, manifest: SumManifest
    ) -> Numbers:
        """The sum of the streams of all chosen seeds, one at a time."""
        key = self.store.private_key(row.run, row.number)
        opener = Opener(Role.HELPER, row.id, key)
        total = np.zeros(manifest.fields.numbers, np.uint32)
        query = "SELECT report, sealed FROM seeds WHERE round = ? AND batch = ?"
        for batch in _batch_ids(row.chosen or b""):
            for report_id, sealed in file.execute(query, (row.id, batch)):
                add_stream(total, opener(sealed, report_id))
        return total

    def finish(self, round_id: bytes, result: bytes) -> bytes:
        """Keep what is published; a result that is there already stays.

        In the same transaction goes all that could tell it without its noise.
        """
        row = self._row(round_id)
        if row.state == CLOSING:
            self.passing("computed")
            with self.store.changing() as file:
                file.execute(
                    "UPDATE rounds SET state = ?, result = ?, noise = NULL "
                    "WHERE id = ?",
                    (CLOSED, result, round_id),
                )
                self.store.erase_halves(file, round_id)
            self.passing("closed")
            self.store.delete_key(row.run, row.number)
            self.store.tidy()
            return result
        if row.state in (DELETED, VOID):
            raise _gone(row)
        assert row.result is not None  # of a closed one
        return row.result

    def delete(self, round_id: bytes) -> None:
        """Delete keys, seeds, noise and ids of a round; a digest of its result stays.

        An open round is void from then on: nothing of it is ever published.
        """
        row = self._row(round_id)
        if row.state in (DELETED, VOID):
            return
        state = DELETED if row.state == CLOSED else VOID
        with self.store.changing() as file:
            self.store.forget(file, row, state=state)
        self._open.pop(round_id, None)
        self._note(self._row(round_id))
        self.store.tidy()
        self.passing("deleted")

    def expire(self) -> None:
        """Delete what nobody has asked for since long after its window.

        A coordinator that is gone would otherwise leave keys and halves here for ever.
        """
        for row in self.store.rounds():
            closes = row.manifest.closes
            is_late = self.clock() > closes + self.limits.most_wait
            if is_late and row.state not in (DELETED, VOID):
                self.delete(row.id)

    def _row(self, round_id: bytes) -> RoundRow:
        found = self.store.round(round_id)
        if found is None:
            raise _unknown(round_id)
        return found


@dataclass
class _OpenRound:
    """An open round in memory: what every batch needs."""

    manifest: SumManifest
    opener: Opener = field(repr=False)
    halves: Numbers = field(default_factory=lambda: np.zeros(0, np.uint32), repr=False)
    reports: int = 0


def _seed_batch(body: bytes) -> SeedBatch:
    try:
        return SeedBatch.read(body)
    except BadMessage as error:
        raise Failure(400, "BadMessage", str(error)) from None


def _batch_ids(chosen: bytes) -> list[bytes]:
    """The sorted ids of a set of batches; refuses what is no such set."""
    ids = [chosen[i : i + ID_BYTES] for i in range(0, len(chosen), ID_BYTES)]
    if len(chosen) % ID_BYTES or sorted({*ids}) != ids:
        said = "ids of batches must be of 16 bytes, sorted, and each there once"
        raise Failure(409, "BadSet", said)
    return ids


def _unknown(round_id: bytes) -> Failure:
    said = f"round {round_id.hex()} is not known here; get /v1/manifest again"
    return Failure(404, "UnknownRound", said)


def _gone(row: RoundRow) -> Failure:
    why = (
        "its result was published and its keys are deleted"
        if row.state == DELETED
        else "it is void: nothing of it is or will be published"
    )
    return Failure(410, "Gone", f"{nth_round(row.number)} is over: {why}")


_CLOSED = Failure(409, "Closed", "the round is closed, and this report is not in it")
_ROUND_FULL = Failure(409, "Full", "the round has as many reports as its sum can hold")
_UNOPENED = Failure(
    *(400, "Unopened"),
    "a half does not open: it was sealed to another key, role, round or report, or was "
    "changed on its way; do not send it again",
)
NO_TICKET = Failure(401, "NoTicket", "a report needs a ticket of this operator")
_TICKET_USED = Failure(
    403, "TicketUsed", "another report has used this ticket in this round"
)
_HELPER_AWAY = Failure(
    *(503, "HelperAway"),
    "the helper does not answer, so nothing was counted; send the same bytes again",
    retry_after=_AWAY,
)
_DISK = Failure(
    *(503, "Disk"),
    "there is too little room on the disk, so nothing was counted; send the same "
    "bytes again",
    retry_after=_FULL,
)
