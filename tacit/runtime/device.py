"""One real device: Cast bytes in, report bytes out, its ledger in the loop.

    device = Device(path, method, plan, history=shard)
    for parcel in device.pending():          # after a crash: what may not have arrived
        send(parcel.report)
        device.delivered(parcel.round)
    report = device.participate(message)     # None: the device says no
    if report is not None:
        send(report)
        device.delivered(round)

The same `participate` as in simulation, on a cohort of one. What makes a device real is
that its key comes from the operating system and that nothing is said before the ledger
has it on the disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int64
from safetensors.numpy import load, save

from tacit.cipher import SECRET_BYTES
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue, Refused
from tacit.keys import Key, Keys
from tacit.ledger.budget import Cap
from tacit.ledger.durable import DeviceLedger, question_digest
from tacit.ledger.records import Answer, Joined, Refusal
from tacit.ledger.terms import write_terms
from tacit.method import Clients, Method, enrol, participate
from tacit.plan import Plan
from tacit.runtime.checkpoint import parts_of, tree_of
from tacit.runtime.ledger import caps_of, terms_of
from tacit.transport.codec import decode_cast, encode_reports
from tacit.transport.messages import Cast
from tacit.tree import Tree


class Device:
    """A person's own device in one run; it joins when it is first made.

    `run` names the run, by default the plan's digest. Training again under the same
    plan is another run and needs another name: under the old one it would ask the same
    rounds again, and devices refuse that.
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
    ) -> None:
        if len(history) != 1:
            raise BadValue(f"history of {len(history)} people; a device has one owner")
        self.method, self.plan, self.history = method, plan, history
        self.agreement = method.agreement(plan, catalog)
        self.run = self.agreement.digest.hex() if run is None else run
        self.terms = terms_of(method, plan, group=group)
        self.target = caps_of(plan, self.terms.group)
        self.group = [*plan.groups].index(self.terms.group)
        self.ledger = DeviceLedger(path)
        try:
            self._join(profile or Profiles(Strings.of(["me"])))
        except BaseException:
            self.close()
            raise

    def participate(self, message: bytes) -> bytes | None:
        """The report that answers a Cast; None if the device says no.

        The report is on the disk when it is returned. Asked the same again, the device
        gives the same bytes; asked something else for the same round, it says no.
        """
        cast = decode_cast(message)
        with self.ledger.transaction():
            if cast.agreement != self.agreement.digest:
                self.ledger.refuse(self.run, Refusal.OTHER_PLAN)
                return None
            if not self.method.agrees(cast, self.plan):
                self.ledger.refuse(self.run, Refusal.OTHER_PHASE)
                return None
            said = self.ledger.answer(self.run, cast.round)
            if said is None:
                return self._speak(cast, message)
            if said.asked != question_digest(message):
                self.ledger.refuse(self.run, Refusal.OTHER_QUESTION)
                return None
            return said.report

    def pending(self) -> list[Answer]:
        """Reports of this run that are not known to have arrived."""
        return [one for one in self.ledger.pending() if one.run == self.run]

    def delivered(self, round: int) -> None:
        """The report of this round has arrived."""
        self.ledger.delivered(self.run, round)

    def close(self) -> None:
        """Let go of the file."""
        self.ledger.close()

    def _join(self, profile: Profiles) -> None:
        with self.ledger.transaction():
            before = self.ledger.joined(self.run)
            if before is None:
                secret, groups = os.urandom(SECRET_BYTES), np.array([self.group])
                own = Key.from_secret(secret).alone()
                me = enrol(self.method, self.plan, profile, own, groups=groups)
                state = _to_bytes(me.state)
                self.ledger.join(self.run, self.terms, key=secret, state=state)
            elif write_terms(before.terms) != write_terms(self.terms):
                raise Refused(
                    f"run '{self.run}' was joined under other terms, and what was "
                    "agreed cannot change: another method or plan needs another name, "
                    "and a run that an earlier version began is finished with it"
                )

    def _speak(self, cast: Cast, message: bytes) -> bytes | None:
        joined = self.ledger.joined(self.run)
        assert joined is not None  # by __init__
        key, client = self._restored(joined)
        after, reports, took_part = participate(
            self.method,
            cast,
            client,
            self.history,
            key,
            ledger=_Charged(self.ledger, self.run, message, self.target),
        )
        if not took_part.all():
            return None
        [report] = encode_reports(cast, reports)
        state = _to_bytes(after.state)
        self.ledger.keep(self.run, cast.round, report=report, state=state)
        return report

    def _restored(self, joined: Joined) -> tuple[Keys, Clients]:
        """Key and private state; of a forgotten run, neither is used."""
        key = Key.from_secret(joined.key or bytes(SECRET_BYTES))
        state = Tree({}) if joined.state is None else tree_of(load(joined.state))
        groups = np.array([self.group])
        client = Clients(
            self.plan, np.zeros(1, np.int64), groups, state, self.agreement
        )
        return key.alone(), client


@dataclass(frozen=True)
class _Charged:
    """The device's ledger as `participate` asks it."""

    ledger: DeviceLedger
    run: str
    message: bytes
    target: tuple[Cap, ...]

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        """Whether the one device may answer; the entry is written if so."""
        z = None if multipliers is None else float(multipliers[0])
        held = self.ledger.permits(
            self.run, round, asked=self.message, multiplier=z, target=self.target
        )
        return np.array([held])


def _to_bytes(state: Tree) -> bytes:
    parts = {n: np.asarray(p, order="C") for n, p in parts_of(state).items()}
    return bytes(save(parts))
