from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.codes import Code
from tacit.data.features import Categories
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import (
    Candidates,
    CentralGaussian,
    LocalPrivUnit,
    Method,
    Unprotected,
    enrol,
)
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.privacy import LocalItem
from tacit.release import Adjacency, Standing, Unit, View
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, Once, Poisson
from tacit.statement import account
from tacit.testing.contract import MethodContract, ScoreFunction, checkerboard
from tacit.transport.messages import Broadcast


class TestContract(MethodContract):
    def method(self) -> Method:
        return FederatedPopularity(max_votes=4)

    def answer_world(self) -> FederatedData:
        """Item i is held by everyone numbered i or higher."""
        return FederatedData.of_histories(
            [list(range(n + 1)) for n in range(4)], n_items=4
        )

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        assert np.argsort(-score(world.shards), axis=1).tolist() == [[0, 1, 2, 3]] * 4


def share(method: FederatedPopularity, world: FederatedData, plan: Plan) -> np.ndarray:
    simulation = Simulation(
        method, plan, world.catalog, world.profiles, world.shards, Key.from_seed(0)
    )
    *_, (state, _) = simulation.run(simulation.start())
    return state.server.weights["share"]


def test_without_a_bound_that_bites_it_counts_users():
    world = FederatedData.of_histories([[0, 1], [0], [0, 0, 2], []], n_items=3)
    assert share(FederatedPopularity(), world, Plan(4)).tolist() == [0.75, 0.25, 0.25]


def test_once_over_many_rounds_counts_the_same_users():
    world = FederatedData.of_histories([[0, 1], [0], [0, 0, 2], []], n_items=3)
    plan = Plan(4, rounds=5, sampler=Once())
    found = share(FederatedPopularity(), world, plan)
    np.testing.assert_allclose(found, [0.75, 0.25, 0.25])


def test_nobody_votes_for_more_than_the_bound():
    world = FederatedData.of_histories([list(range(50))] * 3, n_items=50)
    found = share(FederatedPopularity(max_votes=7), world, Plan(3))
    assert found.sum() == pytest.approx(7.0)


def test_every_item_of_a_history_is_equally_likely_to_be_drawn():
    """False alarm below 1e-9 (Hoeffding, 5 items); sees a share 4% off.

    Item 0 is repeated: repeats must not raise its chance.
    """
    users = 20_000
    world = FederatedData.of_histories([[0, 0, 0, 1, 2, 3, 4]] * users, n_items=5)
    found = share(FederatedPopularity(max_votes=2), world, Plan(users))
    bound = np.sqrt(np.log(2 * 5 / 1e-9) / (2 * users))
    assert np.abs(found - 0.4).max() < bound


def test_it_promises_nothing():
    plan = Plan(10)
    told = account(plan, FederatedPopularity().releases(plan))
    assert {s.standing for s in told.releases + told.totals} == {Standing.NONE}
    assert {s.epsilon for s in told.totals} == {None}


@pytest.mark.parametrize("votes", [0, -1])
def test_refuses_a_bound_that_lets_nobody_vote(votes):
    with pytest.raises(BadValue, match="max_votes"):
        FederatedPopularity(max_votes=votes)


# --- Privacy -------------------------------------------------------------------------

LEVELS = {
    "central": FederatedPopularity(privacy=CentralGaussian(2.0)),
    "local": FederatedPopularity(privacy=LocalPrivUnit(epsilon=3.0)),
    "local_item": FederatedPopularity(privacy=LocalItem(epsilon=3.0)),
}


class TestCentral(TestContract):
    """The contract under noise; the answer is learnt with little of it."""

    def method(self) -> Method:
        return FederatedPopularity(max_votes=4, privacy=CentralGaussian(0.01))


class TestBudgets(TestCentral):
    """The contract where half of the users send a fifth of a report."""

    def method(self) -> Method:
        privacy = CentralGaussian(0.01, scale={"strict": 0.2, "open": 1.0})
        return FederatedPopularity(max_votes=4, privacy=privacy)

    def plan(self, world: FederatedData) -> Plan:
        return in_halves(super().plan(world))

    def answer_plan(self, world: FederatedData) -> Plan:
        return in_halves(super().answer_plan(world))


def in_halves(plan: Plan) -> Plan:
    half = plan.population // 2
    return replace(plan, groups={"strict": half, "open": plan.population - half})


class TestLocal(TestContract):
    def method(self) -> Method:
        return FederatedPopularity(max_votes=4, privacy=LocalPrivUnit(epsilon=60.0))


class TestLocalItem(TestContract):
    def method(self) -> Method:
        return FederatedPopularity(max_votes=4, privacy=LocalItem(epsilon=60.0))

    def answer_world(self) -> FederatedData:
        """Items 0 to 3 are the only one of 8, 4, 2 and 1 users."""
        single = [[item] for item, n in enumerate([8, 4, 2, 1]) for _ in range(n)]
        return FederatedData.of_histories(single, n_items=4)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        order = np.argsort(-score(world.shards), axis=1)
        assert order.tolist() == [[0, 1, 2, 3]] * len(world.shards)


@pytest.mark.parametrize("level", LEVELS)
def test_no_history_moves_a_report_past_its_bound(level):
    """Nobody, one item, everything: unit vectors have norm 1, items are one."""
    world = FederatedData.of_histories([[], [3], list(range(40))], n_items=40)
    keys = Key.from_seed(0).each(np.arange(3))
    method = LEVELS[level]
    clients = enrol(method, Plan(3), world.profiles, keys)
    broadcast = Broadcast(0, Plan(3).digest, {"share": np.zeros(40)})
    _, updates = method.local_update(broadcast, clients, world.shards, keys.at("a"))
    report = method.privatize(broadcast, clients, updates, keys.at("b")).tree
    if level == "central":
        np.testing.assert_allclose(report.norms(), [0, 1, 1], atol=1e-6)
    if level == "local_item":
        assert report["votes"].sum(axis=1).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(1000, channel="secure_sum", delta=1e-6), (4.8866, 4.8866, None)),
        (Plan(1000, channel="direct", delta=1e-6), (4.8866, None, None)),
        (
            Plan(*(1000, 1000, Poisson(0.01)), channel="secure_sum", delta=1e-6),
            (2.1245, None, None),
        ),
    ],
)
def test_central_views(plan, expected):
    """Release earns sampling; the server counts participations; collusion has none.

    Figures of the analytic Gaussian and of the privacy page, section 9.
    """
    method = FederatedPopularity(privacy=CentralGaussian(1.0))
    told = account(plan, method.releases(plan)).totals
    found = {line.view: line for line in told if line.unit is Unit.USER}
    assert found[View.RELEASE].epsilon == pytest.approx(expected[0], abs=5e-4)
    if expected[1] is not None:
        assert found[View.SERVER].epsilon == pytest.approx(expected[1], abs=5e-4)
        assert found[View.SERVER].assumes == str(Code("trusted_aggregator"))
    assert found[View.COLLUSION].epsilon is None
    if plan.channel == "direct":
        assert found[View.SERVER].standing is Standing.NONE


@pytest.mark.parametrize("level", ["local", "local_item"])
@pytest.mark.parametrize(
    ("rounds", "sampler", "times"), [(5, Once(), 1), (5, Everyone(), 5)]
)
def test_local_views_are_all_the_same_and_pure(level, rounds, sampler, times):
    plan = Plan(100, rounds, sampler)
    told = account(plan, LEVELS[level].releases(plan)).totals
    assert [line.epsilon for line in told] == pytest.approx([3.0 * times] * 6)
    assert {line.delta for line in told} == {0.0}
    assert {line.adjacency for line in told} == {Adjacency.REPLACE_ONE}


def test_noise_is_calibrated_to_the_plan():
    plan = Plan(1000, channel="secure_sum", delta=1e-6, target_epsilon=4.0)
    method = FederatedPopularity(privacy=CentralGaussian()).calibrated(plan)
    [noise] = method.privacy.noise_multiplier.values()
    assert noise == pytest.approx(1.1935, abs=1e-3)
    plan = Plan(1000, 5, Everyone(), target_epsilon=4.0)
    for privacy in (LocalPrivUnit(), LocalItem()):
        local = FederatedPopularity(privacy=privacy).calibrated(plan)
        assert type(local.privacy) is type(privacy)
        assert local.privacy.epsilon == pytest.approx(0.8)


def test_without_noise_and_without_a_target_it_refuses():
    for privacy in (CentralGaussian(), LocalPrivUnit(), LocalItem()):
        method = FederatedPopularity(privacy=privacy)
        with pytest.raises(BadValue, match="target_epsilon"):
            method.calibrated(Plan(10, delta=1e-6))
        with pytest.raises(BadValue, match="is not set"):
            method.releases(Plan(10))


def test_what_protects_it_has_a_name():
    """The names of `[privacy] mechanism`."""
    assert FederatedPopularity.mechanisms == {
        "none": Unprotected,
        "central": CentralGaussian,
        "local": LocalPrivUnit,
        "local_item": LocalItem,
    }


def test_the_noise_in_the_sum_has_its_stated_scale():
    """Chi-square, false alarm 1e-9; sees the noise 7% off."""
    world = FederatedData.of_histories([[0]] * 5, n_items=20_000)
    method = FederatedPopularity(privacy=CentralGaussian(3.0))
    plan = Plan(5, channel="secure_sum")
    found = share(method, world, plan)[1:] * 5 / 3.0
    low, high = chi2(len(found)).interval(1 - 1e-9)
    assert low < (found**2).sum() < high


def test_content_turns_popularity_to_what_a_user_has():
    """Even items are alike, and odd ones; popularity alone cannot tell users apart."""
    world = checkerboard()
    parity = Categories.of([[str(i % 2)] for i in range(12)])
    catalog = replace(world.catalog, features={"parity": parity})
    method = FederatedPopularity(content=("parity",))
    simulation = Simulation(
        method, Plan(24), catalog, world.profiles, world.shards, Key.from_seed(0)
    )
    *_, (state, _) = simulation.run(simulation.start())
    broadcast = method.broadcast(state.server)
    keys = simulation.population.keys
    tastes = method.represent(broadcast, state.clients, world.shards, keys)
    scores = method.score(broadcast, tastes, Candidates.all_of(catalog))
    own = np.arange(12) % 2 == (np.arange(24) % 2)[:, None]
    assert (scores[own].reshape(24, 6).min(axis=1) > 0.01).all()
    assert (scores[~own] < 1e-6).all()
