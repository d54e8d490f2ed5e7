"""A relay: it takes uploads, waits for enough of them, shuffles and forwards.

    epoch:   signed ──open──▶ open ──window over──▶ forwarding ──▶ forwarded
                                └── too few ──▶ destroyed ◀── for too long ──┘

    sign      a manifest, if the operator's own limits allow it
    open      an epoch that both operators have signed
    admit     a group of uploads: on the disk, all of them, before anybody is answered
    decide    after the window: forward everything, or destroy everything
    batches   all messages of the epoch in random order, cut into batches
    forwarded the collector has all of them: forget

*Promise.* A message of an upload that was acknowledged is forwarded exactly once, one
that never was at most once, and none before as many uploads are in as the manifest
says. Which messages came together, and when, is never forwarded.

It opens no seal: it has no key. `passing` is called at named points; tests kill the
process there.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from tacit import check
from tacit.errors import Refused
from tacit.service.federation.aggregator import Tally
from tacit.service.federation.tickets import is_handed_out, ticket_digest
from tacit.service.http import Failure
from tacit.service.relay.batches import (
    ID_BYTES,
    MOST_BATCH_BYTES,
    Closing,
    batch_body,
    messages_at_once,
)
from tacit.service.relay.relay_store import (
    DESTROYED,
    FORWARDED,
    FORWARDING,
    OPEN,
    OVER,
    SECRET_BYTES,
    SIGNED,
    EpochRow,
    RelayStore,
    upload_name,
)
from tacit.service.relay.scattered_file import ScatteredFile
from tacit.service.relay.uploads import EpochManifest, MessageFields, Upload
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

_FULL = 30  # seconds after which a client may ask again if the disk is full
_SCATTER = 5.0  # seconds after which messages get their places, at the latest
_MOST_STAGED = 2**26  # bytes of messages that wait for their places
_chance = random.SystemRandom()


@dataclass(frozen=True)
class RelayLimits:
    """What the operator of a relay signs, and no more than it takes on."""

    least_uploads: int = 2  # n_min: fewer would be mixed with nobody
    most_uploads: int = 1_000_000
    least_window: int = 1  # seconds, from now or from the opening if that is later
    most_window: int = 31 * DAY  # until it closes
    most_upload_bytes: int = 2**25
    most_delay: float = 60.0  # seconds at random after the window, before forwarding
    most_wait: float = 7 * 24 * 3600.0  # seconds after that, for an absent collector
    free_bytes: int = 256 * 2**20  # with less room on the disk, nothing is taken
    needs_tickets: bool = True

    def __post_init__(self) -> None:
        check.count(
            least_uploads=self.least_uploads,
            most_uploads=self.most_uploads,
            most_upload_bytes=self.most_upload_bytes,
            most_window=self.most_window,
        )
        check.not_negative(
            least_window=self.least_window,
            most_delay=self.most_delay,
            most_wait=self.most_wait,
            free_bytes=self.free_bytes,
        )

    def check(self, manifest: EpochManifest, now: float) -> None:
        """Refuse a manifest that passes a limit."""
        size = manifest.fields.reports_per_user * manifest.fields.sealed_bytes
        verdicts = {
            "n_min": (
                manifest.least_reports >= self.least_uploads,
                f"{manifest.least_reports:,}, at least {self.least_uploads:,}",
            ),
            "n_max": (
                manifest.most_reports <= self.most_uploads,
                f"{manifest.most_reports:,}, at most {self.most_uploads:,}",
            ),
            "tickets": (
                manifest.fields.needs_tickets == self.needs_tickets,
                f"{_asked(manifest.fields.needs_tickets)}, and this relay has "
                f"{_asked(self.needs_tickets)}: privacy.counted_by of the experiment "
                "and limits.needs_tickets must agree",
            ),
            **window_verdicts(
                manifest, now, least=self.least_window, most=self.most_window
            ),
            "an upload": (
                size <= self.most_upload_bytes
                and manifest.fields.sealed_bytes < MOST_BATCH_BYTES,
                f"{size:,} bytes, at most {self.most_upload_bytes:,}, and a message "
                f"less than {MOST_BATCH_BYTES:,}",
            ),
        }
        refuse_limits("relay", verdicts)


@dataclass(frozen=True)
class Arrived:
    """One upload with the ticket that came along."""

    upload: Upload = field(repr=False)
    ticket: bytes = b""


@dataclass(frozen=True)
class Status:
    """What a relay says of an epoch: of one that is open not even how many came."""

    state: str
    uploads: int | None


class Relay:
    """Another operator's than the collector. All but `batches` runs in one thread."""

    def __init__(
        self,
        store: RelayStore,
        signer: Signer,
        limits: RelayLimits,
        *,
        url: str,
        passing: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store, self.signer, self.limits = store, signer, limits
        self.url, self.clock = url, clock
        self.tally = Tally()
        self.passing = passing or (lambda _: None)
        self._open: dict[bytes, _OpenEpoch] = {}
        # Of every epoch, for a thread that must not touch the file: its manifest, or
        # that it is over.
        self._known: dict[bytes, EpochManifest | Failure] = {}
        self._scattered_at = -math.inf  # by the clock that never goes back
        self.largest = 0  # bytes of an upload, of all epochs that are not over
        for row in store.epochs():
            self._note(row)

    # opening

    def sign(self, document: bytes) -> bytes:
        """The signature of this operator, on what its own limits allow."""
        manifest = read_unsigned(document, MessageFields)
        known = self.store.epoch_of(manifest.run, manifest.round)
        is_known = known is not None and known.id == manifest.round_id
        refuse_url("relay", manifest.url, self.url)
        refuse_past(manifest, self.clock())
        # Asked again, what is left of the window may be less than was signed.
        self.limits.check(manifest, manifest.opens if is_known else self.clock())
        refuse_gap(manifest, self.store.epoch_of(manifest.run, manifest.round - 1))
        if known is not None and not is_known:
            is_over = known.manifest.closes <= self.clock()
            refuse_fork(manifest, may_be_replaced=known.state == SIGNED and is_over)
        if not is_known:
            self._check_room(manifest)
            with self.store.changing() as file:
                file.execute(
                    "DELETE FROM epochs WHERE run = ? AND number = ?",
                    (manifest.run, manifest.round),
                )
                file.execute(
                    "INSERT INTO epochs VALUES (?, ?, ?, ?, ?, NULL, NULL, NULL, 0)",
                    (
                        *(manifest.round_id, manifest.run, manifest.round),
                        *(document, SIGNED),
                    ),
                )
        return signature(manifest, self.signer.key)

    def _check_room(self, manifest: EpochManifest) -> None:
        """Refuse an epoch for whose messages there is no room on the disk."""
        needed = self._scattered(manifest).length
        room = max(0, self.store.free_bytes - self.limits.free_bytes)
        if needed > room:
            raise Failure(
                *(503, "Disk"),
                f"{manifest.most_reports:,} uploads would need {needed:,} bytes on the "
                f"disk of this relay, and it has room for {room:,}",
                retry_after=_FULL,
            )

    def _scattered(self, manifest: EpochManifest) -> ScatteredFile:
        most = manifest.most_reports * manifest.fields.reports_per_user
        size = manifest.fields.sealed_bytes
        return self.store.scattered(manifest.round_id, messages=most, size=size)

    def open(self, sent: bytes) -> bytes:
        """Open the epoch of a manifest that both have signed; its id."""
        manifest = self.signer.read(sent, MessageFields)
        row = self.store.epoch(manifest.round_id)
        if row is None:
            said = "this relay has not signed that epoch; ask it to sign first"
            raise Failure(403, "Unsigned", said)
        if row.state in OVER:
            raise _gone(row)
        if row.state == SIGNED:
            secret = os.urandom(SECRET_BYTES)
            delay = _chance.uniform(0.0, self.limits.most_delay)
            with self.store.changing() as file:
                file.execute(
                    "UPDATE epochs SET state = ?, secret = ?, delay = ? WHERE id = ?",
                    (OPEN, secret, delay, row.id),
                )
                self.store.reserve(file, row.id, self._scattered(manifest))
            self._note(self._row(row.id))
        return row.id

    def known(self, epoch: bytes) -> EpochManifest:
        """The manifest of an epoch that is open or not over; refuses any other.

        It may be called from any thread.
        """
        found = self._known.get(epoch)
        if found is None:
            said = f"epoch {epoch.hex()} is not known here; get /v1/manifest again"
            raise Failure(404, "UnknownRound", said)
        if isinstance(found, Failure):
            raise found
        return found

    def status(self, epoch: bytes) -> Status:
        """The state of an epoch; 404 if it is unknown."""
        row = self._row(epoch)
        return Status(row.state, row.uploads)

    def counts(self) -> list[tuple[EpochManifest, str, int]]:
        """Every epoch with its state and its uploads, for the relay's own operator."""
        return [
            (
                row.manifest,
                row.state,
                self._open[row.id].uploads
                if row.id in self._open
                else row.uploads or 0,
            )
            for row in self.store.epochs()
        ]

    def _note(self, row: EpochRow) -> None:
        self._open.pop(row.id, None)
        if row.state in OVER:
            self._known[row.id] = _gone(row)
        elif row.state != SIGNED:
            manifest = row.manifest
            self._known[row.id] = manifest
            if row.state == OPEN:
                found = _OpenEpoch(manifest, row.delay or 0.0, float(manifest.closes))
                found.add(len(self.store.seen(row.id)), self.clock())
                self._open[row.id] = found
        known = [one for one in self._known.values() if not isinstance(one, Failure)]
        self.largest = max((one.fields.body_bytes for one in known), default=0)

    # uploads

    def admit(self, epoch: bytes, arrived: Sequence[Arrived]) -> list[Failure | int]:
        """Keep a group of uploads; for each 202, 200 if it was kept before, or why not.

        One transaction has them all: messages, digests and tickets.
        """
        row, found = self._row(epoch), self._open.get(epoch)
        if row.state in OVER:
            return [_gone(row)] * len(arrived)
        if row.state == SIGNED:
            return [_CLOSED] * len(arrived)  # it was never opened
        verdicts: list[Failure | int] = [200] * len(arrived)
        names = [upload_name(row, one.upload.digest) for one in arrived]
        fresh = self._unseen(epoch, names)
        if found is None or found.manifest.closes <= self.clock():
            for i in fresh:
                verdicts[i] = _CLOSED
        elif self.store.free_bytes < self.limits.free_bytes:
            for i in fresh:
                verdicts[i] = _DISK
        else:
            self._keep(found, arrived, names, fresh, verdicts)
        # Of two with one digest, both hear what became of the first.
        first = {names[i]: verdicts[i] for i in fresh}
        return [
            first.get(name, said) if said == 200 else said
            for name, said in zip(names, verdicts, strict=True)
        ]

    def _unseen(self, epoch: bytes, names: Sequence[bytes]) -> list[int]:
        seen, found = self.store.seen(epoch), dict[bytes, int]()
        for i, name in enumerate(names):
            if not seen.has_upload(name):
                found.setdefault(name, i)
        return [*found.values()]

    def _keep(
        self,
        found: _OpenEpoch,
        arrived: Sequence[Arrived],
        names: Sequence[bytes],
        fresh: Sequence[int],
        verdicts: list[Failure | int],
    ) -> None:
        epoch = found.manifest.round_id
        tickets = self._tickets(epoch, arrived, fresh, verdicts)
        room = found.manifest.most_reports - found.uploads
        kept = [*tickets][: max(0, room)]
        for i in [*tickets][len(kept) :]:
            verdicts[i] = _EPOCH_FULL
        if not kept:
            return
        self.passing("before_commit")
        began = time.monotonic()
        try:
            with self.store.writing() as file:
                self.store.add(
                    *(file, epoch),
                    [one for i in kept for one in arrived[i].upload.sealed],
                    uploads=[names[i] for i in kept],
                    used=[tickets[i] for i in kept if tickets[i]],
                )
                self.passing("in_transaction")
        except BaseException:
            self.store.reread(epoch)
            raise
        for i in kept:
            verdicts[i] = 202
        found.add(len(kept), self.clock())
        self.tally.counted += len(kept)
        self.tally.commit(began, self.clock())
        self.passing("after_commit")

    def _tickets(
        self,
        epoch: bytes,
        arrived: Sequence[Arrived],
        fresh: Sequence[int],
        verdicts: list[Failure | int],
    ) -> dict[int, bytes]:
        """The digest of each upload's ticket, of those that may be kept."""
        if not self.limits.needs_tickets:
            return dict.fromkeys(fresh, b"")
        seen, found = self.store.seen(epoch), dict[int, bytes]()
        for i in fresh:
            ticket = ticket_digest(arrived[i].ticket)
            if not is_handed_out(self.store.file, ticket):
                verdicts[i] = NO_TICKET
            elif ticket in found.values() or seen.has_ticket(ticket):
                verdicts[i] = _TICKET_USED
            else:
                found[i] = ticket
        return found

    # places

    def unscattered(self) -> list[bytes]:
        """The epochs some of whose messages are due to get their places."""
        staged, now = self.store.staged(), time.monotonic()
        is_due = now >= self._scattered_at + _SCATTER
        if not is_due and sum(staged.values()) < _MOST_STAGED:
            return []
        self._scattered_at = now
        return [*staged]

    def scatter(self, epoch: bytes) -> None:
        """Give every message of an epoch a random place among all of it."""
        self.store.scatter(epoch, self.passing)

    # forwarding

    def decide(self) -> list[bytes]:
        """Close what is due: forward all of it, or destroy it; what is to be forwarded.

        An epoch is due when its window is over or everybody has reported, and a random
        delay has passed since: after a window nothing tells when the last upload came,
        and if everybody has reported, no more than within which delay. One that the
        collector has not taken for too long is destroyed.
        """
        for epoch, found in [*self._open.items()]:
            manifest = found.manifest
            if self.clock() < found.ends + found.delay:
                continue
            if found.uploads < manifest.least_reports:
                self._destroy(self._row(epoch))
            else:
                self.passing("deciding")
                with self.store.changing() as file:
                    file.execute(
                        "UPDATE epochs SET state = ?, uploads = ? WHERE id = ?",
                        (FORWARDING, found.uploads, epoch),
                    )
                self._note(self._row(epoch))
                self.passing("decided")
        closed = [row for row in self.store.epochs() if row.state == FORWARDING]
        late = [row for row in closed if self._is_late(row)]
        for row in late:
            self._destroy(row)
        return [row.id for row in closed if row not in late]

    def _is_late(self, row: EpochRow) -> bool:
        closes = row.manifest.closes
        return self.clock() >= closes + (row.delay or 0.0) + self.limits.most_wait

    def _destroy(self, row: EpochRow) -> None:
        """Destroy what too few have sent, or what nobody takes or wants."""
        self.passing("destroying")
        with self.store.changing() as file:
            self.store.forget(file, row, state=DESTROYED)
        self._note(self._row(row.id))
        self.store.settle()
        self.store.sweep()

    def batches(self, row: EpochRow) -> Iterator[tuple[bytes, bytes]]:
        """The ids and bodies of all batches of an epoch, the same ones every time.

        It may run beside everything else.
        """
        size = row.manifest.fields.sealed_bytes
        pieces = self.store.shuffled(row.id, messages=messages_at_once(size))
        for number, content in enumerate(pieces):
            yield batch_id(row, number), batch_body(row.id, content, size)

    def closing(self, row: EpochRow) -> Closing:
        """What the collector is told when it has all batches."""
        manifest = row.manifest
        messages = (row.uploads or 0) * manifest.fields.reports_per_user
        count = -(-messages // messages_at_once(manifest.fields.sealed_bytes))
        ids = sorted(batch_id(row, number) for number in range(count))
        return Closing(row.uploads or 0, tuple(ids))

    def forwarding(self, epoch: bytes) -> EpochRow:
        """The row of an epoch that is to be forwarded; its messages have places."""
        row = self._row(epoch)
        if row.state == FORWARDING:
            self.scatter(epoch)
        return row

    def sent(self, epoch: bytes, batches: int) -> None:
        """Note how many batches the collector has, so as not to begin anew."""
        with self.store.writing() as file:
            found = file.execute(
                "UPDATE epochs SET sent = ? WHERE id = ? AND state = ?",
                (batches, epoch, FORWARDING),
            )
            if not found.rowcount:
                raise Refused("an epoch was destroyed while it was forwarded")

    def forwarded(self, epoch: bytes) -> None:
        """Forget an epoch of which the collector has everything."""
        row = self._row(epoch)
        if row.state == FORWARDING:
            with self.store.changing() as file:
                self.store.forget(file, row, state=FORWARDED)
            self._note(self._row(epoch))
            self.store.settle()
            self.store.sweep()
            self.passing("forgotten")

    def void(self, epoch: bytes) -> None:
        """Destroy an epoch that the collector or the own operator gives up."""
        row = self._row(epoch)
        if row.state not in OVER:
            self._destroy(row)

    def _row(self, epoch: bytes) -> EpochRow:
        found = self.store.epoch(epoch)
        if found is None:
            said = f"epoch {epoch.hex()} is not known here"
            raise Failure(404, "UnknownRound", said)
        return found


@dataclass
class _OpenEpoch:
    """An open epoch in memory: what every group of uploads needs."""

    manifest: EpochManifest
    delay: float  # seconds after its end
    ends: float
    uploads: int = 0

    def add(self, uploads: int, now: float) -> None:
        """Count uploads; with everybody's the epoch ends before its window does."""
        self.uploads += uploads
        if self.uploads >= self.manifest.most_reports:
            self.ends = min(self.ends, now)


def _asked(needs_tickets: bool) -> str:
    return "asked for" if needs_tickets else "not asked for"


def batch_id(row: EpochRow, number: int) -> bytes:
    """The id of a batch: random for everybody but this relay, and always the same."""
    assert row.secret is not None  # of an epoch that was opened
    named = row.secret + row.id + number.to_bytes(8, "little")
    return sha256(named).digest()[:ID_BYTES]


def _gone(row: EpochRow) -> Failure:
    why = {
        FORWARDED: "its reports were forwarded and are forgotten here",
        DESTROYED: "its reports were destroyed here, and none is forwarded any more",
    }.get(row.state, "it is void, and none of its reports is or will be forwarded")
    return Failure(410, "Gone", f"epoch {row.number} is over: {why}")


_CLOSED = Failure(409, "Closed", "the epoch is closed, and this upload is not in it")
_EPOCH_FULL = Failure(409, "Full", "everybody whom the epoch is for has reported")
NO_TICKET = Failure(401, "NoTicket", "an upload needs a ticket of this relay")
_TICKET_USED = Failure(
    403, "TicketUsed", "another upload has used this ticket in this epoch"
)
_DISK = Failure(
    *(503, "Disk"),
    "there is too little room on the disk, so nothing was kept; send the same bytes "
    "again",
    retry_after=_FULL,
)
