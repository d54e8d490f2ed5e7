"""One machine that holds a share of the users: broadcast bytes in, answer bytes out.

    node = Node(simulation, share, NodeStore(path), run="films")
    answer = node.answer(question)

The users of a node are clients as everywhere: they are asked by the same `Cohort` as on
one machine, in the same chunks, and their coins and draws are addressed by user, so who
else is on the machine changes nothing. Over `secure_sum` the node answers with the sum
of its users' reports, each bounded, and adds no noise: whoever adds up the nodes does
that once. Over `direct` and `shuffle` it answers with the reports.

A refusal depends on the question alone, never on a history. In a release a user whose
computation fails contributes nothing, and the node's operator alone is told why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from tacit.agreement import Agreement
from tacit.data.digest import content_digest
from tacit.errors import BadMessage, Refused
from tacit.keys import Key
from tacit.method import Clients, Server
from tacit.runtime.node_store import Kept, NodeStore, digest_of
from tacit.runtime.rounds import Cohort, State
from tacit.runtime.simulate import Simulation
from tacit.text import nth_round
from tacit.transport.channels import RoundContext, channel, partial_sum
from tacit.transport.codec import decode_broadcast, encode_partial, encode_stack
from tacit.transport.messages import Broadcast, PartialSum
from tacit.transport.node_answer import Kind, NodeAnswer, Share

_FAILURES = 16  # the first ones of an answer are told; they must not fill a disk


def _untold(error: Exception) -> None:
    """Nobody is told of a failure."""


@dataclass(frozen=True, eq=False)
class Node:
    """A share of the users in one run; all others are absent from its simulation.

    `run` names the run in the store. A run that is begun again needs another name:
    under the old one its rounds have been answered. It counts as one of `most_runs`
    from the first question on that its users agreed to. `note` tells the operator of
    the node of users whose computation failed in a release.
    """

    simulation: Simulation
    share: Share
    store: NodeStore
    run: str
    most_runs: int | None = None  # that its operator allows; None: any number
    note: Callable[[Exception], None] = _untold
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        refuse_channel(self.simulation.plan.channel)
        self.store.check_run(self.run, self.terms, most_runs=self.most_runs)

    def answer(self, question: bytes) -> bytes:
        """The answer to a broadcast; asked the same again, the same bytes."""
        try:
            broadcast = self._heard(question)
        except (BadMessage, Refused) as error:
            refusal = NodeAnswer.refusal(self.share, str(error), store=self._store)
            return refusal.encode()
        self.store.join(self.run, self.terms, self._enrolled, most_runs=self.most_runs)
        asked = self.store.asked(self.run, broadcast.round)
        if asked is not None and asked.content is not None:
            return asked.content
        # On the disk before any history is read. What follows is the same if the node
        # is killed and asked again: state and draws are those of the store.
        self.store.begin(self.run, broadcast.round, question)
        state = self._state(broadcast)
        cohort = self._cohort(state, broadcast)
        messages = (*self._messages(cohort, broadcast),)
        answer = self._worded(cohort, messages).encode()
        kept = self._kept(cohort, state, broadcast)
        return self.store.keep(self.run, broadcast.round, answer=answer, kept=kept)

    @property
    def terms(self) -> str:
        """What a run is begun with on this node: nothing else may continue it."""
        made = {
            "agreement": self.agreement.digest.hex(),
            "share": str(self.share),
            "release": self.simulation.is_release,
            "data": self.data_digest,
        }
        return json.dumps(made, sort_keys=True)

    @cached_property
    def data_digest(self) -> str:
        """32 digits that change with any event of the node's users."""
        made = self.simulation
        return content_digest({"train": made.shards.log, "users": made.profiles.ids})

    @property
    def agreement(self) -> Agreement:
        """What the node's users agreed to."""
        made = self.simulation
        return made.method.agreement(made.plan, made.catalog)

    def _heard(self, question: bytes) -> Broadcast:
        """The broadcast, if it is one that the users agreed to in a round to come."""
        if len(question) > self.agreement.most_bytes:
            raise BadMessage(
                f"a question of {len(question):,} bytes; no broadcast that was agreed "
                f"has more than {self.agreement.most_bytes:,}"
            )
        broadcast = decode_broadcast(question)
        self.agreement.check(broadcast)  # digest, layout and range of every value
        plan = self.simulation.plan
        if not self.simulation.method.agrees(broadcast, plan):
            raise Refused(
                f"{nth_round(broadcast.round)} asks for phase {broadcast.phase}, which "
                "the plan does not have in that round"
            )
        last = self.store.last_round(self.run)
        if broadcast.round < last:
            raise Refused(
                f"{nth_round(broadcast.round)} is over: {nth_round(last)} of run "
                f"'{self.run}' was answered"
            )
        asked = self.store.asked(self.run, broadcast.round)
        if asked is not None and asked.digest != digest_of(question):
            raise Refused(
                f"{nth_round(broadcast.round)} of run '{self.run}' was asked before, "
                "with another question; a round is answered once"
            )
        return broadcast

    def _enrolled(self) -> Kept:
        made = self.simulation
        state = made.before_any_round(self._server(0))
        return Kept(state.clients.state, state.taken, state.spent, state.secrets)

    def _server(self, round: int) -> Server:
        """What a node knows of the server: plan, catalog and round."""
        return Server(self.simulation.plan, self.simulation.catalog, round, {}, {})

    def _state(self, broadcast: Broadcast) -> State:
        made, kept = self.simulation, self.store.kept(self.run)
        clients = Clients(made.plan, made.rows, made.codes, kept.state, self.agreement)
        server = self._server(broadcast.round)
        return State(server, clients, kept.taken, kept.spent, kept.secrets)

    def _cohort(self, state: State, broadcast: Broadcast) -> Cohort:
        made = self.simulation
        population = made.population
        if made.is_release:  # what fails counts as nothing: see `participate`
            population = replace(population, on_failure=self._note)
        layout = self.agreement.reports[broadcast.phase]
        return Cohort.drawn(made.method, state, population, broadcast, layout)

    def _messages(self, cohort: Cohort, broadcast: Broadcast) -> Iterator[bytes]:
        if self._sums:
            context = self._context(cohort, broadcast)
            trees = (chunk.tree for chunk in cohort.chunks())
            yield encode_partial(broadcast, PartialSum(partial_sum(trees, context)))
            return
        for chunk in cohort.chunks():
            yield encode_stack(broadcast, chunk)

    @property
    def _sums(self) -> bool:
        return self.simulation.plan.noise_shares > 0

    def _context(self, cohort: Cohort, broadcast: Broadcast) -> RoundContext:
        """Bounds and layout of the round; nothing here draws from its key."""
        made = self.simulation
        mechanism = made.method.noise(broadcast, made.plan)
        return RoundContext(
            cohort.layout, Key.from_os(), mechanism, is_partial=made.is_release
        )

    def _worded(self, cohort: Cohort, messages: tuple[bytes, ...]) -> NodeAnswer:
        kind = Kind.PARTIAL_SUM if self._sums else Kind.REPORTS
        if self.simulation.is_release:  # a count of users would be one more release
            return NodeAnswer(
                kind, self.share, messages, is_release=True, store=self._store
            )
        return NodeAnswer(
            kind,
            self.share,
            messages,
            asked=cohort.asked,
            took_part=cohort.took_part,
            store=self._store,
        )

    @property
    def _store(self) -> bytes:
        return bytes.fromhex(self.store.id)

    def _kept(self, cohort: Cohort, before: State, broadcast: Broadcast) -> Kept:
        secrets = before.secrets
        if secrets is not None:  # forgotten with the answer that was drawn from it
            is_last = broadcast.round + 1 >= self.simulation.plan.rounds
            secrets = None if is_last else secrets.of_next_round()
        return Kept(cohort.after().state, cohort.taken, cohort.spent, secrets)

    def _note(self, error: Exception) -> None:
        if len(self.failures) < _FAILURES:
            self.failures.append(f"{type(error).__name__}: {error}")
            self.note(error)


def refuse_channel(name: str) -> None:
    """Refuse a channel that nodes cannot speak over."""
    if channel(name).noise_shares > 1:
        raise Refused(
            f"channel '{name}' has two operators, and the nodes of one server have "
            "one; use channel = 'secure_sum', 'direct' or 'shuffle'"
        )
    if channel(name).masks:
        raise Refused(
            f"over channel '{name}' every client masks its own report, and a node "
            "answers for all of its users; use channel = 'secure_sum' or 'direct'"
        )
