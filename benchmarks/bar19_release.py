"""Bar 19: the rounds of a release, against those of a simulation.

A release draws from AES-256, writes every report in whole steps, adds them exactly and
rounds its noise exactly; a simulation does the same in floats. Users are invented and
as many as those of MovieLens 1M. FedVAE's factored layers have no bar: their time
stands in the note.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.keys import Key
from tacit.method import CentralGaussian, Method
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.sampling import FixedSize

USERS, ITEMS, EVENTS = 6_000, 3_500, 95
COHORT = 250  # of FedVAE


def measure(quick: bool) -> list[Case]:
    users = USERS // 5 if quick else USERS
    plan = Plan(users, rounds=2, channel="secure_sum", delta=1e-6, target_epsilon=1.0)
    sampled = replace(plan, sampler=FixedSize(COHORT), target_epsilon=None)
    factored = FedVae(privacy=CentralGaussian(1.0, clip=0.1))
    best = _times(_simulation(factored, sampled))
    note = f"FedVAE's factored layers {best['release'] / best['simulation']:.2f}x"
    cases = {
        "Gram": Gram(privacy=CentralGaussian()),
        "federated popularity": FederatedPopularity(privacy=CentralGaussian()),
    }
    return [_case(name, _simulation(m, plan), note) for name, m in cases.items()]


def _case(name: str, simulation: Simulation, note: str) -> Case:
    best = _times(simulation)
    title = f"{name}, {simulation.plan.population:,} users"
    return Case(title, best["release"] / best["simulation"], best, note)


def _times(simulation: Simulation) -> dict[str, float]:
    release = replace(simulation, is_release=True, key=Key.from_os())
    return fastest({"simulation": _rounds(simulation), "release": _rounds(release)})


def _rounds(simulation: Simulation) -> Callable[[], None]:
    def run() -> None:
        for _ in simulation.run(simulation.start()):
            pass

    return run


def _simulation(method: Method, plan: Plan) -> Simulation:
    rng, users = np.random.default_rng(0), plan.population
    chance = 1 / np.arange(1, ITEMS + 1) ** 0.7
    events = rng.choice(ITEMS, users * EVENTS, p=chance / chance.sum())
    owners = np.repeat(np.arange(users), EVENTS)
    log = Interactions.of_columns(owners, events, n_users=users, n_items=ITEMS)
    items, names = (Strings.of([str(i) for i in range(n)]) for n in (ITEMS, users))
    return Simulation(
        method.calibrated(plan),
        plan,
        Catalog(items, items),
        Profiles(names),
        Shards.of(log),
        Key.from_seed(0),
    )


BAR = Bar(19, "a release, against a simulation", 2.0, measure, sense="<=")
