"""Gram: two noisy sums and one spectrum. Our own method, and the default.

    x     a user's history over the catalog: 1 per item, or a weight
    c     the sum of x / |x| over users, with noise                (everyone sees it)
    head  the H items with the largest c; the rest is the tail
    w     max(c, 1)^-a on the head: less for what everyone has
    p     c w / |c w|: the direction of popularity
    y     x w / |x w| on the head;   r = y - (y·p) p;   z = r / |r|
    G     the sum of z zᵀ over users, with noise                   (everyone sees it)
    V, f  its directions; f = (xi - rest) / (xi + lambda N), xi the eigenvalue of a
          direction without the noise (`models.eigenvalue_shrinkage`), rest the median
          of all xi

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
(`models.item_bucketing`): z = P r / |P r| in 3, and Pᵀ V f Vᵀ P r in 5.

Popularity is known after the counting, so it is taken out before the relating and put
back in the ranking: nobody pays for it twice.

*Sensitivity of the second sum.* |z zᵀ| = |z|² <= 1 in the Frobenius norm, and a half
has its norm over sqrt(2) (`tree.Symmetric`): the bound of the phase. That holds for any
z of norm 1 or less: what made it (weights, content, a fold) does not matter. Noise of
s / sqrt(2) on every number of the half is, once mirrored, noise of deviation s on the
diagonal and s / sqrt(2) beside it, which `models.eigenvalue_shrinkage` removes.

What follows from users and noise alone (H, lambda, the share of the budget that
counts) is decided in `gram_heuristics.py`. With local reports, use the sampler `once`.
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

_BROADCAST = (  # weights that clients need to relate items
    *("head", "weights", "popularity", "rows", "shares"),
    *("lean", "labels", "numbers"),
)
_PROOF = "docs/methods/gram.md"
_USUAL_SIZE = 5000  # numbers of a local report; its noise hardly depends on them


@dataclass(frozen=True)
class Gram(SumMethod):
    """Counts items, relates them, and ranks on the device from the whole history.

    Leave `head` and `count_share` out to have them follow from the plan.
    """

    head: int | None = None  # H
    max_head: int = 3000  # H² numbers are stored and decomposed: 72 MB at 3000
    reach: int | None = None  # items related; beyond H they share rows
    rank: int = 512  # the most directions that are kept
    weight_exponent: float = 0.3  # a
    count_share: float | None = None  # of the budget, for the counting
    ridge: float | None = None  # lambda; None: by `gram_heuristics.ridge`
    count_rounds: int = 1  # the first so many rounds count, the others relate
    refresh: Refresh = "relations"  # what a run does that refreshes an earlier one
    weighting: Weighting = "once"  # how often an item counts: see models.histories
    half_life: float | None = None  # days after which an event counts half
    content: tuple[str, ...] = ()  # public features that say which items are alike
    content_scale: float = 7.0  # distance, such as years, at which numbers are unlike
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
            bound=math.sqrt(0.5),  # of a half of z zᵀ, |z| <= 1: see the docstring
            share=1 - share if self.count_rounds else 1.0,
            proof=_PROOF,
        )
        if not self.count_rounds:
            return (relations,)
        counts = Phase("counts", counting, what="histories", share=share, proof=_PROOF)
        return counts, relations

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item while counting; then one per pair of head items."""
        if phase.name == "counts":
            return {"counts": Slot("float64", (len(catalog),))}
        return {"relations": Slot.symmetric("float64", self._side(catalog))}

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """Only what the next round needs; after the last round, everything."""
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
        public = slots | known if phase is None else slots
        if phase is not None and phase.name == "counts":
            public = {}
        return {**public, "n_items": PublicSlot("int64", (1,), n_items, n_items)}

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1 and 3, raw: a history of norm 1, or the root of its relations."""
        if phase.name == "counts":
            return Tree.dense(counts=unit(self._rows(shards)))
        known = Relations.from_broadcast(broadcast.weights)
        smoothing = self.content_smoothing if self.content else 0.0
        roots = known.roots(self._rows(shards, known.head), smoothing=smoothing)
        return Tree({"relations": Symmetric(roots[:, None, :])})

    # server

    def calibrated(self, plan: Plan) -> Self:
        """A copy with the least noise for the plan's target, and the head it allows.

        Counting gets a tenth of the budget, and more where few tastes would stand out
        from the noise of relating.
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
        """The server before anything is counted.

        If no round counts, the head is the catalog's first items, with equal weights.
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
        """Only what the next round needs; after the last round, everything."""
        wanted = tuple(server.weights)
        if phase is not None:
            wanted = () if phase.name == "counts" else _BROADCAST
        some = {n: server.weights[n] for n in wanted if n in server.weights}
        return {**some, "n_items": np.array([len(server.catalog)])}

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Lines 2 and 4: counts and the head, or relations and their directions."""
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
        """The counts, the head, its weights and the direction of popularity."""
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
        """V and f, padded with zeros to `rank`, so that their shape is public."""
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
        # The strength that every direction has, rest / (rest + ridge), would lift the
        # history's own items and lower popularity without saying anything about taste.
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
        """The server with an earlier run's counts, and relations if no round counts.

        The earlier sum is weighted against the one to come. That costs no privacy: the
        sum was released before, and the weight follows from public numbers.
        """
        if self.count_rounds:
            counts = {"counts": weights["counts"]}
            return replace(server, weights={**server.weights, **counts})
        _check_content(server.weights, weights)
        same = {name: weights[name] for name in _REFRESHED if name in weights}
        known = Evidence.of(memory)
        coming = self.evidence(server.plan, size=len(memory["half"]))
        weight = known.weight_beside(coming)
        added = {"half": weight * memory["half"], **known.times(weight).arrays()}
        return replace(server, weights={**server.weights, **same}, memory=added)

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The loads of a history on each direction, on popularity and on content."""
        known = Relations.from_broadcast(broadcast.weights)
        r, popular = known.parted(self._rows(shards, known.head))
        loads = known.loads(r)
        alike = np.zeros((len(shards), 0))
        if self.content:
            alike = known.alike(self._rows(shards))
        return Tastes(Tree.dense(loads=loads, popular=popular[:, None], alike=alike))

    def score(
        self, broadcast: Broadcast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 5: scores of the related items, then the tail."""
        taste, known = person.tree, Relations.from_broadcast(broadcast.weights)
        parts = (taste["loads"], taste["popular"], taste["alike"])
        return known.score(*parts, weight=self.content_weight)[:, candidates.items]

    def formula(self, broadcast: Broadcast) -> Formula:
        """Line 5 as a graph that takes histories."""
        known, weight = Relations.from_broadcast(broadcast.weights), self.content_weight
        used = weight if self.content else None
        return known.formula(rows_formula(self.weighting), content_weight=used)

    def reasons(
        self, broadcast: Broadcast, shards: Shards, item: int
    ) -> Float64[np.ndarray, "events"]:
        """How much each event of the history adds to the taste term of line 5."""
        known = Relations.from_broadcast(broadcast.weights)
        x = self._rows(shards, known.head)
        return known.reasons(x, shards.items.astype(np.int64), item)

    # what can be learnt

    def outlook(self, plan: Plan, catalog: Catalog) -> str:
        """How widely a taste must be shared to stand out from the noise."""
        side, width = self._side(catalog), self._width(catalog)
        edge = self.edge(plan, side=side)
        shared = f" in {side:,} rows" if width > side else ""
        whose = "" if self.count_rounds else " of the earlier run's head; by itself"
        if edge == 0:
            return (
                f"no noise: relates the {width:,} most frequent items{shared} exactly"
            )
        expect = heuristics.outlook(edge)
        return f"relates the {width:,} most frequent items{shared}{whose}; {expect}"

    def edge(self, plan: Plan, *, side: int) -> float:
        """The largest eigenvalue that noise makes, over the number of users."""
        return self.evidence(plan, size=side * (side + 1) // 2).edge(side)

    def evidence(self, plan: Plan, *, size: int) -> Evidence:
        """Users and noise of all relating rounds; a report has `size` numbers."""
        return self._evidence(plan, self.privacy, size=size)

    def _evidence(self, plan: Plan, privacy: Privacy, *, size: int) -> Evidence:
        *_, relating = self.phases(plan)
        a_round = self._a_round(plan, privacy, size=size)
        return a_round.rounds(len(relating.rounds))

    def _a_round(self, plan: Plan, privacy: Privacy, *, size: int) -> Evidence:
        """Users and noise of one relating round."""
        *_, relating = self.phases(plan)
        half = privacy.variance(relating, people=plan.cohort_size, size=size)
        # Mirrored, the noise on the diagonal has twice the variance of the half's.
        return Evidence(privacy.planned(plan), 2 * half)

    def for_catalog(self, catalog: Catalog) -> Self:
        """A copy whose content is every feature of this catalog, if it uses content."""
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
        """The number of rows of G: H, or the catalog's items if they are fewer."""
        return min(self._known_head, len(catalog))

    def _width(self, catalog: Catalog) -> int:
        """The number of items that are related: the head, or `reach` if larger."""
        return min(max(self.reach or 0, self._side(catalog)), len(catalog))

    def _rows(
        self, shards: Shards, items: Int64[np.ndarray, "columns"] | None = None
    ) -> Float64[np.ndarray, "users columns"]:
        return rows(
            shards, items=items, weighting=self.weighting, half_life=self.half_life
        )


_COUNTING = ("weighting", "half_life")  # settings that decide what a count means
_RELATING = (  # and those that decide what a relation means
    *("weight_exponent", "content", "content_scale"),
    *("content_smoothing", "reach"),
)
_REFRESHED = ("counts", "head", "weights", "popularity", "rows", "shares", "lean")


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
