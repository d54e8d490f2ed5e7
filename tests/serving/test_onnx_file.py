"""A file scores as the method does, whatever the history, and lists are the same."""

import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx_device import run

from tacit.data.catalog import Catalog
from tacit.data.features import Categories, Numeric, Vectors
from tacit.data.federated_data import FederatedData
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.errors import BadValue, MissingExtra, Refused
from tacit.keys import Key
from tacit.method import Exportable
from tacit.methods.dpvae import DpVae
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.methods.privaterec import PrivateRec
from tacit.methods.privrec import PrivRec
from tacit.methods.rivals.dplcf import Dplcf
from tacit.models.onnx_graph import HISTORIES
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.serving import onnx_file
from tacit.serving.onnx_file import to_onnx
from tacit.serving.recommender import Recommender, stranger
from tacit.serving.topk import top_k
from tacit.transport.messages import Broadcast

N_ITEMS = 30
ALIKE = ("kind", "year")
SMALL = {"hidden": (6,), "latent": 4}

METHODS = {
    "popularity": FederatedPopularity(),
    "popularity by content": FederatedPopularity(content=ALIKE),
    "popularity by vectors": FederatedPopularity(content=("look",)),
    "gram": Gram(head=12, rank=5),
    "gram, every item": Gram(head=N_ITEMS),
    "gram by content": Gram(head=12, content=ALIKE),
    "gram by labels only": Gram(head=12, content=("kind",)),
    "gram that reaches": Gram(head=8, reach=16, content=("kind",)),
    "gram by values": Gram(head=12, weighting="values"),
    "gram by logs": Gram(head=12, weighting="log", half_life=30.0),
    "factors": FmfLdp(),
    "dpvae": DpVae(head=6, latent=4),
    "fedvae": FedVae(**SMALL),
    "privaterec": PrivateRec(content=("look", "kind")),
    "fedvae, the paper": FedVae(mode="paper", **SMALL),
    "fedvae without hidden layers": FedVae(hidden=(), latent=4),
    "fedvae, two hidden layers": FedVae(hidden=(8, 6), latent=4),
    "fedvae, tied": FedVae(tied=True, **SMALL),
    "fedvae, tied, deterministic": FedVae(tied=True, hidden=(), variational=False),
    "fedvae with a head": FedVae(count_rounds=1, head=9, **SMALL),
}


def catalog() -> Catalog:
    ids = Strings.of(f"item {i}" for i in range(N_ITEMS))
    kinds = Categories.of([[str(i % 3)] if i % 5 else [] for i in range(N_ITEMS)])
    years = Numeric(np.arange(N_ITEMS, dtype=np.float32) % 7)
    looks = Key.from_seed(4).generator().standard_normal((N_ITEMS, 3))
    features = {
        "kind": kinds,
        "year": years,
        "look": Vectors(looks.astype(np.float32)),  # some point away from each other
    }
    return Catalog(ids, ids, features)


def trained(name: str) -> Recommender:
    """Two rounds of thirty users; FedVAE, which would load torch, from its start."""
    method, items = METHODS[name], catalog()
    draws = Key.from_seed(5).generator()
    histories = [sorted(draws.choice(N_ITEMS, n % 9, False)) for n in range(30)]
    world = FederatedData.of_histories(histories, n_items=N_ITEMS)
    data = items, world.profiles, world.shards
    made = Simulation(method, Plan(30, rounds=2), *data, Key.from_seed(6))
    state = made.start()
    rounds = method.count_rounds if isinstance(method, FedVae) else 2
    while state.server.round < rounds:
        state, _ = made.step(state)
    broadcast = method.broadcast(state.server)
    if "lean" in broadcast.weights:  # as if there had been noise: Gram leans on content
        broadcast = replace(
            broadcast, weights={**broadcast.weights, "lean": np.array([0.7])}
        )
    return Recommender(method, broadcast, items)


def histories() -> Shards:
    """Nothing, everything, one item, and twenty users with a few."""
    draws = Key.from_seed(8).generator()
    some = [sorted(draws.choice(N_ITEMS, n, False)) for n in range(1, 21)]
    world = FederatedData.of_histories(
        [[], [*range(N_ITEMS)], [4], *some], n_items=N_ITEMS
    )
    return world.shards


def dense(shards: Shards) -> np.ndarray:
    x = np.zeros((len(shards), N_ITEMS))
    x[shards.owners, shards.items] = 1.0
    return x


@pytest.mark.parametrize(("precision", "near"), [("float32", 1e-5), ("float64", 1e-6)])
@pytest.mark.parametrize("name", METHODS)
def test_scores_and_lists_are_the_methods_own(name, precision, near):
    client, shards = trained(name), histories()
    users = stranger(client.method, len(shards))
    expected = client.score(shards, users)
    written = client.method.formula(client.broadcast)
    content = to_onnx(written, n_items=N_ITEMS, precision=precision)
    found = run(content, dense(shards))
    np.testing.assert_allclose(found, expected, rtol=near, atol=near)
    here, there = (top_k(s, shards.histories, k=10) for s in (expected, found))
    if not getattr(client.method, "content", ()):
        assert there.items.tolist() == here.items.tolist()
    # What content makes nearly equal may change places: `spread` is in float32, and
    # Gram parts items alike to the same degree by 1e-9.
    places = np.repeat(np.arange(len(shards)), np.diff(here.offsets))
    apart = expected[places, here.items] - expected[places, there.items]
    assert np.abs(apart).max() < near


@pytest.mark.parametrize("name", METHODS)
def test_nobodys_scores_depend_on_who_else_is_in_the_batch(name):
    client, x = trained(name), dense(histories())
    content = to_onnx(client.method.formula(client.broadcast), n_items=N_ITEMS)
    alone = np.concatenate([run(content, row[None]) for row in x[:5]])
    np.testing.assert_allclose(alone, run(content, x)[:5], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["popularity by content", "gram by content"])
def test_where_nothing_is_alike_the_rest_goes_by_count(name):
    """Its order stands in the last digits of a double, and arrives there."""
    client, nobody = trained(name), histories().take([0])
    expected = client.score(nobody, stranger(client.method))
    written = client.method.formula(client.broadcast)
    content = to_onnx(written, n_items=N_ITEMS, precision="float64")
    found = run(content, dense(nobody))
    here, there = (np.argsort(-s[0], kind="stable") for s in (expected, found))
    assert there.tolist() == here.tolist() != [*range(N_ITEMS)]


def test_equal_scores_stay_equal_and_the_earlier_item_comes_first():
    shares = np.array([0.1, 0.4, 0.3, 0.4])
    broadcast = Broadcast(1, bytes(16), {"share": shares})
    content = to_onnx(FederatedPopularity().formula(broadcast), n_items=4)
    (scores,) = run(content, np.zeros((1, 4)))
    assert scores[1] == scores[3]
    assert np.argsort(-scores, kind="stable").tolist() == [1, 3, 2, 0]


@pytest.mark.parametrize("name", ["popularity by content", "gram", "factors", "fedvae"])
def test_what_comes_in_counts_as_held_if_it_is_above_zero(name):
    """Stars or plays in place of ones change nothing where values are not weighed."""
    client, x = trained(name), dense(histories())
    content = to_onnx(client.method.formula(client.broadcast), n_items=N_ITEMS)
    np.testing.assert_array_equal(run(content, x), run(content, x * 3.5))


def test_values_weigh_where_the_method_says_so():
    client = trained("gram by values")
    content = to_onnx(client.method.formula(client.broadcast), n_items=N_ITEMS)
    items = np.array([2, 7, 11])
    shard = Shards.of_history(items, n_items=N_ITEMS, value=1.0)
    stars = np.array([5.0, 1.0, 3.0], shard.values.dtype)
    weighed = replace(shard, values=stars)
    x = np.zeros((1, N_ITEMS))
    x[0, items] = stars
    expected = client.score(weighed, stranger(client.method))
    np.testing.assert_allclose(run(content, x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("list_for", ["session", "visit"])
@pytest.mark.parametrize("name", ["gram", "gram by content", "gram that reaches"])
def test_for_a_session_or_a_visit_weights_go_in(name, list_for):
    client = trained(name).ranking_for(list_for)
    content = to_onnx(client.method.formula(client.broadcast), n_items=N_ITEMS)
    days = 86_400 * np.array([0, 0, 20, 60])
    items = [7, 2, 11, 4]
    log = Interactions.of_columns(
        [0] * 4, items, times=days, n_users=1, n_items=N_ITEMS
    )
    x = np.zeros((1, N_ITEMS))
    x[0, items] = [1 / 3, 1 / 3, 1 / 2, 1]
    if list_for == "visit":
        x[0, items] = [1 / 4, 1 / 4, 2 ** (-4 / 3), 1]
    expected = client.score(Shards.of(log), stranger(client.method))
    np.testing.assert_allclose(run(content, x), expected, rtol=1e-5, atol=1e-5)


def test_a_file_for_a_session_takes_no_values_beside_the_weights():
    client = trained("gram by values").ranking_for("session")
    with pytest.raises(Refused, match="one number for each item: its weight for a"):
        client.method.formula(client.broadcast)


# the file


def test_the_file_passes_the_checker_and_says_who_made_it():
    client = trained("fedvae with a head")
    content = to_onnx(client.method.formula(client.broadcast), n_items=N_ITEMS)
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    assert model.producer_name == "tacit"
    assert [(o.domain, o.version) for o in model.opset_import] == [
        ("", onnx_file.OPSET)
    ]


def test_the_same_model_gives_the_same_bytes():
    one, two = (
        to_onnx(d.method.formula(d.broadcast), n_items=N_ITEMS)
        for d in (trained("gram by content"), trained("gram by content"))
    )
    assert one == two


def test_a_matrix_used_twice_is_written_once():
    tied, two = (
        onnx.load_from_string(to_onnx(d.method.formula(d.broadcast), n_items=N_ITEMS))
        for d in (trained("fedvae, tied"), trained("fedvae"))
    )
    large = [
        [c for c in model.graph.initializer if sorted(c.dims) == [6, N_ITEMS]]
        for model in (tied, two)
    ]
    assert [len(found) for found in large] == [1, 2]


def test_weights_that_the_precision_cannot_hold_are_refused():
    formula = HISTORIES * 1e39
    with pytest.raises(BadValue, match="no finite float32; write it in float64"):
        to_onnx(formula, n_items=2)
    assert to_onnx(formula, n_items=2, precision="float64")


def test_a_model_beyond_what_a_file_holds_is_refused(monkeypatch):
    monkeypatch.setattr(onnx_file, "_MOST_BYTES", 100)
    assert to_onnx(HISTORIES + np.zeros(25), n_items=25)
    with pytest.raises(BadValue, match="more than 100 bytes"):
        to_onnx(HISTORIES + np.zeros(26), n_items=26)


def test_without_onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tacit-recommender\[onnx\]'"):
        to_onnx(HISTORIES, n_items=2)


# methods without a formula


@pytest.mark.parametrize("method", [PrivRec(), Dplcf()])
def test_a_method_without_a_formula_does_not_offer_one(method):
    """Whoever exports asks for the protocol first; the command line says why not."""
    assert not isinstance(method, Exportable)
    assert all(isinstance(other, Exportable) for other in METHODS.values())


def test_factors_of_weighed_clicks_have_no_formula():
    method = FmfLdp(alpha=2.0)
    broadcast = Broadcast(0, bytes(16), {"items": np.ones((3, 5), np.float32)})
    with pytest.raises(Refused, match=r"alpha=2.0 .* train with alpha = 0"):
        method.formula(broadcast)
