"""The server's side of a run over nodes: no user is here, and the round is the same.

    server                              nodes, each with a share of the users
    broadcast ── one question ────────▶ Node.answer: coins, participate, a bare sum
    aggregate ◀─ noise, once ◀─ sums ── one answer per node

A `Federation` is a `Simulation` without clients whose rounds ask nodes. Everything else
is that of one machine: the plan, the account, the ledger, the checkpoints.

Every answer is checked before it counts: version, share, kind, size, agreement, round,
names, types, shapes, and that every number is finite. One that is not as agreed is
dropped, named and counted. A node that is late, gone or dropped contributes nothing,
and sums are divided by the planned size of the cohort: the guarantee is that of the
plan, whoever came. Below `min_nodes` the round is not finished; it can be played again.
A share belongs to the store that answered for it first: another one is dropped in later
rounds, and where two claim a share in the same round, both are.

What the server sees of a node is no noisy sum. So the account has for the server what
it has elsewhere for a server that colludes with the aggregator: see `seen_by_server`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from tacit import check, memory
from tacit.codes import Code
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadMessage, Refused
from tacit.keys import Key
from tacit.method import Clients, Method, Server
from tacit.plans import Plan
from tacit.release import Cell, Release, Standing, Unit, View
from tacit.runtime.ledger import releases_of
from tacit.runtime.node import refuse_channel
from tacit.runtime.rounds import State, Tally, open_round, secrets_after
from tacit.runtime.secrets import Secrets
from tacit.runtime.simulate import Simulation
from tacit.sampling import FixedSize
from tacit.text import nth_round
from tacit.transport.channels import (
    Delivery,
    RoundContext,
    Sum,
    channel,
    partial_slots,
    total_of_parts,
)
from tacit.transport.codec import (
    decode_partial,
    decode_stack,
    encode_broadcast,
    partial_size,
    stack_size,
)
from tacit.transport.exact_total import longest_sums
from tacit.transport.messages import Broadcast, PartialSum, Reports
from tacit.transport.node_answer import Kind, NodeAnswer, Share, answer_size
from tacit.tree import Tree

NODES_FOLLOW = Code("nodes_follow")
_MOST_WHOLE = 2**53  # in the sum of a node; a thousand of them stay below 2⁶³


@dataclass(frozen=True)
class Reply:
    """What came back from one node: an answer, or why there is none."""

    node: str  # its name for the operator
    content: bytes | None = field(repr=False)
    problem: str = ""


class Nodes(Protocol):
    """The machines that hold users, wherever they are."""

    def ask(self, question: bytes, *, round: int, most_bytes: int) -> Iterable[Reply]:
        """One reply per node that was asked; until a deadline that the nodes know.

        No answer that was agreed has more than `most_bytes`: a longer one needs not be
        copied, nor kept.
        """
        ...


@dataclass(frozen=True)
class NodeTally(Tally):
    """The counts of a round over nodes, and what became of each of them."""

    answered: tuple[str, ...] = ()  # the shares that counted
    # Why a node did not count, or that nobody answered for a share: by its name.
    dropped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Federation(Simulation):
    """A method and a plan whose users are on nodes; `start`, then `step`."""

    nodes: Nodes | None = None
    parts_of_users: int = 1  # into how many shares the users are divided
    min_nodes: int | None = None  # that must answer in a round; None: all

    @classmethod
    def of(
        cls,
        method: Method,
        plan: Plan,
        catalog: Catalog,
        key: Key,
        *,
        nodes: Nodes,
        shares: int,
        min_nodes: int | None = None,
        is_release: bool = False,
    ) -> Federation:
        """A run whose users are divided into so many shares, each on a node."""
        nobody = np.zeros(0, np.int64)
        return cls(
            method,
            plan,
            catalog,
            Profiles(Strings.of([])),
            Shards.of_histories([], n_items=len(catalog)),
            key,
            groups=nobody,
            absent=plan.population,
            is_release=is_release,
            nodes=nodes,
            parts_of_users=shares,
            min_nodes=min_nodes,
        )

    def __post_init__(self) -> None:
        refuse_channel(self.plan.channel)
        if isinstance(self.plan.sampler, FixedSize):
            raise Refused(
                "a cohort of fixed size cannot be drawn by nodes, of whom none knows "
                "the others' users; use run.sampler.name = 'poisson'"
            )
        check.count(shares=self.parts_of_users)
        if self.min_nodes is not None and not (
            1 <= self.min_nodes <= self.parts_of_users
        ):
            raise Refused(
                f"min_nodes={self.min_nodes} must be from 1 to {self.parts_of_users}, "
                "the number of shares"
            )
        super().__post_init__()
        self._refuse_too_many_reports()

    def _refuse_too_many_reports(self) -> None:
        """Refuse rounds whose reports do not fit into the memory of the server.

        Of sums it holds one per node; of reports all that come in a round.
        """
        if self.plan.noise_shares:
            return
        layouts = self.method.agreement(self.plan, self.catalog).reports
        one, n = max(layout.stored_bytes for layout in layouts), self.plan.cohort_size
        needed, free = one * n, memory.available()
        if free is not None and needed > free:
            raise Refused(
                f"channel '{self.plan.channel}': the server holds all reports of a "
                f"round, {n:,.0f} of {memory.in_words(one)}, which are "
                f"{memory.in_words(needed)}, and {memory.in_words(free)} are free; ask "
                "fewer users in a round, or use channel = 'secure_sum', over which "
                "nodes send sums"
            )

    def before_any_round(self, server: Server) -> State:
        """The state of a server; it has no clients and never sees one."""
        agreed = self.method.agreement(self.plan, self.catalog)
        nobody = np.zeros(0, np.int64)
        clients = Clients(self.plan, nobody, nobody, Tree({}), agreed)
        never = np.zeros((0, len(self.parts)), np.int64)
        secrets = Secrets.from_os() if self.is_release else None
        return State(server, clients, never, np.zeros(0), secrets)

    def step(self, state: State) -> tuple[State, Tally]:
        """The state after one more round, asked of the nodes."""
        self.refuse_without_secrets(state)
        broadcast, context = open_round(self.method, state, self.key)
        question = encode_broadcast(broadcast)
        heard = _Heard(self, broadcast, context, state.stores)
        assert self.nodes is not None
        replies = self.nodes.ask(
            question, round=broadcast.round, most_bytes=heard.most_bytes
        )
        for reply in replies:
            heard.add(reply)
        heard.refuse_too_few()
        after = self.method.aggregate(state.server, heard.delivery(), context)
        secrets = secrets_after(self.method, after, state.secrets)
        stores = {**state.stores, **heard.stores}
        changed = replace(state, server=after, secrets=secrets, stores=stores)
        return changed, heard.tally(len(question))

    @property
    def keeps_every_round(self) -> bool:
        """Always: nodes keep their last answer alone, and refuse earlier rounds."""
        return True

    def most_participations(self, state: State) -> int:
        """The most rounds that any user can have joined after the next one.

        Only nodes count their users' rounds; here everybody is taken to have joined
        every round, up to what the plan allows.
        """
        most = self.plan.sampler.most_participations(self.plan)
        return min(state.server.round + 1, most)

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """What will be seen, by whom, under which guarantee."""
        declared = releases_of(self.method, self.plan, assumes=self._assumes)
        return tuple(map(seen_by_server, declared))


def seen_by_server(release: Release) -> Release:
    """A release as it is over nodes, whose server is its own aggregator and relay.

    A sum over a node's users follows from their reports. So what is proven for a
    server that colludes, and sees every report, is proven for one that sees the sums;
    and nothing else is: the sum over a single user is that user's report. Readers of
    the model, other nodes' operators among them, see what they see anywhere.

    Every guarantee assumes something of nodes, local ones too: a node draws the noise
    of its users' reports, and who is on two nodes reports twice.
    """
    cells = dict(release.assuming(NODES_FOLLOW).cells)
    for unit in Unit:
        bare = cells[unit, View.COLLUSION]
        if bare.standing is Standing.NONE:
            bare = Cell.none("bare_node_sums")
        cells[unit, View.SERVER] = cells[unit, View.COLLUSION] = bare
    return replace(release, cells=cells)


class _Heard:
    """The answers of one round, checked as they come."""

    def __init__(
        self,
        run: Federation,
        broadcast: Broadcast,
        context: RoundContext,
        known: Mapping[int, bytes],
    ) -> None:
        self.run, self.broadcast, self.context = run, broadcast, context
        self.known = known  # the store of each share that has answered before
        self.names: dict[int, str] = {}  # of the node that answered for a share
        self.sums: dict[int, PartialSum] = {}  # by share
        self.reports: dict[int, list[Reports]] = {}
        self.counts: dict[int, NodeAnswer] = {}
        self.dropped: dict[str, str] = {}
        self.placed: dict[str, int] = {}  # the share that a node says it holds
        self.bytes_up = self.n_replies = 0
        self.is_summed = run.plan.noise_shares > 0
        self.left = run.plan.population  # of reports, whichever node they come from

    @property
    def most_bytes(self) -> int:
        """No answer that was agreed has more."""
        if self.is_summed:
            return answer_size(1, partial_size(partial_slots(self.context)))
        n, layout = self.run.plan.population, self.context.layout
        # One report per message is the longest form.
        return answer_size(n, n * stack_size(layout, 1))

    def add(self, reply: Reply) -> None:
        """Count a reply, or drop it and note why."""
        self.n_replies += 1
        if reply.content is None:
            self.dropped[reply.node] = reply.problem or "did not answer in time"
            return
        self.bytes_up += len(reply.content)
        if len(reply.content) > self.most_bytes:  # before anything of it is copied
            self.dropped[reply.node] = (
                f"answers with {len(reply.content):,} bytes; no answer that was agreed "
                f"has more than {self.most_bytes:,}"
            )
            return
        try:
            self._take(NodeAnswer.decode(reply.content), reply.node)
        except (BadMessage, Refused) as error:
            self.dropped[reply.node] = str(error)

    @property
    def stores(self) -> dict[int, bytes]:
        """The store that answered for each share that counts."""
        return {part: answer.store for part, answer in self.counts.items()}

    def _take(self, answer: NodeAnswer, node: str) -> None:
        if answer.share.parts != self.run.parts_of_users:
            raise Refused(
                f"holds {answer.share}; the users are divided into "
                f"{self.run.parts_of_users}"
            )
        part = self.placed[node] = answer.share.part
        if answer.kind is Kind.REFUSAL:
            raise Refused(f"refused: {answer.reason}")
        self._refuse_other_purpose(answer)
        self._refuse_other_store(answer)
        if part in self.names and part not in self.counts:
            raise Refused(f"holds {answer.share}, which several nodes claim")
        if part in self.counts and self.counts[part].store == answer.store:
            # Its users must not count twice.
            raise Refused(f"holds {answer.share}, which has answered already")
        most = self.run.plan.population
        if max(answer.asked, answer.took_part) > most:
            raise BadMessage(f"asked {answer.asked:,} users of {most:,}")
        found = self._sum(answer) if self.is_summed else self._reports(answer)
        if part in self.counts:
            self._drop_both(part, node)
            return
        if isinstance(found, PartialSum):
            self.sums[part] = found
        else:
            self.reports[part] = found
            self.left -= sum(map(len, found))
        self.counts[part], self.names[part] = replace(answer, messages=()), node

    def _refuse_other_purpose(self, answer: NodeAnswer) -> None:
        if answer.is_release == self.run.is_release:
            return
        # Whoever knows its seed subtracts what the clients of a simulation drew.
        purposes = {True: "a release", False: "a simulation"}
        raise Refused(
            f"answers as in {purposes[answer.is_release]}, and this run is "
            f"{purposes[self.run.is_release]}"
        )

    def _refuse_other_store(self, answer: NodeAnswer) -> None:
        known = self.known.get(answer.share.part, answer.store)
        if known != answer.store:
            raise Refused(
                f"holds {answer.share} in the store {answer.store.hex()}, and the "
                f"store {known.hex()} answered for it in an earlier round"
            )

    def _drop_both(self, part: int, node: str) -> None:
        """Neither of two nodes counts: nobody can tell which has the share's users."""
        share, first = self.counts.pop(part).share, self.names[part]
        self.sums.pop(part, None)
        self.left += sum(map(len, self.reports.pop(part, [])))
        for one, other in ((first, node), (node, first)):
            self.dropped[one] = f"holds {share}, and so does {other}: neither counts"

    def _sum(self, answer: NodeAnswer) -> PartialSum:
        if answer.kind is not Kind.PARTIAL_SUM or len(answer.messages) != 1:
            raise BadMessage("answers with no sum, and over 'secure_sum' nodes add up")
        [message] = answer.messages
        slots = partial_slots(self.context)
        found = decode_partial(self.broadcast, message, slots)
        self._check_length(found)
        return found

    def _check_length(self, found: PartialSum) -> None:
        """Refuse a sum that is longer than all users together could make it."""
        for value in found.total.values():
            largest = max(int(value.max(initial=0)), -int(value.min(initial=0)))
            if value.dtype.kind in "iu" and largest > _MOST_WHOLE:
                raise BadMessage(f"a sum with {largest:,}, beyond {_MOST_WHOLE:,}")
        mechanism, layout = self.context.mechanism, self.context.layout
        if mechanism is None:
            return
        if self.context.is_exact:
            pairs = [*longest_sums(found.total, mechanism, layout)]
        else:
            square = sum(float(np.sum(value**2)) for value in found.total.values())
            pairs = [(square**0.5, mechanism.sensitivity)]
        for length, one in pairs:
            most = one * self.run.plan.population
            if not length <= most * (1 + 1e-6):
                raise BadMessage(
                    f"a sum of length {length:g}; all users together have {most:g}"
                )

    def _reports(self, answer: NodeAnswer) -> list[Reports]:
        if answer.kind is not Kind.REPORTS:
            raise BadMessage("answers with no reports, which this channel carries")
        layout, found, most = self.context.layout, [], self.left
        for message in answer.messages:
            stacked = decode_stack(self.broadcast, message, layout, most=most)
            most -= len(stacked)
            found.append(stacked)
        return found

    def refuse_too_few(self) -> None:
        """Refuse a round that too few nodes answered, and say what became of each."""
        wanted = self.run.min_nodes or self.run.parts_of_users
        if len(self.counts) >= wanted:
            return
        told = [f"{node} {why}" for node, why in self.dropped.items()]
        told += [f"nobody answered for {share}" for share in self._absent()]
        raise Refused(
            f"{nth_round(self.broadcast.round)}: {len(self.counts)} of "
            f"{self.run.parts_of_users} nodes answered and {wanted} must: "
            f"{'; '.join(told)}; continue the run with --resume when they are back, or "
            "lower --min-nodes"
        )

    def _absent(self) -> list[Share]:
        """The shares that are named in no answer that could be read."""
        parts = self.run.parts_of_users
        heard = {*self.counts, *self.placed.values()}
        return [Share(part, parts) for part in range(parts) if part not in heard]

    def _not_counted(self) -> dict[str, str]:
        """Every node or share that does not count, and why.

        A share is named if there are more of them than nodes that did not say which
        one they hold: its node was not there to be asked.
        """
        absent, silent = self._absent(), self.dropped.keys() - self.placed.keys()
        named = absent if len(absent) > len(silent) else []
        return {**self.dropped, **{str(one): "nobody answered for it" for one in named}}

    def delivery(self) -> Delivery:
        """What the channel hands to the method; the noise is added in here, once."""
        # By share, so that a round played again adds up in the same order.
        if self.is_summed:
            parts = (self.sums[part].total for part in sorted(self.sums))
            return Sum(total_of_parts(parts, self.context))
        chunks = (one for part in sorted(self.reports) for one in self.reports[part])
        return channel(self.run.plan.channel).carry(chunks, self.context)

    def tally(self, question_bytes: int) -> NodeTally:
        """The counts of the round; in a release nodes tell none of users."""
        asked = sum(answer.asked for answer in self.counts.values())
        return NodeTally(
            self.broadcast.round,
            asked,
            sum(answer.took_part for answer in self.counts.values()),
            self.bytes_up,
            question_bytes * self.n_replies,
            tuple(str(self.counts[part].share) for part in sorted(self.counts)),
            self._not_counted(),
        )
