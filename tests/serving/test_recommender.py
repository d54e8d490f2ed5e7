import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.serving.recommender import Recommender, stranger
from tacit.testing.toy import ToyFactors
from tacit.transport.messages import Broadcast

CATALOG = Catalog.of_ids(["a", "b", "c", "d"])


def popular() -> Recommender:
    weights = {"share": np.array([0.1, 0.4, 0.3, 0.4])}
    return Recommender(FederatedPopularity(), Broadcast(1, bytes(16), weights), CATALOG)


def test_the_best_come_first_and_nothing_held_is_shown():
    best = popular().recommend(["b"], k=2)
    assert [line.id for line in best] == ["d", "c"]
    assert [line.score for line in best] == [0.4, 0.3]


def test_a_short_catalog_gives_a_short_list():
    assert [line.id for line in popular().recommend(["b", "d"], k=10)] == ["c", "a"]


def test_repeats_in_a_history_are_harmless():
    assert popular().recommend(["b", "b"]) == popular().recommend(["b"])


def test_someone_with_everything_gets_nothing():
    assert popular().recommend(["a", "b", "c", "d"]) == []


@pytest.mark.parametrize("k", [0, -1])
def test_a_list_has_at_least_one_place(k):
    with pytest.raises(BadValue, match="k="):
        popular().recommend([], k=k)


def test_an_unknown_item_is_named():
    with pytest.raises(BadValue, match="item 'e' is not known"):
        popular().recommend(["e"])


def test_a_personal_model_folds_a_stranger_in_by_history():
    method = ToyFactors(factors=1)
    factors = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    broadcast = Broadcast(1, bytes(16), {"V": factors, "b": np.zeros(4)})
    recommender = Recommender(method, broadcast, CATALOG)
    assert recommender.recommend(["a"], k=1)[0].id == "b"
    assert recommender.recommend(["c"], k=1)[0].id == "d"


def test_strangers_hold_a_fresh_state():
    clients = stranger(ToyFactors(factors=3), n=2)
    assert clients.state["u"].shape == (2, 3)
    assert clients.state["rounds"].tolist() == [0, 0]
    assert clients.plan == Plan(2)  # they agreed to no run


def related() -> Recommender:
    """Items a and b go together, and c and d."""
    method = Gram(head=4, ridge=0.1)
    histories = [[0, 1], [0, 1], [2, 3], [2, 3], [0, 1, 2]]
    world = FederatedData.of_histories(histories, n_items=4)
    simulation = Simulation(
        method,
        Plan(len(histories), rounds=2),
        CATALOG,
        world.profiles,
        world.shards,
        Key.from_seed(0),
    )
    *_, (state, _) = simulation.run(simulation.start())
    return Recommender(method, method.broadcast(state.server), CATALOG)


def test_a_recommendation_has_reasons_in_the_history():
    reasons = related().because(["a", "d"], "b")
    assert [reason.id for reason in reasons] == ["a"]
    assert reasons[0].share == pytest.approx(1.0)
    both = related().because(["a", "c", "d"], "b", n=1)
    assert [reason.id for reason in both] == ["a"]


def test_popularity_gives_no_reasons():
    with pytest.raises(Refused, match="cannot say why"):
        popular().because(["a"], "b")
