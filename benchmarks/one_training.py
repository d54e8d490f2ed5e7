"""One training of a method on some users of a split, and who is ranked for after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.data.splits import Split
from tacit.experiment.assemble import Assembled
from tacit.keys import Key
from tacit.method import Method
from tacit.plans import Plan
from tacit.runtime.rounds import State
from tacit.runtime.simulate import Simulation


def among(split: Split, rows: np.ndarray) -> Split:
    """The same held-out users where these rows of the clients train."""
    return replace(split, users=split.users[rows], train=split.train.take(rows))


def trained(
    made: Assembled,
    split: Split,
    method: Method,
    plan: Plan,
    *,
    key: Key,
    groups: np.ndarray | None = None,
) -> tuple[Assembled, State]:
    """The experiment as if it had this split, method and plan, and its last state."""
    simulation = Simulation(
        method,
        plan,
        split.catalog,
        split.profiles.take(split.users),
        split.train,
        key,
        groups=groups,
    )
    *_, (state, _) = simulation.run(simulation.start())
    return replace(made, simulation=simulation, split=split), state
