"""Federated popularity: every device votes for what its user has; the server counts.

    m   max_votes       the most items one device votes for in a round
    v   votes           a 0/1 vector over the catalog, at most m ones   (leaves)
    s   share           votes for an item over devices asked            (all see it)

    device   1  draw m of the items in the history, all if there are fewer
             2  send v
    server   3  add the votes; s = all votes so far / devices planned so far
    ranking  4  score(item) = s, the same for everyone

The bound m keeps one person's influence on a round's sum at √m in L2, which is what a
noisy sum will need. Without privacy the server sees every vote: the statement says
NONE.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit import check
from tacit.aggregation.mean import Mean
from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.keys import Key, Keys
from tacit.method import Candidates, Clients, Method, Scores, Server, Tastes, Updates
from tacit.plan import Plan
from tacit.release import Release, unprotected
from tacit.transport.channels import Delivery
from tacit.transport.messages import Cast, Layout, Queries, Reports, Slot
from tacit.tree import Tree


@dataclass(frozen=True)
class FederatedPopularity(Method):
    """Counts bounded votes; the simplest method that uses the whole engine."""

    max_votes: int = 100

    def __post_init__(self) -> None:
        check.count(max_votes=self.max_votes)

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """Nobody has voted."""
        share, votes = np.zeros(len(catalog)), np.zeros(len(catalog), np.int64)
        return Server(plan, catalog, 0, {"share": share}, {"votes": votes})

    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """Line 1: mark at most `max_votes` distinct items of each history."""
        drawn = shards.at_most(self.max_votes, keys)
        votes = np.zeros((len(shards), shards.n_items), np.uint8)
        votes[drawn.owners, drawn.items] = 1
        return clients.state, Updates(Tree.dense(votes=votes))

    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """Line 2: the votes as they are."""
        return Reports(updates.tree)

    @property
    def aggregator(self) -> Mean:
        """A plain sum."""
        return Mean()

    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """Line 3."""
        layout = self.layout(server.plan, server.catalog)
        votes = (
            server.memory["votes"] + self.aggregator.total(delivery, layout)["votes"]
        )
        asked = server.plan.cohort_size * (server.round + 1)
        return server.after(weights={"share": votes / asked}, memory={"votes": votes})

    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """Nothing: popularity does not depend on the person."""
        return Tastes(Tree.dense(nothing=np.zeros((len(shards), 0))))

    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """Line 4."""
        share = cast.weights["share"][candidates.items]
        return np.broadcast_to(share, (len(person.tree), len(share)))

    def layout(self, plan: Plan, catalog: Catalog) -> Layout:
        """One byte an item."""
        return Layout({"votes": Slot("uint8", (len(catalog),))}, split_axis=None)

    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """The votes, bare."""
        bare = unprotected("votes are sent as they are; no mechanism protects them")
        return (
            Release(
                "votes of a device", f"server, over {plan.channel}", "each round", bare
            ),
            Release("item shares", "everyone", "each round", bare),
        )
