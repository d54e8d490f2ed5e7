"""DPALS: alternating least squares, items from noisy sums and users on their clients.

    x     a user's history over the catalog: 1 per item held
    c     the sum of x / |x| over users, with noise                  (everyone sees it)
    head  the H items with the largest c;   w = max(c, 1)^-a on it: rarer items more
    V     one row v of d factors per item of the head                (everyone sees it)
    y     x w / |x w| on the head: what a user's items weigh
    u     the user's factors, found by the client;   û = u / max(|u|, C), |û| <= 1
    A, B  the sums of û ûᵀ and of y ûᵀ over users, with noise       (everyone sees them)
    g, h  shares of a report's squared length: of A, and of one Gramian per item
    α, N  the weight of what a user does not have; the users planned

    counting  client  1  send x / |x|
              server  2  c; head and w follow; V at random
    factors   client  3  u = (α Vᵀ V + sum of v vᵀ + ridge I)⁻¹ (sum of v), over items
                         held; û
                      4  send sqrt(g) û ûᵀ and sqrt(1 - g) y ûᵀ
              server  5  the part of A without negative eigenvalues
                      6  v = (α A + A_i + ridge N I)⁻¹ B_i for each item, in units of C
    ranking   client  7  line 3 without a clip; score = u·v; then the tail, by c

Chien, Jain, Krichene, Rendle, Song, Thakurta and Zhang, "Private Alternating Least
Squares" (ICML 2021), with weights of items by noisy counts after Krichene, Jain, Song,
Sundararajan, Thakurta and Zhang, "Multi-Task Differential Privacy Under Distribution
Skew" (ICML 2023). As published, A_i is the noisy sum of y_i û ûᵀ, which is also sent
(`item_gramians` = h > 0). Without it (h = 0, A_i = 0) the noise on B is less, and
accuracy is better. Where else we depart: docs/methods/dpals.md.

*Sensitivity.* For every history and every broadcast |y| <= 1 and |û| <= 1. The parts of
a report are sent with the norms sqrt(g) |û|², sqrt(1 - g - h) |y| |û| and, if h > 0,
sqrt(h) |y| |û|². Squares of the three add up to g + (1 - g - h) + h = 1 at the most.
V, head and w depend on users through released sums only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.errors import BadValue
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    CentralGaussian,
    Clients,
    Factored,
    Key,
    Keys,
    Mechanisms,
    Phase,
    Plan,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Symmetric,
    Tastes,
    Tree,
    Unprotected,
    check_offered,
    in_turn,
)
from tacit.models.histories import rows
from tacit.models.item_relations import head_of, places_by_count, unit
from tacit.tree import mirrored
from tacit.wire_names import register

_COUNTS = "counts"
_PROOF = "docs/methods/dpals.md"
_TIES = 1e-9  # weight of the order by count in a score: it decides ties only
_HAIR_MORE = 1 + 1e-12  # rounding must not leave a norm above 1, the phase's bound
# Sizes at 5,000 users and one Gaussian of multiplier 1; both grow with the root of
# users over noise (docs/methods/dpals.md). Without noise they are the largest.
_USERS, _FACTORS, _HEAD = 5000, 22, 800
_MOST_FACTORS, _MOST_HEAD = 64, 3000

Factors = Float64[np.ndarray, "users factors"]
Items = Float64[np.ndarray, "head factors"]


@register("dpals")
@dataclass(frozen=True)
class Dpals(SumMethod):
    """Factorises histories; a client solves for its user, the server for the items.

    Leave `factors` and `head` out to have them follow from the plan.
    """

    usual_rounds: ClassVar[int] = 4
    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "central": CentralGaussian,
    }

    factors: int | None = None  # d
    head: int | None = None  # H
    clip: float = 0.03  # C, the longest u that counts whole
    unobserved: float = 0.3  # alpha
    user_ridge: float = 1.0
    item_ridge: float = 2e-4  # for each user planned
    weight_exponent: float = 0.25  # a
    count_share: float = 0.1  # of the budget, for line 1
    growth: float = 1.6  # of the budget, from one round of factors to the next
    gramian_share: float = 0.05  # g
    item_gramians: float = 0.0  # h; as published: more than 0, such as 0.2

    def __post_init__(self) -> None:
        check_offered(self)
        for name in ("factors", "head"):
            if getattr(self, name) is not None:
                check.count(**{name: getattr(self, name)})
        check.positive(clip=self.clip, unobserved=self.unobserved, growth=self.growth)
        check.positive(user_ridge=self.user_ridge, item_ridge=self.item_ridge)
        check.not_negative(weight_exponent=self.weight_exponent)
        check.fraction(count_share=self.count_share, gramian_share=self.gramian_share)
        check.not_negative(item_gramians=self.item_gramians)
        if self.gramian_share + self.item_gramians >= 1:
            raise BadValue(
                f"gramian_share={self.gramian_share} and item_gramians="
                f"{self.item_gramians} must add up to less than 1: the rest is what "
                "says which items go with which factors"
            )

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Counting, then one phase per round of factors: each has more of the budget.

        An early round only gives the next one a start; the last one is the model.
        """
        steps = ("counts", 1, "DPALS counts"), ("factors", 0, "solves for factors")
        counting, solving = in_turn(*steps, total=plan.rounds)
        # The last round counts 1, so that many rounds overflow nothing.
        parts = self.growth ** np.arange(1.0 - len(solving), 1.0)
        shares = (1 - self.count_share) * parts / parts.sum()
        solves = (
            _phase(f"factors {n}", range(n, n + 1), f"normal equations of step {n}", x)
            for n, x in enumerate(shares.tolist(), start=1)
        )
        return _phase(_COUNTS, counting, "counts of items", self.count_share), *solves

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item; or those of A, B and, as published, of every A_i."""
        if phase.name == _COUNTS:
            return {"counts": Slot("float64", (len(catalog),))}
        side, d = self._side(catalog), self._known_factors
        slots = {
            "gramian": Slot.symmetric("float64", d),
            "right": Slot("float64", (side, d), rank=1),
        }
        if self.item_gramians:
            half = d * (d + 1) // 2
            slots["item gramians"] = Slot("float64", (side, half), rank=1)
        return slots

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The head and its factors; counts after the last round, weights before."""
        if phase is not None and phase.name == _COUNTS:
            return {}
        n_items, side = len(catalog), self._side(catalog)
        known = {
            "head": PublicSlot("int64", (side,), 0, n_items - 1),
            "items": PublicSlot("float64", (side, self._known_factors)),
        }
        if phase is None:
            return {**known, "counts": PublicSlot("float64", (n_items,))}
        return {**known, "weights": PublicSlot("float64", (side,))}

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1, 3 and 4; the sensitivity is shown at the top."""
        if phase.name == _COUNTS:
            return Tree.dense(counts=unit(rows(shards)))
        public = broadcast.weights
        x = rows(shards, items=public["head"])
        u = _clipped(self._users(x, public["items"]), self.clip)
        y = unit(x * public["weights"])[:, None]
        g, h = self.gramian_share, self.item_gramians
        # The half of a square has its norm over sqrt(2), so squares are sent times it.
        root, right = (2 * g) ** 0.25 * u, math.sqrt(1 - g - h) * u
        leaves: dict[str, Factored | Symmetric] = {
            "gramian": Symmetric(root[:, None]),
            "right": Factored(y, right[:, None]),
        }
        if h:
            half = Symmetric(u[:, None]).dense().values
            leaves["item gramians"] = Factored(y, math.sqrt(2 * h) * half[:, None])
        return Tree(leaves)

    # server

    def calibrated(self, plan: Plan) -> Self:
        """A copy with the least noise for the plan's target, and the sizes it allows.

        Both sizes grow with the root of users over noise.
        """
        made = super().calibrated(plan)
        growth = math.sqrt(made._evidence(plan))  # infinite without noise
        factors = round(min(_MOST_FACTORS, max(2, _FACTORS * growth)))
        head = round(min(_MOST_HEAD, max(10, _HEAD * growth)))
        return replace(made, factors=self.factors or factors, head=self.head or head)

    def _evidence(self, plan: Plan) -> float:
        """Users over the noise of all rounds, next to 5,000 and noise of 1."""
        users, total = self.planned(plan), 0.0
        for phase in self.phases(plan):
            variance = self.privacy.variance(phase, users=users, size=1)
            if not variance:
                return math.inf
            total += len(phase.rounds) * phase.bound**2 / variance
        return users * math.sqrt(total) / _USERS

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Line 2: the server before anything is counted, with factors at random."""
        side, d = self._side(catalog), self._known_factors
        items = key.generator().standard_normal((side, d)) / math.sqrt(d)
        weights = {
            "counts": np.zeros(len(catalog)),
            "head": np.zeros(side, np.int64),
            "weights": np.zeros(side),
            "items": items,
        }
        return Server(plan, catalog, 0, weights, {})

    def public(self, server: Server, phase: Phase | None) -> Arrays:
        """Only what the next round needs; after the last round, what ranks."""
        wanted = self.public_shape(phase, server.catalog)
        return {name: server.weights[name] for name in wanted}

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Lines 2, 5 and 6."""
        if phase.name == _COUNTS:
            counts = total["counts"]
            size = self._side(server.catalog)
            found = head_of(counts, size=size, exponent=self.weight_exponent)
            known = {name: found[name] for name in ("head", "weights")}
            weights = {**server.weights, "counts": counts, **known}
        else:
            items = self._items(total, self.planned(server.plan))
            weights = {**server.weights, "items": items}
        return server.after(weights=weights, memory=server.memory)

    def _items(self, total: Arrays, users: float) -> Items:
        """Lines 5 and 6: the factors of the head, from the noisy sums."""
        g, h, c = self.gramian_share, self.item_gramians, self.clip
        square = c**2 / users  # û stands for u over the clip
        every = square / math.sqrt(2 * g) * mirrored(total["gramian"])
        left = self.unobserved * _nearest_gramian(every)
        left += self.item_ridge * np.eye(len(left))
        if h:
            each = np.stack([mirrored(half) for half in total["item gramians"]])
            left = left + _nearest_gramian(square / math.sqrt(2 * h) * each)
        right = c / users / math.sqrt(1 - g - h) * total["right"]
        return np.asarray(np.linalg.solve(left, right[..., None])[..., 0])

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 7: the factors of each user, without a clip."""
        x = rows(shards, items=broadcast.weights["head"])
        return Tastes(Tree.dense(user=self._users(x, broadcast.weights["items"])))

    def score(
        self, broadcast: Broadcast, person: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 7: u·v on the head; the tail below it, by counts."""
        known, u = broadcast.weights, person.tree["user"]
        # From -1 for the most counted item to -2: below any score of the head. Counts
        # come with the last round; whoever looks before finds all of the tail alike.
        after = np.full(len(candidates.catalog), -1.0)
        if "counts" in known:
            after -= places_by_count(known["counts"]) / len(known["counts"])
        head = u @ known["items"].T + _TIES * after[known["head"]]
        scores = head.min(axis=1, keepdims=True, initial=0.0) + after
        scores[:, known["head"]] = head
        return np.asarray(scores[:, candidates.items])

    # details

    def _users(self, x: Float64[np.ndarray, "users head"], items: Items) -> Factors:
        """Line 3 without the clip: the factors of every user at once."""
        d = items.shape[1]
        i, j = np.tril_indices(d)
        held = x @ (items[:, i] * items[:, j])  # of the sum of v vᵀ, one half
        left = np.empty((len(x), d, d))
        left[:, i, j] = left[:, j, i] = held
        left += self.unobserved * items.T @ items + self.user_ridge * np.eye(d)
        return np.asarray(np.linalg.solve(left, (x @ items)[..., None])[..., 0])

    def _side(self, catalog: Catalog) -> int:
        """H, or the number of items of the catalog if it is smaller."""
        if self.head is None:
            raise BadValue(_NOT_SET.format("head"))
        return min(self.head, len(catalog))

    @property
    def _known_factors(self) -> int:
        if self.factors is None:
            raise BadValue(_NOT_SET.format("factors"))
        return self.factors


def _phase(name: str, rounds: range, what: str, share: float) -> Phase:
    return Phase(name, rounds, what=what, share=share, proof=_PROOF)


def _clipped(u: Factors, clip: float) -> Factors:
    """Line 3: û = u / max(|u|, C), a hair below norm 1 at the most."""
    norms = np.linalg.norm(u, axis=1, keepdims=True)
    return np.asarray(u / (np.maximum(norms, clip) * _HAIR_MORE))


def _nearest_gramian(
    noisy: Float64[np.ndarray, "*some factors factors"],
) -> Float64[np.ndarray, "*some factors factors"]:
    """Line 5: the nearest matrices whose eigenvalues are not negative."""
    strengths, directions = np.linalg.eigh(noisy)
    kept = directions * np.maximum(strengths, 0.0)[..., None, :]
    return np.asarray(kept @ directions.swapaxes(-1, -2))


_NOT_SET = "{} is not set: set it, or have it follow from the plan (calibrated)"
