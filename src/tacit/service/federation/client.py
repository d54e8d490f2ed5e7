"""One user's client of a run over two servers: it joins and answers rounds.

    client = FederationClient.join(folder, url, history)
    for outcome in client.outcomes():        # until the run is over
        print(outcome.message)
    client.recommend(10)                     # on this device; nothing is sent
    leave(folder)                            # `leaving`: also where all else fails

A round goes like this, and may be cut off anywhere:

    1  the manifest is fetched; both operators signed it, with keys that are known
    2  the broadcast is fetched and compared with the manifest and with what was agreed
    3  the manifest is noted on the disk: a second one for the round is a fork
    4  the ledger is charged, the history read, the report sealed and kept
    5  at a random moment of the window the kept bytes are sent, and again if need be
    6  the leader's answer is noted, and the bytes are erased
    7  at a random moment of the window's end it looks for the next round

Nothing before line 4 depends on the history, and nothing after it either, since the
report has one length and is sent whatever it says. What is fetched, and when, depends
neither on the moment of sending nor on whether there is anything to send: who serves
manifests learns nothing of either.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType

from tacit import check
from tacit.errors import BadMessage, BadValue, Refused, Unanswered
from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Answer, Doubt, Entry, Refusal
from tacit.method import ListFor
from tacit.records import Records
from tacit.runtime.client import Client
from tacit.runtime.ledger import statements
from tacit.sampling import Once
from tacit.service.client import Connection
from tacit.service.federation.accepted_round import accept
from tacit.service.federation.client_folder import ClientFolder, Membership, SeenRound
from tacit.service.federation.exchange import Exchange, Fate
from tacit.service.federation.history import History, refuse_without_slates
from tacit.service.federation.invitation import MOST_BYTES as MOST_INVITATION
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.new_items import MOST_BYTES as MOST_NEW_ITEMS
from tacit.service.federation.new_items import read_new_items
from tacit.service.federation.rotation import MOST_BYTES as MOST_ROTATIONS
from tacit.service.federation.rotation import SigningKeys, followed
from tacit.service.manifest import AnyManifest, read_document, read_manifest
from tacit.service.model_document import ModelDocument
from tacit.service.signed_document import MOST_BYTES, SIGNATURE_BYTES
from tacit.service.urls import checked_url
from tacit.serving.new_items import NewItem, content_names, items_of, with_new_items
from tacit.serving.recommender import Recommendation
from tacit.statement import Statement, account
from tacit.text import nth_round

_MOST_DOCUMENT = 1 << 24  # bytes of what is said of a model
LEAST_WINDOW = 600.0  # seconds that must be left of a window, to be lost among others
_LAST_SHARE = 0.1  # of what is left of a window: no first send, and the next look
_LONGEST_WAIT = 30.0  # seconds, whatever Retry-After says
_PATIENCE = 24 * 3600.0  # seconds after a window in which a report is still sent
_chance = random.SystemRandom()


class Kind(StrEnum):
    """What came of looking for a round."""

    SENT = "sent"
    NOTHING = "nothing to do"
    WAITING = "waiting"
    REFUSED = "refused"
    DROPPED = "dropped"
    GIVEN_UP = "given up"
    OVER = "over"


@dataclass(frozen=True)
class Outcome:
    """What came of looking for a round, in a sentence, and when to look again."""

    kind: Kind
    message: str
    round: int | None = None
    until: float | None = None  # seconds since 1970


_ENDS = (Kind.OVER, Kind.REFUSED)
_Turn = tuple[Outcome | None, Outcome | None]  # of sending, and of looking


@dataclass(frozen=True)
class Shown:
    """What a client agreed to, what it has said, and what that amounts to."""

    invitation: Invitation
    membership: Membership
    n_items: int
    agreed: tuple[Statement, ...]  # if it takes part in every round
    spent: tuple[Statement, ...]
    entries: tuple[Entry, ...]
    caps: tuple[Cap, ...]
    refusals: tuple[tuple[str, str, int, str], ...]
    waiting: int
    doubt: Doubt | None


@dataclass(frozen=True)
class Limits:
    """The owner's caps, and what they and the plan's target leave of this run."""

    caps: tuple[Cap, ...]
    rounds: int  # that the plan has at the most
    rounds_left: int
    next_refusal: str | None  # why the round after those would be refused


class FederationClient:
    """The client in a folder; close it, or use it as a context.

    `spread` is how many seconds after it was made a report is sent at the latest, and
    about how long nothing is fetched; by default any moment of the window may come up,
    and a round that is open for less than `LEAST_WINDOW` seconds more is not answered
    unless it is asked for. In a trial it is zero: one machine is both operators, knows
    all of it anyway, and waits. `tries` is how often a report is sent in one `once`.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        spread: float | None = None,
        tries: int = 3,
        seconds: float = 30.0,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        check.count(tries=tries)
        if spread is not None:
            check.not_negative(spread=spread)
        self.folder = ClientFolder(Path(folder))
        self._clock, self._sleep = clock, sleep
        self.membership = self.folder.membership()
        self.invitation = self.folder.invitation(self.membership.invitation)
        is_trial = self.invitation.one_machine
        self.spread = 0.0 if is_trial and spread is None else spread
        self.tries = tries
        self._form = self.invitation.form_class
        with ExitStack() as made:
            self._exchange = made.enter_context(Exchange(seconds=seconds))
            self._client = _client(self.folder, self.membership, self.invitation)
            made.callback(self._client.close)
            self._open = made.pop_all()

    @classmethod
    def join(
        cls,
        folder: str | Path,
        url: str,
        read: Callable[[Invitation], History],
        *,
        ledger: Path | None = None,
        ticket: bytes | None = None,
        group: str | None = None,
        expected: str | None = None,
        least_uploads: int | None = None,
        seconds: float = 30.0,
    ) -> History:
        """Agree to the run that a coordinator invites to; what of the history is kept.

        `read` gives the history over the invitation's catalog. `expected` is the
        SHA-256 of the invitation, if it is known from elsewhere: then no coordinator
        can name other operators, another plan or another catalog. Rounds that may be
        used with fewer than `least_uploads` reports are refused, whatever was agreed.
        """
        if least_uploads is not None:
            check.count(least_uploads=least_uploads)
        place = ClientFolder(Path(folder))
        url = checked_url(url)
        with Exchange(seconds=seconds) as exchange:
            sent = exchange.get(f"{url}/v1/invitation", most=MOST_INVITATION)
        if sent is None:
            raise Unanswered(f"{url} invites to nothing; is it a coordinator?")
        digest = hashlib.sha256(sent).hexdigest()
        if expected is not None and expected.lower() != digest:
            raise Refused(
                f"{url} has an invitation with digest {digest}, and {expected} is "
                "expected; it names other operators, or something else was changed"
            )
        invitation = Invitation.decode(sent)
        keys = SigningKeys(invitation.leader, invitation.helper)
        own = (ledger or place.default_ledger).absolute()
        found = read(invitation)
        refuse_without_slates(invitation.method, found.slates)
        only = _own_round(invitation)
        membership = Membership(
            *(url, digest, keys, own, group, ticket, only), least_uploads=least_uploads
        )
        with place.alone():
            if place.is_joined:
                raise Refused(
                    f"{place.path} holds a client already; take another folder, or "
                    f"leave with: tacit client leave --folder {place.path}"
                )
            with closing(_joined(own, invitation, found, group)) as client:
                _refuse_left(client)
            place.join(membership, sent, found)
        return found

    def close(self) -> None:
        """Close the ledger and all connections."""
        self._open.close()

    def __enter__(self) -> FederationClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # rounds

    def outcomes(self, *, now: bool = False, every: float = 10.0) -> Iterator[Outcome]:
        """What comes of looking again and again, until the run is over or refused.

        It looks about once in twice the time that a request may take, whether or not a
        report waits to be sent, and sends in between: who serves manifests must not see
        from the pauses that a relay does not answer this client. With `now` it does
        both as soon as about `every` seconds have passed.
        """
        ended: Outcome | None = None
        next_look = 0.0
        while True:
            clock = self._clock()
            next_fetch = max(next_look, self._silent_until(now=now))
            looks = ended is None and clock >= next_fetch
            if looks and not now:
                next_look = clock + self._pause * _chance.uniform(1.0, 1.2)
            fits = clock + self._exchange.seconds <= next_fetch
            sent, looked = self._tried_turn(
                now=now, looks=looks, sends=bool(now or looks or ended or fits)
            )
            if looked is not None and looked.kind in _ENDS:
                ended = looked
            found = sent or ended or looked
            if found is not None:
                yield found
                if found is ended or found.kind in _ENDS:
                    return
            if found is None or found.kind is not Kind.SENT:
                self._rest(found, next_fetch=max(next_look, next_fetch), every=every)

    @property
    def _pause(self) -> float:
        """Seconds between two looks at the least: a report can be sent in between."""
        longest = 2 * self._exchange.seconds
        return longest if self.spread is None else min(self.spread, longest)

    def _rest(self, found: Outcome | None, *, next_fetch: float, every: float) -> None:
        """Sleep until something is to be done, for about `every` seconds at most."""
        clock, left = self._clock(), every
        if found is not None and found.until is not None:
            left = min(left, found.until - clock)
        if next_fetch > clock:
            left = min(left, next_fetch - clock)
        self._sleep(max(0.0, left) * _chance.uniform(1.0, 1.2))

    def once(self, *, now: bool = False) -> Outcome:
        """Look for a round and answer it, and send what is due.

        With `now` a report is sent as soon as it is made: whoever sees the time of it
        then knows when this program ran.
        """
        sent, looked = self._turn(now=now, tries=self.tries)
        found = sent or looked
        assert found is not None  # it has looked, or is silent and says so
        return found

    def _tried_turn(self, *, now: bool, looks: bool, sends: bool) -> _Turn:
        """One turn of many: nothing is sent a second time before the next one."""
        tries = self.tries if now else 1
        try:
            return self._turn(now=now, tries=tries, looks=looks, sends=sends)
        except Unanswered as error:
            return None, Outcome(Kind.WAITING, str(error))

    def _turn(
        self, *, now: bool, tries: int, looks: bool = True, sends: bool = True
    ) -> _Turn:
        """What came of sending, if something waits, and of looking for a round.

        It looks first, or the moment of the look would tell how long sending took; and
        it sends whatever has come of the look.
        """
        away: Unanswered | None = None
        with self.folder.alone():
            self.membership = self.folder.membership()
            looked = self._silent(now=now)
            if looks and looked is None:
                try:
                    looked = self._looked(now=now)
                except (Refused, BadMessage) as error:
                    looked = Outcome(Kind.REFUSED, str(error))
                except Unanswered as error:
                    away = error
            try:
                sent = self._sent(now=now, tries=tries) if sends else None
            except (Refused, BadMessage) as error:
                sent = Outcome(Kind.REFUSED, str(error))
        if away is not None and sent is None:
            raise away
        return sent, looked

    def _looked(self, *, now: bool) -> Outcome:
        manifest = self._manifest()
        if manifest is None:
            return self._over() or Outcome(Kind.WAITING, "no round is open yet")
        if self._is_answered(manifest):
            said = self._said_of(manifest.round)
            return self._over(manifest) or Outcome(Kind.NOTHING, said, manifest.round)
        clock = self._clock()
        if clock < manifest.opens:
            said = (
                f"{nth_round(manifest.round)} opens in {manifest.opens - clock:.0f} s"
            )
            return Outcome(Kind.WAITING, said, manifest.round, manifest.opens)
        if clock >= manifest.closes:
            said = f"the window of {nth_round(manifest.round)} is over"
            return self._over() or Outcome(Kind.NOTHING, said, manifest.round)
        left = manifest.closes - clock
        if not now and left < self._least_left and not self._is_noted(manifest):
            said = (
                f"the window of {nth_round(manifest.round)} ends in {left:.0f} s, so a "
                "report would tell when this program ran; `tacit client once --now` "
                "sends one all the same"
            )
            return Outcome(Kind.NOTHING, said, manifest.round)
        return self._answered(manifest, now=now)

    @property
    def _least_left(self) -> float:
        """The seconds of a window over which a first send must be spread.

        Whoever opens rounds could else have everybody who is there send at one moment:
        a window may have begun long ago, and end soon.
        """
        return LEAST_WINDOW if self.spread is None else min(self.spread, LEAST_WINDOW)

    def _is_noted(self, manifest: AnyManifest) -> bool:
        """Whether it was accepted before: then the ledger may have been charged.

        Such a round is answered as long as it is open: why it was cut off may depend on
        the history.
        """
        return self.membership.known.get(manifest.round) == manifest.round_id

    def _answered(self, manifest: AnyManifest, *, now: bool) -> Outcome:
        """Compare, note, compute and keep; then send, if it is time."""
        _refuse_bad_url(manifest.url)
        message = self._get(
            f"/v1/broadcast/{manifest.broadcast.hex()}",
            most=self.invitation.agreement.most_bytes,
        )
        if message is None:
            raise Unanswered(
                f"{self.membership.url} has no broadcast for "
                f"{nth_round(manifest.round)}"
            )
        self._catch_up(manifest)
        round_ = accept(
            self.invitation,
            manifest,
            message,
            now=int(self._clock()),
            known=self.membership.known,
            least=self.membership.least_uploads,
        )
        self._note({manifest.round: self._seen(manifest, now=now)})
        if self._is_anothers(manifest.round):
            said = self._said_of(manifest.round)
            return self._silent(now=now) or Outcome(Kind.NOTHING, said, manifest.round)
        before = self._refusals()
        report = self._client.participate(message, envelope=round_)
        if report is None:
            why = [one for one, n in self._refusals().items() if n > before.get(one, 0)]
            said = ", ".join(why) or "the ledger says no"
            if {Refusal.CAP, Refusal.TARGET} & {*why}:
                said = f"{self._client.excess(manifest.round)}"
            return Outcome(Kind.REFUSED, f"the ledger refuses: {said}", manifest.round)
        said = f"the report of {nth_round(manifest.round)} is kept"
        return Outcome(Kind.WAITING, said, manifest.round)

    def _seen(self, manifest: AnyManifest, *, now: bool) -> SeenRound:
        """What is kept of a manifest, with random moments to send and to look again.

        The second is after every moment that the first may be, and does not depend on
        it.
        """
        clock = self._clock()
        last = manifest.closes - _LAST_SHARE * (manifest.closes - clock)
        if self.spread is not None:
            last = min(last, clock + self.spread)
        span = 0.0 if now else max(0.0, last - clock)
        due = clock + _chance.uniform(0.0, span)
        rest = _LAST_SHARE / (1 - _LAST_SHARE) * span  # the last share of the window
        look = clock + span + _chance.uniform(0.0, rest)
        return SeenRound(manifest.round_id, manifest.url, manifest.closes, due, look)

    def _note(self, rounds: dict[int, SeenRound]) -> None:
        after = self.membership.having_seen(rounds)
        if after != self.membership:
            self.folder.write(after)
            self.membership = after

    def _is_anothers(self, number: int) -> bool:
        """Whether a client that reports once does so in another round.

        Whoever serves manifests and broadcasts must not see that: it fetches the same
        as in its own round, at the same times.
        """
        own = self.membership.own_round
        return own is not None and number != own

    def _silent(self, *, now: bool) -> Outcome | None:
        """That nothing is fetched yet after the newest round, if it is so.

        Whether this client had a report to send in it makes no difference.
        """
        look = self._silent_until(now=now)
        if look <= self._clock():
            return None
        number = max(self.membership.rounds)
        return Outcome(Kind.NOTHING, self._said_of(number), number, look)

    def _silent_until(self, *, now: bool) -> float:
        """When the next round is looked for; zero if nothing speaks against it."""
        number = max(self.membership.rounds, default=-1)
        if now or number < 0 or not self._is_settled(number):
            return 0.0
        return self.membership.rounds[number].look

    def _said_of(self, number: int) -> str:
        """What is said of a round in which nothing is left to compute."""
        own = self.membership.own_round
        if own is not None and self._is_anothers(number):
            return f"this client reports once, in {nth_round(own)}"
        return f"{nth_round(number)} is answered"

    def _is_answered(self, manifest: AnyManifest) -> bool:
        """Whether this very manifest is answered, or is not for this client."""
        return self._is_noted(manifest) and self._is_settled(manifest.round)

    def _is_settled(self, number: int) -> bool:
        """Whether the report of a round was made, sent or not, or there is none."""
        if self._is_anothers(number):
            return True
        said = self._client.ledger.answer(self._client.run, number)
        return said is not None and (said.sent or said.report) is not None

    def _refusals(self) -> dict[str, int]:
        found = self._client.ledger.refusals()
        return {why: n for run, why, n, _ in found if run == self._client.run}

    # sending

    def _sent(self, *, now: bool, tries: int) -> Outcome | None:
        """Send a report that is kept, if it is time; None if there is none.

        The oldest comes first; one that nobody takes leaves the others their turn.
        """
        waiting: Outcome | None = None
        for parcel in self._client.pending():
            found = self._sent_one(parcel, now=now, tries=tries)
            if found.kind is not Kind.WAITING:
                return found
            waiting = waiting or found
        return waiting

    def _sent_one(self, parcel: Answer, *, now: bool, tries: int) -> Outcome:
        seen = self.membership.rounds.get(parcel.round)
        if seen is None or parcel.report is None:
            raise Refused(
                f"the report of {nth_round(parcel.round)} was kept by another folder; "
                "send it from there"
            )
        left = seen.due - self._clock()
        if left > 0 and not now:
            said = f"the report of {nth_round(parcel.round)} is sent in {left:.0f} s"
            return Outcome(Kind.WAITING, said, parcel.round, seen.due)
        return self._posted(parcel, parcel.report, seen, tries=tries)

    def _posted(
        self, parcel: Answer, report: bytes, seen: SeenRound, *, tries: int
    ) -> Outcome:
        leader, number = _refuse_bad_url(seen.leader), parcel.round
        for left in reversed(range(tries)):
            answer = self._exchange.post_report(
                leader,
                report,
                path=self._form.path.format(seen.id.hex()),
                content_type=self._form.content_type,
                ticket=self.membership.ticket,
            )
            if answer.fate is not Fate.AGAIN:
                break
            if self._clock() > seen.closes + _PATIENCE:
                said = f"{answer.said}; the window is over since long"
                answer = replace(answer, fate=Fate.GIVEN_UP, said=said)
                break
            wait = min(answer.seconds * _chance.uniform(1, 2), _LONGEST_WAIT)
            if not left:
                said = (
                    f"{nth_round(number)}: {answer.said}; the same bytes are sent again"
                )
                return Outcome(Kind.WAITING, said, number, self._clock() + wait)
            self._sleep(wait)
        arrived = answer.fate is Fate.DELIVERED
        self._client.finished(number, arrived=arrived)
        if arrived:
            return Outcome(
                Kind.SENT, f"{nth_round(number)}: {self._form.taken}", number
            )
        kind = Kind.DROPPED if answer.fate is Fate.DROPPED else Kind.GIVEN_UP
        said = (
            f"{nth_round(number)}: {answer.said}; the report is {kind} and no other is "
            "made of it: the ledger counts the round all the same"
        )
        return Outcome(kind, said, number)

    # public files

    def _get(self, path: str, *, most: int) -> bytes | None:
        return self._exchange.get(self.membership.url + path, most=most)

    def _manifest(self) -> AnyManifest | None:
        """The newest manifest, by the keys that are known or by those that follow."""
        sent = self._get("/v1/manifest", most=MOST_BYTES)
        if sent is None:
            return None
        keys = self.membership.keys
        try:
            found = self._read(sent, keys)
        except BadMessage:
            newer = self._followed(keys)
            if newer == keys:
                raise
            found = self._read(sent, newer)
            self.membership = replace(self.membership, keys=newer)
            self.folder.write(self.membership)
        return found

    def _read(self, sent: bytes, keys: SigningKeys) -> AnyManifest:
        kind = self._form.kind
        return read_manifest(sent, kind, keys.by_name(kind.spelling.names))

    def _followed(self, keys: SigningKeys) -> SigningKeys:
        sent = self._get("/v1/rotation", most=MOST_ROTATIONS)
        return keys if sent is None else followed(keys, sent, run=self.invitation.run)

    def _catch_up(self, manifest: AnyManifest) -> None:
        """Note the rounds between the last one seen and this one, by their digests.

        A client that was away has not seen them. Each names the one before, so the
        signatures of the newest vouch for all of them.
        """
        known = self.membership.known
        if not known or manifest.run != self.invitation.run:
            return
        found: dict[int, SeenRound] = {}
        wanted, number = manifest.previous, manifest.round
        while wanted and wanted not in known.values() and number > max(known) + 1:
            sent = self._get(f"/v1/manifest/{wanted.hex()}", most=MOST_BYTES)
            document = b"" if sent is None else sent[2 * SIGNATURE_BYTES :]
            if hashlib.sha256(document).digest() != wanted:
                return  # refused with what is known: it follows an unknown round
            one = read_document(document, self._form.kind)
            if one.run != manifest.run or one.round >= number:
                return
            found[one.round] = SeenRound(wanted, one.url, one.closes, 0.0)
            wanted, number = one.previous, one.round
        if wanted in known.values():  # else it is a fork, of which nothing is noted
            self._note(found)

    def ended(self) -> str:
        """Why no report is taken any more; empty if one may be, or nobody answers."""
        try:
            if self._get("/v1/manifest", most=MOST_BYTES) is not None:
                return ""
            over = self._over()
        except Refused as error:
            return str(error)
        except Unanswered:
            return ""
        return "" if over is None else f"{over.message}, for `tacit client recommend`"

    def _over(self, manifest: AnyManifest | None = None) -> Outcome | None:
        """That the run is over, if it is: after its last round, or with its model."""
        if manifest is not None and manifest.round + 1 >= self.invitation.plan.rounds:
            return Outcome(Kind.OVER, "the last round is answered", manifest.round)
        sent = self._get("/v1/model", most=_MOST_DOCUMENT)
        if sent is None:
            return None
        told = ModelDocument.decode(sent).model.get("plan")
        if told != self.invitation.agreement.digest.hex():
            return None
        return Outcome(Kind.OVER, "the run is over, and its model is published")

    # what the user asks

    def recommend(
        self, k: int = 10, *, list_for: ListFor = "any"
    ) -> Records[Recommendation]:
        """The best `k` items by the published model, ranked here; nothing is sent.

        A list for a session goes by the order of the history, one for a visit by
        popularity more than others: this client keeps no times.
        Items of the history that the model does not know are left out. Items that came
        after the catalog have a place by their public content, or at the end.
        """
        with Connection(self.membership.url, self.folder.model) as server:
            try:
                recommender = server.recommender.ranking_for(list_for)
            except Unanswered as error:
                raise Unanswered(
                    f"{error}; a model can be fetched once the run is over"
                ) from error
        known, items = recommender.catalog.ids.positions, self.folder.history().items
        history = [one for one in items if one in known]
        new = self._new_items()
        if not new:
            return recommender.recommend(history, k)
        names = content_names(recommender.method)
        every = with_new_items(
            recommender.recommend(history, len(known)),
            new,
            items_of(recommender.catalog, names),
            held=items,
        )
        return Records(every[:k])

    def wait_for_model(self, *, every: float = 5.0) -> None:
        """Wait until a model is published; refuses a run that ended without one."""
        while self._get("/v1/model", most=_MOST_DOCUMENT) is None:
            self._get("/v1/manifest", most=MOST_BYTES)  # refuses a run without a model
            self._sleep(every)

    def _new_items(self) -> tuple[NewItem, ...]:
        """Items that came after the catalog; none if the coordinator is away."""
        try:
            sent = self._get("/v1/new_items", most=MOST_NEW_ITEMS)
        except Unanswered:
            return ()
        return () if sent is None else read_new_items(sent)

    @property
    def ledger(self) -> ClientLedger:
        """Where everything is entered before it is sent."""
        return self._client.ledger

    def limits(self) -> Limits:
        """The caps of the ledger, and how many rounds of this run they still allow."""
        left, excess = self._client.allowance()
        return Limits(
            tuple(self.ledger.caps()),
            self.invitation.plan.rounds,
            left,
            None if excess is None else str(excess),
        )

    def show(self) -> Shown:
        """What was agreed, and what all that was said amounts to."""
        ledger, run = self._client.ledger, self._client.run
        promised = account(self.invitation.plan, self.invitation.releases)
        return Shown(
            self.invitation,
            self.membership,
            len(self.folder.history().items),
            promised.totals,
            statements(ledger),
            tuple(one for one in ledger.entries() if one.run == run),
            tuple(ledger.caps()),
            tuple(ledger.explained_refusals()),
            len(self._client.pending()),
            ledger.doubt,
        )


def _client(
    folder: ClientFolder, membership: Membership, invitation: Invitation
) -> Client:
    return _joined(membership.ledger, invitation, folder.history(), membership.group)


def _joined(
    ledger: Path, invitation: Invitation, history: History, group: str | None
) -> Client:
    return Client(
        ledger,
        invitation.method,
        invitation.plan,
        catalog=invitation.catalog,
        history=history.shards(invitation.catalog, value=invitation.method.liked),
        group=group,
        run=invitation.run.hex(),
        one_operator=invitation.one_operator,
    )


def _own_round(invitation: Invitation) -> int | None:
    """The round that a client answers, drawn by itself; None if it answers all."""
    if not isinstance(invitation.plan.sampler, Once):
        return None
    return _chance.randrange(invitation.plan.rounds)


def _refuse_bad_url(url: str) -> str:
    """The URL that reports are sent to; refuses one that is not encrypted."""
    try:
        return checked_url(url, "the address for reports")
    except BadValue as error:
        raise Refused(f"nothing is sent: {error}") from None


def _refuse_left(client: Client) -> None:
    """Refuse a run that this ledger has left: it would be answered a second time."""
    ledger: ClientLedger = client.ledger
    if ledger.doubt is not None:
        raise BadValue(
            f"{ledger.path} is in doubt: {ledger.doubt}; decide with: tacit ledger "
            f"accept {ledger.path}"
        )
    joined = ledger.joined(client.run)
    if joined is not None and joined.state is None:
        raise Refused(
            f"{ledger.path} has left run {client.run}, and a run that was left is not "
            "answered again"
        )
