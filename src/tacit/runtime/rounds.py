"""One round, written once: draw a cohort, ask it chunk by chunk, aggregate."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.shards import Shards
from tacit.errors import Diverged, Refused
from tacit.keys import Key, Keys
from tacit.ledger.cohort import CohortLedger, Limits
from tacit.method import Clients, Ledger, Method, Server, participate
from tacit.runtime.secrets import Secrets
from tacit.sampling import Draw
from tacit.transport.channels import Carrier, RoundContext, count_bytes
from tacit.transport.messages import MOST_PUBLIC, Broadcast, Layout, Reports
from tacit.tree import Tree

# Reports of one chunk. It was 128 MiB once, for memory's sake alone; arrays larger than
# this are new memory in every chunk, while smaller ones are used again.
CHUNK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class State:
    """Everything that changes from round to round."""

    server: Server
    clients: Clients
    taken: Int64[np.ndarray, "clients parts"]  # rounds joined, by part of the run
    spent: Float64[np.ndarray, "clients"]  # sums of 1/z² where a method chooses noise
    secrets: Secrets | None = None  # of a release whose rounds are not over
    # Over nodes: the store that has answered for each share, which no other one may.
    stores: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Population:
    """Everything that stays the same: clients' data and keys, channel and ledger."""

    shards: Shards
    keys: Keys
    channel: Carrier
    ledger: Ledger
    parts: tuple[range, ...]  # stretches of rounds with reports of the same kind
    chunk: int | None = None  # clients at a time; None: as many as CHUNK_BYTES allow
    limits: Limits | None = None  # rounds each may take part in
    budgets: Float64[np.ndarray, "clients"] | None = None  # 1/z² of the run, if chosen
    on_failure: Callable[[Exception], None] | None = None  # of real clients: see method

    def ledger_at(self, state: State) -> Ledger:
        """The ledger of clients that took part as often as the state says."""
        if self.limits is None:
            return self.ledger
        part, rounds = self.part_of(state.server.round), state.server.plan.rounds
        limits = self.limits.within(part, state.taken)
        taken = state.taken[:, part]
        return CohortLedger(taken, limits, rounds, state.spent, self.budgets)

    def part_of(self, round: int) -> int:
        """The index in `parts` of the part that a round belongs to."""
        return bisect_right([part.start for part in self.parts], round) - 1

    @cached_property
    def cohort_keys(self) -> Keys:
        """The keys of the draws that decide who is asked."""
        return self.keys.at("cohort")


@dataclass(frozen=True)
class Tally:
    """The counts of a simulated round; a real server must not collect all of them."""

    round: int
    asked: int
    took_part: int
    bytes_up: int
    bytes_down: int


def play_round(
    method: Method, state: State, population: Population, key: Key
) -> tuple[State, Tally]:
    """The state after one more round.

    Memory is bounded by one chunk of reports plus the state: chunks are computed when
    the aggregator asks for them. A round whose coins chose nobody still counts: the
    server aggregates nothing, as it must under a noisy sum.
    """
    broadcast, context = open_round(method, state, key)
    clients = Cohort.drawn(method, state, population, broadcast, context.layout)
    delivery = population.channel.carry(clients.chunks(), context)
    after = method.aggregate(state.server, delivery, context)
    secrets = secrets_after(method, after, state.secrets)
    changed = State(after, clients.after(), clients.taken, clients.spent, secrets)
    return changed, clients.tally(state.server.round)


def open_round(
    method: Method, state: State, key: Key
) -> tuple[Broadcast, RoundContext]:
    """What everyone is told, and what channel and server have agreed on."""
    server = state.server
    broadcast = method.broadcast(server)
    # A broadcast that all clients would refuse is an error here, not an empty round.
    method.agreement(server.plan, server.catalog).check(broadcast)
    if state.secrets is None:  # floats and a seeded key
        own = key.at("round", server.round).at("channel")
        return broadcast, method.context(server, broadcast, own)
    _, own = state.secrets.keys()
    context = method.context(server, broadcast, own.at("channel"))
    return broadcast, replace(context, secret=own.at("noise").secret_of())


def refuse_diverged(server: Server) -> None:
    """Refuse weights that are no numbers, or larger than any agreement allows."""
    for name, value in server.weights.items():
        if value.dtype.kind == "f" and not (np.abs(value) <= MOST_PUBLIC).all():
            most = float(np.abs(value).max())
            raise Diverged(
                f"'{name}' has values as large as {most:g}", server.round - 1
            )


def secrets_after(
    method: Method, server: Server, secrets: Secrets | None
) -> Secrets | None:
    """The secrets of the next round; that of a round is forgotten with its result."""
    if secrets is None or method.is_over(server):
        return None
    return secrets.of_next_round()


def chunk_size(one: int, *, limit: int = CHUNK_BYTES) -> int:
    """How many clients fit into `limit` bytes if each takes `one`; at least one does.

    >>> chunk_size(1_000, limit=50_000)
    50
    """
    return max(1, limit // max(one, 1))


def _client_keys(state: State, population: Population) -> tuple[Keys, Keys]:
    """The keys that decide who is asked, the same in every round; and clients' own.

    In a release they come from the secrets of this round.
    """
    if state.secrets is None:
        return population.cohort_keys, population.keys
    run, own = state.secrets.keys()
    everyone = np.arange(len(population.shards))
    return run.at("cohort").each(everyone), own.at("clients").each(everyone)


def _cohort(
    state: State, population: Population, keys: Keys
) -> Int64[np.ndarray, "cohort"]:
    """The numbers of the clients asked, by length of history so that chunks are even.

    In a release they are sorted by number: how clients are stacked decides the last
    bits of what each computes, and must not depend on anybody's history.
    """
    server, clients = state.server, state.clients
    draw = Draw(keys, clients.groups, server.round)
    chosen = server.plan.sampler.cohort(draw, server.plan)
    if state.secrets is not None:
        return np.sort(chosen)
    lengths = population.shards.lengths[chosen]
    return chosen[np.argsort(lengths, kind="stable")]


class Cohort:
    """The cohort at work; it collects the clients' new state as chunks are read."""

    def __init__(
        self,
        method: Method,
        state: State,
        population: Population,
        broadcast: Broadcast,
        layout: Layout,
        *,
        cohort: Int64[np.ndarray, "cohort"],
        keys: Keys,
    ) -> None:
        self.method, self.population, self.cohort = method, population, cohort
        self.keys = keys
        self.plan, self.before = state.server.plan, state.clients
        self.ledger = population.ledger_at(state)
        self.taken, self.spent = state.taken.copy(), state.spent.copy()
        self.part = population.part_of(state.server.round)
        self.states: list[Tree] = []
        self.broadcast, self.layout = broadcast, layout
        chosen = [method.multiplier(broadcast, self.plan, g) for g in self.plan.groups]
        # Spent budget is counted in 1/z², which adds up over rounds; 0: not chosen.
        self.cost = np.array([0.0 if z is None else z**-2.0 for z in chosen])
        self.asked = self.took_part = 0

    @classmethod
    def drawn(
        cls,
        method: Method,
        state: State,
        population: Population,
        broadcast: Broadcast,
        layout: Layout,
    ) -> Cohort:
        """The clients whose coins fell; the plan, round and coins decide who."""
        coins, own = _client_keys(state, population)
        cohort = _cohort(state, population, coins)
        return cls(
            method, state, population, broadcast, layout, cohort=cohort, keys=own
        )

    def chunks(self) -> Iterator[Reports]:
        """The reports of all who are asked; a chunk is computed when it is read."""
        chunk = self.population.chunk
        if chunk is None:
            chunk = chunk_size(self.method.report_bytes(self.layout))
        for start in range(0, len(self.cohort), chunk):
            reports = self._ask(self.cohort[start : start + chunk])
            self.layout.check(reports)
            if len(reports):  # else all of this chunk refused
                yield reports

    def _ask(self, rows: Int64[np.ndarray, "chunk"]) -> Reports:
        after, reports, took_part = participate(
            self.method,
            self.broadcast,
            self.before.take(rows),
            self.population.shards.take(rows),
            self.keys[rows],
            ledger=self.ledger,
            on_failure=self.population.on_failure,
        )
        self.states.append(after.state)
        self.taken[rows[took_part], self.part] += 1
        self.spent[rows[took_part]] += self.cost[after.groups[took_part]]
        self.asked += len(rows)
        self.took_part += int(took_part.sum())
        return reports

    def after(self) -> Clients:
        """All clients after the round; those who were not asked are as before."""
        if self.asked != len(self.cohort):
            raise Refused(
                f"{type(self.method).__name__}.aggregate read {self.asked} of "
                f"{len(self.cohort)} reports; it must read them all"
            )
        if not self.states:
            return self.before
        return self.before.with_state(self.cohort, Tree.concatenate(self.states))

    def tally(self, round: int) -> Tally:
        """How many were asked and took part, and the bytes of what was said."""
        carrier, public = self.population.channel.name, self.broadcast.stored()
        up, down = count_bytes(
            carrier,
            self.layout,
            public,
            clients=self.plan.population,
            survivors=self.plan.min_contributors,
            colluders=self.plan.assumed_sybils,
        )
        return Tally(
            round, self.asked, self.took_part, self.took_part * up, self.asked * down
        )
