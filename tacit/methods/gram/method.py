"""Gram: two noisy sums and one spectrum. Our own method, and the default.

    x     a person's history over the catalog: 1 an item, or a weight
    c     the sum of x / |x| over people, with noise                (everyone sees it)
    head  the H items with the largest c; the rest is the tail
    w     max(c, 1)^-a on the head: less for what everyone has
    p     c w / |c w|: the direction of popularity
    y     x w / |x w| on the head;   r = y - (y·p) p;   z = r / |r|
    G     the sum of z zᵀ over people, with noise                   (everyone sees it)
    V, f  its directions; f = (xi - rest) / (xi + lambda N), xi what a direction has
          without the noise (`models.spectrum`), rest what any has

    counting  device  1  send x / |x|, of norm 1
              server  2  c; head, w and p follow
    relating  device  3  send z zᵀ as its half: every pair of items once
              server  4  G; V and f follow
    ranking   device  5  score = V f Vᵀ r + (y·p) p; then the tail, by c

`settings.py` has the fields, `rule.py` what follows from people and noise alone,
`protection.py` the noise and its proof, `refresh.py` what a run must share with an
earlier one to add to it.

With public content K (items alike by genre, year, …) and t from 0 (no noise) to 1:

    in 3      z = S r / |S r|, S = (1 - g t) I + g t D^-1/2 K D^-1/2
    in 4      directions are first looked for within the strongest of D^-1/2 K D^-1/2
    in 5      score + b t q, q = (x K) c / |(x K) c|; the tail by q

With a `reach` beyond the head, later items share the rows of items alike to them
(`models.folding`): z = P r / |P r| in 3, and Pᵀ V f Vᵀ P r in 5.

Popularity is known after the counting, so it is taken out before the relating and put
back in the ranking: nobody pays for it twice.

    privacy   protected by
    none      nothing
    central   Gaussian noise on both sums, over secure_sum
    local     PrivUnitG on the device; let each device speak in one round (`once`)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from jaxtyping import Float64, Int64
from scipy.linalg import eigh

from tacit.aggregation.mean import Mean
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.keys import Key, Keys
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.methods.gram import rule
from tacit.methods.gram.calibration import calibrated
from tacit.methods.gram.protection import Bare
from tacit.methods.gram.refresh import KEPT, check_content, check_same
from tacit.methods.gram.rule import Evidence
from tacit.methods.gram.settings import Settings
from tacit.models.folding import fold_of
from tacit.models.formula import Formula
from tacit.models.histories import rows, rows_formula
from tacit.models.relations import Relations, head_of, unit
from tacit.models.similarity import Content
from tacit.models.spectrum import cleaned
from tacit.phases import released
from tacit.plan import Plan
from tacit.release import Release
from tacit.sampling import Once
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Arrays, Symmetric, Tree, mirrored

_TOLD = (  # what relating needs
    *("head", "weights", "popularity", "rows", "shares"),
    *("lean", "labels", "numbers"),
)


@dataclass(frozen=True)
class Gram(Settings, Method):
    """Counts items, relates them, and ranks on the device from the whole history.

    Leave the noise, `epsilon` and `head` out to have them follow from the plan.
    """

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the least noise for the plan's target, and its head."""
        return calibrated(self, plan)

    def refreshing(self, earlier: Method) -> Self:
        """Keep what was counted and add relations; or count on, and relate anew."""
        check_same(self, earlier, refresh=self.refresh)
        if self.refresh == "all":
            return self
        assert isinstance(earlier, Gram)
        return replace(self, head=earlier.head, count_rounds=0)

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Nothing is counted.

        If nothing will be, the head is the catalog's first items, all alike.
        """
        side, width = self._side(catalog), self._width(catalog)
        content = Content.of(catalog, self.content, scale=self.content_scale)
        rank = min(self.rank, side)
        weights = {
            "counts": np.zeros(len(catalog)),
            "head": np.zeros(width, np.int64),
            "weights": np.zeros(width),
            "popularity": np.zeros(width),
            "vectors": np.zeros((side, rank)),
            "strengths": np.zeros(rank),
            "lean": np.array([rule.lean(self.edge(plan, side=side))]),
            "labels": content.labels,
            "numbers": content.numbers,
        }
        if width > side:
            weights |= {"rows": np.zeros(width, np.int64), "shares": np.zeros(width)}
        memory = {"half": np.zeros(side * (side + 1) // 2)}
        server = Server(plan, catalog, 0, weights, memory | Evidence(0.0, 0.0).arrays())
        if self.count_rounds:
            return server
        return replace(server, weights=weights | self._head(server, weights["counts"]))

    def continued(self, server: Server, *, weights: Arrays, memory: Arrays) -> Server:
        """With the counts of an earlier run; if none are to come, its relations too.

        The earlier sum is weighted against the one to come. That is free: it was
        released long ago, and the weight follows from public numbers.
        """
        if self.count_rounds:
            counts = {"counts": weights["counts"]}
            return replace(server, weights={**server.weights, **counts})
        check_content(server.weights, weights)
        kept = {name: weights[name] for name in KEPT if name in weights}
        known = Evidence.of(memory)
        planned = self.planned(server.plan, size=len(memory["half"]))
        weight = known.weight_beside(planned)
        added = {"half": weight * memory["half"], **known.times(weight).arrays()}
        return replace(server, weights={**server.weights, **kept}, memory=added)

    def broadcast(self, server: Server) -> Cast:
        """Only what the next round needs; all of it once there is none."""
        wanted = tuple(server.weights)
        if server.round < self.count_rounds:
            wanted = ()
        elif server.round < server.plan.rounds:
            wanted = _TOLD
        told = {n: server.weights[n] for n in wanted if n in server.weights}
        told["n_items"] = np.array([len(server.catalog)])
        return Cast(server.round, server.plan.digest, told)

    @property
    def aggregator(self) -> Mean:
        """A plain sum."""
        return Mean()

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Lines 2 and 4."""
        layout = self.layout(server.plan, server.catalog, round=server.round)
        noise = self._protection.noise(self._leaf(server.round))
        total = self.aggregator.total(delivery, layout, noise=noise, key=key)
        if "counts" in total:
            counts = server.weights["counts"] + total["counts"]
            weights = {**server.weights, **self._head(server, counts)}
            return server.after(weights=weights, memory=server.memory)
        half = server.memory["half"] + total["relations"]
        known = Evidence.of(server.memory) + self._a_round(server.plan, size=len(half))
        weights = {**server.weights, **self._directions(half, known, server)}
        return server.after(weights=weights, memory={"half": half, **known.arrays()})

    def _head(
        self, server: Server, counts: Float64[np.ndarray, "items"]
    ) -> dict[str, np.ndarray]:
        """Counts, and what follows from them."""
        side, width = self._side(server.catalog), self._width(server.catalog)
        found = head_of(counts, size=width, exponent=self.weight_exponent)
        if width > side:
            fold = fold_of(
                counts[found["head"]],
                found["weights"],
                head=found["head"],
                content=Content(server.weights["labels"], server.weights["numbers"]),
                n_rows=side,
            )
            found |= {"rows": fold.rows, "shares": fold.shares}
        return {"counts": counts, **found}

    def _directions(
        self, half: Float64[np.ndarray, "half"], known: Evidence, server: Server
    ) -> dict[str, np.ndarray]:
        """V and f, padded to the rank that may be kept."""
        matrix, people = mirrored(half), known.people
        within = self._within(server) if known.variance > 0 else None
        found = cleaned(
            matrix, deviation=known.deviation, rank=self.rank, within=within
        )
        ridge = self.ridge
        if ridge is None:
            n_items = min(len(server.catalog), self.max_head)
            ridge = rule.ridge(known, n_items=n_items, side=len(matrix))
        vectors = np.zeros((len(matrix), min(self.rank, len(matrix))))
        strengths, n = np.zeros(vectors.shape[1]), len(found.strengths)
        vectors[:, :n] = found.vectors
        # What any direction has, rest / (rest + ridge), would lift the history's own
        # items and lower popularity, and tell nobody's taste: it is taken off.
        above = found.strengths - found.rest
        strengths[:n] = above / (found.strengths + ridge * people)
        return {"vectors": vectors, "strengths": strengths}

    def _within(self, server: Server) -> Float64[np.ndarray, "head few"] | None:
        """The directions along which items that are alike by content go together."""
        if not self.content or "rows" in server.weights:
            return None
        content = Content(server.weights["labels"], server.weights["numbers"])
        alike = content.smoothing(server.weights["head"], 1.0)
        few, side = rule.likely_directions(len(alike)), len(alike)
        return eigh(alike, subset_by_index=(side - few, side - 1))[1]

    # device

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Lines 1 and 3, raw."""
        if cast.round < self.count_rounds:
            return clients.state, Updates(Tree.dense(counts=unit(self._rows(shards))))
        known = Relations.told(cast.weights)
        smoothing = self.content_smoothing if self.content else 0.0
        roots = known.roots(self._rows(shards, known.head), smoothing=smoothing)
        tree = Tree({"relations": Symmetric(roots[:, None, :])})
        return clients.state, Updates(tree)

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """All that leaves."""
        return Reports(self._protection.report(updates.tree, keys))

    def noise(self, cast: Cast) -> Noise | None:
        """What a trusted sum adds."""
        return self._protection.noise(self._leaf(cast.round))

    # serving

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """How much of each direction, of popularity and of content a history has."""
        known = Relations.told(cast.weights)
        r, popular = known.parted(self._rows(shards, known.head))
        loads = known.loads(r)
        alike = np.zeros((len(shards), 0))
        if self.content:
            alike = known.alike(self._rows(shards))
        return Tastes(Tree.dense(loads=loads, popular=popular[:, None], alike=alike))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 5."""
        taste, known = person.tree, Relations.told(cast.weights)
        parts = (taste["loads"], taste["popular"], taste["alike"])
        return known.score(*parts, weight=self.content_weight)[:, candidates.items]

    def formula(self, cast: Cast) -> Formula:
        """Line 5, from histories on."""
        known, weight = Relations.told(cast.weights), self.content_weight
        used = weight if self.content else None
        return known.formula(rows_formula(self.weighting), content_weight=used)

    def reasons(
        self, cast: Cast, shards: Shards, item: int
    ) -> Float64[np.ndarray, "events"]:
        """The part of line 5 that each item of the history brings."""
        known = Relations.told(cast.weights)
        x = self._rows(shards, known.head)
        return known.reasons(x, shards.items.astype(np.int64), item)

    # account

    def outlook(self, plan: Plan, catalog: Catalog) -> str:
        """How widely a taste must be shared to stand out from the noise."""
        side, width = self._side(catalog), self._width(catalog)
        edge = self.edge(plan, side=side)
        shared = f" in {side:,} rows" if width > side else ""
        kept = "" if self.count_rounds else " of the earlier run's head; by itself"
        if edge == 0:
            return (
                f"no noise: relates the {width:,} most frequent items{shared} exactly"
            )
        expect = rule.outlook(edge)
        return f"relates the {width:,} most frequent items{shared}{kept}; {expect}"

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """A number an item while counting; then a number for each of the head."""
        leaf, dtype = self._leaf(round), self._protection.dtype
        if leaf == "counts":
            return Layout({leaf: Slot(dtype, (len(catalog),))})
        side = self._side(catalog)
        if self.privacy == "local":
            return Layout({leaf: Slot(dtype, (side * (side + 1) // 2,))})
        return Layout({leaf: Slot.symmetric(dtype, side)})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """Both sums; all else follows from them and costs nothing more."""
        protection, relating = self._protection, self.relating(plan)
        related = protection.cells(relating, "relations")
        if not self.count_rounds:
            return (released("sum of related items", related),)
        if isinstance(plan.sampler, Once) and not isinstance(protection, Bare):
            # Everyone is in one of the two, so what it costs is the dearer of them.
            what = "sums of histories and of related items"
            return (released(what, protection.cells(plan, protection.dearer)),)
        counted = protection.cells(replace(plan, rounds=self.count_rounds), "counts")
        later = range(self.count_rounds, plan.rounds)
        return (
            released("sum of histories", counted, rounds=range(self.count_rounds)),
            released("sum of related items", related, rounds=later),
        )

    # details

    def _rows(
        self, shards: Shards, items: Int64[np.ndarray, "columns"] | None = None
    ) -> Float64[np.ndarray, "people columns"]:
        return rows(
            shards, items=items, weighting=self.weighting, half_life=self.half_life
        )
