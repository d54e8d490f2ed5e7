"""Canaries take part in a run; what they send and what the server sees is kept.

Some thousand canaries, a fair coin each to take part in all rounds or in none, through
`participate`, the channel and `aggregate`. What the server sees is then looked at in
units of the noise that the method states, so that with the noise multiplier z

    a canary's coordinate    is N(0, 1), or N(1/z, 1) if it takes part
    any other coordinate     is N(0, 1), and independent between rounds

The scale and z come from the object that adds the noise, the contributions from what
clients send: none is taken at its word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float64, Int64
from numpy.typing import ArrayLike

from tacit.audits.canaries import (
    Canaries,
    Only,
    Tapped,
    draw_coordinates,
    planted,
    probes,
)
from tacit.audits.noise_units import Flat, Units
from tacit.audits.small_world import data_for
from tacit.data.federated_data import FederatedData
from tacit.keys import Key, Keys
from tacit.mechanisms.adaptive_clip import BIT
from tacit.method import Method, Unmetered, participate
from tacit.plans import Plan
from tacit.release import EVERYONE
from tacit.runtime.rounds import State
from tacit.runtime.simulate import Simulation
from tacit.transport.channels import Carrier, SecureSum, Sum, channel
from tacit.transport.messages import Layout
from tacit.tree import Tree

CANARIES, FREE, ROUNDS = 2_000, 2_500, 4  # free: coordinates of noise alone
RAW = 1_000.0  # the size of a raw canary, in sensitivities
_CHUNK = 500  # clients at a time: bounds the memory of their dense reports

Numbers = Int64[np.ndarray, "clients"]
Tick = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Round:
    """One round in units of the noise: what canaries said, what the server saw."""

    layout: Layout
    multiplier: float  # as the object that adds the noise has it
    contributions: sp.csr_array  # canaries × coordinates; all, present or not
    probes: sp.csr_array  # probes × coordinates
    total: Flat

    @cached_property
    def hits(self) -> Int64[np.ndarray, "coordinates"]:
        """How many canaries touch each coordinate."""
        return np.diff(self.contributions.tocsc().indptr).astype(np.int64)

    @property
    def noise(self) -> Float64[np.ndarray, "free"]:
        """The total where no canary says anything: noise and nothing else."""
        return self.total[self.hits == 0]

    @property
    def own(self) -> sp.csr_array:
        """Contributions where no other canary is; shared ones tell of the others."""
        return self.contributions @ sp.diags_array((self.hits == 1).astype(np.float64))

    @property
    def largest(self) -> float:
        """The largest contribution, in sensitivities; infinite if one is broken."""
        said = (self.contributions, self.probes)
        largest = max(squares(part).max() for part in said)
        is_broken = not all(np.isfinite(part.data).all() for part in said)
        return math.inf if is_broken else self.multiplier * math.sqrt(largest)

    @property
    def has_update(self) -> Bool[np.ndarray, "canaries"]:
        """Whether each canary says anything but the bit of a moving clip."""
        own = np.diff(self.contributions.indptr)
        if BIT in self.layout.slots:
            own = own - np.diff(self.contributions[:, self.leaf(BIT)].indptr)
        return np.asarray(own > 0)

    def leaf(self, name: str) -> slice:
        """The coordinates of a leaf, when all leaves are laid end to end."""
        sizes = {n: math.prod(slot.shape) for n, slot in self.layout.slots.items()}
        before = [*sizes][: [*sizes].index(name)]
        start = sum(sizes[other] for other in before)
        return slice(start, start + sizes[name])


@dataclass(frozen=True, eq=False)
class Observed:
    """All rounds of one run, and which canaries took part in them."""

    rounds: tuple[Round, ...]
    present: Bool[np.ndarray, "canaries"]

    @property
    def scores(self) -> Float64[np.ndarray, "canaries"]:
        """How much of each canary is in the totals; N(0, 1) for those not present."""
        found, said = np.zeros(len(self.present)), np.zeros(len(self.present))
        for round_ in self.rounds:
            found += round_.own @ round_.total
            said += squares(round_.own)
        # A matched filter: whoever said nothing that can be told apart scores 0.
        return found / np.sqrt(np.where(said > 0, said, np.inf))


def observe(
    method: Method,
    plan: Plan,
    *,
    key: Key,
    group: str = EVERYONE,
    tick: Tick = lambda: None,
) -> Observed:
    """Play the rounds of `plan` with canaries for its whole population."""
    n = plan.population
    data = data_for(method, plan, coordinates=n + FREE).repeated(n)
    stage = _Stage(method, plan, data, key, group)
    state, rounds = stage.simulation.start(), list[Round]()
    while not method.is_over(state.server):
        state, seen = stage.round(state)
        rounds.append(seen)
        tick()
    return Observed(tuple(rounds), stage.present)


class _Stage:
    """A simulation of canaries, and what is needed to read it."""

    def __init__(
        self, method: Method, plan: Plan, data: FederatedData, key: Key, group: str
    ) -> None:
        self.method, self.data, self.key = method, data, key
        self.group, self.code = group, [*plan.groups].index(group)
        self.n, self.tap = plan.population, Tapped(_carrier(plan))
        coins = key.at("coins").each(np.arange(self.n)).uniform(1)
        self.present = coins[:, 0] < 0.5
        self.canaries: dict[int, Canaries] = {}  # by round
        self.simulation = self._simulation(plan)

    def _simulation(self, plan: Plan) -> Simulation:
        return Simulation(
            planted(self.method, lambda now, n: self.canaries[now](n)),
            plan,
            self.data.catalog,
            self.data.profiles,
            self.data.shards,
            self.key.at("run"),
            groups=np.full(self.n, self.code, np.int64),
            chunk=_CHUNK,
            ledger=Only(self.present),
            channel=self.tap,
        )

    def round(self, state: State) -> tuple[State, Round]:
        """The state after one more round, and what was seen of that round."""
        units, template = self._units(state), self._template(state)
        limits = {name: units.limit(name) for name in template.leaves}
        self._plant(state.server.round, template, limits)
        said = self._said(state, units)
        probed = self._probed(state, units, template, limits)
        after, _ = self.simulation.step(state)
        total = units.of_total(self.tap.totals[-1])
        return after, Round(units.layout, units.multiplier, said, probed, total)

    def _units(self, state: State) -> Units:
        server, broadcast = state.server, self.method.broadcast(state.server)
        layout = self.method.context(server, broadcast, self.key).layout
        return Units.of(
            self.method, broadcast, layout, plan=server.plan, group=self.group
        )

    def _template(self, state: State) -> Tree:
        """What one client computes in this round: the shape of every update."""
        broadcast, keys = self.method.broadcast(state.server), self._keys([0])
        clients, shards = state.clients.take([0]), self.data.shards.take([0])
        return self.method.local_update(broadcast, clients, shards, keys)[1].tree

    def _plant(self, round: int, template: Tree, limits: dict[str, float]) -> None:
        raw = {name: RAW * limit for name, limit in limits.items()}
        at = draw_coordinates(template, self.n, self.key.at("places", round))
        self.canaries[round] = Canaries(template, at, raw)

    def _said(self, state: State, units: Units) -> sp.csr_array:
        """What each canary says in this round, or would if it took part."""
        parts = np.split(np.arange(self.n), range(_CHUNK, self.n, _CHUNK))
        method = self.simulation.method
        said = [self._ask(method, state, units, rows) for rows in parts]
        return sp.csr_array(sp.vstack(said))

    def _probed(
        self, state: State, units: Units, template: Tree, limits: dict[str, float]
    ) -> sp.csr_array:
        tried = probes(template, limits, self.key.at("probes", state.server.round))
        method = planted(self.method, lambda _, numbers: tried.select(numbers))
        with np.errstate(all="ignore"):  # some are not finite
            return self._ask(method, state, units, np.arange(len(tried)))

    def _ask(
        self, method: Method, state: State, units: Units, rows: Numbers
    ) -> sp.csr_array:
        _, reports, _ = participate(
            method,
            self.method.broadcast(state.server),
            state.clients.take(rows),
            self.data.shards.take(rows),
            self._keys(rows),
            ledger=Unmetered(),  # outside the run: what a client would say
        )
        return units.of_reports(reports)

    def _keys(self, rows: ArrayLike) -> Keys:
        """The clients' own keys, so that a question asked twice has one answer."""
        return self.simulation.population.keys[rows]


def _carrier(plan: Plan) -> Carrier:
    """The plan's own channel if it delivers sums; else one that does."""
    own = channel(plan.channel)
    return own if own.delivers is Sum else SecureSum()


def squares(said: sp.csr_array) -> Float64[np.ndarray, "canaries"]:
    """The squared L2 norm of each row."""
    return np.asarray(said.multiply(said).sum(axis=1))
