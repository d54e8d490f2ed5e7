"""DPLCF: histories with flipped bits, item similarities, neighbors on the device.

    M     items            x    a person's row of M bits, 1 for an item held
    ε'    of one bit       ε    of a row: M ε'
    r     x with every bit flipped with chance q = 1 / (e^ε' + 1)           (leaves)
    s, S  the sums of r and of r rᵀ                                     (the server's)
    c, C  unbiased estimates of how many have an item, or both of two
    k     neighbors an item keeps

    device   1  send r
    server   2  add r to s, r rᵀ to S
             3  similarity(i, j) = C / (sqrt(c_i c_j) + d σ), never below zero
             4  keep the k nearest of every item                       (all see them)
    ranking  5  score(j) = sum of similarity(i, j) over items i held and near j

Gao et al. 2020, "Differentially Private Local Collaborative Filtering" (SIGIR), as
Minto et al. 2021 describe it in Section 5.2. σ is the deviation of C for a pair that
nobody has; the damping d is ours: without it pairs of rare items are all noise.

    privacy   protected by
    none      nothing
    local     randomised response on every bit, on the device

The paper states ε' for one interaction. A person is protected by M ε', and that is the
field here, so that nobody reads one for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Int32, Int64, UInt8

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.errors import BadValue, Refused
from tacit.keys import Key, Keys
from tacit.mechanisms.flipped_bits import FlippedBits, packed_size
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.plan import Plan
from tacit.release import Cells, Release, epsilon_a_report, local, unprotected
from tacit.transport.channels import Delivery, Each
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Arrays, Tree

_NUMBERS_AT_ONCE = 2**24  # 64 MiB of float32
_MOST_REPORTS = 2**24  # counts are exact in float32 up to here

Rows = UInt8[np.ndarray, "clients bytes"]


@dataclass(frozen=True)
class Dplcf(Method):
    """Item neighbors from histories whose every bit was flipped now and then.

    Memory at the server: M × M counts. Leave `epsilon` out to have it calibrated to the
    plan's target.
    """

    privacy: Literal["none", "local"] = "local"
    epsilon: float | None = None  # of a whole row: M ε'
    neighbors: int = 100  # k
    damping: float = 5.0  # d

    def __post_init__(self) -> None:
        check.one_of(("none", "local"), privacy=self.privacy)
        check.count(neighbors=self.neighbors)
        check.not_negative(damping=self.damping)
        if self.epsilon is not None:
            check.positive(epsilon=self.epsilon)
            if self.privacy == "none":
                raise BadValue("epsilon belongs to privacy='local' only")

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the epsilon that meets the plan's target."""
        if self.privacy == "local" and self.epsilon is None:
            return replace(self, epsilon=epsilon_a_report(plan))
        return self

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Nobody has said anything."""
        m, k = len(catalog), min(self.neighbors, len(catalog))
        if plan.cohort_size * plan.rounds > _MOST_REPORTS:
            raise Refused(
                f"{plan.cohort_size * plan.rounds:,.0f} reports are planned and DPLCF "
                f"counts exactly up to {_MOST_REPORTS:,}; ask fewer people"
            )
        nearest: Arrays = {
            "near": np.zeros((m, k), np.int32),
            "alike": np.zeros((m, k), np.float32),
        }
        memory: Arrays = {
            "said": np.zeros(m, np.int64),
            "pairs": np.zeros((m, m), np.int32),
        }
        return Server(plan, catalog, 0, nearest, memory)

    def broadcast(self, server: Server) -> Cast:
        """The neighbors once all have spoken; before that devices need nothing."""
        k = None if server.round == server.plan.rounds else 0
        told = {name: value[:, :k] for name, value in server.weights.items()}
        return Cast(server.round, server.plan.digest, told)

    @property
    def aggregator(self) -> PairCounts:
        """Counts items and pairs of items."""
        return PairCounts()

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Lines 2 to 4."""
        memory = self.aggregator.added(server.memory, delivery)
        reports = server.plan.cohort_size * (server.round + 1)
        weights = server.weights
        if server.round + 1 == server.plan.rounds:
            k = server.weights["near"].shape[1]
            weights = self._nearest(memory, k=k, reports=reports)
        return server.after(weights=weights, memory=memory)

    def _nearest(self, memory: Arrays, *, k: int, reports: float) -> Arrays:
        """Lines 3 and 4, some rows of the similarities at a time."""
        m = len(memory["said"])
        near, alike = np.empty((m, k), np.int32), np.empty((m, k), np.float32)
        for rows in _blocks(m, width=m):
            similar = self._similar(memory, rows, reports=reports)
            best = np.argpartition(-similar, k - 1, axis=1)[:, :k]
            near[rows], alike[rows] = best, np.take_along_axis(similar, best, axis=1)
        return {"near": near, "alike": alike}

    def _similar(
        self, memory: Arrays, rows: slice, *, reports: float
    ) -> Float32[np.ndarray, "rows items"]:
        said, pairs = memory["said"], memory["pairs"][rows].astype(np.float32)
        counts, noise = said.astype(np.float64), 0.0
        if self.privacy == "local":
            mechanism = self._mechanism(len(said))
            counts = mechanism.counts(said, rows=reports)
            pairs = mechanism.pairs(pairs, one=said[rows], other=said, rows=reports)
            noise = self.damping * mechanism.pair_deviation(reports)
        roots = np.sqrt(np.maximum(counts, 1.0))
        similar = np.maximum(pairs, 0.0) / (
            np.multiply.outer(roots[rows], roots) + noise
        )
        np.fill_diagonal(similar[:, rows], 0.0)
        return similar.astype(np.float32)

    # device

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """The bits x, packed."""
        x = np.zeros((len(shards), packed_size(shards.n_items)), np.uint8)
        bits = (128 >> (shards.items % 8)).astype(np.uint8)
        np.bitwise_or.at(x, (shards.owners, shards.items // 8), bits)
        return clients.state, Updates(Tree.dense(clicks=x))

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 1."""
        x: Rows = updates.tree["clicks"]
        if self.privacy == "none":
            return Reports(updates.tree)
        flipped = self._mechanism(len(cast.weights["near"])).privatize(x, keys)
        return Reports(Tree.dense(clicks=flipped))

    # serving

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 5."""
        near, alike = cast.weights["near"], cast.weights["alike"]
        m, k = near.shape
        starts = np.arange(0, m * k + 1, max(k, 1)) if k else np.zeros(m + 1, np.int64)
        similar = sp.csr_array((alike.ravel(), near.ravel(), starts), shape=(m, m))
        held = shards.log.matrix()
        return Tastes(Tree.dense(scores=(held @ similar.T).toarray()))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """What `represent` found, for the candidates."""
        return person.tree["scores"][:, candidates.items]

    # account

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """One bit an item."""
        return Layout({"clicks": Slot("uint8", (packed_size(len(catalog)),))})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The rows; neighbors follow from them and cost nothing more."""
        what = "history of each device"
        if self.privacy == "local":
            what += ", every bit flipped with a known chance"
        seen_by = "server, and everyone through the neighbors"
        return (Release(what, seen_by, "each round", self._cells(plan)),)

    def _cells(self, plan: Plan) -> Cells:
        if self.privacy == "none":
            return unprotected("histories are sent as they are")
        reason = "randomised response on every bit of a row, composed over the catalog"
        # Whatever the number of bits: all of them together cost `epsilon`.
        return local(plan, FlippedBits(self._epsilon, 1).event, reason=reason)

    def _mechanism(self, n_items: int) -> FlippedBits:
        return FlippedBits(self._epsilon / n_items, n_items)

    @property
    def _epsilon(self) -> float:
        if self.epsilon is None:
            raise BadValue(
                "privacy='local' needs epsilon, of a whole history: set it, or give "
                "the plan a target_epsilon"
            )
        return self.epsilon


@dataclass(frozen=True)
class PairCounts:
    """Adds packed rows and their squares; a row of zeros counts as nobody's."""

    accepts: tuple[type[Delivery], ...] = (Each,)
    is_plain_sum: bool = True

    def added(self, memory: Arrays, delivery: Delivery) -> Arrays:
        """What was counted before, and what is delivered now."""
        if not isinstance(delivery, Each):
            raise Refused(
                f"DPLCF relates the items of one person and cannot read "
                f"{type(delivery).__name__}; use the channel 'direct'"
            )
        said: Int64[np.ndarray, "items"] = memory["said"].copy()
        pairs: Int32[np.ndarray, "items items"] = memory["pairs"].copy()
        for chunk in delivery.chunks:
            packed = chunk.tree["clicks"]
            for some in _blocks(len(packed), width=len(said)):
                bits = np.unpackbits(packed[some], axis=1, count=len(said))
                rows = bits.astype(np.float32)
                said += bits.sum(axis=0, dtype=np.int64)
                pairs += (rows.T @ rows).astype(np.int32)
        return {"said": said, "pairs": pairs}


def _blocks(n: int, *, width: int) -> Iterator[slice]:
    step = max(1, _NUMBERS_AT_ONCE // width)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
