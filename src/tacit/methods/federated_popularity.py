"""Federated popularity: every client votes for what its user has; the server counts.

    m   max_votes    the most items one client votes for in a round
    x   votes        a 0/1 vector over the catalog, at most m ones
    v   report       the unit vector x / |x|; x as it is if nothing protects it (leaves)
    s   popularity   all reports so far over clients planned so far      (all see it)

    client   1  draw m of the items in the history, all if there are fewer
             2  send v, protected
    server   3  add the reports
    ranking  4  score(item) = s, the same for everyone; with public content s times how
                alike the item is to what the user has

    mechanism    protected by
    none         nothing
    central      Gaussian noise on the sum, over secure_sum
    local        PrivUnitG on the client
    local_item   one item, by randomised response over the catalog, on the client

A unit vector has L2 norm 1 whatever the history, so one user moves a round's sum by
at most 1, and everyone counts the same. The strongest cheap rival at a small epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float32, Float64

from tacit import check
from tacit.method import (
    Arrays,
    Broadcast,
    Candidates,
    Catalog,
    Clients,
    Formula,
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
    Tastes,
    Tree,
    check_offered,
)
from tacit.models.content_similarity import Content, public_content
from tacit.models.histories import rows
from tacit.models.onnx_graph import HISTORIES
from tacit.privacy import LocalItem
from tacit.wire_names import register


@register("federated_popularity")
@dataclass(frozen=True)
class FederatedPopularity(SumMethod):
    """Counts bounded votes; the simplest method that uses the whole engine."""

    mechanisms: ClassVar[Mechanisms] = {**SumMethod.mechanisms, "local_item": LocalItem}

    max_votes: int = 300  # m; from 300 on accuracy is flat (docs/methods)
    content: tuple[str, ...] = ()  # public features that say which items are alike
    content_scale: float = 7.0  # distance, such as years, at which numbers are unlike

    def __post_init__(self) -> None:
        check_offered(self)
        check.positive(content_scale=self.content_scale)
        check.at_least(1, max_votes=self.max_votes)

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """One phase, in which every client votes."""
        proof = "unit vectors, docs/methods/federated_popularity.md"
        return (
            Phase("votes", range(plan.rounds), what="votes for items", proof=proof),
        )

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """One number per item of the catalog."""
        return {"votes": Slot("float32", (len(catalog),))}

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """The popularity of each item, and the public content."""
        shares = {"share": PublicSlot("float64", (len(catalog),))}
        if not self.content:
            return shares
        known = Content.of(catalog, self.content, scale=self.content_scale)
        return {**shares, **public_content(known)}

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server before anybody has voted: every popularity is zero."""
        nothing = np.zeros(len(catalog))
        weights = {"share": nothing}
        if self.content:
            known = Content.of(catalog, self.content, scale=self.content_scale)
            weights |= {"labels": known.labels, "numbers": known.numbers}
        return Server(plan, catalog, 0, weights, {"votes": nothing})

    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """Lines 1 and 2: at most `max_votes` distinct items of each history."""
        drawn = shards.at_most(self.max_votes, keys)
        votes = np.zeros((len(shards), shards.n_items), np.float32)
        votes.reshape(-1)[drawn.owners * shards.n_items + drawn.items] = 1
        return Tree.dense(votes=unit(votes) if self.privacy.is_private else votes)

    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """Line 3: the votes so far, and the popularity that follows from them."""
        votes = server.memory["votes"] + total["votes"]
        asked = self.planned(server.plan) * (server.round + 1)
        weights = {**server.weights, "share": votes / asked}
        return server.after(weights=weights, memory={"votes": votes})

    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """How alike each item is to the history; nothing if no content is used."""
        if not self.content:
            return Tastes(Tree.dense(nothing=np.zeros((len(shards), 0))))
        known = Content(broadcast.weights["labels"], broadcast.weights["numbers"])
        return Tastes(Tree.dense(alike=known.spread(rows(shards))))

    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """Line 4: the popularity, times the likeness where content is used."""
        share = broadcast.weights["share"][candidates.items]
        if self.content:
            alike = user.tree["alike"][:, candidates.items]
            # Noise makes some popularities negative. The small second term ranks those,
            # and items unlike the history, below all others and by popularity.
            return np.maximum(share, 0.0) * alike + 1e-9 * share
        return np.broadcast_to(share, (len(user.tree), len(share)))

    def popularity(self, broadcast: Broadcast) -> Float64[np.ndarray, "items"]:
        """The share of votes of each item."""
        return np.asarray(broadcast.weights["share"], np.float64)

    def for_catalog(self, catalog: Catalog) -> Self:
        """A copy whose content is every feature of this catalog, if it uses content."""
        return replace(self, content=(*catalog.features,) if self.content else ())

    def formula(self, broadcast: Broadcast) -> Formula:
        """Line 4 as a graph that takes histories."""
        share, held = broadcast.weights["share"], HISTORIES.held()
        if not self.content:
            return held * 0.0 + share
        known = Content(broadcast.weights["labels"], broadcast.weights["numbers"])
        alike = known.spread_formula(held)
        return alike * np.maximum(share, 0.0) + 1e-9 * share


Votes = Float32[np.ndarray, "clients items"]


def unit(votes: Votes) -> Votes:
    """Each row over its L2 norm; a row of zeros stays."""
    # The squared norm of a 0/1 row is its sum.
    norms = np.sqrt(votes.sum(axis=1, dtype=np.float64, keepdims=True))
    return (votes / np.maximum(norms, 1.0)).astype(np.float32)
