import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import Method
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plan import Plan
from tacit.release import Standing
from tacit.runtime.simulate import Simulation
from tacit.sampling import Once
from tacit.statement import account
from tacit.testing.contract import MethodContract, ScoreFunction, SmallWorld


class TestContract(MethodContract):
    def method(self) -> Method:
        return FederatedPopularity(max_votes=4)

    def answer_world(self) -> SmallWorld:
        """Item i is held by everyone numbered i or higher."""
        return SmallWorld.of([list(range(n + 1)) for n in range(4)], n_items=4)

    def check_learnt(self, score: ScoreFunction, world: SmallWorld) -> None:
        assert np.argsort(-score(world.shards), axis=1).tolist() == [[0, 1, 2, 3]] * 4


def share(method: FederatedPopularity, world: SmallWorld, plan: Plan) -> np.ndarray:
    simulation = Simulation(
        method, plan, world.catalog, world.profiles, world.shards, Key.from_seed(0)
    )
    *_, (state, _) = simulation.run(simulation.start())
    return state.server.weights["share"]


def test_without_a_bound_that_bites_it_counts_people():
    world = SmallWorld.of([[0, 1], [0], [0, 0, 2], []], n_items=3)
    assert share(FederatedPopularity(), world, Plan(4)).tolist() == [0.75, 0.25, 0.25]


def test_once_over_many_rounds_counts_the_same_people():
    world = SmallWorld.of([[0, 1], [0], [0, 0, 2], []], n_items=3)
    plan = Plan(4, rounds=5, sampler=Once())
    found = share(FederatedPopularity(), world, plan)
    np.testing.assert_allclose(found, [0.75, 0.25, 0.25])


def test_nobody_votes_for_more_than_the_bound():
    world = SmallWorld.of([list(range(50))] * 3, n_items=50)
    found = share(FederatedPopularity(max_votes=7), world, Plan(3))
    assert found.sum() == pytest.approx(7.0)


def test_every_item_of_a_history_is_equally_likely_to_be_drawn():
    """False alarm below 1e-9 (Hoeffding, 5 items); sees a share 4% off.

    Item 0 is repeated: repeats must not raise its chance.
    """
    people = 20_000
    world = SmallWorld.of([[0, 0, 0, 1, 2, 3, 4]] * people, n_items=5)
    found = share(FederatedPopularity(max_votes=2), world, Plan(people))
    bound = np.sqrt(np.log(2 * 5 / 1e-9) / (2 * people))
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
