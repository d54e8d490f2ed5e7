"""Many clients in one process, for trials and load: real reports over real HTTP.

They fetch and check the manifest and the broadcast once for all of them, compute in
chunks as a simulation does, and seal and send every report by itself: each with its own
randomness of the operating system, cut and sealed like that of a real client. What
makes them a simulation is that one process holds all histories and keeps no ledger on a
disk: killed in a round, they begin it anew with other bytes.

The memory is that of two chunks, whatever the number of clients.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data.catalog import Profiles
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue, Unanswered
from tacit.keys import Key
from tacit.method import Ledger, Unmetered, enrol, participate
from tacit.sampling import Draw
from tacit.service.federation.accepted_round import AcceptedRound, accept
from tacit.service.federation.exchange import Exchange, Fate, fate_of
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.posting import NO_ANSWER, Posted, Posting
from tacit.service.federation.rotation import SigningKeys
from tacit.service.form import Rows
from tacit.service.manifest import read_manifest
from tacit.service.signed_document import MOST_BYTES
from tacit.service.urls import checked_url
from tacit.text import nth_round

Progress = Callable[[int, int], None]  # reports that are done, and all
Check = Callable[[], None]  # raises if nobody can take reports any more
Row = Int64[np.ndarray, "numbers"]
_Upload = tuple[Row, str]  # a report that is not yet sealed, and its ticket
_NUMBERS_AT_ONCE = 1 << 20  # of a chunk of reports: eight megabytes
_MOST_AT_ONCE = 512
_LONGEST_WAIT = 30.0  # seconds, whatever Retry-After says
_LOOK = 0.1  # seconds between two checks
_chance = random.SystemRandom()


@dataclass
class Counts:
    """What became of the reports of one round."""

    round: int
    clients: int  # who computed a report
    posted: int = 0  # requests, those that were repeated among them
    fates: dict[Fate, int] = field(default_factory=lambda: dict.fromkeys(Fate, 0))
    total: Row | None = None  # of those delivered, in whole steps, if asked for

    @property
    def delivered(self) -> int:
        """Reports that the leader has answered with 200."""
        return self.fates[Fate.DELIVERED]


class SimulatedClients:
    """Clients of one invitation, one per shard.

    `connections` are open at a time. A report that is not taken is sent again, the same
    bytes, for `patience` seconds. `tickets`, in hexadecimal, are one for each client
    where the operator asks for them.
    """

    def __init__(
        self,
        url: str,
        invitation: Invitation,
        shards: Shards,
        key: Key,
        *,
        profiles: Profiles | None = None,
        groups: Int64[np.ndarray, "clients"] | None = None,
        ledger: Ledger | None = None,
        connections: int = 128,
        chunk: int | None = None,
        patience: float = 600.0,
        seconds: float = 60.0,
        tickets: Sequence[str] = (),
    ) -> None:
        check.count(connections=connections)
        check.positive(patience=patience, seconds=seconds)
        if chunk is not None:
            check.count(chunk=chunk)
        if shards.n_items != len(invitation.catalog):
            raise BadValue(
                f"histories over {shards.n_items} items and a catalog of "
                f"{len(invitation.catalog)}; they must agree"
            )
        self.url, self.invitation, self.shards = checked_url(url), invitation, shards
        if tickets and len(tickets) < len(shards):
            raise BadValue(
                f"{len(tickets)} tickets for {len(shards)} clients; each needs its own"
            )
        self.connections, self.chunk, self.tickets = connections, chunk, tickets
        self.patience, self.seconds = patience, seconds
        self.keys = SigningKeys(invitation.leader, invitation.helper)
        self.known: dict[int, bytes] = {}
        self._ledger = ledger or Unmetered()
        self._own = key.each(np.arange(len(shards)))
        names = Strings.of(str(row) for row in range(len(shards)))
        self._clients = enrol(
            invitation.method,
            invitation.plan,
            profiles or Profiles(names),
            self._own,
            catalog=invitation.catalog,
            groups=groups,
        )

    def answer(
        self,
        *,
        progress: Progress | None = None,
        keeps_total: bool = False,
        check: Check = lambda: None,
    ) -> Counts | None:
        """Answer the newest round with every client; None if there is nothing new.

        What `check` raises, which is called again and again, ends the round at once.
        """
        found = self._round()
        if found is None:
            return None
        answering = self._answered(found, progress, keeps_total=keeps_total)
        return asyncio.run(_checked(answering, check))

    def _round(self) -> AcceptedRound | None:
        """The newest round, if it is open, as agreed, and not answered yet."""
        most = self.invitation.agreement.most_bytes
        with closing(Exchange(seconds=self.seconds)) as exchange:
            sent = exchange.get(f"{self.url}/v1/manifest", most=MOST_BYTES)
            if sent is None:
                return None
            kind = self.invitation.form_class.kind
            keys = self.keys.by_name(kind.spelling.names)
            manifest = read_manifest(sent, kind, keys)
            now = int(time.time())
            is_seen = self.known.get(manifest.round) == manifest.round_id
            if is_seen or not manifest.opens <= now < manifest.closes:
                return None
            name = manifest.broadcast.hex()
            message = exchange.get(f"{self.url}/v1/broadcast/{name}", most=most)
        if message is None:
            raise Unanswered(
                f"{self.url} has no broadcast for {nth_round(manifest.round)}"
            )
        found = accept(self.invitation, manifest, message, now=now, known=self.known)
        self.known[manifest.round] = manifest.round_id
        return found

    # one round

    async def _answered(
        self, round_: AcceptedRound, progress: Progress | None, *, keeps_total: bool
    ) -> Counts:
        n = len(self.shards)
        counts = Counts(round_.manifest.round, 0)
        if keeps_total:
            counts.total = np.zeros(round_.form.row_size, np.int64)
        waiting: asyncio.Queue[_Upload | None] = asyncio.Queue(self.connections)
        # A ticket says nothing of its owner, so any order will do in a round.
        tickets = chain(self.tickets, repeat(""))
        async with asyncio.TaskGroup() as tasks:
            workers = min(self.connections, n)
            for _ in range(workers):
                tasks.create_task(self._work(round_, waiting, counts, progress))
            for rows in self._chunks(round_):
                # Beside the loop: answers are read while the next chunk is computed.
                whole = await asyncio.to_thread(self._computed, round_, rows)
                counts.clients += len(whole)
                for row in whole:
                    await waiting.put((row, next(tickets)))
            for _ in range(workers):
                await waiting.put(None)
        return counts

    def _chunks(self, round_: AcceptedRound) -> Iterator[Int64[np.ndarray, "rows"]]:
        """The clients who report in this round, some at a time."""
        step, plan = self.chunk or most_rows(round_.form.row_size), self.invitation.plan
        draw = Draw(self._own.at("cohort"), self._clients.groups, round_.manifest.round)
        cohort = plan.sampler.cohort(draw, plan)
        for start in range(0, len(cohort), step):
            yield cohort[start : start + step]

    def _computed(self, round_: AcceptedRound, rows: Int64[np.ndarray, "rows"]) -> Rows:
        """The reports of some clients, not yet sealed, one row per client."""
        after, reports, _ = participate(
            self.invitation.method,
            round_.broadcast,
            self._clients.take(rows),
            self.shards.take(rows),
            self._own[rows],
            ledger=self._ledger,
        )
        self._clients = self._clients.with_state(rows, after.state)
        if not len(reports):  # all of them refused
            return np.zeros((0, round_.form.row_size), np.int64)
        return round_.form.rows(reports.tree)

    async def _work(
        self,
        round_: AcceptedRound,
        waiting: asyncio.Queue[_Upload | None],
        counts: Counts,
        progress: Progress | None,
    ) -> None:
        """Seal and send one report after the other, over one connection."""
        manifest, form = round_.manifest, round_.form
        path = form.path.format(manifest.round_id.hex())
        with closing(Posting(manifest.url, seconds=self.seconds)) as posting:
            while (upload := await waiting.get()) is not None:
                row, ticket = upload
                send = partial(
                    posting.post, path, round_.form.seal(row, manifest), ticket=ticket
                )
                fate = await self._sent(send, counts)
                counts.fates[fate] += 1
                if fate is Fate.DELIVERED and counts.total is not None:
                    counts.total += row
                if progress is not None:
                    progress(sum(counts.fates.values()), len(self.shards))

    async def _sent(
        self, send: Callable[[], Awaitable[Posted]], counts: Counts
    ) -> Fate:
        """Send the same bytes until they are answered, or patience ends."""
        until = time.monotonic() + self.patience
        while True:
            counts.posted += 1
            wait = 1.0
            try:
                found = await send()
            except NO_ANSWER:
                fate = Fate.AGAIN
            else:
                fate, wait = fate_of(found.status), found.seconds
            wait = min(max(wait, 0.05) * _chance.uniform(1, 2), _LONGEST_WAIT)
            if fate is not Fate.AGAIN or time.monotonic() + wait > until:
                return fate
            await asyncio.sleep(wait)


async def _checked(answering: Coroutine[None, None, Counts], check: Check) -> Counts:
    task = asyncio.create_task(answering)
    try:
        while not (await asyncio.wait({task}, timeout=_LOOK))[0]:
            check()
        return task.result()
    finally:
        task.cancel()


def most_rows(size: int) -> int:
    """How many reports of so many numbers are computed at a time.

    >>> most_rows(3533), most_rows(405450)
    (296, 2)
    """
    return max(1, min(_MOST_AT_ONCE, _NUMBERS_AT_ONCE // size))
