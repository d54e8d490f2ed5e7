"""NN-SELF: the contract; its gradients are tested with the model."""

from dataclasses import replace

import numpy as np
import pytest
from methods.privrec.worlds import SITUATIONS, USERS, mixed, two_kinds

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import Method
from tacit.methods.rivals.nn_self import NnSelf
from tacit.plans import Plan
from tacit.release import Standing
from tacit.sampling import Poisson
from tacit.serving.recommender import stranger
from tacit.testing.contract import MethodContract
from tacit.transport.channels import Sum

SMALL = NnSelf(
    embedding=3,
    widths=(5,),
    precision="float64",
    negatives=2,
    inner_steps=2,
    batch=4,
    rate=0.3,
    step=0.5,
    adapt_epochs=30,
    adapt_rate=0.3,
)
FULL = replace(SMALL, people=USERS, situations=SITUATIONS, positive_from=3.0)


class TestContract(MethodContract):
    rounds = 2

    def method(self) -> Method:
        return FULL

    def world(self):
        return mixed()

    def plan(self, world):
        return Plan(len(world.shards), rounds=2, sampler=Poisson(0.35))

    def answer_world(self):
        return two_kinds()

    def test_a_small_world_with_a_known_answer_is_learnt(self):
        Knows().test_a_small_world_with_a_known_answer_is_learnt()

    def check_learnt(self, score, world):
        """A user of the even kind ranks every even item above every odd one."""
        scores = score(world.shards)
        own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
        worst_own = np.where(own, scores, np.inf).min(axis=1)
        best_other = np.where(own, -np.inf, scores).max(axis=1)
        assert (worst_own > best_other).all()


class Knows(TestContract):
    __test__ = False

    test_a_small_world_with_a_known_answer_is_learnt = (
        MethodContract.test_a_small_world_with_a_known_answer_is_learnt
    )

    def method(self) -> Method:
        return SMALL


def test_the_server_descends_along_the_mean():
    world, plan = mixed(), Plan(13, rounds=1)
    server = FULL.start(plan, world.catalog, Key.from_seed(0))
    broadcast, keys = FULL.broadcast(server), Key.from_seed(1).each(np.arange(13))
    clients = stranger(FULL, 13)
    _, updates = FULL.local_update(broadcast, clients, world.shards, keys)
    total = {n: updates.tree[n].sum(axis=0) for n in updates.tree.leaves}
    context = FULL.context(server, broadcast, Key.from_seed(2))
    after = FULL.aggregate(server, Sum(total), context)
    for name, value in total.items():
        expected = server.weights[name] - 0.5 * value / 13
        np.testing.assert_allclose(after.weights[name], expected, atol=1e-12)


def test_nothing_is_promised():
    (release,) = SMALL.releases(Plan(24, rounds=2))
    assert {cell.standing for cell in release.cells.values()} == {Standing.NONE}


def test_settings_that_cannot_be():
    with pytest.raises(BadValue, match="steps=0"):
        NnSelf(inner_steps=0)
    with pytest.raises(BadValue, match="server_step"):
        NnSelf(server_step="reptile")
