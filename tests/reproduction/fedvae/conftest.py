"""A world so small that every curve is made in a second or two."""

from __future__ import annotations

import pytest

from tacit.data.splits import new_users
from tacit.data.synthetic.world import World
from tacit.keys import Key
from tacit.methods.fedvae import FedVae
from tacit.reproduction.fedvae import benches, figure, trials
from tacit.reproduction.fedvae.benches import SMALL_WORLD, Bench

DATASET = World(users=60, items=30, events_per_user=8, repeats=0.0).dataset("tiny")
TINY = Bench(SMALL_WORLD, cohort=20, epochs=3, every=2, has_literal=True)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Bench:
    split = new_users(
        DATASET,
        n_validation=10,
        n_test=10,
        catalog="training",
        key=Key.from_seed(0),
    )
    monkeypatch.setattr(benches, "_split", lambda source, seed: split)
    monkeypatch.setattr(benches, "_kept", lambda source: DATASET)
    for module in (benches, figure):
        monkeypatch.setattr(module, "benches", lambda scale: (TINY,))
    return TINY


@pytest.fixture
def small_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's 600-200 is slow where axes are checked."""
    whole = FedVae, trials.MultVae

    def method(**given):
        return whole[0](hidden=(8,), latent=4, **given)

    def ranker(**given):
        return whole[1](**{**given, "hidden": (8,), "latent": 4})

    monkeypatch.setattr(trials, "FedVae", method)
    monkeypatch.setattr(trials, "MultVae", ranker)
