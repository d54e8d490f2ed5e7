"""FMF-LDP: matrix factorisation for clicks, every client protecting its own gradient.

Minto, Haller, Haddadi and Livshits, "Stronger Privacy for Federated Collaborative
Filtering With Implicit Feedback", RecSys 2021. A round is an epoch of the paper.

    V        item factors, M × F                      (the server's; everyone sees it)
    r, p, c  how often, whether at all, 1 + alpha r   (a client's own)
    x        the user's factors                       (never leaves; made anew from V)
    g        the gradient of V, M × F, d = M F numbers                          (raw)

    server   1  V at random, mean m, deviation s                  Algorithm 2, line 1
    client   2  x = (Vᵀ C V + user_ridge I)⁻¹ Vᵀ C p             line 4, Eq. 4
             3  g = -2 c (p - x·v) x, where it is asked for       line 5, Eq. 5
             4  send g, protected                                 lines 6 and 7
    server   5  the mean of all reports over the users planned    line 11, Eq. 9
             6  V - gamma (mean + 2 lambda V), 20 times            line 12
    ranking  7  score = x·v on the device, for new users too

    mode    mechanism   line 4
    sound   none        g as it is: federated collaborative filtering (FCF)
    sound   local       PrivUnitG of the whole gradient; use the sampler `once`
    sound   local_bits  one-bit votes: one coordinate of each of k slices of g
    paper   published   one-bit votes as printed: with replacement, each scaled by d,
                        which makes line 5 k times the mean

Line 3 is Equation 6 without its ridge, which line 6 adds. The paper names two other
gradients, and paper mode computes them on request. With f = c (p - x·v) x:

    gradient         a report is of       printed in
    equation 6       -2 f                 our reading
    equation 7       -2 f + 2 lambda v    Section 3.2, "using (7)"
    line 5           f                    Algorithm 2, "with (5)"; line 6 ascends
    line 5, negated  -f                   the same with the sign that descends
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from tacit import check
from tacit.errors import BadValue
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    Clients,
    Formula,
    ItemSpace,
    Key,
    Keys,
    LocalPrivUnit,
    Mechanisms,
    Phase,
    Plan,
    PublicSlot,
    Scores,
    Server,
    Shards,
    Slot,
    SumMethod,
    Tastes,
    Tree,
    Unprotected,
    check_offered,
)
from tacit.models.implicit_factors import ImplicitFactors, Values, descend
from tacit.privacy import LocalBits, PublishedVotes
from tacit.wire_names import register

Gradient = Literal["equation 6", "equation 7", "line 5", "line 5, negated"]
# The factor of -2 f, and how many times 2 lambda v is added.
_READINGS: Mapping[Gradient, tuple[float, float]] = {
    "equation 6": (1.0, 0.0),
    "equation 7": (1.0, 1.0),
    "line 5": (-0.5, 0.0),
    "line 5, negated": (0.5, 0.0),
}

# The first served validation users best; the second is the paper's, for votes.
_RATE, _VOTES_RATE = 0.1, 1e-3


@register("fmf_ldp")
@dataclass(frozen=True)
class FmfLdp(SumMethod):
    """Learns item factors from protected gradients; user factors stay on the client."""

    usual_rounds: ClassVar[int] = 2
    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "local": LocalPrivUnit,
        "local_bits": LocalBits,
        "published": PublishedVotes,
    }

    mode: Literal["sound", "paper"] = "sound"
    factors: int = 5  # F
    alpha: float = 0.0  # how much more a click is trusted than its absence
    user_ridge: float = 1.0  # of line 2
    ridge: float = 1e-6  # lambda
    learning_rate: float | None = None  # gamma; None: by the mechanism
    server_steps: int = 20  # on the same mean
    gradient: Gradient = "equation 6"  # of line 3; the others in paper mode only
    init_mean: float = 0.01  # m: a direction that everyone shares from the start
    init_deviation: float = 0.003  # s

    def __post_init__(self) -> None:
        check_offered(self)
        check.one_of(("sound", "paper"), mode=self.mode)
        check.one_of(_READINGS, gradient=self.gradient)
        check.count(factors=self.factors, server_steps=self.server_steps)
        check.not_negative(alpha=self.alpha, ridge=self.ridge)
        check.positive(user_ridge=self.user_ridge)
        check.not_negative(init_mean=self.init_mean)
        check.positive(init_deviation=self.init_deviation)
        if self.learning_rate is not None:
            check.positive(learning_rate=self.learning_rate)
        if (self.mode == "paper") != isinstance(self.privacy, PublishedVotes):
            raise BadValue(
                f"mode='{self.mode}' with {type(self.privacy).__name__}: mode 'paper' "
                "and mechanism 'published' go together, and neither goes with another"
            )
        if self.mode == "sound" and self.gradient != "equation 6":
            raise BadValue(
                f"gradient='{self.gradient}' with mode='sound': sound mode has "
                "gradient 'equation 6' only; leave gradient out or set mode='paper'"
            )

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """One phase of gradients, clipped as a whole or coordinate by coordinate."""
        what = "gradients of the model"
        return (Phase("gradients", range(plan.rounds), what, is_clipped=True),)

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item and factor."""
        return {"gradient": Slot("float64", (len(catalog), self.factors))}

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The item factors V, in single precision."""
        return {"items": PublicSlot("float32", (len(catalog), self.factors))}

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 2 and 3, raw; only the coordinates that will be reported."""
        model = self._model(broadcast)
        at = self.privacy.coordinates(shards.n_items * self.factors, keys)
        if at is None:
            return Tree.dense(gradient=model.gradients(shards))
        weights = model.items.ravel()[at]
        values = self._read_as_set(model.gradients_at(shards, at), weights)
        return Tree.dense(coordinates=at, values=values)

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Line 1: item factors drawn at random around a common mean."""
        items = self.init_mean + self.init_deviation * key.generator().standard_normal(
            (len(catalog), self.factors)
        )
        return Server(plan, catalog, 0, {"items": items}, {})

    def public(self, server: Server, phase: Phase | None) -> Arrays:
        """The item factors V, in single precision: half the bytes of a broadcast."""
        return {"items": server.weights["items"].astype(np.float32)}

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Lines 5 and 6: the mean gradient, and several steps along it."""
        items = descend(
            server.weights["items"],
            total["gradient"] / self.planned(server.plan),
            rate=self._rate,
            ridge=self.ridge,
            steps=self.server_steps,
        )
        return server.after(weights={"items": items}, memory={})

    @property
    def _rate(self) -> float:
        if self.learning_rate is not None:
            return self.learning_rate
        return _VOTES_RATE if isinstance(self.privacy, LocalBits) else _RATE

    # serving

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 2; a user who took no part in the training has factors as well."""
        return Tastes(Tree.dense(user=self._model(broadcast).users(shards)))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 7: the inner products of user and item factors."""
        items = broadcast.weights["items"].astype(np.float64)
        return user.tree["user"] @ items[candidates.items].T

    def item_space(self, broadcast: Broadcast, candidates: Candidates) -> ItemSpace:
        """The item factors of line 7."""
        items = broadcast.weights["items"].astype(np.float64)[candidates.items]
        return ItemSpace(items, np.zeros(len(items)))

    def user_vectors(
        self, broadcast: Broadcast, tastes: Tastes
    ) -> Float64[np.ndarray, "users factors"]:
        """The user factors of line 2."""
        return tastes.tree["user"]

    def formula(self, broadcast: Broadcast) -> Formula:
        """Lines 2 and 7 as a graph that takes histories."""
        return self._model(broadcast).formula()

    def reasons(
        self, broadcast: Broadcast, shards: Shards, item: int
    ) -> Float64[np.ndarray, "events"]:
        """How much each event of the history adds to the score of line 7."""
        return self._model(broadcast).reasons(shards, item)

    # details

    def _read_as_set(self, gradient: Values, weights: Values) -> Values:
        """What `gradient` names, from the gradient -2 f of these item factors."""
        scale, ridge = _READINGS[self.gradient]
        return scale * gradient + 2.0 * ridge * self.ridge * weights

    def _model(self, broadcast: Broadcast) -> ImplicitFactors:
        items = broadcast.weights["items"].astype(np.float64)
        return ImplicitFactors(items, self.alpha, self.user_ridge)
