"""Bar 18: Gram's second sum, from histories to the noisy half, against a bare product.

The bare product gets its rows for nothing: one general matrix product (GEMM) of z,
already dense, in the same precision. numpy would see a square and do half the work, as
it does for ours; that time stands beside it. Ours makes every z from a ragged history,
bounds it twice (on the device and in the sum), adds up in chunks and adds the noise.
The third sum is measured likewise, by bar 20.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.keys import Key
from tacit.method import CentralGaussian, Server
from tacit.methods.gram import Gram
from tacit.models.histories import rows
from tacit.models.item_relations import Relations
from tacit.plans import Plan
from tacit.runtime.rounds import State, play_round
from tacit.runtime.simulate import Simulation
from tacit.tree import Arrays, mirrored

USERS, ITEMS, HEAD, EVENTS = 50_000, 5_000, 1_000, 60
RANK = 40


class Summed(Gram):
    """Gram up to a sum: the decomposition after the last one is not part of this."""

    def _directions(self, server: Server, memory: Arrays) -> dict[str, np.ndarray]:
        is_last = server.round == server.plan.rounds - 1
        return {} if is_last else super()._directions(server, memory)


def measure(quick: bool) -> list[Case]:
    return [_related(USERS // 10 if quick else USERS)]


def measure_loads(quick: bool) -> list[Case]:
    """What bar 20 measures: the third sum."""
    return [_loaded(USERS // 10 if quick else USERS)]


def _related(users: int) -> Case:
    simulation = _simulation(users, rounds=2)
    state, _ = simulation.step(simulation.start())
    known, shards = _known(simulation, state), simulation.shards
    z = known.roots(rows(shards, items=known.head), smoothing=0.0)
    found = _without_noise(simulation, state).memory["half"]
    np.testing.assert_allclose(mirrored(found), z.T @ z, atol=1e-6)
    copy = z.copy()
    best = fastest(
        {
            "bare product": lambda: z.T @ copy,
            "bare square": lambda: z.T @ z,
            "ours": lambda: _played(simulation, state),
        },
        repeats=7,
    )
    name = f"{users:,} users, head of {HEAD:,}"
    return Case(name, best["ours"] / best["bare product"], best)


def _loaded(users: int) -> Case:
    loads = {"load_rounds": 1, "load_rank": RANK, "load_items": 2 * HEAD}
    simulation = _simulation(users, rounds=3, **loads)
    state, _ = simulation.step(simulation.step(simulation.start())[0])
    known, shards = _known(simulation, state), simulation.shards
    tastes = simulation.method.broadcast(state.server).weights["tastes"]
    q, t = known.loadings(rows(shards, items=known.head), tastes)
    found = _without_noise(simulation, state).memory["loadings"]
    np.testing.assert_allclose(found, q.T @ t, atol=1e-6)
    best = fastest(
        {
            "bare product": lambda: q.T @ t,
            "ours": lambda: _played(simulation, state),
        },
        repeats=7,
    )
    name = f"{users:,} users, {2 * HEAD:,} items on {RANK} tastes"
    return Case(name, best["ours"] / best["bare product"], best)


def _known(simulation: Simulation, state: State) -> Relations:
    public = simulation.method.broadcast(state.server).weights
    return Relations.from_broadcast(public)


def _played(simulation: Simulation, state: State) -> Server:
    population = simulation.population
    return play_round(simulation.method, state, population, simulation.key)[0].server


def _without_noise(simulation: Simulation, state: State) -> Server:
    """The server after the same round, with hardly any noise on its sum."""
    method = simulation.method
    assert isinstance(method, Gram)
    names = (phase.name for phase in method.phases(simulation.plan))
    quiet = CentralGaussian({n: 1.0 if n == "counts" else 1e-12 for n in names})
    exact = replace(simulation, method=replace(method, privacy=quiet))
    agreed = exact.method.agreement(simulation.plan, simulation.catalog)
    clients = replace(state.clients, agreement=agreed)
    return _played(exact, replace(state, clients=clients))


def _simulation(users: int, *, rounds: int, **loads: Any) -> Simulation:
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, ITEMS + 1) ** 0.7
    events = rng.choice(ITEMS, users * EVENTS, p=chance / chance.sum())
    owners = np.repeat(np.arange(users), EVENTS)
    log = Interactions.of_columns(owners, events, n_users=users, n_items=ITEMS)
    return Simulation(
        Summed(head=HEAD, privacy=CentralGaussian(1.0), **loads),
        Plan(users, rounds=rounds, channel="secure_sum"),
        Catalog.of_ids([str(i) for i in range(ITEMS)]),
        Profiles(Strings.of(str(i) for i in range(users))),
        Shards.of(log),
        Key.from_seed(0),
    )


BAR = Bar(
    18, "Gram's second sum, against one bare matrix product", 1.5, measure, sense="<="
)
