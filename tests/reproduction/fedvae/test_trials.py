from __future__ import annotations

import logging

import numpy as np
import pytest

from tacit.reproduction.fedvae import trials
from tacit.reproduction.fedvae.trials import Central, Federated, curve, popularity


def test_what_the_paper_states_is_set():
    method = Federated(5.0).method
    assert (method.mode, method.hidden, method.latent) == ("paper", (600,), 200)
    assert (method.rate, method.beta1, method.beta2) == (1e-3, 0.9, 0.999)
    assert (method.beta, method.beta_rounds, method.dropout) == (0.2, 0, 0.5)
    assert (method.boost, method.decay) == (5.0, 0.9)
    assert Federated(init="normal").method.init == "normal"


def test_contenders_are_named_as_in_the_paper():
    named = (
        Central(),
        Federated(),
        Federated(5.0),
        Federated(5.0, decay=1.0),
        Federated(init="normal"),
    )
    assert [*map(str, named)] == [
        "Mult-VAE",
        "FedVAE",
        "FedVAE_dec, gamma 5",
        "FedVAE, gamma 5",
        "FedVAE, first weights N(0, 1)",
    ]


def test_the_central_one_has_the_same_settings(tiny, monkeypatch):
    made = {}

    class Watched:
        def __init__(self, **given):
            made.update(given)

        def course(self, train, *, key):
            return iter(())

    monkeypatch.setattr(trials, "MultVae", Watched)
    assert [*Central().course(tiny)] == []
    method = Federated().method
    for name in ("hidden", "latent", "rate", "beta", "dropout"):
        assert made[name] == getattr(method, name)
    assert (made["batch"], made["epochs"], made["beta_epochs"]) == (20, 3, 0)


@pytest.mark.usefixtures("small_network")
@pytest.mark.parametrize(
    "contender", [Central(), Federated(), Federated(init="normal")]
)
def test_a_curve_looks_every_few_epochs_and_at_the_last(tiny, contender, caplog):
    with caplog.at_level(logging.INFO, "tacit.reproduction"):
        seen = curve.__wrapped__(contender, tiny)
    assert [*seen] == [2, 3]
    assert f"{tiny.source}: {contender}" in caplog.text
    everyone = popularity(tiny)
    for found in seen.values():
        assert {*found.values} == {"ndcg@100", "recall@100"}
        np.testing.assert_array_equal(found.users, everyone.users)


@pytest.mark.usefixtures("small_network")
def test_an_epoch_is_as_many_rounds_as_ask_everyone(tiny, monkeypatch):
    """40 people train, 20 a round: two rounds an epoch."""
    seen = []
    monkeypatch.setattr(
        trials, "_scorer", lambda method, state, *rest: seen.append(state.server.round)
    )
    assert tiny.rounds_an_epoch == 2
    assert len([*Federated().course(tiny)]) == 3
    assert seen == [2, 4, 6]


def test_both_halves_are_judged(tiny):
    split = tiny.split()
    expected = [*split.validation.users, *split.test.users]
    assert popularity.__wrapped__(tiny).users.tolist() == expected
