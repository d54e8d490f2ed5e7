"""Training of many clients, each from the same weights to weights of its own.

Clients stand on axis 0 of every array, one flat row of weights each. Micro-cohorts
bound the memory and share the cores; a client's result does not depend on who else is
there. The compiled kernel and its twin in numpy differ by rounding, so a round always
takes the kernel. Adapting in order to rank takes it only if there is much to do: one
client need not wait for a compiler.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Float, Int64
from threadpoolctl import threadpool_limits

from tacit.data.ragged import Ragged
from tacit.kernels import dispatch
from tacit.keys import Keys
from tacit.models.feature_mlp.compiled_pass import Compiled
from tacit.models.feature_mlp.examples import Examples
from tacit.models.feature_mlp.network import Network
from tacit.models.feature_mlp.plain_pass import Client
from tacit.models.feature_mlp.schedule import Schedule
from tacit.tree import Array, Arrays

MICRO_COHORT = 32  # clients per thread whose weights exist at the same time
_THREADS = os.cpu_count() or 1

Clients = Int64[np.ndarray, "some"]
Stack = Float[np.ndarray, "some weights"]
Finish = Callable[[Arrays, Clients], Arrays]
Pass = Callable[[Stack, Clients, Int64[np.ndarray, "examples"]], None]  # in place


def train(
    network: Network,
    start: Arrays,
    examples: Examples,
    *,
    schedule: Schedule,
    keys: Keys,
    finish: Finish | None = None,
    is_compiled: bool | None = None,
) -> dict[str, Array]:
    """Every client's weights after its epochs; axis 0 is the client.

    `finish` gets the weights and indices of some clients and returns what to keep, so
    that only a few micro-cohorts of weights exist at a time. Without `is_compiled` the
    amount of work decides. Set it for what leaves a client, which must not depend on
    who else is there.
    """
    home = network.flat(start)
    order = np.argsort(-examples.lengths, kind="stable")  # the longest work first
    cohorts = np.split(order, range(MICRO_COHORT, len(order), MICRO_COHORT))
    if is_compiled is None:
        work = len(examples.items) * schedule.epochs
        is_compiled = len(examples) > 1 and dispatch.pays("feature_mlp.train", work)
    given = network, home, examples, schedule
    learn = Compiled(*given).learn if is_compiled else _plain(*given)

    def learnt(some: Clients) -> Arrays:
        stack, own = np.repeat(home[None], len(some), axis=0), keys[some].at("order")
        for epoch in range(schedule.epochs):
            learn(stack, some, examples.shuffled(some, own.at(epoch)))
        named = network.named(stack)
        return named if finish is None else finish(named, some)

    if not is_compiled:
        return _placed(cohorts, map(learnt, cohorts))
    # One thread pool only: the products are small, and BLAS would divide each of them.
    with (
        threadpool_limits(1, "blas"),
        ThreadPoolExecutor(min(_THREADS, len(cohorts))) as pool,
    ):
        return _placed(cohorts, pool.map(learnt, cohorts))


def _plain(
    network: Network,
    home: Float[np.ndarray, "weights"],
    examples: Examples,
    schedule: Schedule,
) -> Pass:
    start = network.named(home)

    def learn(
        stack: Stack, who: Clients, places: Int64[np.ndarray, "examples"]
    ) -> None:
        taken = Ragged.of_lengths(examples.lengths[who], places)
        for row, user, own in zip(stack, who, taken, strict=True):
            sides, labels = examples.sides([user], own), examples.labels[own]
            client = Client(network, network.named(row), start, schedule)
            client.learn(sides, labels)

    return learn


def _placed(
    cohorts: list[Int64[np.ndarray, "_"]], found: Iterable[Arrays]
) -> dict[str, Array]:
    """The arrays found for each micro-cohort, joined in the order of clients."""
    n, out = sum(map(len, cohorts)), {}
    for clients, one in zip(cohorts, found, strict=True):
        for name, value in one.items():
            if name not in out:
                out[name] = np.empty((n, *value.shape[1:]), value.dtype)
            out[name][clients] = value
    return out
