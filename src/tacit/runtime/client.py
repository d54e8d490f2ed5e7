"""One real client: broadcast bytes in, report bytes out, its ledger in the loop.

    client = Client(path, method, plan, catalog=catalog, history=shard)
    for parcel in client.pending():          # after a crash: what may not have arrived
        send(parcel.report)
        client.delivered(parcel.round)
    report = client.participate(message)     # None: the client says no
    if report is not None:
        send(report)
        client.delivered(round)

It calls the same `participate` as a simulation, on a cohort of one. A real client adds:

0  a broadcast is compared with the agreed layout before the history is touched;
1  the ledger permits and is charged, on the disk, before the history is touched;
2  from then on the round is answered, whatever happens: if the computation fails, is
   late or was cut short by a crash, an empty contribution passes the mechanism;
3  the noise of every report is drawn afresh from the operating system and not stored;
4  nothing is sent before the ledger has it on the disk, and a round has one report.

So neither silence nor a second answer says anything about the history.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from safetensors.numpy import load, save

from tacit import check
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadMessage, BadValue, Refused
from tacit.keys import Key
from tacit.ledger.budget import Excess
from tacit.ledger.durable import ClientLedger, question_digest
from tacit.ledger.records import Answer, Joined, Refusal
from tacit.ledger.terms import agreed_terms
from tacit.method import (
    Clients,
    Method,
    Unmetered,
    empty_reports,
    enrol,
    participate,
)
from tacit.plans import Plan
from tacit.runtime.checkpoint import parts_of, tree_of
from tacit.runtime.ledger import caps_of, releases_of, terms_of
from tacit.transport.codec import decode_broadcast, encode_reports
from tacit.transport.messages import Broadcast, Reports
from tacit.tree import Tree

_FAILURES = 16  # the last ones, for the owner; errors must not fill the memory


class Envelope(Protocol):
    """How the reports of one round are kept and sent, if not as they are encoded."""

    @property
    def question(self) -> bytes:
        """What asks for them beside the broadcast; another one asks something else."""
        ...

    def seal(self, broadcast: Broadcast, reports: Reports) -> bytes:
        """The bytes of one client's report.

        They have one length for all, and it may fail because of the broadcast or the
        question, never because of the report.
        """
        ...


@dataclass(frozen=True)
class Plainly:
    """The report as the codec writes it, for whoever is sent it in the end."""

    question: bytes = b""

    def seal(self, broadcast: Broadcast, reports: Reports) -> bytes:
        """The bytes that `encode_reports` gives for one client."""
        [report] = encode_reports(broadcast, reports)
        return report


PLAINLY = Plainly()


class Client:
    """The program of one user in one run; it joins when it is first made.

    `catalog` is the public one: what broadcasts and reports look like follows from it.
    `run` names the run, by default the digest of what was agreed. Training again under
    the same plan is another run and needs another name: under the old one it would ask
    the same rounds again, and clients refuse that.

    `one_operator` is the code that says why one of two operators sees what both see.
    The ledger counts
    the server's view as that of a collusion then, so a cap of the owner's in that view
    is kept; the plan's target, which was for two, is kept in that of readers.

    A computation that takes longer than `deadline`, in seconds, contributes nothing:
    how long it takes may depend on the history, and a late answer would reveal that.

    A ledger in doubt (restored from a backup, say) is not joined and says no to every
    round; `client.ledger.doubt` has the reason.
    """

    def __init__(
        self,
        path: Path,
        method: Method,
        plan: Plan,
        *,
        catalog: Catalog,
        history: Shards,
        profile: Profiles | None = None,
        group: str | None = None,
        run: str | None = None,
        one_operator: str = "",
        deadline: float = 60.0,
    ) -> None:
        check.positive(deadline=deadline)
        if len(history) != 1:
            raise BadValue(f"history of {len(history)} users; a client has one owner")
        self.method, self.plan, self.history = method, plan, history
        if history.n_items != len(catalog):
            raise BadValue(
                f"history over {history.n_items} items and a catalog of "
                f"{len(catalog)}; they must agree"
            )
        self.agreement = method.agreement(plan, catalog)
        self.run = self.agreement.digest.hex() if run is None else run
        releases = releases_of(method, plan, one_operator=one_operator)
        terms = terms_of(method, plan, group=group, releases=releases)
        self.terms = replace(terms, agreement=self.agreement.digest.hex())
        self.target = caps_of(plan, self.terms.group, one_operator=one_operator)
        self.group = [*plan.groups].index(self.terms.group)
        self.deadline, self._work = deadline, _Work()
        # For the owner: nobody else hears of them. As texts, because an exception holds
        # on to the history and to the key of the noise.
        self.failures: deque[str] = deque(maxlen=_FAILURES)
        self.ledger = ClientLedger(path)
        try:
            self._join(profile or Profiles(Strings.of(["me"])))
        except BaseException:
            self.close()
            raise

    def participate(
        self, message: bytes, *, envelope: Envelope = PLAINLY
    ) -> bytes | None:
        """The report that answers a broadcast; None if the client says no.

        The report is on the disk when it is returned. Asked the same again, the client
        gives the same bytes; asked something else for the same round, it says no.
        `envelope` makes the bytes of a report, also of an empty one, and its question
        is a part of what is asked.
        """
        if len(message) > self.agreement.most_bytes:
            raise BadMessage(
                f"{len(message)} bytes; no broadcast that was agreed has more than "
                f"{self.agreement.most_bytes}"
            )
        broadcast = decode_broadcast(message)
        charged = self._charge(broadcast, envelope.question + message)
        if charged is None or charged.report is not None:
            return None if charged is None else charged.report
        # Made first and always, so that the answer to a failed computation takes no
        # longer. It may fail because of the broadcast, never because of the history.
        nothing = self._nothing(broadcast, charged, envelope)
        said = None
        if charged.is_new:
            said = self._contribution(broadcast, charged, envelope)
        report, state = (nothing, None) if said is None else said
        return self.ledger.keep(
            self.run, broadcast.round, report=report, state=state, before=charged.state
        )

    def excess(self, round: int) -> Excess | None:
        """The cap or target that answering this round would pass, for the owner."""
        return self.ledger.excess(self.run, [round], target=self.target)

    def allowance(self) -> tuple[int, Excess | None]:
        """How many more rounds caps and target allow, and what the next would pass."""
        return self.ledger.allowance(self.run, target=self.target)

    def pending(self) -> list[Answer]:
        """Reports of this run that are not known to have arrived."""
        return [one for one in self.ledger.pending() if one.run == self.run]

    def delivered(self, round: int) -> None:
        """Note in the ledger that the report of this round has arrived."""
        self.ledger.delivered(self.run, round)

    def finished(self, round: int, *, arrived: bool) -> None:
        """Note that a report has arrived or is given up, and erase its bytes."""
        self.ledger.finish(self.run, round, arrived=arrived)

    def close(self) -> None:
        """Close the file of the ledger."""
        self.ledger.close()

    def _join(self, profile: Profiles) -> None:
        with self.ledger.transaction():
            if self.ledger.doubt is not None:
                return
            before = self.ledger.joined(self.run)
            if before is None:
                state = _to_bytes(self._enrolled(profile))
                self.ledger.join(self.run, self.terms, state=state)
            elif agreed_terms(before.terms) != agreed_terms(self.terms):
                raise Refused(
                    f"run '{self.run}' was joined under other terms, and what was "
                    "agreed cannot change: another method or plan needs another name, "
                    "and a run that an earlier version began is finished with it"
                )

    def _enrolled(self, profile: Profiles) -> Tree:
        """The state to begin with; a profile that does not fit counts as unknown.

        If the client did not join, the server would learn something about the profile.
        """
        own, groups = Key.from_os().alone(), np.array([self.group])
        try:
            return enrol(self.method, self.plan, profile, own, groups=groups).state
        except BadValue as error:
            self._note(error)
            nobody = Profiles(Strings.of(["me"]))
            return enrol(self.method, self.plan, nobody, own, groups=groups).state

    def _note(self, error: Exception) -> None:
        self.failures.append(f"{type(error).__name__}: {error}")

    def _charge(self, broadcast: Broadcast, asked: bytes) -> _Charged | None:
        """Ask the ledger, and be charged for a new round; None if it says no.

        It is one transaction, over before anything is computed. The row of the answer
        is the lock: no other process answers the round with its own contribution.
        """
        with self.ledger.transaction():
            why = self._refusal(broadcast)
            if why is not None:
                self.ledger.refuse(self.run, why)
                return None
            joined = self.ledger.joined(self.run)
            if joined is None:  # accepted since this client was made in doubt
                self.ledger.refuse(self.run, Refusal.LEFT)
                return None
            said = self.ledger.answer(self.run, broadcast.round)
            if said is None:
                is_permitted = self._is_permitted(broadcast, asked)
                return _Charged(joined.state, is_new=True) if is_permitted else None
            why = self._repetition(asked, said, joined)
            if why is not None:
                self.ledger.refuse(self.run, why)
                return None
            return _Charged(joined.state, is_new=False, report=said.report)

    def _is_permitted(self, broadcast: Broadcast, asked: bytes) -> bool:
        """Whether the ledger permits a new round; it is charged if so."""
        return self.ledger.permits(
            self.run,
            broadcast.round,
            asked=asked,
            phase=broadcast.phase,
            multiplier=self.method.multiplier(broadcast, self.plan, self.terms.group),
            target=self.target,
        )

    def _repetition(self, asked: bytes, said: Answer, joined: Joined) -> Refusal | None:
        """Why a round that was answered is not answered again with the same bytes."""
        if said.asked != question_digest(asked):
            return Refusal.OTHER_QUESTION
        if joined.state is None:
            return Refusal.LEFT
        is_over = said.sent is not None and said.report is None
        return Refusal.ENDED if is_over else None

    def _refusal(self, broadcast: Broadcast) -> Refusal | None:
        """Why the client says no before it looks at its budget; None if it does not."""
        if self.ledger.doubt is not None:
            return Refusal.DOUBT
        if broadcast.agreement != self.agreement.digest:
            return Refusal.OTHER_PLAN
        if not self.method.agrees(broadcast, self.plan):
            return Refusal.OTHER_PHASE
        return None if self.agreement.admits(broadcast) else Refusal.OTHER_LAYOUT

    def _nothing(
        self, broadcast: Broadcast, charged: _Charged, envelope: Envelope
    ) -> bytes:
        """The report of a client that contributes nothing."""
        keys = Key.from_os().alone()
        reports = empty_reports(
            self.method, broadcast, self._client(charged), self.history, keys
        )
        return envelope.seal(broadcast, reports)

    def _contribution(
        self, broadcast: Broadcast, charged: _Charged, envelope: Envelope
    ) -> Said | None:
        """Report and next state from the history; None if that fails or is late."""
        client, keys = self._client(charged), Key.from_os().alone()

        def compute() -> Said:
            after, reports, _ = participate(
                self.method,
                broadcast,
                client,
                self.history,
                keys,
                ledger=Unmetered(),  # `_charge` has asked the client's own already
                on_failure=self._note,
            )
            return envelope.seal(broadcast, reports), _to_bytes(after.state)

        return self._work.within(self.deadline, compute)

    def _client(self, charged: _Charged) -> Clients:
        state = Tree({}) if charged.state is None else tree_of(load(charged.state))
        groups = np.array([self.group])
        own = np.zeros(1, np.int64)
        return Clients(self.plan, own, groups, state, self.agreement)


Said = tuple[bytes, bytes]  # a report and the private state after it


@dataclass(frozen=True)
class _Charged:
    """A round that the ledger was charged for, before or just now."""

    state: bytes | None = field(repr=False)
    is_new: bool  # if not, the history may have been read for it: never a second time
    report: bytes | None = None


class _Work:
    """Runs what reads the history, until a deadline, and never raises."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def within(self, seconds: float, compute: Callable[[], Said]) -> Said | None:
        """What was computed; None if it failed, or if it or the one before is late.

        A later result is dropped. A thread cannot be ended, so a late one runs on, but
        at most one does.
        """
        if self._thread is not None and self._thread.is_alive():
            return None
        found: list[Said] = []

        def work() -> None:
            with contextlib.suppress(BaseException):  # failed and late look the same
                found.append(compute())

        self._thread = threading.Thread(target=work, name="participate", daemon=True)
        self._thread.start()
        self._thread.join(seconds)
        is_late = self._thread.is_alive()
        return None if is_late or not found else found[0]


def _to_bytes(state: Tree) -> bytes:
    parts = {n: np.asarray(p, order="C") for n, p in parts_of(state).items()}
    return bytes(save(parts))
