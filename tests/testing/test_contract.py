"""The contract holds for the toy, and catches methods that break it.

Also tests `tacit.testing.client_process`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature

import numpy as np
import pytest

from tacit.data.federated_data import FederatedData
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.errors import TacitError
from tacit.method import (
    Candidates,
    Catalog,
    Key,
    Method,
    Phase,
    Plan,
    PublicSlot,
    Server,
    Slot,
    SumMethod,
    Tastes,
    Updates,
)
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.runtime.simulate import Simulation
from tacit.testing.contract import MethodContract, ScoreFunction, mixed_world
from tacit.testing.toy import ToyFactors
from tacit.transport.messages import Reports
from tacit.tree import Dense, Tree


class TestToy(MethodContract):
    def method(self) -> Method:
        return ToyFactors()

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=60)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """The one missing item of each user's kind is the best unseen one."""
        scores = score(world.shards)
        scores[world.shards.owners, world.shards.items] = -np.inf
        users = np.arange(len(scores))
        assert (scores.argmax(axis=1) % 2 == users % 2).all()


def with_impressions(world: FederatedData) -> FederatedData:
    """The same clients, each shown every third item; they click what they have."""
    n, n_items = len(world.shards), len(world.catalog)
    shown = [[*range(user % 3, n_items, 3)] for user in range(n)]
    items = np.array([item for row in shown for item in row], np.int32)
    users = np.repeat(np.arange(n), [len(row) for row in shown])
    has = np.zeros((n, n_items), bool)
    has[world.shards.owners, world.shards.items] = True
    impressions = Impressions.of_columns(
        np.arange(n),
        Ragged.of_lengths([len(row) for row in shown], items),
        clicked=has[users, items],
        histories=Ragged.of_lengths([1] * n, np.arange(n, dtype=np.int32) % n_items),
        history_of=np.arange(n),
        times=np.arange(n),
        n_users=n,
        n_items=n_items,
    )
    return replace(world, shards=replace(world.shards, impressions=impressions))


class TestToyWithImpressions(TestToy):
    """A method that knows nothing of impressions keeps the contract with them."""

    def world(self) -> FederatedData:
        return with_impressions(super().world())

    def answer_world(self) -> FederatedData:
        return with_impressions(super().answer_world())


@dataclass(frozen=True)
class ClickRate(SumMethod):
    """Learns from impressions alone: clicks less a share of what was shown."""

    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        return (Phase("rate", range(plan.rounds), what="clicks", proof="clipped"),)

    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        return {"gain": Slot("float64", (len(catalog),))}

    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        return {"rate": PublicSlot("float64", (len(catalog),))}

    def update(self, phase, broadcast, clients, shards, keys) -> Tree:
        found = shards.known_impressions
        shown = found.slates.shown
        gain = np.zeros((len(shards), shards.n_items))
        cells = found.users[shown.owners], shown.values
        np.add.at(gain, cells, found.clicked - 0.25)
        lengths = np.linalg.norm(gain, axis=1, keepdims=True)
        return Tree.dense(gain=gain / np.maximum(1.0, lengths))

    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        return Server(plan, catalog, 0, {"rate": np.zeros(len(catalog))}, {})

    def learn(self, server: Server, phase: Phase, total) -> Server:
        rate = server.weights["rate"] + total["gain"] / self.planned(server.plan)
        return server.after(weights={"rate": rate}, memory={})

    def represent(self, broadcast, clients, shards, keys) -> Tastes:
        return Tastes(Tree.dense(user=np.zeros((len(shards), 1))))

    def score(self, broadcast, user, candidates: Candidates):
        rate = broadcast.weights["rate"][candidates.items]
        return np.broadcast_to(rate, (len(user.tree), len(rate)))


class TestClickRate(MethodContract):
    """A method that learns from impressions keeps the contract as any other."""

    def method(self) -> Method:
        return ClickRate()

    def world(self) -> FederatedData:
        return with_impressions(super().world())

    def answer_world(self) -> FederatedData:
        return with_impressions(super().answer_world())

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """The sums of what the clients say, counted one impression at a time."""
        found = world.shards.impressions
        assert found is not None
        slates, expected = found.slates, np.zeros(len(world.catalog))
        for place in range(len(slates)):  # one impression per client
            gain = found.clicked[slates.shown.places([place])] - 0.25
            gain = gain / max(1.0, float(np.linalg.norm(gain)))
            np.add.at(expected, slates.shown[place], gain)
        expected *= self.rounds / len(world.shards)
        np.testing.assert_allclose(score(world.shards)[0], expected)


def test_reports_do_not_change_with_impressions_that_a_method_ignores():
    world = mixed_world()
    for method in (ToyFactors(), Gram(), FederatedPopularity()):
        servers = []
        for own in (world, with_impressions(world)):
            plan = Plan(len(own.shards), rounds=3)
            run = Simulation(
                method.calibrated(plan),
                *(plan, own.catalog, own.profiles, own.shards, Key.from_seed(1)),
            )
            *_, (state, tally) = run.run(run.start())
            servers.append((state.server.weights, tally.bytes_up))
        (a, up), (b, also_up) = servers
        assert up == also_up
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


@dataclass(frozen=True)
class NoisyByPlace(ToyFactors):
    """Draws noise by place in the batch instead of by client."""

    def privatize(self, broadcast, clients, updates, keys):
        noise = np.random.default_rng(0).normal(size=updates.tree["b"].shape)
        leaf = Dense(updates.tree["b"] + noise)
        return Reports(Tree({**updates.tree.leaves, "b": leaf}))


@dataclass(frozen=True)
class CohortMean(ToyFactors):
    """Centres on the mean of the batch."""

    def local_update(self, broadcast, clients, shards, keys):
        state, updates = super().local_update(broadcast, clients, shards, keys)
        b = updates.tree["b"]
        leaf = Dense(b - b.mean(axis=0))
        return state, Updates(Tree({**updates.tree.leaves, "b": leaf}))


@dataclass(frozen=True)
class RealisedSize(ToyFactors):
    """Divides by whoever turned up."""

    def aggregate(self, server: Server, delivery, context):
        reports = list(delivery.chunks)
        turned_up = sum(len(chunk) for chunk in reports) or 1
        own = replace(context, planned=turned_up)
        return super().aggregate(server, replace(delivery, chunks=reports), own)


@dataclass(frozen=True)
class LongerReports(ToyFactors):
    """A report that grows with the history gives its length away."""

    def privatize(self, broadcast, clients, updates, keys):
        reports = super().privatize(broadcast, clients, updates, keys)
        extra = Dense(np.zeros((len(clients), 3)))
        return Reports(Tree({**reports.tree.leaves, "extra": extra}))


@dataclass(frozen=True)
class InPlace(ToyFactors):
    """Writes into the server it was handed."""

    def aggregate(self, server, delivery, context):
        after = super().aggregate(server, delivery, context)
        server.weights["b"][:] = 0.0
        return after


@dataclass(frozen=True)
class HiddenState(ToyFactors):
    """Keeps a counter outside the state: a resumed run cannot know it."""

    def local_update(self, broadcast, clients, shards, keys):
        calls = self.__dict__.setdefault("calls", [])
        calls.append(1)
        state, updates = super().local_update(broadcast, clients, shards, keys)
        grown = Tree.dense(u=state["u"] + len(calls), rounds=state["rounds"])
        return grown, updates


@dataclass(frozen=True)
class ReadsNothing(ToyFactors):
    """Steps without looking at what was delivered."""

    def aggregate(self, server, delivery, context):
        return super().aggregate(server, replace(delivery, chunks=[]), context)


def contract_of(broken: type[Method]) -> MethodContract:
    made = broken()

    class Broken(MethodContract):
        def method(self) -> Method:
            return made

        def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
            raise AssertionError

    return Broken()


@pytest.mark.parametrize(
    ("broken", "caught_by", "complaint"),
    [
        (NoisyByPlace, "test_a_cohort_equals_one_client_at_a_time", "Not equal"),
        (CohortMean, "test_a_cohort_equals_one_client_at_a_time", "Not equal"),
        (RealisedSize, "test_a_refusal_counts_as_zero", "Not equal"),
        (LongerReports, "test_any_order_gives_the_same_server", "extra"),
        (InPlace, "test_nothing_that_was_handed_over_is_changed", "read-only"),
        (ReadsNothing, "test_a_checkpoint_gives_the_state_back", "must read them all"),
    ],
)
def test_a_broken_method_is_caught(broken, caught_by, complaint, tmp_path):
    contract = contract_of(broken)
    check = getattr(contract, caught_by)
    wanted = {"tmp_path": tmp_path} if "tmp_path" in signature(check).parameters else {}
    with pytest.raises((AssertionError, ValueError, TacitError), match=complaint):
        check(**wanted)


def test_state_outside_the_state_is_caught(tmp_path):
    contract = contract_of(HiddenState)
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        contract.test_killed_anywhere_and_resumed_equals_uninterrupted(tmp_path)
