"""What computes a client's report must not depend on who else is in the chunk.

A kernel and its twin in numpy differ by rounding. Chosen by the amount of work, the
presence of one client would change what all others say, before any noise.
"""

import numpy as np
import pytest
from quick import some_of

from tacit.data.catalog import Catalog, Profiles
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.kernels import implicit_factors, rows
from tacit.keys import Key
from tacit.method import Unmetered, participate
from tacit.methods.dpvae import DpVae
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.fedvae import FedVae
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.gram import Gram
from tacit.methods.privrec import PrivRec
from tacit.methods.rivals.dpals import Dpals
from tacit.methods.rivals.dpmf import Dpmf
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalBits, LocalPrivUnit
from tacit.runtime.simulate import Simulation
from tacit.tree import Dense, Factored

CENTRAL = CentralGaussian(2.0)
LONG = {"items": ("genre",), "local_epochs": 40, "rate": 0.3, "privacy": CENTRAL}
EXACT = {
    "small privrec": PrivRec(embedding=3, widths=(4,), **LONG),
    "popularity": FederatedPopularity(privacy=CENTRAL),
    "votes": FmfLdp(factors=3, privacy=LocalBits(1.0, votes=20)),
    "fmf": FmfLdp(factors=3, privacy=LocalPrivUnit(5.0)),
    "dpmf": Dpmf(factors=5, head=1000, most_items=20, privacy=CENTRAL),
    "gram's loadings": Gram(
        **{"head": 600, "load_items": 700, "load_rank": 8, "load_rounds": 1},
        count_rounds=1,
        privacy=CENTRAL,
    ),
    "small dpmf": Dpmf(factors=5, head=100, most_items=20, privacy=CENTRAL),
    "privrec": PrivRec(embedding=16, widths=(16, 8), **LONG),
}
STACKED = {  # products of all clients' rows at once; their rounding is that of BLAS
    "fedvae": (FedVae(hidden=(256,), latent=8, privacy=CENTRAL), 1e-5),
    "fedvae in double precision": (
        FedVae(hidden=(32,), latent=8, dtype="float64", privacy=CENTRAL),
        1e-12,
    ),
    "dpvae": (DpVae(head=100, latent=8, dtype="float64", privacy=CENTRAL), 1e-12),
    "gram": (Gram(head=100, count_rounds=1, privacy=CENTRAL), 1e-12),
    "dpals": (Dpals(factors=5, head=100, privacy=CENTRAL), 1e-11),  # solves systems
}


def simulation(method, users: int, *, n_items: int = 1200, each: int = 25):
    draw = np.random.default_rng(3)
    lengths = np.maximum(2, draw.poisson(each, users))
    items = [draw.choice(n_items, n, replace=False) for n in lengths]
    log = Interactions.of_columns(
        np.repeat(np.arange(users), lengths),
        np.concatenate(items),
        n_users=users,
        n_items=n_items,
    )
    ids = Strings.of(f"item {i}" for i in range(n_items))
    genre = Category.of([f"genre {i % 7}" for i in range(n_items)])
    return Simulation(
        method,
        Plan(users, rounds=3, delta=1e-6),
        Catalog(ids, ids, {"genre": genre}),
        Profiles(Strings.of(f"user {i}" for i in range(users))),
        Shards.of(log),
        Key.from_seed(1),
    )


def reports(played: Simulation, state, chosen):
    """What these clients say in one chunk, each in one row; their joint norms too."""
    method, chosen = played.method, np.asarray(chosen)
    _, said, _ = participate(
        *(method, method.broadcast(state.server), state.clients.take(chosen)),
        *(played.shards.take(chosen), played.population.keys[chosen]),
        ledger=Unmetered(),
    )
    parts = [p for leaf in said.tree.leaves.values() for p in leaf.parts.values()]
    flat = [np.asarray(p, np.float64).reshape(len(chosen), -1) for p in parts]
    return np.concatenate(flat, axis=1), said.tree.norms()


def training(method, users: int):
    """A simulation whose next round is of the last phase: it trains."""
    played = simulation(method, users)
    state, last = played.start(), method.phases(played.plan)[-1]
    while method.next_phase(state.server) != last:
        state, _ = played.step(state)
    return played, state


@pytest.mark.parametrize("users", some_of([3, 2, 9], 1))
@pytest.mark.parametrize("name", some_of([*EXACT], 7))
def test_removing_one_leaves_the_others_as_they_are(name, users):
    played, state = training(EXACT[name], users)
    everyone, _ = reports(played, state, range(users))
    for left_out in range(users):
        others = [i for i in range(users) if i != left_out]
        found, _ = reports(played, state, others)
        np.testing.assert_array_equal(found, everyone[others])


@pytest.mark.parametrize("users", some_of([9, 2, 33], 1))
@pytest.mark.parametrize("name", STACKED)
def test_where_rows_are_multiplied_together_only_their_rounding_moves(name, users):
    """A matrix product may round a row by how many there are; bounds hold all the same.

    A release rounds reports to whole numbers whose bound holds for any value.
    """
    method, precision = STACKED[name]
    played, state = training(method, users)
    everyone, _ = reports(played, state, range(users))
    sizes = np.linalg.norm(everyone, axis=1)
    bound = method.phases(played.plan)[-1].bound
    for left_out in range(users):
        others = [i for i in range(users) if i != left_out]
        found, norms = reports(played, state, others)
        moved = np.linalg.norm(found - everyone[others], axis=1)
        assert (moved <= precision * sizes[others]).all()
        assert (norms <= bound * (1 + 1e-6)).all()


@pytest.mark.parametrize("width", [3, 200, 1500, 40_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_norm_is_that_of_its_row(width, dtype):
    """So one client's clip is too, whatever the others' reports are."""
    drawn = np.random.default_rng(0).normal(size=(40, width)).astype(dtype)
    together = Dense(drawn).squared_norms()
    for n in (1, 2, 39):
        np.testing.assert_array_equal(Dense(drawn[:n]).squared_norms(), together[:n])


class Counting:
    """Stands for a kernel and counts its calls."""

    def __init__(self, kernel) -> None:
        self.kernel, self.calls = kernel, 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.kernel(*arguments)


@pytest.mark.parametrize("hidden", [8, 256])
def test_the_catalog_and_the_network_choose_the_first_layer(hidden, monkeypatch):
    kernel = Counting(rows.weighted_rows)
    monkeypatch.setattr(rows, "weighted_rows", kernel)
    method = FedVae(hidden=(hidden,), latent=4, privacy=CENTRAL)
    played, state = training(method, 300)
    for users in (1, 2, 300):
        kernel.calls = 0
        reports(played, state, range(users))
        assert kernel.calls == (hidden == 256)


@pytest.mark.parametrize("n_items", [100, 1200])
def test_the_catalog_chooses_how_factors_are_solved(n_items, monkeypatch):
    kernel = Counting(implicit_factors.solver)
    monkeypatch.setattr(implicit_factors, "solver", kernel)
    method = FmfLdp(factors=3, privacy=LocalBits(1.0, votes=5))
    played = simulation(method, 300, n_items=n_items, each=10)
    for users in (1, 300):
        kernel.calls = 0
        reports(played, played.start(), range(users))
        assert kernel.calls == (n_items == 1200)


def test_how_many_zeros_there_are_does_not_choose_how_a_sum_is_made(monkeypatch):
    """It is declared: nobody's history decides by which kernel all are added up."""
    kernel = Counting(rows.outer_sum)
    monkeypatch.setattr(rows, "outer_sum", kernel)
    draw = np.random.default_rng(0)
    for users, share in ((1, 0.01), (300, 0.01), (300, 1.0)):
        left = draw.normal(size=(users, 1, 1000))
        left *= draw.random(left.shape) < share
        right = draw.normal(size=(users, 1, 3))
        for is_sparse in (False, True):
            kernel.calls = 0
            found = Factored(left, right, is_sparse).sum()
            assert kernel.calls == is_sparse
            np.testing.assert_allclose(found, left[:, 0].T @ right[:, 0], atol=1e-11)
