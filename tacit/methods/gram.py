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

Popularity is known after the counting, so it is taken out before the relating and put
back in the ranking: nobody pays for it twice.

    privacy   protected by
    none      nothing
    central   Gaussian noise on both sums, over secure_sum
    local     PrivUnitG on the device; each device speaks in one round (`once`)

Sensitivity of the second sum: |z zᵀ| = |z|² <= 1 in the Frobenius norm, and a half has
its norm over sqrt(2) (`tree.Symmetric`). Noise of s / sqrt(2) on every number of the
half is therefore the Gaussian mechanism of multiplier s. Once mirrored, it is noise of
deviation s on the diagonal and s / sqrt(2) beside it, which `models.spectrum` removes.
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
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.models.histories import Weighting, rows
from tacit.models.spectrum import cleaned
from tacit.plan import Plan
from tacit.release import (
    Cells,
    Release,
    Unit,
    View,
    epsilon_a_report,
    local,
    noise_for_target,
    summed,
    unprotected,
)
from tacit.sampling import Once
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Arrays, Symmetric, Tree, mirrored

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_HALF_NORM = math.sqrt(0.5)  # the largest norm of a half
_HEAD, _PEOPLE_TO_NOISE = 600, 4743.0  # the head is 600 where people / s is 4743
_FEWEST_HEAD = 16
_USUAL_SIZE = 5000  # of a local report; its noise hardly depends on it


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
    count_share: float = 0.1  # of the budget, for the counting
    ridge: float = 0.006  # lambda
    count_rounds: int = 1  # the first so many rounds count, the others relate
    weighting: Weighting = "once"  # how often an item counts: see models.histories
    half_life: float | None = None  # days after which an event counts half
    count_noise: float | None = None  # noise over sensitivity, a round
    relate_noise: float | None = None
    epsilon: float | None = None  # local: of one report

    def __post_init__(self) -> None:
        check.one_of(("none", "central", "local"), privacy=self.privacy)
        check.at_least(1, max_head=self.max_head, rank=self.rank)
        check.at_least(1, count_rounds=self.count_rounds)
        check.not_negative(weight_exponent=self.weight_exponent)
        check.positive(ridge=self.ridge)
        check.fraction(count_share=self.count_share)
        if self.head is not None:
            check.at_least(1, head=self.head)
        self._check_noise()

    def _check_noise(self) -> None:
        given = {"count_noise": self.count_noise, "relate_noise": self.relate_noise}
        for name, value in given.items():
            if value is not None:
                check.positive(**{name: value})  # type: ignore[arg-type]
                if self.privacy != "central":
                    raise BadValue(f"{name} belongs to privacy='central' only")
        if self.epsilon is not None:
            check.positive(epsilon=self.epsilon)
            if self.privacy != "local":
                raise BadValue("epsilon belongs to privacy='local' only")

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the least noise for the plan's target, and its head."""
        relating = self._relating(plan)
        made = self
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
        deviation = self._deviation(people, rounds, size=_USUAL_SIZE)
        if deviation == 0:
            return self.max_head
        size = _HEAD * math.sqrt(people / deviation / _PEOPLE_TO_NOISE)
        return min(self.max_head, max(_FEWEST_HEAD, int(size)))

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Nothing is counted."""
        self._relating(plan)
        n, head = len(catalog), self._head(len(catalog))
        rank = min(self.rank, head)
        weights = {
            "counts": np.zeros(n),
            "head": np.zeros(head, np.int64),
            "weights": np.zeros(head),
            "popularity": np.zeros(head),
            "vectors": np.zeros((head, rank)),
            "strengths": np.zeros(rank),
        }
        return Server(
            plan, catalog, 0, weights, {"half": np.zeros(head * (head + 1) // 2)}
        )

    def broadcast(self, server: Server) -> Cast:
        """Only what the next round needs; all of it once there is none."""
        wanted: tuple[str, ...] = tuple(server.weights)
        if server.round < self.count_rounds:
            wanted = ()
        elif server.round < server.plan.rounds:
            wanted = ("head", "weights", "popularity")
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
        noise = self._noise(server.round)
        total = self.aggregator.total(delivery, layout, noise=noise, key=key)
        if server.round < self.count_rounds:
            counts = server.weights["counts"] + total["counts"]
            weights = {**server.weights, "counts": counts, **self._head_of(counts)}
            return server.after(weights=weights, memory=server.memory)
        half = server.memory["half"] + total["relations"]
        weights = {**server.weights, **self._spectrum_of(half, server)}
        return server.after(weights=weights, memory={"half": half})

    def _head_of(self, counts: Float64[np.ndarray, "items"]) -> Arrays:
        head = np.argsort(-counts, kind="stable")[: self._head(len(counts))]
        weights = np.maximum(counts[head], 1.0) ** -self.weight_exponent
        popularity = _unit((np.maximum(counts[head], 0.0) * weights)[None])[0]
        return {"head": head, "weights": weights, "popularity": popularity}

    def _spectrum_of(self, half: Float64[np.ndarray, "half"], server: Server) -> Arrays:
        rounds = server.round + 1 - self.count_rounds
        people = server.plan.cohort_size * rounds
        deviation = self._deviation(people, rounds, size=len(half))
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
            counts = _unit(self._rows(shards))
            return clients.state, Updates(Tree.dense(counts=counts))
        known = _Known.of(cast)
        y = known.weighted(self._rows(shards, known.head))
        y -= (y @ known.popularity)[:, None] * known.popularity
        root = _unit(y)[:, None, :]
        return clients.state, Updates(Tree({"relations": Symmetric(root)}))

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """What leaves: bounded for a noisy sum, or randomised here."""
        if self.privacy == "none":
            return Reports(updates.tree)
        noise = self._noise(cast.round)
        if noise is not None:
            return Reports(noise.bound(updates.tree))
        return Reports(_randomized(updates.tree, _given(self.epsilon, "epsilon"), keys))

    def noise(self, cast: Cast) -> Noise | None:
        """What a trusted sum adds."""
        return self._noise(cast.round)

    # serving

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """How much of each direction, and of popularity, a history has."""
        known = _Known.of(cast)
        y = known.weighted(self._rows(shards, known.head))
        popular = y @ known.popularity
        y -= popular[:, None] * known.popularity
        loads = (y @ cast.weights["vectors"]) * cast.weights["strengths"]
        return Tastes(Tree.dense(loads=loads, popular=popular[:, None]))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 5."""
        known, counts = _Known.of(cast), cast.weights["counts"]
        head = person.tree["loads"] @ cast.weights["vectors"].T
        head += person.tree["popular"] * known.popularity
        scores = np.empty((len(head), len(counts)))
        place = np.empty(len(counts))
        place[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        scores[:] = head.min(axis=1, keepdims=True) - 1 - place / len(counts)
        scores[:, known.head] = head
        return scores[:, candidates.items]

    # account

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """A number an item while counting; then a number for each of the head."""
        dtype = "float32" if self.privacy == "local" else "float64"
        if round < self.count_rounds:
            return Layout({"counts": Slot(dtype, (len(catalog),))})
        side = self._head(len(catalog))
        if self.privacy == "local":
            return Layout({"relations": Slot(dtype, (side * (side + 1) // 2,))})
        return Layout({"relations": Slot.symmetric(dtype, side)})

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """Both sums; all else follows from them and costs nothing more."""
        relating = self._relating(plan)
        counting = replace(plan, rounds=self.count_rounds)
        events = self._events()
        if events is None or not isinstance(plan.sampler, Once):
            first, second = events or (None, None)
            return (
                self._release("sum of histories", counting, first),
                self._release("sum of related items", relating, second),
            )
        # Everyone is in one of the two sums, so what it costs is the dearer of them.
        worst = events[0] if _costs_more(self) else events[1]
        return (self._release("sums of histories and related items", plan, worst),)

    def _release(self, what: str, plan: Plan, event: DpEvent | None) -> Release:
        seen_by = "server, and everyone through the model"
        return Release(what, seen_by, "each round", self._cells(plan, event))

    def _cells(self, plan: Plan, event: DpEvent | None) -> Cells:
        if event is None:
            return unprotected("reports are sent as they are; no mechanism protects")
        if self.privacy == "local":
            return local(plan, event, reason="PrivUnitG, pure local privacy")
        reason = "Gaussian mechanism on a sum of bounded vectors (docs/methods/gram.md)"
        return summed(plan, event, reason=reason)

    def _events(self) -> tuple[DpEvent, DpEvent] | None:
        """What one round of either kind costs."""
        if self.privacy == "none":
            return None
        if self.privacy == "local":
            event = PrivUnit(_given(self.epsilon, "epsilon"), 2).event
            return event, event
        return self._counting_noise.event, self._relating_noise.event

    # details

    def _rows(
        self, shards: Shards, items: Int64[np.ndarray, "columns"] | None = None
    ) -> Float64[np.ndarray, "people columns"]:
        return rows(
            shards, items=items, weighting=self.weighting, half_life=self.half_life
        )

    def _head(self, n_items: int) -> int:
        return min(int(_given(self.head, "head")), n_items)

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
        if isinstance(plan.sampler, Once):
            noise = noise_for_target(plan)
            return noise, noise
        often = plan.cohort_size / plan.population  # a device's rounds, on average
        count = math.sqrt(self.count_rounds * often / self.count_share)
        relate = math.sqrt(self._relating(plan).rounds * often / (1 - self.count_share))

        def both(noise: float) -> DpEvent:
            from dp_accounting import ComposedDpEvent

            parts = replace(
                self, count_noise=noise * count, relate_noise=noise * relate
            )
            cells = [r.cells[Unit.USER, View.RELEASE] for r in parts.releases(plan)]
            return ComposedDpEvent([cell.event for cell in cells])

        noise = noise_for_target(plan, both)
        return noise * count, noise * relate

    @property
    def _counting_noise(self) -> GaussianSum:
        return GaussianSum(1.0, _given(self.count_noise, "count_noise"))

    @property
    def _relating_noise(self) -> GaussianSum:
        return GaussianSum(_HALF_NORM, _given(self.relate_noise, "relate_noise"))

    def _noise(self, round: int) -> GaussianSum | None:
        if self.privacy != "central":
            return None
        return (
            self._counting_noise if round < self.count_rounds else self._relating_noise
        )

    def _deviation(self, people: float, rounds: int, *, size: int) -> float:
        """Of the noise on the diagonal of G after so many rounds of relating."""
        if self.privacy == "none":
            return 0.0
        if self.privacy == "central":
            return self._relating_noise.noise_multiplier * math.sqrt(rounds)
        report = PrivUnit(_given(self.epsilon, "epsilon"), size)
        return math.sqrt(people * report.variance(1.0))


@dataclass(frozen=True, eq=False)
class _Known:
    """What the counting told everyone."""

    head: Int64[np.ndarray, "head"]
    weights: Float64[np.ndarray, "head"]
    popularity: Float64[np.ndarray, "head"]

    @classmethod
    def of(cls, cast: Cast) -> _Known:
        told = cast.weights
        return cls(told["head"], told["weights"], told["popularity"])

    def weighted(
        self, x: Float64[np.ndarray, "people head"]
    ) -> Float64[np.ndarray, "people head"]:
        """y, in the place of x."""
        x *= self.weights
        return _unit(x)


def _unit(x: Float64[np.ndarray, "people n"]) -> Float64[np.ndarray, "people n"]:
    """Each row over its L2 norm, in its place; what is nearly nothing becomes zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    x *= np.where(norms > 1e-9, 1 / np.maximum(norms, 1e-9), 0.0)[:, None]
    return x


def _randomized(tree: Tree, epsilon: float, keys: Keys) -> Tree:
    """One PrivUnitG report a device, of the unit vector that the leaf stands for."""
    (name, leaf), *_ = tree.leaves.items()
    values = leaf.dense().values
    longest = 1.0 if name == "counts" else _HALF_NORM
    mechanism = PrivUnit(epsilon, values.shape[1], longest)
    return Tree.dense(**{name: mechanism.privatize(values, keys)})


def _costs_more(method: Gram) -> bool:
    """Whether a round of counting costs more than one of relating."""
    if method.count_noise is None or method.relate_noise is None:
        return True  # local: both cost the same
    return method.count_noise < method.relate_noise


def _given(value: float | None, name: str) -> float:
    if value is None:
        raise BadValue(
            f"{name} is not set: set it, or give the plan a target (target_epsilon and "
            "delta) and calibrate the method to it"
        )
    return value
