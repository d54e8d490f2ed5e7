"""Small worlds whose items and users have features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.data.features import Categories, Category, Numeric
from tacit.data.federated_data import FederatedData
from tacit.testing.contract import checkerboard, mixed_world

USERS = {"side": 2, "age": 0}
SITUATIONS = {"weather": 3}
TINY = {"embedding": 3, "widths": (5,), "precision": "float64"}
FULL = {"people": USERS, "situations": SITUATIONS, **TINY}


def described(world: FederatedData) -> FederatedData:
    """The same world with features on every side; half of them tell nothing."""
    n_items, n_users = len(world.catalog), len(world.profiles)
    events = len(world.shards.items)
    parity = Categories.of([[str(i % 2)] if i % 5 else [] for i in range(n_items)])
    weight = Numeric(np.linspace(0.0, 9.0, n_items, dtype=np.float32))
    side = Category.of(["even" if p % 2 else "odd" for p in range(n_users)])
    age = Numeric(np.linspace(-1.0, 1.0, n_users, dtype=np.float32))
    weather = Category.of(["", "dry", "hot", "wet"]).take(np.arange(events) % 4)
    values = (1 + np.arange(events) % 5).astype(np.float32)
    return FederatedData(
        replace(world.catalog, features={"parity": parity, "weight": weight}),
        replace(world.profiles, features={"side": side, "age": age}),
        replace(world.shards, values=values, contexts={"weather": weather}),
    )


def mixed() -> FederatedData:
    return described(mixed_world())


def two_kinds() -> FederatedData:
    """The checkerboard, and every item says whether it is even; every event likes."""
    world = checkerboard()
    parity = Categories.of([[str(i % 2)] for i in range(12)])
    return replace(world, catalog=replace(world.catalog, features={"parity": parity}))
