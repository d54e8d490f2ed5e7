"""Bar 15: a round of 10,000 clients as one cohort against one client at a time.

The literal loop is timed on some of the devices and extrapolated: every client costs it
the same. Both aggregate to the same server, which is checked before anything is timed.
"""

from __future__ import annotations

import importlib
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
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation

DEVICES, ITEMS, EVENTS = 10_000, 2_000, 40
LOOPED = 300


def measure(quick: bool) -> list[Case]:
    looped = LOOPED // 3 if quick else LOOPED
    whole, few = _simulation(DEVICES), _simulation(looped)
    one_by_one = replace(few, chunk=1)
    importlib.import_module("tacit.kernels.philox")  # else the loop begins without it
    start, start_few = whole.start(), few.start()
    _same(few.step(start_few)[0], one_by_one.step(start_few)[0])
    best = fastest(
        {
            "one client at a time": lambda: one_by_one.step(start_few),
            "one cohort": lambda: whole.step(start),
        }
    )
    a_device = {
        "one client at a time": best["one client at a time"] / looped,
        "one cohort": best["one cohort"] / DEVICES,
    }
    ratio = a_device["one client at a time"] / a_device["one cohort"]
    note = f"the loop is timed on {looped} clients and extrapolated"
    return [Case(f"{DEVICES} clients × {ITEMS} items", ratio, a_device, note)]


def _simulation(n: int) -> Simulation:
    rng = np.random.default_rng(0)
    log = Interactions.of_columns(
        np.repeat(np.arange(n), EVENTS),
        rng.integers(0, ITEMS, n * EVENTS),
        n_users=n,
        n_items=ITEMS,
    )
    return Simulation(
        FederatedPopularity(),
        Plan(n),
        Catalog.of_ids([str(i) for i in range(ITEMS)]),
        Profiles(Strings.of(str(i) for i in range(n))),
        Shards.of(log),
        Key.from_seed(0),
    )


def _same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.server.memory["votes"], b.server.memory["votes"])


BAR = Bar(15, "a round of 10,000 clients, against one at a time", 100.0, measure)
