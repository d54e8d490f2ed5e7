"""The contract holds for the toy, and catches methods that break it.

Also tests `tacit.testing.client_process`.
"""

from dataclasses import dataclass, replace
from inspect import signature

import numpy as np
import pytest

from tacit.data.federated_data import FederatedData
from tacit.errors import TacitError
from tacit.method import Method, Server, Updates
from tacit.plan import Plan
from tacit.testing.contract import MethodContract, ScoreFunction
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
