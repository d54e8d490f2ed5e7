"""Many clients trained at once, each from the same weights into its own.

Clients stand on axis 0 of every array, the largest first. In a step each takes its next
mini-batch; who has none left has dropped off the end, so a step works on a prefix and
nobody is padded to the longest. Micro-cohorts bound the memory and share the cores; a
client's result does not depend on who else is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from jaxtyping import Int64

from tacit.keys import Keys
from tacit.models.feature_mlp.batches import Examples
from tacit.models.feature_mlp.network import Network
from tacit.models.feature_mlp.schedule import Schedule
from tacit.models.feature_mlp.stack import Stack
from tacit.tree import Array, Arrays

MICRO_COHORT = 32  # clients, whose weights stay in the processor's cache
_THREADS = os.cpu_count() or 1

Finish = Callable[[Arrays, Int64[np.ndarray, "some"]], Arrays]


def train(
    network: Network,
    start: Arrays,
    examples: Examples,
    *,
    schedule: Schedule,
    keys: Keys,
    finish: Finish | None = None,
) -> dict[str, Array]:
    """Every client's weights after its epochs; axis 0 is the client.

    `finish` makes of the weights of some clients, whose places it is told, what is to
    be kept; then no more than a few micro-cohorts of weights exist at a time.
    """
    order = np.argsort(-examples.lengths, kind="stable")
    cuts = range(MICRO_COHORT, len(order), MICRO_COHORT)
    parts = np.split(order, cuts)
    learn = partial(_learnt, network, start, examples, schedule, keys, finish)
    if len(parts) == 1:
        found = [learn(order)]
    else:
        with ThreadPoolExecutor(min(_THREADS, len(parts))) as pool:
            found = [*pool.map(learn, parts)]
    back = np.argsort(order)
    return {n: np.concatenate([one[n] for one in found])[back] for n in found[0]}


def _learnt(
    network: Network,
    start: Arrays,
    examples: Examples,
    schedule: Schedule,
    keys: Keys,
    finish: Finish | None,
    rows: Int64[np.ndarray, "some"],
) -> Arrays:
    """What is kept of one micro-cohort."""
    some, own = examples.take(rows), keys[rows].at("order")
    stack = Stack(network, start, some, schedule)
    for epoch in range(schedule.epochs):
        for step in stack.touched.steps(some, schedule.batch, own.at(epoch)):
            stack.learn(step)
    return stack.weights() if finish is None else finish(stack.weights(), rows)
