from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines.item_knn import ItemKnn
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import Candidates, Method, Unprotected
from tacit.methods.rivals.dplcf import Dplcf
from tacit.plans import Plan
from tacit.privacy import LocalFlips
from tacit.release import Standing, Unit
from tacit.runtime.simulate import Simulation, check_plan
from tacit.sampling import Everyone, Once
from tacit.statement import account
from tacit.testing.contract import (
    MethodContract,
    ScoreFunction,
    checkerboard,
    mixed_world,
)
from tacit.transport.codec import wire_size


class TestContract(MethodContract):
    def method(self) -> Method:
        return Dplcf(neighbors=5)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """The item a user lacks of their kind is above all of the other kind."""
        scores = score(world.shards)
        users, items = np.arange(24)[:, None], np.arange(12)
        own = items % 2 == users % 2
        assert (scores[own] > 0).all()
        assert (scores[~own] == 0).all()


class TestLocal(TestContract):
    """The contract under noise; the answer is learnt with little of it."""

    def method(self) -> Method:
        return Dplcf(privacy=LocalFlips(12 * 8.0), neighbors=5, damping=0.0)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        scores = score(world.shards)
        own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
        assert scores[own].mean() > 10 * scores[~own].mean()


def played(method: Dplcf, world: FederatedData, plan: Plan):
    simulation = Simulation(
        method, plan, world.catalog, world.profiles, world.shards, Key.from_seed(0)
    )
    *_, (state, tally) = simulation.run(simulation.start())
    return state, tally, simulation


def scores(method: Dplcf, world: FederatedData, plan: Plan) -> np.ndarray:
    state, _, simulation = played(method, world, plan)
    broadcast = method.broadcast(state.server)
    keys = simulation.population.keys
    tastes = method.represent(broadcast, state.clients, world.shards, keys)
    return method.score(broadcast, tastes, Candidates.all_of(world.catalog))


def test_without_noise_it_is_item_knn():
    world = mixed_world()
    found = scores(Dplcf(neighbors=20), world, Plan(13))
    knn = ItemKnn(neighbors=20).fit(world.shards, key=Key.from_seed(0))
    np.testing.assert_allclose(found, knn.score(world.shards), rtol=1e-5)


def test_a_user_counts_once_over_rounds_in_which_each_speaks_once():
    world = mixed_world()
    one, _, _ = played(Dplcf(), world, Plan(13))
    many, _, _ = played(Dplcf(), world, Plan(13, 4, Once()))
    for name, value in one.server.memory.items():
        np.testing.assert_array_equal(many.server.memory[name], value)


def test_similarities_under_noise_are_near_the_exact_ones():
    """8,000 users, 2 a bit: a pair's share has deviation 0.005, allowed is 0.05."""
    draws = Key.from_seed(3).generator()
    likes = draws.random(8_000) < 0.5
    held = draws.random((8_000, 6)) < np.where(likes[:, None], 0.8, 0.2)
    held[:, 3:] = draws.random((8_000, 3)) < 0.4  # the last three know nobody
    world = FederatedData.of_histories(
        [np.flatnonzero(h).tolist() for h in held], n_items=6
    )
    found = {}
    for method in (Dplcf(), Dplcf(privacy=LocalFlips(12.0), damping=0.0)):
        state, _, _ = played(method, world, Plan(8_000))
        near, alike = (state.server.weights[name] for name in ("near", "alike"))
        similar = np.zeros((6, 6))
        np.put_along_axis(similar, near, alike, axis=1)
        found[type(method.privacy)] = similar
    np.testing.assert_allclose(found[LocalFlips], found[Unprotected], atol=0.05)


def test_damping_lowers_what_rests_on_noise():
    world = mixed_world()
    loud, damped = (
        played(Dplcf(privacy=LocalFlips(20.0), damping=d), world, Plan(13))[0]
        for d in (0.0, 3.0)
    )
    alike = [state.server.weights["alike"].max() for state in (loud, damped)]
    assert alike[1] < alike[0]


def test_devices_are_told_of_neighbors_when_all_have_spoken():
    world, method = mixed_world(), Dplcf(neighbors=3)
    state, tally, simulation = played(method, world, Plan(13))
    assert method.broadcast(simulation.start().server).weights["near"].shape == (20, 0)
    assert method.broadcast(state.server).weights["near"].shape == (20, 3)
    layout = method.layout(Plan(13), world.catalog, round=0)
    assert tally.bytes_up == 13 * wire_size(layout)


@pytest.mark.parametrize(("sampler", "times"), [(Once(), 1), (Everyone(), 4)])
def test_the_budget_is_that_of_a_whole_history(sampler, times):
    """2.5 a bit on 9,781 items is 24,452.5 for a user, and is printed as that."""
    plan = Plan(100, 4, sampler)
    method = Dplcf(privacy=LocalFlips(2.5 * 9_781))
    told = account(plan, method.releases(plan)).totals
    users = [line for line in told if line.unit is Unit.USER]
    assert {line.standing for line in users} == {Standing.PROVEN}
    assert [line.epsilon for line in users] == pytest.approx([24_452.5 * times] * 3)


def test_bare_histories_promise_nothing():
    plan = Plan(10)
    told = account(plan, Dplcf().releases(plan))
    assert {line.epsilon for line in told.totals} == {None}


def test_epsilon_is_calibrated_to_the_plan():
    plan = Plan(10, 4, Everyone(), target_epsilon=8.0)
    made = Dplcf(privacy=LocalFlips()).calibrated(plan)
    assert made.privacy == LocalFlips(epsilon=2.0)
    assert made.calibrated(plan) == made
    assert Dplcf().calibrated(plan) == Dplcf()


def test_a_sum_or_a_shuffle_cannot_relate_items():
    for channel in ("secure_sum", "shuffle"):
        with pytest.raises(Refused, match="needs Each"):
            check_plan(Dplcf(privacy=LocalFlips(1.0)), Plan(10, channel=channel))


def test_more_reports_than_can_be_counted_are_refused():
    with pytest.raises(Refused, match="20,000,000 reports"):
        Dplcf().start(Plan(20_000_000), checkerboard().catalog, Key.from_seed(0))


@pytest.mark.parametrize(
    "fields",
    [
        {"neighbors": 0},
        {"damping": -1.0},
    ],
)
def test_fields_that_are_refused(fields):
    [(name, value)] = fields.items()
    with pytest.raises(BadValue, match=f"{name}={value}"):
        Dplcf(**fields)


def test_an_epsilon_that_says_nothing_is_refused():
    with pytest.raises(BadValue, match=r"epsilon=0\.0"):
        LocalFlips(epsilon=0.0)


def test_without_epsilon_and_without_a_target_it_refuses():
    method = Dplcf(privacy=LocalFlips())
    for refusing in (method.releases, method.calibrated):
        with pytest.raises(BadValue, match="target_epsilon"):
            refusing(Plan(10))
