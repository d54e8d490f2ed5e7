"""Bar 18: Gram's second sum, from histories to the noisy half, against a bare product.

The bare product gets its rows for nothing: one general matrix product (GEMM) of z,
already dense, in the same precision. numpy would see a square and do half the work, as
it does for ours; that time stands beside it. Ours makes every z from a ragged history,
bounds it twice (on the device and in the sum), adds up in chunks and adds the noise.
"""

from __future__ import annotations

from dataclasses import replace

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
from tacit.models.item_relations import Relations
from tacit.plan import Plan
from tacit.runtime.rounds import play_round
from tacit.runtime.simulate import Simulation
from tacit.tree import Arrays, mirrored

USERS, ITEMS, HEAD, EVENTS = 50_000, 5_000, 1_000, 60


class Summed(Gram):
    """Gram up to the second sum: the decomposition is not part of this bar."""

    def _directions(self, server: Server, memory: Arrays) -> dict[str, np.ndarray]:
        return {}


def measure(quick: bool) -> list[Case]:
    users = USERS // 10 if quick else USERS
    simulation = _simulation(users)
    state, _ = simulation.step(simulation.start())
    method, population = simulation.method, simulation.population
    z = _roots(method, simulation.shards, state.server)

    def ours() -> Server:
        return play_round(method, state, population, simulation.key)[0].server

    quiet = CentralGaussian({"counts": 1.0, "relations": 1e-12})
    exact = replace(method, privacy=quiet)
    agreed = exact.agreement(simulation.plan, simulation.catalog)
    others = replace(state, clients=replace(state.clients, agreement=agreed))
    found = play_round(exact, others, population, simulation.key)[0].server
    np.testing.assert_allclose(mirrored(found.memory["half"]), z.T @ z, atol=1e-6)
    copy = z.copy()
    best = fastest(
        {
            "bare product": lambda: z.T @ copy,
            "bare square": lambda: z.T @ z,
            "ours": ours,
        },
        repeats=7,
    )
    name = f"{users:,} users, head of {HEAD:,}"
    return [Case(name, best["ours"] / best["bare product"], best)]


def _roots(method: Gram, shards: Shards, server: Server) -> np.ndarray:
    known = Relations.from_broadcast(method.broadcast(server).weights)
    return known.roots(method._rows(shards, known.head), smoothing=0.0)


def _simulation(users: int) -> Simulation:
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, ITEMS + 1) ** 0.7
    events = rng.choice(ITEMS, users * EVENTS, p=chance / chance.sum())
    owners = np.repeat(np.arange(users), EVENTS)
    log = Interactions.of_columns(owners, events, n_users=users, n_items=ITEMS)
    return Simulation(
        Summed(head=HEAD, privacy=CentralGaussian(1.0)),
        Plan(users, rounds=2, channel="secure_sum"),
        Catalog.of_ids([str(i) for i in range(ITEMS)]),
        Profiles(Strings.of(str(i) for i in range(users))),
        Shards.of(log),
        Key.from_seed(0),
    )


BAR = Bar(
    18, "Gram's second sum, against one bare matrix product", 1.5, measure, sense="<="
)
