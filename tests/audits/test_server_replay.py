"""Honest servers follow from what was delivered; so do those of local reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from audits.subjects import PLAN, POPULARITY, AdaptiveFactors, NoisyFactors
from quick import some_of

from tacit.audits.report_isolation import check_alone
from tacit.audits.server_replay import check_replay
from tacit.audits.shuffler_minimum import check_minimum
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.privacy import CentralGaussian, LocalItem, LocalPrivUnit

KEY = Key.from_seed(4)
HONEST = {
    "central": POPULARITY,
    "two leaves": NoisyFactors(),
    "moving clip": AdaptiveFactors(),
    "local": FederatedPopularity(privacy=LocalPrivUnit(1.0)),
    "one item": FederatedPopularity(privacy=LocalItem(1.0)),
    "bare": FederatedPopularity(),
    "Gram": Gram(head=12, privacy=CentralGaussian(1.5)),
    "Gram, local": Gram(head=12, privacy=LocalPrivUnit(1.0)),
    "Gram, loaded": Gram(
        head=12, privacy=CentralGaussian(1.5), load_rounds=1, load_rank=3
    ),
}


@pytest.mark.parametrize("name", some_of([*HONEST], 4))
def test_honest_methods_pass(name):
    assert check_replay(HONEST[name], PLAN, key=KEY).measured == 0
    assert check_alone(HONEST[name], PLAN, key=KEY).ok


def test_a_local_method_that_remembers_its_clients_is_caught():
    held = []

    @dataclass(frozen=True)
    class Remembers(FederatedPopularity):
        def update(self, phase, broadcast, clients, shards, keys):
            held.append(shards.lengths.sum())
            return super().update(phase, broadcast, clients, shards, keys)

        def learn(self, server, phase, total):
            after = super().learn(server, phase, total)
            share = after.weights["share"] + 1e-6 * sum(held)
            held.clear()
            return replace(after, weights={**after.weights, "share": share})

    method = Remembers(privacy=LocalPrivUnit(1.0))
    assert not check_replay(method, PLAN, key=KEY).ok


def test_a_server_of_other_types_is_another_server():
    @dataclass(frozen=True)
    class Grows(FederatedPopularity):
        def aggregate(self, server, delivery, context):
            after = super().aggregate(server, delivery, context)
            kept = {**after.memory, f"seen {len(seen)}": after.memory["votes"]}
            seen.append(1)
            return replace(after, memory=kept)

    seen = []
    method = Grows(privacy=CentralGaussian(1.5))
    assert check_replay(method, PLAN, key=KEY).measured == float("inf")


def test_a_method_that_reads_no_relay_is_not_asked():
    assert [*check_minimum(POPULARITY, PLAN, key=KEY)] == []
    [found] = check_minimum(HONEST["local"], PLAN, key=KEY)
    assert found.ok
