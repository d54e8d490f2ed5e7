"""Gram: noisy sums of counts, relations and loadings. Our own method, the default.

    x     a user's history over the catalog: 1 per item, or a weight
    c     the sum of x / |x| over users, with noise                (everyone sees it)
    head  the H items with the largest c, and more after it that get loadings
    w     max(c, 1)^-a: less for what everyone has
    p     E[c] w / |E[c] w|: the direction of popularity (`models.noisy_counts`)
    y     x w / |x w|;   r = y - (y·p) p;   z = r / |r| on the head, q on all of them
    G     the sum of z zᵀ over users, with noise                   (everyone sees it)
    V, xi its directions and their strengths without the noise
          (`models.eigenvalue_shrinkage`); rest is the median of all xi
    t     the taste of a history: l Vᵀ q over its norm, along the first k directions,
          each lifted by l (`models.item_loadings`)
    S     the sum of q tᵀ over users, with noise                   (everyone sees it)
    g     n / (n + 1), n items of the head in the history: their number, not weights

    counting  client  1  send x / |x|, of norm 1
              server  2  c; head, w and p follow; count again, unless it is enough
    relating  client  3  send z zᵀ as its half: every pair of items once
              server  4  G; V and f = (xi - rest) / (xi + lambda N) follow
    loading   client  5  send q tᵀ: how its items go with its taste
              server  6  S; V corrected and carried on beyond the head
                         (`models.item_loadings`)
    ranking   client  7  score = g (V f Vᵀ r + (y·p) p) + (1 - g) .3 p; then the
                         tail, by c

*A floor.* Line 2 asks how much of what the whole budget would find by counting is found
so far, and whether histories have so many items of the head that relating them would
pay. Unless both hold it counts again with two thirds of what is left, and if that is
not enough, with the rest: then the list is private popularity with the whole budget.
If relations then show no tastes (the strongest direction is too weak next to the edge
of the noise), counts follow line 4 in place of loadings, and no list is personal.
The choice looks at released sums and public numbers only. Shares of the budget add up
to 1 on each way, so mu² adds up to that of one Gaussian release (docs/methods/gram.md).

*Newcomers.* y has norm 1 whatever the history, so that the taste of one item would be
as loud in line 7 as that of a hundred, of which it says far less: lists of people with
one to three items were worse than private popularity. So a history is trusted by g, and
what is left is the popularity part that a usual history has.

*What a list is for.* The same model also ranks for a session, or for the next visit
(`ranking_for`): x of line 7 is then weighed by order or age (`models.histories`), and
for a visit y·p counts twice. No sum knows of it.

With public content K (items alike by genre, year, …) and t from 0 (no noise) to 1:

    in 3      z = S r / |S r|, S = (1 - m t) I + m t D^-1/2 K D^-1/2
    in 4      directions are first looked for within the strongest of D^-1/2 K D^-1/2
    in 7      score + g b t q, q = (x K) c / |(x K) c|; the tail by q

With a `reach` beyond the head, later items share the rows of items alike to them
(`models.item_bucketing`): z = P r / |P r| in 3, and Pᵀ V f Vᵀ P r in 7.

Popularity is known after the counting, so it is taken out before the relating and put
back in the ranking: nobody pays for it twice.

*Sensitivity.* |z zᵀ| = |z|² <= 1 in the Frobenius norm, and a half has its norm over
sqrt(2) (`tree.Symmetric`): the bound of relations. |q tᵀ| = |q| |t| <= 1: the bound of
loadings. Both hold for any vectors of norm 1 or less: what made them (weights, content,
a fold, directions) does not matter. Noise of s / sqrt(2) on every number of the half
is, once mirrored, noise of deviation s on the diagonal and s / sqrt(2) beside it, which
`models.eigenvalue_shrinkage` removes.

What follows from users and noise alone (H, k, lambda, shares of the budget) is decided
in `gram_heuristics.py`. With local reports, use the sampler `once`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from itertools import product, takewhile
from typing import ClassVar, Literal, Self, get_args

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
    CentralGaussian,
    Clients,
    Formula,
    ItemSpace,
    Key,
    Keys,
    Layout,
    ListFor,
    Method,
    Phase,
    Plan,
    Privacy,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Symmetric,
    Tastes,
    Tree,
    Way,
    check_offered,
    in_turn,
)
from tacit.methods import gram_forecast as forecast
from tacit.methods import gram_heuristics as heuristics
from tacit.methods.gram_heuristics import Evidence
from tacit.models.content_similarity import Content, public_content
from tacit.models.eigenvalue_shrinkage import Spectrum, certainty, cleaned
from tacit.models.histories import Weighting, popular_factor, rows, rows_formula
from tacit.models.item_bucketing import fold_of
from tacit.models.item_loadings import taste_directions, with_loadings
from tacit.models.item_relations import Relations, head_of, own_parts, unit
from tacit.models.noisy_counts import (
    Counted,
    Counting,
    expected_counts,
    items_per_history,
)
from tacit.sampling import Everyone, Sampler
from tacit.transport.shared_sum import MOST_NUMBERS
from tacit.tree import Factored, SparseFactored, mirrored
from tacit.wire_names import register

Refresh = Literal["relations", "all"]

_BROADCAST = (  # weights that clients need to relate items
    *("head", "weights", "popularity", "rows", "shares"),
    *("lean", "labels", "numbers"),
)
_COUNTS = ("counts", "more counts", "last counts", "counts after relations")
_RELATIONS = ("relations", "later relations")
_LOADINGS = "loadings"


class _Way(IntEnum):
    """What the sums so far decide; a checkpoint has its number as `enough`."""

    COUNTING = 0  # where it stays unless counts are enough
    RELATING = 1  # counts were enough after the first round
    RELATING_LATER = 2  # after the second
    WITHOUT_TASTES = 3  # relations show none


_WAYS = {
    _Way.COUNTING: _COUNTS[:3],
    _Way.RELATING: ("counts", "relations", _LOADINGS),
    _Way.RELATING_LATER: ("counts", "more counts", "later relations"),
    _Way.WITHOUT_TASTES: ("counts", "relations", "counts after relations"),
}
# The same where a run adds to an earlier one, by whether that one has loadings.
_ADDING: tuple[tuple[str, ...], ...] = (("relations",), (_LOADINGS,))
_LOADED = "loaded "  # before the names of the evidence on loadings, in the memory
_PROOF = "docs/methods/gram.md"
_COUNTED = "counts of items"
_USUAL_SIZE = 5000  # numbers of a local report; its noise hardly depends on them


@register("gram")
@dataclass(frozen=True)
class Gram(SumMethod):
    """Counts items, relates and loads them; ranks on the device from the whole history.

    Leave sizes and shares out to have them follow from the plan. With `count_rounds`
    given, or under a protection other than central noise for a target, the phases are
    planned: counting, relating, and loading in the last `load_rounds`.
    """

    usual_rounds: ClassVar[int] = 3

    head: int | None = None  # H
    max_head: int = 3000  # H² numbers are stored and decomposed: 72 MB at 3000
    reach: int | None = None  # items related; beyond H they share rows
    rank: int = 1024  # the most directions that are kept
    weight_exponent: float = 0.3  # a
    count_share: float | None = None  # of the budget, for the counting
    ridge: float | None = None  # lambda; None: by `gram_heuristics.ridge`
    count_rounds: int | None = None  # planned; None: counts until that is enough
    load_rounds: int = 0  # planned, after all others
    load_share: float | None = None  # of the budget, for loadings; 0: none
    load_items: int | None = None  # items that get loadings: 2 H
    load_rank: int | None = None  # directions that they are loaded on: k
    refresh: Refresh = "relations"  # what a run does that refreshes an earlier one
    usual_history: int | None = None  # items; said by you, for the outlook only
    weighting: Weighting = "once"  # how often an item counts: see models.histories
    half_life: float | None = None  # days after which an event counts half
    content: tuple[str, ...] = ()  # public features that say which items are alike
    content_scale: float = 7.0  # distance, such as years, at which numbers are unlike
    content_smoothing: float = 0.4  # m
    content_weight: float = 0.07  # b
    content_agreement: float = 0.6  # of loadings, between items that are wholly alike

    def __post_init__(self) -> None:
        check_offered(self)
        check.at_least(1, max_head=self.max_head, rank=self.rank)
        check.at_least(0, load_rounds=self.load_rounds)
        check.one_of(get_args(Refresh), refresh=self.refresh)
        check.not_negative(weight_exponent=self.weight_exponent)
        check.positive(content_scale=self.content_scale)
        if self.ridge is not None:
            check.positive(ridge=self.ridge)
        check.not_negative(content_weight=self.content_weight)
        check.rate(content_smoothing=self.content_smoothing)
        check.fraction(content_agreement=self.content_agreement)
        if self.count_share is not None:
            check.rate(count_share=self.count_share)
        if self.load_share:  # 0 stands for none
            check.fraction(load_share=self.load_share)
        if self.count_rounds is not None:
            check.at_least(0, count_rounds=self.count_rounds)
        for name in ("head", "load_items", "load_rank", "usual_history"):
            if getattr(self, name) is not None:
                check.at_least(1, **{name: getattr(self, name)})
        if self.reach is not None:
            check.at_least(1, reach=self.reach)
            if not self.content:
                raise BadValue(
                    f"reach={self.reach} needs public content: items share rows with "
                    "those alike to them; name features in `content`, or leave reach "
                    "out"
                )

    # what leaves

    @property
    def chooses_phases(self) -> bool:
        """Whether noise follows from a target, and nobody planned the counting."""
        privacy = self.privacy
        if not isinstance(privacy, CentralGaussian):
            return False
        is_planned = self.count_rounds is not None and not self._adds_to_either
        return privacy.noise_multiplier is None and not is_planned

    @property
    def _adds_to_either(self) -> bool:
        """Whether it adds to an earlier run, which has loadings or only relations."""
        return self.count_rounds == 0 and self.load_rank is not None

    def with_planned_phases(self) -> Self:
        """A copy that counts in one round, and then relates."""
        if not self.chooses_phases:
            return self
        if self._adds_to_either:
            return replace(self, load_rank=None)
        return replace(self, count_rounds=1)

    def needs_rounds(self, rounds: int, sampler: Sampler) -> str | None:
        """Where phases are chosen, three: with fewer it cannot go on counting.

        citeulike-a at epsilon 1: NDCG@100 .0125 in two rounds, private popularity .020.
        """
        may_go_on = self.chooses_phases and isinstance(sampler, Everyone)
        needed = self.usual_rounds
        if not may_go_on or self._adds_to_either or rounds >= needed:
            return None
        return (
            f"Gram needs {needed} rounds at a target, so that it can go on counting "
            "where relations would be lost in the noise; in fewer its lists may be "
            f"worse than private popularity. Use run.rounds = {needed} (or leave it "
            "out), or give that up with method.count_rounds = 1 and at least 2 rounds"
        )

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Counting, relating and loading; or all that may be chosen from."""
        counting = self.count_share or heuristics.COUNT_SHARE
        if self._adds_to_either and self.chooses_phases:
            return _relations(range(1), 1.0), _loadings(range(1), 1.0)
        if self.chooses_phases:
            return self._ways(counting)
        return self._planned_phases(plan, counting)

    def _ways(self, counting: float) -> tuple[Phase, ...]:
        """What may follow the first counting; the shares of each way add up to 1."""
        first = _counts("counts", range(1), counting, _COUNTED)
        if counting == 1:
            return (first,)
        left = 1 - counting
        loading = heuristics.load_share(counting)
        if self.load_share is not None:
            loading = min(self.load_share, left / 2)
        loading = 0.0 if self.reach is not None else loading
        third, again = range(2, 3), f"{_COUNTED}, a second time"
        more = heuristics.MORE * left
        after = _counts(_COUNTS[3], third, loading, f"{_COUNTED}, after relations")
        return (
            first,
            _relations(range(1, 2), left - loading),
            *([_loadings(third, loading), after] if loading else []),
            _counts("more counts", range(1, 2), more, again),
            _relations(third, left - more, name="later relations"),
            _counts("last counts", third, left - more, f"{_COUNTED}, a third time"),
        )

    def _planned_phases(self, plan: Plan, counting: float) -> tuple[Phase, ...]:
        n_counts = 1 if self.count_rounds is None else self.count_rounds
        related = max(1, plan.rounds - n_counts - self.load_rounds)
        steps = [("counts", n_counts, "Gram counts"), ("relations", related, "relates")]
        if self.load_rounds:
            steps.append((_LOADINGS, self.load_rounds, "loads"))
        counted, relating, *loading = in_turn(*steps, total=plan.rounds)
        left = 1 - counting if n_counts else 1.0
        share = heuristics.load_share(1 - left) if self.load_rounds else 0.0
        if self.load_rounds and self.load_share is not None:
            share = self.load_share
        phases = [_relations(relating, left - share)]
        if n_counts:
            phases.insert(0, _counts("counts", counted, counting, _COUNTED))
        return (*phases, *(_loadings(rounds, share) for rounds in loading))

    def next_phase(self, server: Server) -> Phase | None:
        """The planned one; or, from released sums, what the rest of the budget buys."""
        if not self.chooses_phases:
            return super().next_phase(server)
        if self._adds_to_either:
            way = _ADDING[int(self._has_loads(server.memory))]
        else:
            way = _WAYS[_way(server)]
        name = way[server.round] if server.round < len(way) else ""
        return {phase.name: phase for phase in self.phases(server.plan)}.get(name)

    def ways(self, plan: Plan) -> tuple[Way, ...]:
        """The ways that may be chosen; each ends where the plan lacks its phase."""
        if not self.chooses_phases:
            return super().ways(plan)
        index = {phase.name: (n,) for n, phase in enumerate(self.phases(plan))}
        ways = (takewhile(index.__contains__, way) for way in self._named_ways)
        return tuple({tuple(index[name] for name in way): None for way in ways})

    @property
    def _named_ways(self) -> tuple[tuple[str, ...], ...]:
        return _ADDING if self._adds_to_either else (*_WAYS.values(),)

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item, per pair of head items, or per item and direction."""
        if phase.name in _COUNTS:
            return {"counts": Slot("float64", (len(catalog),))}
        if phase.name == _LOADINGS:
            shape = self._width(catalog), self._tastes(catalog)
            return {_LOADINGS: Slot("float64", shape, rank=1)}
        return {"relations": Slot.symmetric("float64", self._side(catalog))}

    def report_bytes(self, layout: Layout) -> int:
        """As sent, but loadings are not written out: a quarter of what they would take.

        A channel that writes them out holds four usual chunks at a time, then.
        """
        sent = super().report_bytes(layout)
        return sent // 4 if _LOADINGS in layout.slots and self._counts_once else sent

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """Only what the next round needs; after the last round, everything."""
        n_items, side, width = len(catalog), self._side(catalog), self._width(catalog)
        rank, every = self._rank(catalog), PublicSlot("float64", (width,))
        content = Content.of(catalog, self.content, scale=self.content_scale)
        slots = {
            "head": PublicSlot("int64", (width,), 0, n_items - 1),
            "weights": every,
            "popularity": every,
            "lean": PublicSlot("float64", (1,), 0.0, 1.0),
            **public_content(content),
        }
        if self._shares_rows(catalog):
            rows = PublicSlot("int64", (width,), 0, side - 1)
            slots |= {"rows": rows, "shares": every}
        known = {
            "counts": PublicSlot("float64", (n_items,)),
            "vectors": PublicSlot("float64", (self._rows_of(catalog), rank)),
            "strengths": PublicSlot("float64", (rank,)),
        }
        public = slots | known if phase is None else slots
        if phase is not None and phase.name in _COUNTS:
            public = {}
        if phase is not None and phase.name == _LOADINGS:
            tastes = PublicSlot("float64", (side, self._tastes(catalog)))
            public = {**public, "tastes": tastes}
        return {**public, "n_items": PublicSlot("int64", (1,), n_items, n_items)}

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1, 3 and 5, raw: a history of norm 1, a root of relations, loadings."""
        if phase.name in _COUNTS:
            return Tree.dense(counts=unit(self._rows(shards)))
        known = Relations.from_broadcast(broadcast.weights)
        if phase.name == _LOADINGS:
            tastes = broadcast.weights["tastes"]
            return Tree({_LOADINGS: self._loadings(known, shards, tastes)})
        known = known.first(self._known_head)
        smoothing = self.content_smoothing if self.content else 0.0
        roots = self._roots(known, shards, smoothing=smoothing)
        return Tree({"relations": Symmetric(roots[:, None, :])})

    # server

    def calibrated(self, plan: Plan) -> Self:
        """A copy with the least noise for the plan's target, and the sizes it allows.

        Where phases cannot be chosen (two rounds, or not everyone in each), they are
        planned.
        """
        may_choose = plan.rounds >= self.usual_rounds or self._adds_to_either
        if self.chooses_phases and not (
            may_choose and isinstance(plan.sampler, Everyone)
        ):
            return self.with_planned_phases().calibrated(plan)
        if self.chooses_phases:
            return self._calibrated_choice(plan)
        is_free = self.count_rounds is None and self.reach is None
        if is_free and not self.privacy.is_private and plan.rounds >= self.usual_rounds:
            # Without noise every item can be loaded, on every direction.
            made = replace(self, count_rounds=1, load_rounds=1)
            every, rank = heuristics.EVERY_ITEM, self.rank
            return replace(made, load_items=every, load_rank=rank)._calibrated_plan(
                plan
            )
        return self._calibrated_plan(plan)

    def _calibrated_choice(self, plan: Plan) -> Self:
        """Shares and sizes where counting goes on until it is enough."""
        privacy = self.privacy.calibrated(plan, self.phases(plan), is_chosen=True)
        made = replace(self, privacy=privacy)
        if self._adds_to_either:
            return made
        share = self.count_share
        if share is None:
            share = heuristics.first_count_share(made.usual_edge(plan))
        made = replace(made, count_share=share)
        shares = {phase.name: phase.share for phase in made.phases(plan)}
        if "relations" not in shares:
            return replace(made, head=self.head or heuristics.FEWEST_HEAD)
        usual = self.head or made._rule(plan, 1 - share)
        head, (items, rank) = usual, heuristics.loads_shape(usual)
        if self.head is None and _LOADINGS in shares:
            fewer = made._rule(plan, shares["relations"], most=self.max_head)
            head = min(heuristics.head_before_loads(fewer), self._most_head(plan))
        if self.reach is not None:
            return replace(made, head=head)
        return replace(
            made,
            head=head,
            load_items=self.load_items or items,
            load_rank=self.load_rank or rank,
        )

    def usual_edge(self, plan: Plan) -> float:
        """The edge of the noise over users if relating had all but a usual counting."""
        left = 1 - heuristics.COUNT_SHARE
        known = self._share_of_relations(plan, left)
        return known.edge(self._rule(plan, left))

    def _rule(self, plan: Plan, share: float, *, most: int | None = None) -> int:
        """The head's rule where relating has this share of the budget."""
        known = self._share_of_relations(plan, share)
        return heuristics.head_size(known, most=most or self._most_head(plan))

    def _share_of_relations(self, plan: Plan, share: float) -> Evidence:
        """The evidence of one relating round with this share of the budget."""
        return self._one_round(plan, self.privacy, _relations(range(1), share), size=1)

    def _calibrated_plan(self, plan: Plan) -> Self:
        """Counting gets a tenth of the budget, and more where few tastes stand out.

        They stand out from the noise of relating.
        """
        share = self.count_share or heuristics.COUNT_SHARE
        privacy, head = self._with_share(plan, share)
        counts = self.count_rounds != 0
        if self.count_share is None and counts:
            known = self._evidence(plan, privacy, size=head * (head + 1) // 2)
            better = heuristics.count_share(known.edge(head))
            if better != share:
                share, (privacy, head) = better, self._with_share(plan, better)
        made = replace(self, privacy=privacy, head=head)
        if self.load_rounds:
            items, rank = heuristics.loads_shape(head)
            items, rank = self.load_items or items, self.load_rank or rank
            made = replace(made, load_items=items, load_rank=rank)
        return replace(made, count_share=share if counts else self.count_share)

    def _with_share(self, plan: Plan, share: float) -> tuple[Privacy, int]:
        """The noise where counting has this share of the budget, and the head."""
        privacy = self.privacy.calibrated(plan, self._planned_phases(plan, share))
        if self.head is not None:
            return privacy, self.head
        known = self._evidence(plan, privacy, size=_USUAL_SIZE)
        return privacy, heuristics.head_size(known, most=self._most_head(plan))

    def _most_head(self, plan: Plan) -> int:
        """The largest head: where reports are written out, whose half can be sent."""
        if plan.noise_shares < 2 and not plan.is_masked:
            return self.max_head
        side = (math.isqrt(8 * MOST_NUMBERS + 1) - 1) // 2  # side (side + 1) / 2
        return min(self.max_head, side)

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server before anything is counted.

        If no round counts, the head is the catalog's first items, with equal weights.
        """
        side, width = self._side(catalog), self._width(catalog)
        content = Content.of(catalog, self.content, scale=self.content_scale)
        rank = self._rank(catalog)
        weights = {
            "counts": np.zeros(len(catalog)),
            "head": np.zeros(width, np.int64),
            "weights": np.zeros(width),
            "popularity": np.zeros(width),
            "vectors": np.zeros((self._rows_of(catalog), rank)),
            "strengths": np.zeros(rank),
            "lean": np.array([heuristics.lean(self.edge(plan, side=side))]),
            "labels": content.labels,
            "numbers": content.numbers,
        }
        if self._shares_rows(catalog):
            weights |= {"rows": np.zeros(width, np.int64), "shares": np.zeros(width)}
        nothing = Evidence(0.0, 0.0)
        memory = {
            "half": np.zeros(side * (side + 1) // 2),
            "count variance": np.zeros(1),
            "enough": np.zeros(1, np.int64),
            **nothing.arrays(),
        }
        if self.load_rank is not None:
            tastes = self._tastes(catalog)
            weights["tastes"] = np.zeros((side, tastes))
            memory |= {_LOADINGS: np.zeros((width, tastes)), **nothing.arrays(_LOADED)}
        server = Server(plan, catalog, 0, weights, memory)
        if self.count_rounds != 0:
            return server
        return replace(server, weights=weights | self._head(server, weights["counts"]))

    def public(self, server: Server, phase: Phase | None) -> Arrays:
        """Only what the next round needs; after the last round, everything."""
        wanted = tuple(name for name in server.weights if name != "tastes")
        if phase is not None:
            tastes = ("tastes",) if phase.name == _LOADINGS else ()
            wanted = () if phase.name in _COUNTS else (*_BROADCAST, *tastes)
        some = {n: server.weights[n] for n in wanted if n in server.weights}
        return {**some, "n_items": np.array([len(server.catalog)])}

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Lines 2, 4 and 6: what all sums so far say."""
        if phase.name in _COUNTS:
            return self._counted(server, phase, total["counts"])
        memory = dict(server.memory)
        name, what = _kept_as(phase.name)
        [added_up] = total.values()
        memory[name] = memory[name] + added_up
        added = self._one_round(
            server.plan, self.privacy, phase, size=memory[name].size
        )
        memory |= (Evidence.of(memory, what) + added).arrays(what)
        learnt = self._directions(server, memory)
        if self._counts_after(server.plan, phase) and not learnt["strengths"].any():
            # Counting on makes another head, and relations are of this one.
            memory |= Evidence(0.0, 0.0).arrays()
            memory["half"] = np.zeros_like(memory["half"])
            memory["enough"] = np.array([_Way.WITHOUT_TASTES])
        return server.after(weights={**server.weights, **learnt}, memory=memory)

    def _counts_after(self, plan: Plan, phase: Phase) -> Phase | None:
        """The phase that may count on after this one, in place of loadings."""
        name = _COUNTS[3] if phase.name == "relations" else None
        return next((p for p in self.phases(plan) if p.name == name), None)

    def _counted(
        self, server: Server, phase: Phase, found: Float64[np.ndarray, "items"]
    ) -> Server:
        """Line 2: the counts so far, what follows from them, and whether to go on."""
        users, was = server.plan.cohort_size, server.memory["count variance"]
        variance = np.array(
            [self.privacy.variance(phase, users=users, size=len(found))]
        )
        counts = server.weights["counts"] + found
        if not self.chooses_phases:
            variance = was + variance
        elif server.round:
            # Two views of one sum, each weighted by its precision: the noise is that of
            # one sum with both shares of the budget.
            share = was / (was + variance)
            counts = server.weights["counts"] * (1 - share) + found * share
            variance = share * variance
        memory = {**server.memory, "count variance": variance}
        server = replace(server, memory=memory)
        if self.chooses_phases and self._is_enough(server, counts):
            enough = _Way.RELATING_LATER if server.round else _Way.RELATING
            memory["enough"] = np.array([enough])
            server = replace(server, memory=memory)
        weights = {**server.weights, **self._head(server, counts)}
        return server.after(weights=weights, memory=memory)

    def _is_enough(self, server: Server, counts: Float64[np.ndarray, "items"]) -> bool:
        """Whether relations may follow this round, and pay more than counting on."""
        relating = _relating_in(server.round + 1, self.phases(server.plan))
        if relating is None:
            return False
        noise, side = _count_noise(server.memory), self._side(server.catalog)
        counted = self._counting(server.plan, noise, head=side).judged(counts)
        return self._pays(server.plan, counted, relating, side, n_items=len(counts))

    def _counting(self, plan: Plan, deviation: float, *, head: int) -> Counting:
        """Counts under this much noise, next to counts with the whole budget."""
        return Counting(
            self.planned(plan),
            deviation,
            least=self._count_deviation(plan, 1.0),
            best=heuristics.BEST,
            head=head,
        )

    def _count_deviation(self, plan: Plan, share: float) -> float:
        """The deviation of the noise on counts that have this share of the budget."""
        phase = _counts("counts", range(1), share, _COUNTED)
        users = plan.cohort_size
        return math.sqrt(self.privacy.variance(phase, users=users, size=1))

    def _pays(
        self, plan: Plan, counted: Counted, relating: Phase, side: int, *, n_items: int
    ) -> bool:
        """Whether relating is expected to be worth more than counting on."""
        edge = self._one_round(plan, self.privacy, relating, size=1).edge(side)
        names = {phase.name for phase in self.phases(plan)}
        loads = relating.name == "relations" and _LOADINGS in names
        return heuristics.is_enough(counted, edge=edge, n_items=n_items, loads=loads)

    def _head(
        self, server: Server, counts: Float64[np.ndarray, "items"]
    ) -> dict[str, np.ndarray]:
        """The counts, the head, its weights and the direction of popularity."""
        side, width = self._side(server.catalog), self._width(server.catalog)
        # Where nothing but counts is known, items stand in the order of their counts.
        by_counts = (_Way.COUNTING, _Way.WITHOUT_TASTES)
        is_last = self.chooses_phases and _way(server) in by_counts
        noise = 0.0 if is_last else _count_noise(server.memory)
        exponent = self.weight_exponent
        found = head_of(counts, size=width, exponent=exponent, deviation=noise)
        if self._shares_rows(server.catalog):
            fold = fold_of(
                counts[found["head"]],
                found["weights"],
                head=found["head"],
                content=Content(server.weights["labels"], server.weights["numbers"]),
                n_rows=side,
            )
            found |= {"rows": fold.rows, "shares": fold.shares}
        return {"counts": counts, **found}

    def _directions(self, server: Server, memory: Arrays) -> dict[str, np.ndarray]:
        """V and f, padded with zeros to a public shape, and what tastes are.

        Loadings correct V, but tastes stay those that clients were told.
        """
        known = Evidence.of(memory)
        found = self._spectrum(server, memory)
        side, weights = len(found.vectors), server.weights
        ridge, edge = self.ridge, known.edge(side)
        if ridge is None:
            n_items = min(len(server.catalog), self.max_head)
            ridge = heuristics.ridge(known, n_items=n_items, side=side)
        noise = _count_noise(memory)
        liked = expected_counts(weights["counts"], noise)[weights["head"]]
        common = self._in_common(server, found, liked[:side], known.users)
        more = dict[str, np.ndarray]()
        if "tastes" in weights:
            more["tastes"] = taste_directions(found, weights["tastes"].shape[1])
            found = self._loaded(server, memory, found, liked)
        vectors = np.zeros_like(weights["vectors"])
        strengths, n = np.zeros(vectors.shape[1]), len(found.strengths)
        vectors[: len(found.vectors), :n] = found.vectors
        # The strength that every direction has, rest / (rest + ridge), would lift the
        # history's own items and lower popularity without saying anything about taste.
        above = common * np.maximum(found.strengths - found.rest, 0.0)
        strengths[:n] = above / (found.strengths + ridge * known.users)
        if self.chooses_phases:
            # Loadings are shrunk one by one. Without them a direction that is mostly
            # noise would say as much as one that is not, and popularity would suffer.
            first, doubt = 0, 1.0
            if self._has_loads(memory):
                first, doubt = weights["tastes"].shape[1], heuristics.doubt(edge)
            sure = certainty(found.strengths, side=side, deviation=known.deviation)
            strengths[first:n] *= sure[first:] ** doubt
            if not self._has_loads(memory) and not self._adds_to_either:
                strongest = above.max(initial=0.0) / (known.users * edge)
                if not heuristics.shows_tastes(strongest):
                    strengths[:] = 0.0
        return {"vectors": vectors, "strengths": strengths, **more}

    def _in_common(
        self,
        server: Server,
        found: Spectrum,
        liked: Float64[np.ndarray, "side"],
        related: float,
    ) -> Float64[np.ndarray, "rank"]:
        """The share of each strength that different items have in common.

        z zᵀ also relates every item to itself. Of a history of three items that is a
        third of it, and a direction along popular items seems strong for it alone.
        `liked` are the expected counts of the head, `related` the users in the sum.
        """
        weights, side = server.weights, len(found.vectors)
        if not self.chooses_phases or "rows" in weights:
            return np.ones(len(found.strengths))
        counts, users = weights["counts"], self.planned(server.plan)
        own = own_parts(found.vectors, liked * weights["weights"][:side] ** 2)
        of_all, most = float(counts.sum()), float(liked.max(initial=0.0))
        within, popular = (
            items_per_history(of_all, some, users=users)
            for some in (float(liked.sum()), most)
        )
        taken = heuristics.own_part_taken_out(within, popular)
        off = taken * related * own
        above = np.maximum(found.strengths - found.rest, 1e-300)
        return 1 - np.clip((off - found.rest) / above, 0.0, 1.0)

    def _has_loads(self, memory: Arrays) -> bool:
        return self.load_rank is not None and Evidence.of(memory, _LOADED).users > 0

    def _spectrum(self, server: Server, memory: Arrays) -> Spectrum:
        """Line 4: the directions of the relations so far, without their noise."""
        known = Evidence.of(memory)
        within = self._within(server) if known.variance > 0 else None
        matrix, deviation = mirrored(memory["half"]), known.deviation
        rank = self._rank(server.catalog)
        return cleaned(matrix, deviation=deviation, rank=rank, within=within)

    def _loaded(
        self,
        server: Server,
        memory: Arrays,
        found: Spectrum,
        liked: Float64[np.ndarray, "items"],
    ) -> Spectrum:
        """Line 6: directions with the loadings so far, if there are any."""
        if not self._has_loads(memory):
            return found
        loaded, weights = Evidence.of(memory, _LOADED), server.weights
        return with_loadings(
            found,
            memory[_LOADINGS],
            deviation=Evidence.of(memory).deviation,
            load_deviation=loaded.deviation,
            lengths=np.sqrt(np.maximum(liked, 1.0)) * weights["weights"],
            alike=self._alike(server),
        )

    def _alike(self, server: Server) -> Float64[np.ndarray, "items items"] | None:
        """How much loadings are expected to agree, by public content."""
        if not self.content:
            return None
        content = Content(server.weights["labels"], server.weights["numbers"])
        return content.correlation(server.weights["head"], self.content_agreement)

    def _within(self, server: Server) -> Float64[np.ndarray, "head few"] | None:
        """The directions along which items that are alike by content go together."""
        if not self.content or "rows" in server.weights:
            return None
        content = Content(server.weights["labels"], server.weights["numbers"])
        head = server.weights["head"][: self._side(server.catalog)]
        alike = content.smoothing(head, 1.0)
        few, side = heuristics.likely_directions(len(alike)), len(alike)
        return eigh(alike, subset_by_index=(side - few, side - 1))[1]

    # refreshing an earlier run

    def refreshing(self, earlier: Method) -> Self:
        """Keep what was counted and add to the rest; or count on, and relate anew.

        A relation z zᵀ means something only under the head, the weights and the
        direction of popularity that its z was made with, and a loading q tᵀ only under
        the directions that were known. So a refresh keeps those of the earlier run and
        spends its whole budget on loadings, or on relations where the earlier run has
        no loadings (`refresh="relations"`); or it counts on and relates anew, which
        needs no more than counts of the same kind (`refresh="all"`).
        """
        if not isinstance(earlier, Gram):
            raise Refused(
                f"Gram cannot refresh a run of {type(earlier).__name__}: only sums of "
                "the same method add up"
            )
        _check_same(self, earlier)
        if self.refresh == "all":
            return self.with_planned_phases()
        kept = replace(
            self,
            head=earlier.head,
            count_rounds=0,
            load_rounds=0,
            load_items=earlier.load_items,
            load_rank=earlier.load_rank,
        )
        return kept if kept.chooses_phases else replace(kept, load_rank=None)

    def continued(self, server: Server, *, weights: Arrays, memory: Arrays) -> Server:
        """The server with an earlier run's counts, and its sums if no round counts.

        The sum that will be added to is weighted against what is to come. That costs no
        privacy: it was released before, and the weight follows from public numbers.
        """
        # A run of an earlier version did not remember it, and needs it no more: its
        # head and its popularity are kept.
        counted = {"count variance": memory.get("count variance", np.zeros(1))}
        if self.count_rounds != 0:
            counts = {"counts": weights["counts"]}
            found = {**server.memory, **counted}
            return replace(server, weights={**server.weights, **counts}, memory=found)
        _check_content(server.weights, weights)
        names = [n for n in _REFRESHED if n in weights and n in server.weights]
        same = {name: weights[name] for name in names}
        known = {n: memory[n] for n in server.memory if n in memory} | counted
        adds_loads = self._adds_to_either and self._has_loads(known)
        adds = _LOADINGS if adds_loads else "relations"
        name, what = _kept_as(adds)
        phase = next(p for p in self.phases(server.plan) if p.name == adds)
        coming = self._one_round(
            server.plan, self.privacy, phase, size=known[name].size
        ).rounds(len(phase.rounds))
        told = Evidence.of(known, what)
        weight = told.weight_beside(coming)
        added = {name: weight * known[name], **told.times(weight).arrays(what)}
        found = {**server.memory, **known, **added}
        return replace(server, weights={**server.weights, **same}, memory=found)

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The loads of a history on each direction, on popularity and on content.

        Each is trusted by g of line 7.
        """
        known = Relations.from_broadcast(broadcast.weights)
        alike = np.zeros((len(shards), 0))
        if self.content:
            alike = known.alike(self._rows(shards))
        parts = known.represent(
            self._rows(shards, known.head),
            alike,
            popular_factor=popular_factor(self._list_for),
        )
        return Tastes(Tree.dense(**parts))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 7: scores of the related items, then the tail."""
        taste, known = user.tree, Relations.from_broadcast(broadcast.weights)
        parts = (taste["loads"], taste["popular"], taste["alike"])
        return known.score(*parts, weight=self.content_weight)[:, candidates.items]

    def popularity(self, broadcast: Broadcast) -> Float64[np.ndarray, "items"]:
        """The noisy count c of each item, by which the tail is ranked."""
        return np.asarray(broadcast.weights["counts"], np.float64)

    def item_space(self, broadcast: Broadcast, candidates: Candidates) -> ItemSpace:
        """Line 7 as inner products: directions and popularity; the tail by offsets."""
        if self.content:
            raise Refused(
                f"content={self.content} makes the likeness of every item a number of "
                "the user's own, so no server can rank; serve it on_device"
            )
        known = Relations.from_broadcast(broadcast.weights)
        vectors, offsets = known.item_space()
        return ItemSpace(vectors[candidates.items], offsets[candidates.items])

    def user_vectors(
        self, broadcast: Broadcast, tastes: Tastes
    ) -> Float64[np.ndarray, "users factors"]:
        """The loads on each direction, then the load on popularity."""
        return np.concatenate([tastes.tree["loads"], tastes.tree["popular"]], axis=1)

    def formula(self, broadcast: Broadcast) -> Formula:
        """Line 7 as a graph that takes histories."""
        known, weight = Relations.from_broadcast(broadcast.weights), self.content_weight
        return known.formula(
            rows_formula(self.weighting, self._list_for),
            content_weight=weight if self.content else None,
            popular_factor=popular_factor(self._list_for),
        )

    def reasons(
        self, broadcast: Broadcast, shards: Shards, item: int
    ) -> Float64[np.ndarray, "events"]:
        """How much each event of the history adds to the taste term of line 7."""
        known = Relations.from_broadcast(broadcast.weights)
        x = self._rows(shards, known.head)
        return known.reasons(x, shards.items.astype(np.int64), item)

    def ranking_for(self, list_for: ListFor) -> Gram:
        """The same settings, ranking from histories whose items weigh by `recency`.

        It ranks by any model of these settings and trains none: r and y·p of line 7 are
        made of the weights, and g counts items as ever.
        """
        if list_for == self._list_for:
            return self
        own = {f.name: getattr(self, f.name) for f in fields(Gram)}
        if list_for == "any":
            return Gram(**own)
        if self.half_life is not None:
            raise Refused(
                f"half_life={self.half_life:g} weighs events by age already, in "
                f"training too, and so would a list for a {list_for}; leave one out"
            )
        return _GramFor(**own, list_for=list_for)

    # what can be learnt

    def outlook(self, plan: Plan, catalog: Catalog) -> str:
        """What to expect next to private popularity, from public numbers alone."""
        side, width = self._side(catalog), self._width(catalog)
        gain = self.foretell(plan, catalog)
        if not any(phase.name in _RELATIONS for phase in self.phases(plan)):
            return f"counts only, too few users to relate items; expect {gain}"
        shared = f" in {side:,} rows" if self._shares_rows(catalog) else ""
        related = width if shared else side
        whose = (
            "" if self.count_rounds != 0 else " of the earlier run's head; by itself"
        )
        loads = ""
        if width > related:
            loads = f" and loads {width:,} on their tastes"
        what = f"relates the {related:,} most frequent items{shared}{loads}"
        edge = self.edge(plan, side=side)
        if edge == 0:
            return f"no noise: {what} exactly"
        if gain is not None:
            return f"{what} if that pays; expect {gain}{self._assumption}"
        return (
            f"{what}{whose}; a taste stands out from the noise if it makes up "
            f"{edge:.1%} of what users have in common; nothing more is foretold where "
            "rounds are planned"
        )

    @property
    def _assumed_history(self) -> int:
        """Items of a usual history: those declared, or what a plan takes for them."""
        return self.usual_history or forecast.USUAL_HISTORY

    @property
    def _assumption(self) -> str:
        if self.usual_history is not None:
            return ""
        return (
            f"; a usual history of {forecast.USUAL_HISTORY} items is assumed: declare "
            "method.usual_history if you know it"
        )

    def foretell(self, plan: Plan, catalog: Catalog) -> forecast.Gain | None:
        """The gain over private popularity; None where no rule decides on relating."""
        relates: Sequence[bool] = [False]
        if any(phase.name in _RELATIONS for phase in self.phases(plan)):
            if not self.chooses_phases or self.count_rounds is not None:
                return None
            relates = self.relates_usually(plan, catalog, forecast.FIT.falls)
        edge, history = self.usual_edge(plan), self._assumed_history
        return forecast.foretell(edge, relates, history=history)

    def relates_usually(
        self, plan: Plan, catalog: Catalog, falls: Sequence[float]
    ) -> tuple[bool, ...]:
        """Whether the rule relates, in each of the usual catalogs that are possible."""
        users, n_items = self.planned(plan), len(catalog)
        histories = forecast.possible_histories(self._assumed_history)
        catalogs = product(falls, histories)
        return tuple(
            self._relates(
                plan,
                catalog,
                forecast.usual_counts(users, n_items=n_items, history=n, fall=fall),
            )
            for fall, n in catalogs
        )

    def _relates(
        self, plan: Plan, catalog: Catalog, true: Float64[np.ndarray, "items"]
    ) -> bool:
        """Whether counting would be enough at last, if these are the true counts."""
        side = self._side(catalog)
        share, phases = 0.0, {phase.name: phase for phase in self.phases(plan)}
        for name in _COUNTS[:2]:
            if name not in phases:
                break
            share += phases[name].share
            relating = _relating_in(phases[name].rounds.stop, phases.values())
            deviation = self._count_deviation(plan, share)
            counted = self._counting(plan, deviation, head=side).foretold(true)
            if relating is not None and self._pays(
                plan, counted, relating, side, n_items=len(catalog)
            ):
                return True
        return False

    def edge(self, plan: Plan, *, side: int) -> float:
        """The largest eigenvalue that noise makes, over the number of users."""
        if not any(phase.name in _RELATIONS for phase in self.phases(plan)):
            return math.inf
        return self.evidence(plan, size=side * (side + 1) // 2).edge(side)

    def evidence(self, plan: Plan, *, size: int) -> Evidence:
        """Users and noise of all relating rounds; a report has `size` numbers."""
        return self._evidence(plan, self.privacy, size=size)

    def _evidence(self, plan: Plan, privacy: Privacy, *, size: int) -> Evidence:
        relating = next(p for p in self.phases(plan) if p.name == "relations")
        a_round = self._one_round(plan, privacy, relating, size=size)
        return a_round.rounds(len(relating.rounds))

    def _one_round(
        self, plan: Plan, privacy: Privacy, phase: Phase, *, size: int
    ) -> Evidence:
        """Users and noise of one round of relations or loadings."""
        variance = privacy.variance(phase, users=plan.cohort_size, size=size)
        # Mirrored, the noise on the diagonal has twice the variance of the half's.
        twice = 1 if phase.name == _LOADINGS else 2
        return Evidence(privacy.planned(plan), twice * variance)

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
        """The number of items that are related or loaded: the head, or more."""
        more = self.reach or self.load_items or 0
        return min(max(more, self._side(catalog)), len(catalog))

    def _shares_rows(self, catalog: Catalog) -> bool:
        return self.reach is not None and self._width(catalog) > self._side(catalog)

    def _rows_of(self, catalog: Catalog) -> int:
        """The number of rows of the directions: one per item, unless items share."""
        is_shared = self._shares_rows(catalog)
        return self._side(catalog) if is_shared else self._width(catalog)

    def _tastes(self, catalog: Catalog) -> int:
        """The number of directions that items are loaded on."""
        return min(self.load_rank or 1, self._rank(catalog))

    def _rank(self, catalog: Catalog) -> int:
        """The most directions that are kept; fewer where many items have a number each.

        No model is larger than `heuristics.MOST_LOADINGS` numbers for it.
        """
        few = max(1, heuristics.MOST_LOADINGS // max(1, self._rows_of(catalog)))
        return min(self.rank, self._side(catalog), few)

    @property
    def _counts_once(self) -> bool:
        """Whether a history says no more than which items are in it."""
        return self.weighting == "once" and self.half_life is None

    def _loadings(
        self, known: Relations, shards: Shards, tastes: Float64[np.ndarray, "first few"]
    ) -> Factored | SparseFactored:
        if self._counts_once:
            return known.loadings_of(shards, tastes)
        q, t = known.loadings(self._rows(shards, known.head), tastes)
        return Factored(q[:, None], t[:, None])

    def _roots(
        self, known: Relations, shards: Shards, *, smoothing: float
    ) -> Float64[np.ndarray, "users rows"]:
        if self._counts_once:
            return known.roots_of(shards, smoothing=smoothing)
        return known.roots(self._rows(shards, known.head), smoothing=smoothing)

    def _rows(
        self, shards: Shards, items: Int64[np.ndarray, "columns"] | None = None
    ) -> Float64[np.ndarray, "users columns"]:
        return rows(
            shards,
            items=items,
            weighting=self.weighting,
            half_life=self.half_life,
            list_for=self._list_for,
        )

    @property
    def _list_for(self) -> ListFor:
        return "any"


@dataclass(frozen=True)
class _GramFor(Gram):
    """Gram as it ranks for a session or a visit; never trained, so never agreed on."""

    list_for: ListFor = "any"

    @property
    def _list_for(self) -> ListFor:
        return self.list_for


def _way(server: Server) -> _Way:
    """The way that the sums so far have decided on."""
    return _Way(int(server.memory["enough"][0]))


def _count_noise(memory: Arrays) -> float:
    """The deviation of the noise on the counts so far."""
    return math.sqrt(float(memory["count variance"][0]))


def _relating_in(round_: int, phases: Iterable[Phase]) -> Phase | None:
    """The phase that may relate items in this round, if there is one."""
    found = (p for p in phases if p.name in _RELATIONS and round_ in p.rounds)
    return next(found, None)


def _kept_as(phase_name: str) -> tuple[str, str]:
    """The names of a phase's sum, and of the evidence on it, in a server's memory."""
    return (_LOADINGS, _LOADED) if phase_name == _LOADINGS else ("half", "")


def _counts(name: str, rounds: range, share: float, what: str) -> Phase:
    return Phase(name, rounds, what=what, share=share, proof=_PROOF)


def _relations(rounds: range, share: float, *, name: str = "relations") -> Phase:
    after = " after more counts" if name != "relations" else ""
    return Phase(
        name,
        rounds,
        what=f"relations between items{after}",
        bound=math.sqrt(0.5),  # of a half of z zᵀ, |z| <= 1: see the docstring
        share=share,
        proof=_PROOF,
    )


def _loadings(rounds: range, share: float) -> Phase:
    what = "loadings of items on tastes"
    return Phase(_LOADINGS, rounds, what=what, share=share, proof=_PROOF)


_COUNTING = ("weighting", "half_life")  # settings that decide what a count means
_RELATING = (  # and those that decide what a relation means
    *("weight_exponent", "content", "content_scale"),
    *("content_smoothing", "reach"),
)
_REFRESHED = (
    *("counts", "head", "weights", "popularity", "rows", "shares", "lean"),
    "tastes",
)


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
