"""NN-SELF: MAML over features; a start that is learnt through the steps from it.

    θ₀       weights of everyone                        α, β  inner rate, server's step

    client   1  divide the history: support and query
             2  θ' = θ₀ - α ∇ loss(support; θ₀), a few times
             3  send g = ∇_θ₀ loss(query; θ'), second derivatives and all     (leaves)
    server   4  θ₀ -= β (mean of g), or Adam along it
    ranking  5  adapt θ₀ on the device to its whole history; score items by features

Inputs and network are those of PrivRec, as its authors arranged the comparison. Nothing
protects g.

Source: F. Chen, Z. Dong, Z. Li and X. He, "Federated Meta-Learning for Recommendation",
2018, as PrivRec (Wang et al. 2021, Section 4.1) compares itself with it. What neither
states: docs/methods/nn_self.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from tacit import check
from tacit.aggregation.server_optimizers import BY_NAME, ServerOptimizer
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
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
    check_offered,
    divided,
)
from tacit.models.feature_mlp import (
    Activation,
    Blueprint,
    Cohort,
    Dislikes,
    Labelling,
    Schedule,
)
from tacit.models.feature_mlp.items import without_catalog
from tacit.models.feature_mlp.maml import InnerLoop, meta_gradients
from tacit.wire_names import register


@register("nn_self")
@dataclass(frozen=True)
class NnSelf(SumMethod):
    """A network over features with a meta-learnt start. Not private.

    `people` and `situations` say how many labels each feature has, 0 for a number.
    """

    EXTRAS: ClassVar[Mapping[str, str]] = {"torch": "train"}
    mechanisms: ClassVar[Mechanisms] = {"none": Unprotected}

    items: tuple[str, ...] = ()  # features of the catalog; none named: all but text
    by_value: tuple[str, ...] = ()  # numbers of items with a label for each value
    people: Mapping[str, int] = field(default_factory=dict)
    situations: Mapping[str, int] = field(default_factory=dict)

    # what is learnt from
    positive_from: float | None = None  # the least value that is liked; None: any
    negatives: int = 2  # items never touched, for each that is liked
    dislikes: Dislikes = "negative"  # what becomes of events that are not liked
    # the network
    embedding: int = 64
    widths: tuple[int, ...] = (64, 32, 16, 8)
    activation: Activation = "relu"
    precision: Literal["float32", "float64"] = "float32"
    # MAML
    inner_steps: int = 5
    batch: int = 32
    rate: float = 0.05  # alpha
    step: float = 1.0  # beta
    server_step: Literal["sgd", "adam"] = "sgd"  # "adam": `step` is its rate
    adapt_epochs: int = 5  # 0: the weights of everyone
    adapt_rate: float = 0.05

    def __post_init__(self) -> None:
        check_offered(self)
        check.one_of(("sgd", "adam"), server_step=self.server_step)
        check.not_negative(adapt_epochs=self.adapt_epochs)
        check.positive(step=self.step, adapt_rate=self.adapt_rate)
        _ = self._inner, self._blueprint, self._labelling  # refuse what cannot be

    # what leaves

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """One phase of gradients, which nothing protects."""
        return (Phase("gradients", range(plan.rounds), "gradients of the model"),)

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per weight of the network."""
        return self._blueprint.report_shape(catalog)

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The network, and the items as it reads them."""
        return self._blueprint.public_shape(catalog)

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """The profile of each user as the network reads it; it stays on the client."""
        return self._blueprint.profile_columns(profiles)

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1 to 3, for all clients at once."""
        cohort = self.cohort(broadcast)
        examples = cohort.examples(clients.state, shards, keys.at("negatives"))
        found = meta_gradients(
            cohort.network,
            cohort.weights,
            examples,
            inner=self._inner,
            keys=keys.at("halves"),
        )
        return Tree.dense(**found)

    # server

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server with random weights, before the first round."""
        weights = self._blueprint.start(catalog, key)
        memory = self._optimizer.start(without_catalog(weights))
        return Server(plan, catalog, 0, weights, memory)

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 4: one step of the server along the mean gradient."""
        mean = divided(total, self.planned(server.plan))
        return server.stepped(self._optimizer, mean)

    # serving

    @property
    def liked(self) -> float:
        """The least value that counts as liked."""
        return self._labelling.least_liked

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Line 5: adapted weights, reduced to what ranking needs of them."""
        how = Schedule(self.adapt_epochs, self.batch, self.adapt_rate)
        return Tastes(self.cohort(broadcast).taste(clients.state, shards, how, keys))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 5: the adapted network's scores of the candidates."""
        return self.cohort(broadcast).scores(user.tree, candidates.items)

    # details

    @property
    def _blueprint(self) -> Blueprint:
        return Blueprint(
            items=self.items,
            by_value=self.by_value,
            people=self.people,
            situations=self.situations,
            embedding=self.embedding,
            widths=self.widths,
            activation=self.activation,
            dtype=self.precision,
        )

    @property
    def _labelling(self) -> Labelling:
        return Labelling(self.positive_from, self.negatives, self.dislikes)

    @property
    def _inner(self) -> InnerLoop:
        return InnerLoop(self.inner_steps, self.batch, self.rate)

    @property
    def _optimizer(self) -> ServerOptimizer:
        return BY_NAME[self.server_step](self.step)

    def cohort(self, broadcast: Broadcast) -> Cohort:
        """The network of a broadcast, and how clients read a history with it."""
        return self._blueprint.cohort(broadcast.weights, self._labelling)
