"""Any method with item vectors can be served: two kinds of users get their own kind."""

from functools import cache

import numpy as np
import pytest

from tacit.keys import Key
from tacit.methods.fedvae import FedVae
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.serving.query import Mode
from tacit.serving.query_server import QueryServer
from tacit.serving.queryable import vectors_of
from tacit.serving.recommender import Recommender
from tacit.serving.settings import ServingSettings, served_model
from tacit.testing.contract import checkerboard

WORLD = checkerboard()  # even users like even items, odd ones odd items
METHODS = {
    "gram": (Gram(head=12), 2),
    "fmf_ldp": (FmfLdp(factors=4), 30),
    "fedvae": (FedVae(hidden=(8,), latent=4, rate=0.03), 60),
}


@cache
def trained(name: str) -> Recommender:
    method, rounds = METHODS[name]
    plan = Plan(len(WORLD.shards), rounds=rounds)
    world = (WORLD.catalog, WORLD.profiles, WORLD.shards)
    simulation = Simulation(method, plan, *world, Key.from_seed(7))
    state = simulation.start()
    while not method.is_over(state.server):
        state, _ = simulation.step(state)
    return Recommender(method, method.broadcast(state.server), WORLD.catalog)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "settings",
    [
        ServingSettings(Mode.KRR, 50.0, interests=2),
        ServingSettings(Mode.DPA, 1e4, interests=2),
        ServingSettings(Mode.VDP, 1e4, axes=1),
    ],
    ids=lambda one: one.mode,
)
def test_with_ample_budget_users_are_served_their_own_kind(name, settings):
    recommender = trained(name)
    model = served_model(recommender, settings)
    users = vectors_of(recommender, WORLD.shards)
    queries = model.release(users, Key.from_seed(1).each(np.arange(len(users))))
    own = [
        np.mean(QueryServer(model).answer(query, 6).items % 2 == user % 2)
        for user, query in enumerate(queries)
    ]
    assert np.mean(own) > 0.8
