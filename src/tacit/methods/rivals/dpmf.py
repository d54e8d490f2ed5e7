"""DPMF: matrix factorisation by SGD on clients; item rows move by noisy sums.

    x     a user's history over the catalog: 1 per item held
    c     the sum of x / |x| over users, with noise                  (everyone sees it)
    head  the H items with the largest c                             (everyone sees it)
    V, b  one row v of d factors per item of the head, and a bias    (everyone sees it)
    u     the user's vector of d factors                             (never leaves)
    m, ρ  items that a client learns from in a round; negatives for each
    S, η  clip of an update; rate of the server

    counting  client  1  send x / |x|
              server  2  c; the head; b is popularity, by c; V is small and random
    training  client  3  at most m items held, ρ m that are not: SGD on u and on copies
                         of the rows of V that these items have
                      4  keep u; send how those rows moved, clipped jointly to S
              server  5  a step of Adam, or a plain one, along (sum + noise) / (planned)
    ranking   client  6  u in closed form for V; score = b + u·v; then the tail, by c

A report has room for m (1 + ρ) rows, whoever sends it, and says which rows they are: it
needs the trusted sum as much as its values do.

Source: J. Hua, C. Xia and S. Zhong, "Differentially private matrix factorization"
(IJCAI 2015), whose users keep their own vectors and send gradients of item vectors; Z.
Liu, Y. Wang and A. Smola, "Fast differentially private matrix factorization" (RecSys
2015), by SGD with noise: what DP-VAE (Fang, Du and Wu 2022) compares itself with under
this name. Theirs protect single ratings; here the noise covers a whole user, as that of
McMahan et al. 2018 does. Where else we depart: docs/methods/dpmf.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from tacit import check
from tacit.aggregation.server_optimizers import BY_NAME, ServerOptimizer
from tacit.errors import BadValue
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    CentralGaussian,
    Clients,
    Key,
    Keys,
    Mechanisms,
    Phase,
    Plan,
    Profiles,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Tastes,
    Tree,
    Unprotected,
    Updates,
    check_offered,
    in_turn,
)
from tacit.models.histories import rows
from tacit.models.item_relations import unit
from tacit.models.matrix_factorization import (
    Examples,
    Schedule,
    fold_in,
    most_rows,
    popularity,
    train,
)
from tacit.models.mult_vae import Held
from tacit.models.mult_vae.counted_head import most_counted, with_tail
from tacit.wire_names import register

_COUNTS = "counts"
_PROOF = "docs/methods/dpmf.md"
_LEAK = "an update names the items of the history, among others that were drawn"
# Sizes where users over noise times the root of the rounds is 1,100: 5,000 users, three
# in ten of them in each round, at about epsilon = 1. Both grow with its root, as was
# found on validation users of MovieLens 1M (docs/methods/dpmf.md).
_EVIDENCE, _HEAD, _FACTORS = 1100.0, 280, 5
_MOST_HEAD, _MOST_FACTORS = 3000, 32


@register("dpmf")
@dataclass(frozen=True)
class Dpmf(SumMethod):
    """Factorises histories by SGD; a client moves the item rows that it touches.

    Leave `factors` and `head` out to have them follow from the plan.
    """

    usual_rounds: ClassVar[int] = 61
    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "central": CentralGaussian,
    }

    factors: int | None = None  # d
    head: int | None = None  # H
    # a client's training
    most_items: int = 100  # m
    negatives: int = 3  # ρ
    local_epochs: int = 3
    rate: float = 0.05  # of a client's steps
    ridge: float = 0.01
    # the server
    server_step: Literal["sgd", "adam"] = "adam"
    server_rate: float = 0.05  # η
    init_deviation: float = 0.1  # of V
    count_rounds: int = 1
    count_share: float = 0.1  # of the budget, for line 1
    dtype: Literal["float32", "float64"] = "float32"  # of updates that leave

    def __post_init__(self) -> None:
        check_offered(self)
        for name in ("factors", "head"):
            if getattr(self, name) is not None:
                check.count(**{name: getattr(self, name)})
        check.count(most_items=self.most_items, count_rounds=self.count_rounds)
        check.count(negatives=self.negatives)
        check.one_of(("sgd", "adam"), server_step=self.server_step)
        check.one_of(("float32", "float64"), dtype=self.dtype)
        check.positive(server_rate=self.server_rate, init_deviation=self.init_deviation)
        check.positive(ridge=self.ridge)  # else a vector may have no closed form
        check.fraction(count_share=self.count_share)
        _ = self._schedule  # refuses what cannot be

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """Counting for a share of the budget; then updates, clipped."""
        counting, training = in_turn(
            (_COUNTS, self.count_rounds, "DPMF counts"),
            ("updates", 0, "trains"),
            total=plan.rounds,
        )
        counts = Phase(
            _COUNTS,
            counting,
            what="counts of items",
            share=self.count_share,
            proof=_PROOF,
        )
        updates = Phase(
            "updates",
            training,
            what="updates of the model",
            bound=0.1,
            is_clipped=True,
            share=1 - self.count_share,
            proof=_PROOF,
            leak=_LEAK,
        )
        return counts, updates

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item while counting; then room for the rows of one client."""
        if phase.name == _COUNTS:
            return {"counts": Slot("float64", (len(catalog),))}
        side = self._side(catalog)
        room = most_rows(side, most=self.most_items, negatives=self.negatives)
        shape = (side, self._known_factors)
        return {"items": Slot.touched_rows(self.dtype, shape, most=room)}

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The head, its factors, and what was counted."""
        n_items, side = len(catalog), self._side(catalog)
        return {
            "head": PublicSlot("int64", (side,), 0, n_items - 1),
            "items": PublicSlot("float64", (side, self._known_factors)),
            "bias": PublicSlot("float64", (side,), 0.0, 1.0),
            "counts": PublicSlot("float64", (n_items,)),
        }

    # client

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """Every user's vector begins at zero; it stays on the client."""
        return Tree.dense(user=np.zeros((len(profiles), self._known_factors)))

    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Lines 1, 3 and 4: what is sent, and the vector that stays."""
        if self.phase(broadcast, clients.plan).name == _COUNTS:
            return clients.state, Updates(Tree.dense(counts=unit(rows(shards))))
        user, update = self._trained(broadcast, clients, shards, keys)
        return user, Updates(update)

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1, 3 and 4 without the vector that stays."""
        _, updates = self.local_update(broadcast, clients, shards, keys)
        return updates.tree

    def _trained(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Tree]:
        held = Held.of(shards, broadcast.weights["head"])
        examples = Examples.of(
            held,
            most=self.most_items,
            negatives=self.negatives,
            keys=keys.at("examples"),
        )
        user, moved = train(
            broadcast.weights["items"],
            broadcast.weights["bias"],
            clients.state["user"],
            examples,
            schedule=self._schedule,
            keys=keys,
            dtype=self.dtype,
        )
        return Tree.dense(user=user), Tree({"items": moved})

    # server

    def calibrated(self, plan: Plan) -> Self:
        """A copy with the least noise for the plan's target, and the sizes it allows.

        Without noise they are the largest.
        """
        made = super().calibrated(plan)
        growth = math.sqrt(made._evidence(plan))  # infinite without noise
        head = round(min(_MOST_HEAD, max(10, _HEAD * growth)))
        factors = round(min(_MOST_FACTORS, max(2, _FACTORS * growth)))
        return replace(made, factors=self.factors or factors, head=self.head or head)

    def _evidence(self, plan: Plan) -> float:
        """Users over noise in all rounds of training, next to ML-1M at epsilon = 1."""
        if not isinstance(self.privacy, CentralGaussian):
            return math.inf
        *_, training = self.phases(plan)
        over_noise = self.planned(plan) / self.privacy.noise_of(training)
        return over_noise * math.sqrt(len(training.rounds)) / _EVIDENCE

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Line 2 before anything is counted: factors at random, no bias."""
        side, d = self._side(catalog), self._known_factors
        items = self.init_deviation * key.generator().standard_normal((side, d))
        weights = {
            "counts": np.zeros(len(catalog)),
            "head": np.arange(side),
            "items": items,
            "bias": np.zeros(side),
        }
        return Server(
            plan, catalog, 0, weights, self._optimizer.start({"items": items})
        )

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 2 or line 5."""
        if phase.name == _COUNTS:
            return self._counted(server, phase, total)
        # Clients planned, not clients that came: how many came is not released.
        away = {"items": -total["items"] / self.planned(server.plan)}
        return server.stepped(self._optimizer, away)

    def _counted(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 2: counts so far; after the last of them the head and its popularity."""
        counts = server.weights["counts"] + total["counts"]
        weights = {**server.weights, "counts": counts}
        if server.round == self.count_rounds - 1:
            head = most_counted(counts, len(weights["head"]))
            users, size = server.plan.cohort_size, len(counts)
            noise = self.privacy.variance(phase, users=users, size=size)
            floor = math.sqrt(noise * self.count_rounds)
            bias = popularity(counts[head], negatives=self.negatives, floor=floor)
            weights |= {"head": head, "bias": bias}
        return server.after(weights=weights, memory=server.memory)

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 6: u from the whole history, also for users who took no part."""
        held = Held.of(shards, broadcast.weights["head"])
        user = fold_in(
            broadcast.weights["items"],
            broadcast.weights["bias"],
            held,
            negatives=self.negatives,
            ridge=self.ridge,
        )
        return Tastes(Tree.dense(user=user))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 6: inner products with the head, and below them the tail."""
        weights = broadcast.weights
        found = weights["bias"] + user.tree["user"] @ weights["items"].T
        scores = with_tail(found, weights["head"], weights["counts"])
        return scores[:, candidates.items]

    # details

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.local_epochs, self.rate, self.ridge)

    @property
    def _optimizer(self) -> ServerOptimizer:
        return BY_NAME[self.server_step](self.server_rate)

    @property
    def _known_factors(self) -> int:
        if self.factors is None:
            raise BadValue(_NOT_SET.format("factors"))
        return self.factors

    def _side(self, catalog: Catalog) -> int:
        """H, or the number of items of the catalog if it is smaller."""
        if self.head is None:
            raise BadValue(_NOT_SET.format("head"))
        return min(self.head, len(catalog))


_NOT_SET = "{} is not set: set it, or have it follow from the plan (calibrated)"
