"""What clients and server agree on, and that nothing of it can change unnoticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.agreement import Agreement
from tacit.data.catalog import Catalog
from tacit.errors import BadMessage, BadValue
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.testing.contract import mixed_world
from tacit.transport.codec import encode_broadcast
from tacit.transport.messages import Broadcast, BroadcastLayout, PublicSlot

WORLD = mixed_world()
PLAN = Plan(13, rounds=3, channel="secure_sum", delta=1e-6)
POPULARITY = FederatedPopularity(privacy=CentralGaussian(5.0))


def digest(method, plan=PLAN, catalog=WORLD.catalog) -> bytes:
    return method.agreement(plan, catalog).digest


OTHERS = {
    "a hundredth of the noise": replace(POPULARITY, privacy=CentralGaussian(0.05)),
    "the last bit of the noise": replace(
        POPULARITY, privacy=CentralGaussian(np.nextafter(5.0, 6.0))
    ),
    "another mechanism": replace(POPULARITY, privacy=LocalPrivUnit(1.0)),
    "another setting": replace(POPULARITY, max_votes=301),
    "another method": Gram(head=5, privacy=CentralGaussian(5.0)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_digest_covers_method_mechanism_and_noise(name):
    assert digest(OTHERS[name]) != digest(POPULARITY)


def test_the_digest_covers_plan_and_layout():
    larger = Catalog.of_ids([f"item {i}" for i in range(21)])
    found = {
        digest(POPULARITY),
        digest(POPULARITY, replace(PLAN, rounds=4)),
        digest(POPULARITY, catalog=larger),
    }
    assert len(found) == 3


def test_equal_terms_have_equal_digests_wherever_they_are_made():
    again = FederatedPopularity(privacy=CentralGaussian(5))
    assert again == POPULARITY
    other = Catalog.of_ids([f"item {i}" for i in range(20)])
    assert digest(again, catalog=other) == digest(POPULARITY)


# --- Broadcasts -----------------------------------------------------------------------

AGREED = Agreement.of(
    {},
    broadcasts=[
        BroadcastLayout({"head": PublicSlot("int64", (3,), 0, 9)}),
        BroadcastLayout({"share": PublicSlot("float64", (range(1, 5), 2))}),
    ],
    updates=[{}],
    reports=[],
)


def broadcast_of(weights, phase=0) -> Broadcast:
    return Broadcast(0, AGREED.digest, weights, phase)


def test_what_was_agreed_is_admitted_and_looked_at_once():
    broadcast = broadcast_of({"head": np.array([0, 9, 3])})
    assert AGREED.admits(broadcast)
    broadcast.weights["head"][0] = 10  # nobody does that; a second look would see it
    assert AGREED.admits(broadcast)
    assert not AGREED.admits(replace(broadcast))


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        ({}, r"holds \[\]; agreed is \['head'\]"),
        ({"head": np.zeros(3)}, "is float64"),
        ({"head": np.zeros(4, np.int64)}, r"is int64\[4\], agreed is int64\[3\]"),
        ({"head": np.array([0, 1, -1])}, "has values from -1 to 1"),
        ({"head": np.array([0, 1, 10])}, "has values from 0 to 10"),
        ({"head": np.array([0, 1, 2]), "more": np.zeros(1)}, "holds"),
    ],
)
def test_what_was_not_agreed_is_named(weights, complaint):
    with pytest.raises(BadMessage, match=complaint):
        AGREED.check(broadcast_of(weights))


@pytest.mark.parametrize("rows", [0, 5, 10**9])
def test_a_length_that_may_vary_has_its_limits(rows):
    value = np.broadcast_to(0.0, (rows, 2))
    with pytest.raises(BadMessage, match=r"agreed is float64\[1..4, 2\]"):
        AGREED.broadcasts[1].check({"share": value})
    AGREED.broadcasts[1].check({"share": np.zeros((4, 2))})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e16])
def test_numbers_have_their_limits(value):
    share = np.zeros((2, 2))
    share[1, 1] = value
    with pytest.raises(BadMessage, match="has values"):
        AGREED.broadcasts[1].check({"share": share})


@pytest.mark.parametrize("phase", [1, 2, 99])
def test_a_phase_that_is_not_there_is_refused(phase):
    with pytest.raises(BadMessage, match=f"phase {phase} of 1"):
        AGREED.check(broadcast_of({"share": np.zeros((2, 2))}, phase))


def test_places_need_a_range():
    with pytest.raises(BadValue, match="needs the range of its values"):
        PublicSlot("int64", (3,))


def test_no_broadcast_is_longer_than_the_bound():
    method = Gram(head=7, privacy=CentralGaussian({"counts": 1.0, "relations": 2.0}))
    agreed = method.agreement(PLAN, WORLD.catalog)
    server = method.start(PLAN, WORLD.catalog, Key.from_seed(0))
    sizes = [
        len(encode_broadcast(method.broadcast(replace(server, round=r))))
        for r in (0, 1, 3)
    ]
    assert max(sizes) <= agreed.most_bytes <= max(sizes) + 4000
