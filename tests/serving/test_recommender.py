import numpy as np
import pytest

from tacit.data.catalog import Catalog, Profiles
from tacit.data.federated_data import FederatedData
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.padding import Padding
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.serving.query import Mode
from tacit.serving.recommender import Holding, Recommender, stranger
from tacit.serving.serve import vector_of
from tacit.serving.settings import ServingSettings, served_model
from tacit.testing.toy import ToyFactors
from tacit.transport.messages import Broadcast

CATALOG = Catalog.of_ids(["a", "b", "c", "d"])


def popular() -> Recommender:
    weights = {"share": np.array([0.1, 0.4, 0.3, 0.4])}
    return Recommender(FederatedPopularity(), Broadcast(1, bytes(16), weights), CATALOG)


def test_the_best_come_first_and_nothing_held_is_shown():
    best = popular().recommend(["b"], n=2)
    assert [line.id for line in best] == ["d", "c"]
    assert [line.score for line in best] == [0.4, 0.3]


def test_a_short_catalog_gives_a_short_list():
    assert [line.id for line in popular().recommend(["b", "d"], n=10)] == ["c", "a"]


def test_repeats_in_a_history_are_harmless():
    assert popular().recommend(["b", "b"]) == popular().recommend(["b"])


def test_someone_with_everything_gets_nothing():
    assert popular().recommend(["a", "b", "c", "d"]) == []


@pytest.mark.parametrize("n", [0, -1])
def test_a_list_has_at_least_one_place(n):
    with pytest.raises(BadValue, match="n="):
        popular().recommend([], n=n)


def test_an_unknown_item_is_named():
    with pytest.raises(BadValue, match="item 'e' is not known"):
        popular().recommend(["e"])


def test_several_histories_give_one_list_each():
    histories = [["b"], ["b", "d"], []]
    found = popular().recommend(histories, n=2)
    assert found == [popular().recommend(history, n=2) for history in histories]
    assert popular().recommend([[]]) == [popular().recommend([])]
    assert popular().recommend(tuple(map(tuple, histories)), n=2) == found


def test_many_histories_are_ranked_a_few_hundred_at_a_time(monkeypatch):
    monkeypatch.setattr("tacit.serving.recommender._USERS_AT_ONCE", 2)
    model, histories = related(), [["a"], ["c"], ["b"], ["d"], ["a", "c"]]
    found = model.recommend(histories, n=1)
    assert [[line.id for line in one] for one in found] == [
        [line.id for line in model.recommend(history, n=1)] for history in histories
    ]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("b", r"history='b' is one text; .* such as \['b'\]"),
        (b"b", r"such as \['b'\]"),
        (3, "history=3 must be a list of item ids"),
        (None, "history=None must be a list"),
        ({"b": 1.0}, "must be a list of item ids"),
        ([3], "item 3 is of type int; .* write '3'"),
        ([2.5], "write '2.5'"),
        (["b", None], "item None is of type NoneType"),
        (np.array([1, 2]), "is of type int64; .* write '1'"),
        ([["b"], "d"], "history='d' is one text"),
        ([["b"], 4], "history=4 must be a list"),
        ([["b"], [4]], "item 4 is of type int"),
    ],
)
def test_what_is_no_history_says_what_to_do(history, said):
    with pytest.raises(BadValue, match=said):
        popular().recommend(history)


@pytest.mark.parametrize(
    ("history", "item"), [("a", "b"), ([1], "b"), (["a"], 2), (["a"], None)]
)
def test_why_refuses_the_same(history, item):
    with pytest.raises(BadValue, match=r"list of item ids|ids are texts"):
        related().why(history, item)


@pytest.mark.parametrize("kind", [tuple, np.array, iter])
def test_a_history_may_be_any_collection_of_texts(kind):
    assert popular().recommend(kind(["b"])) == popular().recommend(["b"])


def test_a_personal_model_folds_a_stranger_in_by_history():
    method = ToyFactors(factors=1)
    factors = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    broadcast = Broadcast(1, bytes(16), {"V": factors, "b": np.zeros(4)})
    recommender = Recommender(method, broadcast, CATALOG)
    assert recommender.recommend(["a"], n=1)[0].id == "b"
    assert recommender.recommend(["c"], n=1)[0].id == "d"


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
    reasons = related().why(["a", "d"], "b")
    assert [reason.id for reason in reasons] == ["a"]
    assert reasons[0].share == pytest.approx(1.0)
    both = related().why(["a", "c", "d"], "b", n=1)
    assert [reason.id for reason in both] == ["a"]


def test_popularity_gives_no_reasons():
    with pytest.raises(Refused, match="cannot say why"):
        popular().why(["a"], "b")


# What a list is for


def films(weighting="once", **settings) -> Recommender:
    """Two kinds of films that go together: a to d, and e to h."""
    histories = [[0, 1, 2], [1, 2, 3], [0, 2, 3], [4, 5, 6], [5, 6, 7], [4, 6, 7]] * 4
    world = FederatedData.of_histories(histories, n_items=8)
    method = Gram(head=8, ridge=0.1, weighting=weighting, **settings)
    catalog = Catalog.of_ids([*"abcdefgh"])
    data = catalog, world.profiles, world.shards
    run = Simulation(method, Plan(24, rounds=2), *data, Key.from_seed(0))
    *_, (state, _) = run.run(run.start())
    return Recommender(method, method.broadcast(state.server), catalog)


def held(items, days=None) -> Holding:
    times = None if days is None else 86_400 * np.array(days)
    log = Interactions.of_columns(
        np.zeros(len(items), int), items, times=times, n_users=1, n_items=8
    )
    return Holding(Shards.of(log), Profiles(Strings.of(["me"])))


def test_a_session_goes_on_where_it_is():
    model = films()
    session = model.ranking_for("session")
    for history, kind in (("abe", "fgh"), ("efa", "bcd")):
        [first] = session.recommend([*history], n=1)
        assert first.id in kind
    assert session.recommend(["a", "b", "e"]) != session.recommend(["e", "a", "b"])
    assert model.recommend(["a", "b", "e"]) == model.recommend(["e", "a", "b"])


def test_ties_in_time_weigh_the_same_and_a_repeat_counts_by_its_latest_event():
    session = films().ranking_for("session")
    at_once = [session.recommend(held(i, [3, 3, 3])) for i in ([0, 1, 4], [4, 0, 1])]
    assert at_once[0] == at_once[1] != session.recommend(held([0, 1, 4], [1, 2, 3]))
    assert session.recommend([*"eabe"]) == session.recommend([*"abe"])
    assert session.why([*"eabe"], "f") == session.why([*"abe"], "f")


def test_a_visit_comes_after_what_is_old_is_half_forgotten():
    visit = films().ranking_for("visit")
    lists = [visit.recommend(held([0, 1, 4], days)) for days in ([0, 0, 0], [0, 0, 90])]
    scores = [{line.id: line.score for line in one} for one in lists]
    assert scores[1]["f"] - scores[1]["c"] > scores[0]["f"] - scores[0]["c"]
    untimed = visit.recommend(held([0, 1, 4]))
    assert untimed == visit.recommend(held([4, 1, 0]))


def test_where_a_history_is_padded_its_order_does_not_matter(monkeypatch):
    """Coins that never fall: what stays of a list for a session is a list for any."""
    model = films()
    session = model.ranking_for("session")
    bare = vector_of(session, ["a", "b", "e"])
    assert not np.allclose(bare, vector_of(session, ["e", "a", "b"]))
    nobody = lambda self, lengths, keys: np.zeros(np.sum(lengths), bool)  # noqa: E731
    monkeypatch.setattr(Padding, "pad", nobody)
    settings = ServingSettings(Mode.DPA, 1.0, interests=2, padding=0.5)
    mechanism = served_model(model, settings).mechanism
    padded = vector_of(session, ["a", "b", "e"], mechanism=mechanism)
    np.testing.assert_allclose(padded, vector_of(model, ["a", "b", "e"]))


def test_back_for_any_and_for_what_is_unknown():
    model = films()
    again = model.ranking_for("visit").ranking_for("any")
    assert again.digest == model.digest != model.ranking_for("visit").digest
    with pytest.raises(BadValue, match="list_for='night' is not known"):
        model.ranking_for("night")


def test_a_method_that_weighs_no_history_refuses():
    assert popular().ranking_for("any").recommend([]) == popular().recommend([])
    with pytest.raises(Refused, match="FederatedPopularity cannot weigh a history"):
        popular().ranking_for("session")
    with pytest.raises(Refused, match="half_life=30 weighs events by age already"):
        films(half_life=30.0).ranking_for("visit")


def test_a_taste_for_one_purpose_is_none_for_another(tmp_path):
    model, kept = films(), tmp_path / "taste"
    mine = model.taste(["a", "b", "e"], keep=kept)
    session = model.ranking_for("session")
    with pytest.raises(Refused, match="of another model"):
        session.recommend(mine)
    again = session.taste(["a", "b", "e"], keep=kept)
    assert session.recommend(again) == session.recommend(["a", "b", "e"])
