"""Gram: two noisy sums and one spectrum. Our own method, and the default.

    x     a person's history over the catalog: 1 an item, or a weight
    c     the sum of x / |x| over people, with noise                (everyone sees it)
    head  the H items with the largest c; the rest is the tail
    w     max(c, 1)^-a on the head: less for what everyone has
    p     c w / |c w|: the direction of popularity
    y     x w / |x w| on the head;   r = y - (y·p) p;   z = r / |r|
    G     the sum of z zᵀ over people, with noise                   (everyone sees it)
    V, f  its directions beyond the noise; f = eta / (eta + lambda N), eta shrunk

    counting  device  1  send x / |x|, of norm 1
              server  2  c; head, w and p follow
    relating  device  3  send z zᵀ as its half: every pair of items once
              server  4  G; V and f follow
    ranking   device  5  score = V f Vᵀ r + (y·p) p; then the tail, by c

With public content K (items alike by genre, year, …) and t from 0 (no noise) to 1:

    in 3      z = S r / |S r|, S = (1 - g t) I + g t D^-1/2 K D^-1/2
    in 5      score + b t q, q = (x K) c / |(x K) c|; the tail by q

Popularity is known after the counting, so it is taken out before the relating and put
back in the ranking: nobody pays for it twice.

    privacy   protected by
    none      nothing
    central   Gaussian noise on both sums, over secure_sum
    local     PrivUnitG on the device; let each device speak in one round (`once`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from jaxtyping import Float64, Int64

from tacit import check
from tacit.aggregation.mean import Mean
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.errors import BadValue, Refused
from tacit.keys import Key, Keys
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.methods.gram.protection import Bare, Central, Local, Protection
from tacit.models.histories import Weighting, rows
from tacit.models.relations import Relations, head_of, unit
from tacit.models.similarity import Content
from tacit.models.spectrum import cleaned, noise_edge
from tacit.plan import Plan
from tacit.release import (
    Cells,
    Release,
    Unit,
    View,
    epsilon_a_report,
    noise_for_target,
)
from tacit.sampling import Once
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Arrays, Symmetric, Tree, mirrored

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_HEAD, _PEOPLE_TO_NOISE = 600, 4743.0  # the head is 600 where people / s is 4743
_FEWEST_HEAD = 16
_USUAL_SIZE = 5000  # of a local report; its noise hardly depends on it
_COUNT_SHARE = 0.1
_POPULARITY, _BROAD = 0.06, 0.02  # shares at the noise's edge
_EXPECT = (  # where tastes begin to be learnt: docs/methods/gram.md
    (
        _POPULARITY,
        "popularity, the same for everyone; it takes more people or more epsilon",
    ),
    (_BROAD, "broad tastes; more people or a larger epsilon would bring finer ones"),
    (0.0, "personal lists"),
)


@dataclass(frozen=True)
class Gram(Method):
    """Counts items, relates them, and ranks on the device from the whole history.

    Leave the noise, `epsilon` and `head` out to have them follow from the plan.
    """

    privacy: Literal["none", "central", "local"] = "none"
    head: int | None = None  # H
    max_head: int = 3000  # H² numbers are held and decomposed
    rank: int = 512  # the most directions kept
    weight_exponent: float = 0.3  # a
    count_share: float | None = None  # of the budget, for the counting
    ridge: float = 0.006  # lambda
    count_rounds: int = 1  # the first so many rounds count, the others relate
    weighting: Weighting = "once"  # how often an item counts: see models.histories
    half_life: float | None = None  # days after which an event counts half
    content: tuple[str, ...] = ()  # public features of items that say who is alike
    content_scale: float = 7.0  # of numbers among them, such as years
    content_smoothing: float = 0.4  # g
    content_weight: float = 0.3  # b
    count_noise: float | None = None  # central: noise over sensitivity, a round
    relate_noise: float | None = None
    epsilon: float | None = None  # local: of one report

    def __post_init__(self) -> None:
        check.one_of(("none", "central", "local"), privacy=self.privacy)
        check.at_least(1, max_head=self.max_head, rank=self.rank)
        check.at_least(1, count_rounds=self.count_rounds)
        check.not_negative(weight_exponent=self.weight_exponent)
        check.positive(ridge=self.ridge, content_scale=self.content_scale)
        check.not_negative(content_weight=self.content_weight)
        check.rate(content_smoothing=self.content_smoothing)
        if self.count_share is not None:
            check.fraction(count_share=self.count_share)
        if self.head is not None:
            check.at_least(1, head=self.head)
        self._check_owner(count_noise=self.count_noise, owner="central")
        self._check_owner(relate_noise=self.relate_noise, owner="central")
        self._check_owner(epsilon=self.epsilon, owner="local")

    def _check_owner(self, *, owner: str, **given: float | None) -> None:
        for name, value in given.items():
            if value is not None and self.privacy != owner:
                raise BadValue(f"{name} belongs to privacy='{owner}' only")
            if value is not None and not value > 0:
                raise BadValue(f"{name}={value} must be > 0")

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the least noise for the plan's target, and its head.

        A tenth of the budget counts; nearly all of it where no taste would stand out.
        """
        if self.count_share is not None:
            return self._calibrated(plan)
        usual = replace(self, count_share=_COUNT_SHARE)._calibrated(plan)
        assert usual.head is not None
        if usual._edge(plan, usual.head) <= _POPULARITY:
            return usual
        return replace(self, count_share=1 - _COUNT_SHARE)._calibrated(plan)

    def _calibrated(self, plan: Plan) -> Self:
        made, relating = self, self._relating(plan)
        if self.privacy == "central" and None in (self.count_noise, self.relate_noise):
            count, relate = self._noises(plan)
            made = replace(made, count_noise=count, relate_noise=relate)
        if self.privacy == "local" and self.epsilon is None:
            made = replace(made, epsilon=epsilon_a_report(plan))
        if self.head is None:
            people = plan.cohort_size * relating.rounds
            made = replace(made, head=made.head_for(people, rounds=relating.rounds))
        return made

    def head_for(self, people: float, *, rounds: int) -> int:
        """How many items can be related: more people or less noise, more items."""
        deviation = self._protection.deviation(people, rounds, size=_USUAL_SIZE)
        if deviation == 0:
            return self.max_head
        size = _HEAD * math.sqrt(people / deviation / _PEOPLE_TO_NOISE)
        return min(self.max_head, max(_FEWEST_HEAD, int(size)))

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Nothing is counted."""
        side = self._side(catalog)
        content = Content.of(catalog, self.content, scale=self.content_scale)
        rank = min(self.rank, side)
        weights = {
            "counts": np.zeros(len(catalog)),
            "head": np.zeros(side, np.int64),
            "weights": np.zeros(side),
            "popularity": np.zeros(side),
            "vectors": np.zeros((side, rank)),
            "strengths": np.zeros(rank),
            "lean": np.array([min(1.0, self._edge(plan, side) / _BROAD)]),
            "labels": content.labels,
            "numbers": content.numbers,
        }
        memory = {"half": np.zeros(side * (side + 1) // 2)}
        return Server(plan, catalog, 0, weights, memory)

    def broadcast(self, server: Server) -> Cast:
        """Only what the next round needs; all of it once there is none."""
        wanted = tuple(server.weights)
        if server.round < self.count_rounds:
            wanted = ()
        elif server.round < server.plan.rounds:
            wanted = ("head", "weights", "popularity", "lean", "labels", "numbers")
        told = {name: server.weights[name] for name in wanted}
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
            size, exponent = self._side(server.catalog), self.weight_exponent
            head = head_of(counts, size=size, exponent=exponent)
            weights = {**server.weights, "counts": counts, **head}
            return server.after(weights=weights, memory=server.memory)
        half = server.memory["half"] + total["relations"]
        weights = {**server.weights, **self._directions(half, server)}
        return server.after(weights=weights, memory={"half": half})

    def _directions(self, half: Float64[np.ndarray, "half"], server: Server) -> Arrays:
        """V and f, padded to the rank that may be kept."""
        rounds = server.round + 1 - self.count_rounds
        people = server.plan.cohort_size * rounds
        deviation = self._protection.deviation(people, rounds, size=len(half))
        found = cleaned(mirrored(half), deviation=deviation, rank=self.rank)
        vectors = np.zeros_like(server.weights["vectors"])
        strengths = np.zeros_like(server.weights["strengths"])
        known = len(found.strengths)
        vectors[:, :known] = found.vectors
        strengths[:known] = found.strengths / (found.strengths + self.ridge * people)
        return {"vectors": vectors, "strengths": strengths}

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
        loads = (r @ known.vectors) * known.strengths
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
        side = self._side(catalog)
        edge = self._edge(plan, side)
        if edge == 0:
            return f"no noise: relates the {side:,} most frequent items exactly"
        expect = next(words for least, words in _EXPECT if edge > least)
        return (
            f"relates the {side:,} most frequent items; a taste stands out from the "
            f"noise if it makes up {edge:.1%} of what people have in common: expect "
            f"{expect}"
        )

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
        protection, relating = self._protection, self._relating(plan)
        if isinstance(plan.sampler, Once) and not isinstance(protection, Bare):
            # Everyone is in one of the two, so what it costs is the dearer of them.
            what = "sums of histories and of related items"
            return (_release(what, protection.cells(plan, protection.dearer)),)
        counting = replace(plan, rounds=self.count_rounds)
        return (
            _release("sum of histories", protection.cells(counting, "counts")),
            _release("sum of related items", protection.cells(relating, "relations")),
        )

    # details

    @property
    def _protection(self) -> Protection:
        if self.privacy == "none":
            return Bare()
        if self.privacy == "local":
            return Local(_given(self.epsilon, "epsilon"))
        return Central.of(
            _given(self.count_noise, "count_noise"),
            _given(self.relate_noise, "relate_noise"),
        )

    def _leaf(self, round: int) -> str:
        return "counts" if round < self.count_rounds else "relations"

    def _rows(
        self, shards: Shards, items: Int64[np.ndarray, "columns"] | None = None
    ) -> Float64[np.ndarray, "people columns"]:
        return rows(
            shards, items=items, weighting=self.weighting, half_life=self.half_life
        )

    def _side(self, catalog: Catalog) -> int:
        return min(int(_given(self.head, "head")), len(catalog))

    def _edge(self, plan: Plan, side: int) -> float:
        """The largest eigenvalue that noise makes, over the number of people."""
        rounds = self._relating(plan).rounds
        people, size = plan.cohort_size * rounds, side * (side + 1) // 2
        deviation = self._protection.deviation(people, rounds, size=size)
        return noise_edge(side, deviation) / people

    def _relating(self, plan: Plan) -> Plan:
        """The part of the plan that relates."""
        rounds = plan.rounds - self.count_rounds
        if rounds < 1:
            raise Refused(
                f"rounds={plan.rounds} must be more than count_rounds="
                f"{self.count_rounds}: Gram counts first, then relates; use rounds = 2"
            )
        return replace(plan, rounds=rounds)

    def _noises(self, plan: Plan) -> tuple[float, float]:
        """The noise of either kind of round, so that both together meet the target.

        As if one release of multiplier 1 / mu were shared: `count_share` of mu² for the
        counting. A device that speaks once spends all of it on the one sum it is in.
        """
        share = _given(self.count_share, "count_share")
        if isinstance(plan.sampler, Once):
            noise = noise_for_target(plan)
            return noise, noise
        often = plan.cohort_size / plan.population  # a device's rounds, on average
        relating = self._relating(plan).rounds
        count = math.sqrt(self.count_rounds * often / share)
        relate = math.sqrt(relating * often / (1 - share))

        def both(z: float) -> DpEvent:
            from dp_accounting import ComposedDpEvent

            made = replace(self, count_noise=z * count, relate_noise=z * relate)
            cells = [r.cells[Unit.USER, View.RELEASE] for r in made.releases(plan)]
            return ComposedDpEvent([cell.event for cell in cells])

        noise = noise_for_target(plan, both)
        return noise * count, noise * relate


def _release(what: str, cells: Cells) -> Release:
    return Release(what, "server, and everyone through the model", "each round", cells)


def _given(value: float | None, name: str) -> float:
    if value is None:
        raise BadValue(
            f"{name} is not set: set it, or give the plan a target (target_epsilon and "
            "delta) and calibrate the method to it"
        )
    return value
