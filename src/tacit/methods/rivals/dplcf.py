"""DPLCF: histories with flipped bits, item similarities, neighbors on the device.

    M     items            x    a user's row of M bits, 1 for an item held
    ε'    of one bit       ε    of a row: M ε'
    r     x with every bit flipped with chance q = 1 / (e^ε' + 1)           (leaves)
    s, S  the sums of r and of r rᵀ                                     (the server's)
    c, C  unbiased estimates of how many have an item, or both of two
    k     neighbors an item keeps

    client   1  send r
    server   2  add r to s, r rᵀ to S
             3  similarity(i, j) = C / (sqrt(c_i c_j) + d σ), never below zero
             4  keep the k nearest of every item                       (all see them)
    ranking  5  score(j) = sum of similarity(i, j) over items i held and near j

Gao et al. 2020, "Differentially Private Local Collaborative Filtering" (SIGIR), as
Minto et al. 2021 describe it in Section 5.2. σ is the deviation of C for a pair that
nobody has; the damping d is ours: without it pairs of rare items are all noise.

    mechanism   protected by
    none        nothing
    local       randomised response on every bit, on the client

Pairs of one user's items are related, so single reports are read: no sum will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float32, Int32, Int64, UInt8

from tacit import check
from tacit.errors import Refused
from tacit.mechanisms.flipped_bits import packed_size
from tacit.method import (
    Array,
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    Clients,
    Key,
    Keys,
    Mechanisms,
    Method,
    Phase,
    Plan,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    Tastes,
    Tree,
    Unprotected,
    Updates,
    check_offered,
)
from tacit.privacy import UNPROTECTED, LocalFlips
from tacit.release import Release
from tacit.transport.channels import Delivery, Each, RoundContext
from tacit.transport.messages import NO_PHASE, BroadcastLayout, Layout, Reports
from tacit.wire_names import register

_NUMBERS_AT_ONCE = 2**24  # numbers of a block: 64 MiB of float32
_MOST_REPORTS = 2**24  # counts are exact in float32 up to here

Rows = UInt8[np.ndarray, "clients bytes"]


@register("dplcf")
@dataclass(frozen=True)
class Dplcf(Method):
    """Finds item neighbors from histories whose bits were flipped at random.

    The server needs memory for M × M counts.
    """

    mechanisms: ClassVar[Mechanisms] = {"none": Unprotected, "local": LocalFlips}

    neighbors: int = 100  # k
    damping: float = 5.0  # d
    _: KW_ONLY
    privacy: Unprotected | LocalFlips = UNPROTECTED

    def __post_init__(self) -> None:
        check_offered(self)
        check.count(neighbors=self.neighbors)
        check.not_negative(damping=self.damping)

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the epsilon that meets the plan's target."""
        return replace(self, privacy=self.privacy.calibrated(plan, _phases(plan)))

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server before the first report: all counts are zero."""
        m, k = len(catalog), min(self.neighbors, len(catalog))
        if plan.cohort_size * plan.rounds > _MOST_REPORTS:
            raise Refused(
                f"{plan.cohort_size * plan.rounds:,.0f} reports are planned and DPLCF "
                f"counts exactly up to {_MOST_REPORTS:,}; ask fewer users"
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

    def broadcast(self, server: Server) -> Broadcast:
        """The neighbors after the last round; before that clients need nothing."""
        agreed = self.agreement(server.plan, server.catalog).digest
        if self.is_over(server):
            return Broadcast(server.round, agreed, server.weights, NO_PHASE)
        # No columns but one row per item: clients read the catalog's size from it.
        empty = {name: value[:, :0] for name, value in server.weights.items()}
        return Broadcast(server.round, agreed, empty)

    def broadcast_layouts(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[BroadcastLayout, ...]:
        """One phase, whose broadcast has no neighbors yet."""
        return (_neighbor_layout(len(catalog), 0),)

    def model_layout(self, catalog: Catalog) -> BroadcastLayout:
        """The k nearest neighbors of every item."""
        return _neighbor_layout(len(catalog), min(self.neighbors, len(catalog)))

    def aggregators(self, plan: Plan) -> tuple[PairCounts, ...]:
        """An aggregator that counts items and pairs of items."""
        return (PairCounts(),)

    def aggregate(
        self, server: Server, delivery: Delivery, context: RoundContext
    ) -> Server:
        """Lines 2 to 4: the counts so far; after the last round, the neighbors."""
        memory = PairCounts().added(server.memory, delivery)
        reports = server.plan.cohort_size * (server.round + 1)
        weights = server.weights
        if server.round + 1 == server.plan.rounds:
            k = server.weights["near"].shape[1]
            weights = self._nearest(memory, k=k, reports=reports)
        return server.after(weights=weights, memory=memory)

    def _nearest(self, memory: Arrays, *, k: int, reports: float) -> Arrays:
        """Lines 3 and 4, for a block of rows of the similarities at a time."""
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
        if isinstance(self.privacy, LocalFlips):
            mechanism = self.privacy.bits(len(said))
            counts = mechanism.counts(said, rows=reports)
            pairs = mechanism.pairs(pairs, one=said[rows], other=said, rows=reports)
            noise = self.damping * mechanism.pair_deviation(reports)
        roots = np.sqrt(np.maximum(counts, 1.0))
        similar = np.maximum(pairs, 0.0) / (
            np.multiply.outer(roots[rows], roots) + noise
        )
        np.fill_diagonal(similar[:, rows], 0.0)  # an item is no neighbor of itself
        return similar.astype(np.float32)

    # client

    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """The bits x, packed eight to a byte."""
        x = np.zeros((len(shards), packed_size(shards.n_items)), np.uint8)
        # The highest bit of a byte is its first item, as in `np.unpackbits`.
        bits = (128 >> (shards.items % 8)).astype(np.uint8)
        np.bitwise_or.at(x, (shards.owners, shards.items // 8), bits)
        return clients.state, Updates(Tree.dense(clicks=x))

    def privatize(
        self, broadcast: Broadcast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 1: the packed bits, each flipped with chance q."""
        x: Rows = updates.tree["clicks"]
        if isinstance(self.privacy, Unprotected):
            return Reports(updates.tree)
        flipped = self.privacy.bits(len(broadcast.weights["near"])).privatize(x, keys)
        return Reports(Tree.dense(clicks=flipped))

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 5: a score for each item, from the neighbors of the items held."""
        near, alike = broadcast.weights["near"], broadcast.weights["alike"]
        m, k = near.shape
        starts = np.arange(0, m * k + 1, max(k, 1)) if k else np.zeros(m + 1, np.int64)
        similar = sp.csr_array((alike.ravel(), near.ravel(), starts), shape=(m, m))
        held = shards.log.matrix()
        return Tastes(Tree.dense(scores=(held @ similar.T).toarray()))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """What `represent` found, for the candidates."""
        return user.tree["scores"][:, candidates.items]

    # account

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """One bit per item, packed into bytes."""
        return Layout({"clicks": Slot("uint8", (packed_size(len(catalog)),))})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The flipped rows; neighbors follow from them and cost nothing more."""
        return self.privacy.releases(plan, _phases(plan))


def _neighbor_layout(m: int, k: int) -> BroadcastLayout:
    near = PublicSlot("int32", (m, k), 0, m - 1)
    return BroadcastLayout({"near": near, "alike": PublicSlot("float32", (m, k))})


def _phases(plan: Plan) -> tuple[Phase, ...]:
    return (Phase("histories", range(plan.rounds), what="histories"),)


@dataclass(frozen=True)
class PairCounts:
    """Adds packed rows r and their squares r rᵀ; a row of zeros adds nothing."""

    accepts: tuple[type[Delivery], ...] = (Each,)
    is_plain_sum: bool = True

    def total(self, delivery: Delivery, context: RoundContext) -> dict[str, Array]:
        """Refused: pairs are counted on top of earlier counts; see `added`."""
        raise Refused("pairs of items are no sum of reports; see `added`")

    def added(self, memory: Arrays, delivery: Delivery) -> Arrays:
        """The earlier counts plus those of the rows delivered now."""
        if not isinstance(delivery, Each):
            raise Refused(
                f"DPLCF relates the items of one user and cannot read "
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
