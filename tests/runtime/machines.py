"""Nodes in this process, and the five methods that run over nodes as on one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from methods.privrec.worlds import FULL, mixed

from tacit.data.federated_data import FederatedData
from tacit.keys import Key
from tacit.method import Method
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalBits, LocalPrivUnit
from tacit.runtime.federation import Federation, Reply
from tacit.runtime.node import Node
from tacit.runtime.node_store import NodeStore
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, Once, Poisson, Sampler
from tacit.testing.contract import mixed_world
from tacit.transport.node_answer import Share

KEY = Key.from_seed(29)
NOISE = CentralGaussian(1.0)


@dataclass(frozen=True)
class Case:
    """A method, how its users are sampled, and over which channel they speak."""

    method: Method
    channel: str
    sampler: Sampler = field(default_factory=Everyone)
    rounds: int = 3
    world: FederatedData = field(default_factory=mixed_world)

    @property
    def plan(self) -> Plan:
        return Plan(
            len(self.world.shards),
            rounds=self.rounds,
            sampler=self.sampler,
            channel=self.channel,
            delta=1e-6,
        )

    def alone(self, **options) -> Simulation:
        """The run on one machine."""
        world = self.world
        data = world.catalog, world.profiles, world.shards
        return Simulation(self.method, self.plan, *data, KEY, **options)

    def node(self, place: Path, share: Share, *, run: str = "run", **options) -> Node:
        """The machine with one share of the users: every third, say."""
        world = self.world
        rows = np.arange(share.part, len(world.shards), share.parts)
        made = Simulation(
            self.method,
            self.plan,
            world.catalog,
            world.profiles.take(rows),
            world.shards.take(rows),
            KEY,
            absent=len(world.shards) - len(rows),
            numbers=rows,
            **options,
        )
        return Node(made, share, NodeStore(place / f"node-{share.part}.db"), run)

    def federation(self, place: Path, *, shares: int = 3, **options) -> Federation:
        """The server of a run whose users are on so many machines in this process."""
        node_options = {
            name: value for name, value in options.items() if name == "is_release"
        }
        nodes = Machines(
            tuple(
                self.node(place, Share(part, shares), **node_options)
                for part in range(shares)
            )
        )
        return Federation.of(
            self.method,
            self.plan,
            self.world.catalog,
            KEY,
            nodes=nodes,
            shares=shares,
            **options,
        )


@dataclass(frozen=True)
class Machines:
    """Nodes that answer one after the other."""

    nodes: tuple[Node, ...]

    def ask(self, question: bytes, *, round: int, most_bytes: int) -> Iterator[Reply]:
        for node in self.nodes:
            yield Reply(f"node {node.share.part}", node.answer(question))


@dataclass
class Scripted:
    """Replies that a test has written, whatever is asked; then those of others."""

    replies: list[Reply]
    others: Machines | None = None

    def ask(self, question: bytes, *, round: int, most_bytes: int) -> Iterable[Reply]:
        rest = (
            []
            if self.others is None
            else self.others.ask(question, round=round, most_bytes=most_bytes)
        )
        return [*self.replies, *rest]


FEDVAE = FedVae(hidden=(5,), latent=3, dtype="float64", privacy=NOISE)
FAST = {"local_epochs": 1, "batch": 32, "rate": 0.2, "negatives": 1}
PRIVREC = PrivRec(**{**FULL, **FAST, "positive_from": 3.0})
CASES = {
    "gram": Case(Gram(count_rounds=2, head=20, rank=8), "secure_sum"),
    "gram, central": Case(
        Gram(count_rounds=1, head=7, rank=3, privacy=NOISE), "secure_sum"
    ),
    "fmf_ldp": Case(
        FmfLdp(privacy=LocalPrivUnit(epsilon=4.0)), "direct", sampler=Once()
    ),
    "fmf_ldp, bits": Case(
        FmfLdp(privacy=LocalBits(epsilon=2.0, votes=5)), "direct", sampler=Once()
    ),
    "fmf_ldp, shuffled": Case(FmfLdp(learning_rate=0.1), "direct"),
    "fedvae": Case(FEDVAE, "secure_sum", sampler=Poisson(0.6)),
    "privrec": Case(
        replace(PRIVREC, privacy=NOISE), "secure_sum", Poisson(0.6), world=mixed()
    ),
    "privrec, direct": Case(PRIVREC, "direct", world=mixed()),
    "popularity": Case(FederatedPopularity(max_votes=4), "secure_sum"),
    "popularity, central": Case(
        FederatedPopularity(max_votes=4, privacy=NOISE), "secure_sum", Poisson(0.6)
    ),
}
