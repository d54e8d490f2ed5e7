"""A toy method that uses every function of the engine: the contract tests itself on it.

    V, b   item factors and biases (server)      u   user vector (stays on the client)
    x      0/1 history                           e   u Vᵀ + b - x

    client   1  u solves min |u Vᵀ + b - x|² + ridge |u|²
             2  the gradient of V is e ⊗ u (sent as factors), of b it is e
             3  the gradient of b gets a little noise of the client's own
    server   4  mean over the planned cohort, then a step of the optimizer

It has client state, factored leaves and noise of the clients' own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from tacit.aggregation.mean import Mean
from tacit.aggregation.server_optimizers import Adam, ServerOptimizer
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.keys import Key, Keys
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.plans import Plan
from tacit.privacy.guarantees import unprotected
from tacit.release import Release
from tacit.transport.channels import Delivery, RoundContext
from tacit.transport.messages import (
    Broadcast,
    BroadcastLayout,
    Layout,
    PublicSlot,
    Reports,
    Slot,
)
from tacit.tree import Dense, Factored, Tree
from tacit.wire_names import register


@register("toy_factors")
@dataclass(frozen=True)
class ToyFactors(Method):
    """Federated factors of a few dimensions; for tests only, and not private."""

    factors: int = 2
    ridge: float = 0.1
    dither: float = 1e-3  # deviation of line 3: enough to see whose keys were used
    optimizer: ServerOptimizer = field(default_factory=lambda: Adam(rate=0.1))

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server with small random factors and biases of zero."""
        draws = key.generator().normal(size=(len(catalog), self.factors))
        weights = {"V": 0.1 * draws, "b": np.zeros(len(catalog))}
        return Server(plan, catalog, 0, weights, self.optimizer.start(weights))

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """A random user vector and how often the client took part."""
        rounds = np.zeros(len(profiles), np.int64)
        return Tree.dense(u=keys.normal(self.factors), rounds=rounds)

    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Lines 1 and 2: user vectors, and the gradients at them."""
        u, error = self._solve(broadcast, shards)
        state = Tree.dense(u=u, rounds=clients.state["rounds"] + 1)
        outer = Factored(error[:, None], u[:, None])
        return state, Updates(Tree({"V": outer, "b": Dense(error)}))

    def privatize(
        self, broadcast: Broadcast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 3: the gradients, with a little noise on that of b."""
        bias = updates.tree["b"]
        noisy = bias + self.dither * keys.normal(bias.shape[1])
        return Reports(Tree({**updates.tree.leaves, "b": Dense(noisy)}))

    def aggregators(self, plan: Plan) -> tuple[Mean, ...]:
        """A plain sum of reports in every round."""
        return (Mean(),)

    def aggregate(
        self, server: Server, delivery: Delivery, context: RoundContext
    ) -> Server:
        """Line 4: one step along the mean gradient of the planned cohort."""
        total = Mean().total(delivery, context)
        gradient = {name: value / context.planned for name, value in total.items()}
        weights, memory = self.optimizer.step(server.weights, server.memory, gradient)
        return server.after(weights=weights, memory=memory)

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """The user vector of the whole local history."""
        return Tastes(Tree.dense(u=self._solve(broadcast, shards)[0]))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """The scores u Vᵀ + b of the candidates."""
        items = candidates.items
        return (
            user.tree["u"] @ broadcast.weights["V"][items].T
            + broadcast.weights["b"][items]
        )

    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """The factors of V's gradient, and the gradient of b."""
        shape = (len(catalog), self.factors)
        slots = {"V": Slot("float64", shape, rank=1), "b": Slot("float64", shape[:1])}
        return Layout(slots)

    def broadcast_layouts(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[BroadcastLayout, ...]:
        """Factors and biases, in every round."""
        return (self.model_layout(catalog),)

    def model_layout(self, catalog: Catalog) -> BroadcastLayout:
        """The factors and biases of all items."""
        shape = (len(catalog), self.factors)
        slots = {
            "V": PublicSlot("float64", shape),
            "b": PublicSlot("float64", shape[:1]),
        }
        return BroadcastLayout(slots)

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """One release of gradients, which nothing protects."""
        bare = unprotected("bare_reports", "a toy; gradients are sent as they are")
        return (Release("gradients", "server", "each round", bare),)

    def _solve(
        self, broadcast: Broadcast, shards: Shards
    ) -> tuple[
        Float64[np.ndarray, "clients factors"], Float64[np.ndarray, "clients items"]
    ]:
        V, b = broadcast.weights["V"], broadcast.weights["b"]
        x = np.zeros((len(shards), shards.n_items))
        x[shards.owners, shards.items] = 1.0
        gram = V.T @ V + self.ridge * np.eye(self.factors)
        # einsum: a fixed order of additions, so a batch equals its rows to the bit.
        right = np.einsum("cm,mf->cf", x - b, V)
        u = np.einsum("cf,fg->cg", right, np.linalg.inv(gram))
        return u, np.einsum("cf,mf->cm", u, V) + b - x
