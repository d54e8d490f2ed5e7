"""FOFL-SELF: the contract, and that ids are all it knows."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.data.features import Category
from tacit.data.federated_data import FederatedData
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import Candidates, Method
from tacit.methods.rivals.fofl import Fofl
from tacit.plans import Plan
from tacit.release import Standing, View
from tacit.runtime.simulate import Simulation
from tacit.sampling import Poisson
from tacit.serving.recommender import stranger
from tacit.statement import account
from tacit.testing.contract import MethodContract, checkerboard
from tacit.transport.channels import Sum

SMALL = Fofl(
    embedding=2,
    widths=(4,),
    precision="float64",
    negatives=1,
    local_epochs=1,
    batch=16,
    rate=0.3,
    adapt_epochs=1,
)
LEARNER = replace(
    SMALL,
    embedding=4,
    widths=(8,),
    negatives=3,
    local_epochs=20,
    batch=8,
    adapt_epochs=40,
    adapt_rate=0.3,
)


class TestContract(MethodContract):
    rounds = 2

    def method(self) -> Method:
        return SMALL

    def plan(self, world):
        return Plan(len(world.shards), rounds=2, sampler=Poisson(0.3))

    def test_a_small_world_with_a_known_answer_is_learnt(self):
        Knows().test_a_small_world_with_a_known_answer_is_learnt()

    def check_learnt(self, score, world):
        """What a user lacks of their kind stands above the other kind, mostly."""
        scores = score(world.shards)
        own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
        held = world.shards.log.matrix().toarray() > 0
        found = np.where(own & ~held, scores, -np.inf).max(axis=1)
        others = np.where(own, np.nan, scores)
        assert (found > np.nanmedian(others, axis=1)).mean() > 0.9


class Knows(TestContract):
    __test__ = False

    test_a_small_world_with_a_known_answer_is_learnt = (
        MethodContract.test_a_small_world_with_a_known_answer_is_learnt
    )

    def method(self) -> Method:
        return LEARNER

    def answer_plan(self, world):
        return Plan(len(world.shards), rounds=6)


def test_adam_steps_where_the_mean_points():
    """The first step of Adam is as long as its rate, whatever moved."""
    method = replace(SMALL, server_step="adam", step=0.1)
    world, plan = checkerboard(), Plan(24, rounds=1)
    server = method.start(plan, world.catalog, Key.from_seed(0))
    broadcast, keys = method.broadcast(server), Key.from_seed(1).each(np.arange(24))
    clients = stranger(method, 24)
    _, updates = method.local_update(broadcast, clients, world.shards, keys)
    total = {n: updates.tree[n].sum(axis=0) for n in updates.tree.leaves}
    context = method.context(server, broadcast, Key.from_seed(2))
    after = method.aggregate(server, Sum(total), context)
    moved = after.weights["weights.2"] - server.weights["weights.2"]
    mean = total["weights.2"] / 24
    np.testing.assert_allclose(moved, 0.1 * mean / (np.abs(mean) + 1e-4), rtol=1e-9)


def trained(method: Fofl, world: FederatedData):
    made = Simulation(
        method,
        Plan(24, rounds=2),
        world.catalog,
        world.profiles,
        world.shards,
        Key.from_seed(0),
    )
    *_, (state, _) = made.run(made.start())
    return state.server


def test_an_item_that_nobody_has_or_draws_stays_where_it_was():
    """The table has a row an item, and rows that no example reads never move."""
    world = checkerboard()
    method = replace(SMALL, negatives=0, positive_from=1.0)
    start = method.start(
        Plan(24, rounds=2), world.catalog, Key.from_seed(0).at("server")
    )
    assert start.weights["embeddings"].shape == (12, 2)
    few = world.shards.items < 4
    lengths = np.bincount(world.shards.owners[few], minlength=24)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    items, values = world.shards.items[few], world.shards.values[few]
    shards = Shards(offsets, items, values, None, 12)
    broadcast = method.broadcast(start)
    keys = Key.from_seed(1).each(np.arange(24))
    _, updates = method.local_update(broadcast, stranger(method, 24), shards, keys)
    moved = np.abs(updates.tree["embeddings"]).max(axis=(0, 2)) > 0
    assert moved.tolist() == [True] * 4 + [False] * 8


def test_features_of_items_change_nothing():
    """Two catalogs that differ in features alone train to the same weights."""
    world = checkerboard()
    told = replace(
        world.catalog, features={"parity": Category.of([str(i % 2) for i in range(12)])}
    )
    one, other = trained(SMALL, world), trained(SMALL, replace(world, catalog=told))
    np.testing.assert_array_equal(one.weights["weights.2"], other.weights["weights.2"])


def test_nothing_is_promised():
    plan = Plan(24, rounds=2)
    (release,) = SMALL.releases(plan)
    assert {cell.standing for cell in release.cells.values()} == {Standing.NONE}
    assert account(plan, (release,)).worst(view=View.RELEASE) is None


def test_settings_that_cannot_be():
    with pytest.raises(BadValue, match="none disliked"):
        Fofl(negatives=0)
    with pytest.raises(BadValue, match="server_step"):
        Fofl(server_step="momentum")


def test_a_user_is_what_the_device_learns():
    """Without a history everybody has the same list."""
    world = checkerboard()
    server = trained(SMALL, world)
    broadcast = SMALL.broadcast(server)
    nothing = Shards(np.zeros(3, np.int64), *_empty(), None, 12)
    keys = Key.from_seed(1).each([0, 1])
    tastes = SMALL.represent(broadcast, stranger(SMALL, 2), nothing, keys)
    scores = SMALL.score(broadcast, tastes, Candidates.all_of(world.catalog))
    np.testing.assert_array_equal(scores[0], scores[1])


def _empty():
    return np.zeros(0, np.int32), np.zeros(0, np.float32)
