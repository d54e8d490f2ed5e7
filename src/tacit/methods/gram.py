"""Gram: two noisy sums and one spectrum. Our own method, and the default.

    x     a user's history over the catalog: 1 an item, or a weight
    c     the sum of x / |x| over users, with noise                (everyone sees it)
    head  the H items with the largest c; the rest is the tail
    w     max(c, 1)^-a on the head: less for what everyone has
    p     c w / |c w|: the direction of popularity
    y     x w / |x w| on the head;   r = y - (y·p) p;   z = r / |r|
    G     the sum of z zᵀ over users, with noise                   (everyone sees it)
    V, f  its directions; f = (xi - rest) / (xi + lambda N), xi what a direction has
          without the noise (`models.spectrum`), rest what any has

    counting  client  1  send x / |x|, of norm 1
              server  2  c; head, w and p follow
    relating  client  3  send z zᵀ as its half: every pair of items once
              server  4  G; V and f follow
    ranking   client  5  score = V f Vᵀ r + (y·p) p; then the tail, by c

With public content K (items alike by genre, year, …) and t from 0 (no noise) to 1:

    in 3      z = S r / |S r|, S = (1 - g t) I + g t D^-1/2 K D^-1/2
    in 4      directions are first looked for within the strongest of D^-1/2 K D^-1/2
    in 5      score + b t q, q = (x K) c / |(x K) c|; the tail by q

With a `reach` beyond the head, later items share the rows of items alike to them
(`models.folding`): z = P r / |P r| in 3, and Pᵀ V f Vᵀ P r in 5.

Popularity is known after the counting, so it is taken out before the relating and put
back in the ranking: nobody pays for it twice.

*Sensitivity of the second sum.* |z zᵀ| = |z|² <= 1 in the Frobenius norm, and a half
has its norm over sqrt(2) (`tree.Symmetric`): the bound of the phase. That holds for any
z of norm 1 or less: what made it (weights, content, a fold) does not matter. Noise of
s / sqrt(2) on every number of the half is, once mirrored, noise of deviation s on the
diagonal and s / sqrt(2) beside it, which `models.spectrum` removes.

What follows from users and noise alone (H, lambda, the share of the budget that
counts) is decided in `gram_heuristics.py`. Local reports: let each client speak `once`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import numpy as np
from jaxtyping import Float64, Int64
from scipy.linalg import eigh

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    Clients,
    Formula,
    Key,
    Keys,
    Method,
    Phase,
    Plan,
    Privacy,
    PublicSlot,
    Queries,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Symmetric,
    Tastes,
    Tree,
    check_offered,
    in_turn,
)
from tacit.methods import gram_heuristics as heuristics
from tacit.methods.gram_heuristics import Evidence
from tacit.models.content_similarity import Content, public_content
from tacit.models.eigenvalue_shrinkage import cleaned
from tacit.models.histories import Weighting, rows, rows_formula
from tacit.models.item_bucketing import fold_of
from tacit.models.item_relations import Relations, head_of, unit
from tacit.tree import mirrored

Refresh = Literal["relations", "all"]

_TOLD = (  # what relating needs
    *("head", "weights", "popularity", "rows", "shares"),
    *("lean", "labels", "numbers"),
)
_PROOF = "docs/methods/gram.md"
_USUAL_SIZE = 5000  # of a local report; its noise hardly depends on it


@dataclass(frozen=True)
class Gram(SumMethod):
    """Counts items, relates them, and ranks on the device from the whole history.

    Leave `head` and `count_share` out to have them follow from the plan.
    """

    head: int | None = None  # H
    max_head: int = 3000  # H² numbers are held and decomposed
    reach: int | None = None  # items related; beyond H they share rows
    rank: int = 512  # the most directions kept
    weight_exponent: float = 0.3  # a
    count_share: float | None = None  # of the budget, for the counting
    ridge: float | None = None  # lambda; by a rule
    count_rounds: int = 1  # the first so many rounds count, the others relate
    refresh: Refresh = "relations"  # what a run does that refreshes an earlier one
    weighting: Weighting = "once"  # how often an item counts: see models.histories
    half_life: float | None = None  # days after which an event counts half
    content: tuple[str, ...] = ()  # public features of items that say who is alike
    content_scale: float = 7.0  # of numbers among them, such as years
    content_smoothing: float = 0.4  # g
    content_weight: float = 0.07  # b

    def __post_init__(self) -> None:
        check_offered(self)
        check.at_least(1, max_head=self.max_head, rank=self.rank)
        check.at_least(0, count_rounds=self.count_rounds)
        check.one_of(get_args(Refresh), refresh=self.refresh)
        check.not_negative(weight_exponent=self.weight_exponent)
        check.positive(content_scale=self.content_scale)
        if self.ridge is not None:
            check.positive(ridge=self.ridge)
        check.not_negative(content_weight=self.content_weight)
        check.rate(content_smoothing=self.content_smoothing)
        if self.count_share is not None:
            check.fraction(count_share=self.count_share)
        if self.head is not None:
            check.at_least(1, head=self.head)
        if self.reach is not None:
            check.at_least(1, reach=self.reach)
            if not self.content:
                raise BadValue(
                    f"reach={self.reach} needs public content: items share rows with "
                    "those alike to them; name features in `content`, or leave reach "
                    "out"
                )

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Counting, for a share of the budget, and relating."""
        return self._phases(plan, self.count_share or heuristics.COUNT_SHARE)

    def _phases(self, plan: Plan, share: float) -> tuple[Phase, ...]:
        counting, relating = in_turn(
            ("counts", self.count_rounds, "Gram counts"),
            ("relations", 0, "relates"),
            total=plan.rounds,
        )
        relations = Phase(
            "relations",
            relating,
            what="related items",
            bound=math.sqrt(0.5),
            share=1 - share if self.count_rounds else 1.0,
            proof=_PROOF,
        )
        if not self.count_rounds:
            return (relations,)
        counts = Phase("counts", counting, what="histories", share=share, proof=_PROOF)
        return counts, relations

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item while counting; then one per item of the head."""
        if phase.name == "counts":
            return {"counts": Slot("float64", (len(catalog),))}
        return {"relations": Slot.symmetric("float64", self._side(catalog))}

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """Only what the next round needs; all of it once there is none."""
        n_items, side, width = len(catalog), self._side(catalog), self._width(catalog)
        rank, every = min(self.rank, side), PublicSlot("float64", (width,))
        content = Content.of(catalog, self.content, scale=self.content_scale)
        slots = {
            "head": PublicSlot("int64", (width,), 0, n_items - 1),
            "weights": every,
            "popularity": every,
            "lean": PublicSlot("float64", (1,), 0.0, 1.0),
            **public_content(content),
        }
        if width > side:
            rows = PublicSlot("int64", (width,), 0, side - 1)
            slots |= {"rows": rows, "shares": every}
        known = {
            "counts": PublicSlot("float64", (n_items,)),
            "vectors": PublicSlot("float64", (side, rank)),
            "strengths": PublicSlot("float64", (rank,)),
        }
        told = slots | known if phase is None else slots
        if phase is not None and phase.name == "counts":
            told = {}
        return {**told, "n_items": PublicSlot("int64", (1,), n_items, n_items)}

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1 and 3, raw."""
        if phase.name == "counts":
            return Tree.dense(counts=unit(self._rows(shards)))
        known = Relations.told(broadcast.weights)
        smoothing = self.content_smoothing if self.content else 0.0
        roots = known.roots(self._rows(shards, known.head), smoothing=smoothing)
        return Tree({"relations": Symmetric(roots[:, None, :])})

    # server

    def calibrated(self, plan: Plan) -> Self:
        """With the least noise for the plan's target, and the head that it allows.

        A tenth of the budget counts; more where few tastes would stand out.
        """
        share = self.count_share or heuristics.COUNT_SHARE
        privacy, head = self._with_share(plan, share)
        if self.count_share is None and self.count_rounds:
            known = self._evidence(plan, privacy, size=head * (head + 1) // 2)
            better = heuristics.count_share(known.edge(head))
            if better != share:
                share, (privacy, head) = better, self._with_share(plan, better)
        counting = share if self.count_rounds else self.count_share
        return replace(self, privacy=privacy, head=head, count_share=counting)

    def _with_share(self, plan: Plan, share: float) -> tuple[Privacy, int]:
        """The noise where counting has this share of the budget, and the head."""
        privacy = self.privacy.calibrated(plan, self._phases(plan, share))
        if self.head is not None:
            return privacy, self.head
        known = self._evidence(plan, privacy, size=_USUAL_SIZE)
        return privacy, heuristics.head_size(known, most=self.max_head)

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
            "lean": np.array([heuristics.lean(self.edge(plan, side=side))]),
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

    def public(self, server: Server, phase: Phase | None) -> Arrays:
        """Only what the next round needs; all of it once there is none."""
        wanted = tuple(server.weights)
        if phase is not None:
            wanted = () if phase.name == "counts" else _TOLD
        told = {n: server.weights[n] for n in wanted if n in server.weights}
        return {**told, "n_items": np.array([len(server.catalog)])}

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Lines 2 and 4."""
        if phase.name == "counts":
            counts = server.weights["counts"] + total["counts"]
            weights = {**server.weights, **self._head(server, counts)}
            return server.after(weights=weights, memory=server.memory)
        half = server.memory["half"] + total["relations"]
        added = self._a_round(server.plan, self.privacy, size=len(half))
        known = Evidence.of(server.memory) + added
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
            ridge = heuristics.ridge(known, n_items=n_items, side=len(matrix))
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
        few, side = heuristics.likely_directions(len(alike)), len(alike)
        return eigh(alike, subset_by_index=(side - few, side - 1))[1]

    # refreshing an earlier run

    def refreshing(self, earlier: Method) -> Self:
        """Keep what was counted and add relations; or count on, and relate anew.

        A relation z zᵀ means something only under the head, the weights and the
        direction of popularity that its z was made with. So a refresh keeps those of
        the earlier run and spends its whole budget on relating (`refresh="relations"`);
        or it counts on and relates anew, which needs no more than counts of the same
        kind (`refresh="all"`).
        """
        if not isinstance(earlier, Gram):
            raise Refused(
                f"Gram cannot refresh a run of {type(earlier).__name__}: only sums of "
                "the same method add up"
            )
        _check_same(self, earlier)
        if self.refresh == "all":
            return self
        return replace(self, head=earlier.head, count_rounds=0)

    def continued(self, server: Server, *, weights: Arrays, memory: Arrays) -> Server:
        """With the counts of an earlier run; if none are to come, its relations too.

        The earlier sum is weighted against the one to come. That is free: it was
        released long ago, and the weight follows from public numbers.
        """
        if self.count_rounds:
            counts = {"counts": weights["counts"]}
            return replace(server, weights={**server.weights, **counts})
        _check_content(server.weights, weights)
        kept = {name: weights[name] for name in _KEPT if name in weights}
        known = Evidence.of(memory)
        coming = self.evidence(server.plan, size=len(memory["half"]))
        weight = known.weight_beside(coming)
        added = {"half": weight * memory["half"], **known.times(weight).arrays()}
        return replace(server, weights={**server.weights, **kept}, memory=added)

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """How much of each direction, of popularity and of content a history has."""
        known = Relations.told(broadcast.weights)
        r, popular = known.parted(self._rows(shards, known.head))
        loads = known.loads(r)
        alike = np.zeros((len(shards), 0))
        if self.content:
            alike = known.alike(self._rows(shards))
        return Tastes(Tree.dense(loads=loads, popular=popular[:, None], alike=alike))

    def score(
        self, broadcast: Broadcast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 5."""
        taste, known = person.tree, Relations.told(broadcast.weights)
        parts = (taste["loads"], taste["popular"], taste["alike"])
        return known.score(*parts, weight=self.content_weight)[:, candidates.items]

    def formula(self, broadcast: Broadcast) -> Formula:
        """Line 5, from histories on."""
        known, weight = Relations.told(broadcast.weights), self.content_weight
        used = weight if self.content else None
        return known.formula(rows_formula(self.weighting), content_weight=used)

    def reasons(
        self, broadcast: Broadcast, shards: Shards, item: int
    ) -> Float64[np.ndarray, "events"]:
        """The part of line 5 that each item of the history brings."""
        known = Relations.told(broadcast.weights)
        x = self._rows(shards, known.head)
        return known.reasons(x, shards.items.astype(np.int64), item)

    # what can be learnt

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
        expect = heuristics.outlook(edge)
        return f"relates the {width:,} most frequent items{shared}{kept}; {expect}"

    def edge(self, plan: Plan, *, side: int) -> float:
        """The largest eigenvalue that noise makes, over the number of users."""
        return self.evidence(plan, size=side * (side + 1) // 2).edge(side)

    def evidence(self, plan: Plan, *, size: int) -> Evidence:
        """What all relating rounds amount to; a report stands for `size` numbers."""
        return self._evidence(plan, self.privacy, size=size)

    def _evidence(self, plan: Plan, privacy: Privacy, *, size: int) -> Evidence:
        *_, relating = self.phases(plan)
        a_round = self._a_round(plan, privacy, size=size)
        return a_round.rounds(len(relating.rounds))

    def _a_round(self, plan: Plan, privacy: Privacy, *, size: int) -> Evidence:
        """Mirrored, the noise on the diagonal has twice the variance of the half's."""
        *_, relating = self.phases(plan)
        half = privacy.variance(relating, people=plan.cohort_size, size=size)
        return Evidence(privacy.planned(plan), 2 * half)

    def for_catalog(self, catalog: Catalog) -> Self:
        """With all that is known of these items as content, if it has any."""
        return replace(self, content=(*catalog.features,) if self.content else ())

    # details

    @property
    def _known_head(self) -> int:
        if self.head is None:
            raise BadValue(
                "head is not set: set it, or have it follow from the plan (calibrated)"
            )
        return self.head

    def _side(self, catalog: Catalog) -> int:
        """How many rows are related: H."""
        return min(self._known_head, len(catalog))

    def _width(self, catalog: Catalog) -> int:
        """How many items are related: the head's, or as far as the reach goes."""
        return min(max(self.reach or 0, self._side(catalog)), len(catalog))

    def _rows(
        self, shards: Shards, items: Int64[np.ndarray, "columns"] | None = None
    ) -> Float64[np.ndarray, "users columns"]:
        return rows(
            shards, items=items, weighting=self.weighting, half_life=self.half_life
        )


_COUNTING = ("weighting", "half_life")  # what a count means
_RELATING = (  # and what a relation does
    *("weight_exponent", "content", "content_scale"),
    *("content_smoothing", "reach"),
)
_KEPT = ("counts", "head", "weights", "popularity", "rows", "shares", "lean")


def _check_same(method: Gram, earlier: Gram) -> None:
    """Refuse settings under which the earlier sums would mean something else."""
    names = _COUNTING if method.refresh == "all" else (*_COUNTING, *_RELATING)
    found = _different(method, earlier, names)
    if type(method.privacy) is not type(earlier.privacy):
        kinds = (type(one.privacy).__name__ for one in (earlier, method))
        found = "privacy {}, now {}".format(*kinds)
    if found:
        raise Refused(
            f"the earlier run has {found}: what it summed up means something else; "
            "use the same settings, or train without it"
        )
    if method.refresh == "relations" and method.head is not None:
        found = _different(method, earlier, ("head",))
        if found:
            raise Refused(
                f"the earlier run has {found}: its relations are between the items of "
                'its head; leave `head` out, or set refresh = "all" to relate anew'
            )


def _check_content(server: Arrays, earlier: Arrays) -> None:
    """Refuse if the public content of the catalog is no longer what it was."""
    for name in ("labels", "numbers"):
        if not np.array_equal(server[name], earlier[name]):
            raise Refused(
                "the public content of the items has changed since the earlier run, "
                'and its relations rest on it; set refresh = "all" to relate anew'
            )


def _different(method: Method, earlier: Method, names: Sequence[str]) -> str:
    pairs = [(name, getattr(earlier, name), getattr(method, name)) for name in names]
    return ", ".join(f"{n}={was!r}, now {now!r}" for n, was, now in pairs if was != now)
