"""Tests of a list that a server ranks for a client, or the client by itself."""

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.errors import Refused
from tacit.ledger.budget import Cap
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fmf_ldp import FmfLdp
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.query_server import QueryServer
from tacit.serving.queryable import space_of
from tacit.serving.recommender import Recommender
from tacit.serving.serve import serve, vector_of
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient
from tacit.transport.messages import Broadcast

from .worlds import ITEMS, interests, item_space

CATALOG = Catalog.of_ids([f"i{n}" for n in range(ITEMS)])
RECOMMENDER = Recommender(
    FmfLdp(), Broadcast(1, bytes(16), {"items": item_space().vectors}), CATALOG
)


def served_model(epsilon=60.0):
    return ServedModel(space_of(RECOMMENDER), InterestResponse(epsilon, interests()))


def test_the_server_ranks_and_the_client_leaves_out_what_it_has(tmp_path):
    model, asked = served_model(), []

    def ask(query, count):
        asked.append(count)
        return QueryServer(model).answer(query, count)

    with ServingClient(tmp_path / "ledger", model) as client:
        found = serve(RECOMMENDER, ["i0", "i1"], 3, client=client, ask=ask)
        assert client.ledger.waiting() == 0
    own = interests().nearest(vector_of(RECOMMENDER, ["i0", "i1"])[None])
    scores = model.space.scores(interests().means[own])[0]
    best = [f"i{n}" for n in np.argsort(-scores) if n > 1][:3]
    assert [line.id for line in found.items] == best
    assert (found.ranked_by, found.why, asked) == ("server", "", [12])


def test_how_many_are_asked_for_does_not_follow_the_history(tmp_path):
    model, asked = served_model(), []

    def ask(query, count):
        asked.append(count)
        return QueryServer(model).answer(query, count)

    with ServingClient(tmp_path / "ledger", model) as client:
        for held in ([], ["i0"], [f"i{n}" for n in range(18)]):
            serve(RECOMMENDER, held, 2, client=client, ask=ask)
    assert asked == [8, 8, 8]


def test_a_client_that_may_not_ask_ranks_by_itself_and_says_why(tmp_path):
    with ServingClient(tmp_path / "ledger", served_model()) as client:
        client.ledger.set_cap(Cap(1.0))
        found = serve(RECOMMENDER, ["i0"], 3, client=client, ask=None)
    assert found.items == RECOMMENDER.recommend(["i0"], 3)
    assert found.ranked_by == "client"
    assert "cap" in found.why


def test_a_method_without_vectors_is_served_on_the_device():
    weights = {"share": np.zeros(ITEMS)}
    popular = Recommender(
        FederatedPopularity(), Broadcast(1, bytes(16), weights), CATALOG
    )
    with pytest.raises(Refused, match="on_device"):
        space_of(popular)
