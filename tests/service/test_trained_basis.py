"""Queries over a basis that training made, over HTTP as in the library."""

from __future__ import annotations

import numpy as np
import pytest
from service.worlds import running, trained

from tacit import load
from tacit.errors import BadMessage, Refused
from tacit.keys import Key
from tacit.mechanisms.published import PublishedAttention
from tacit.release import Unit
from tacit.service import client
from tacit.service.basis import read_basis, write_basis
from tacit.service.client import Connection
from tacit.service.run_offer import run_offer
from tacit.serving.noisy_attention import NoisyAttention
from tacit.serving.query import Mode
from tacit.serving.settings import ServingSettings, served_model
from tacit.serving.trained_basis import TrainedBasis

NEWS = {
    "name": "privaterec",
    "mode": "paper",
    "model": "plm-nr",
    "content": ["title"],
    "interests": 2,
}
HISTORY = ["item 1", "item 4"]
PRINTED = ServingSettings(Mode.DPA, 1.0, padding=0.5, noise="paper")
SOUND = ServingSettings(Mode.DPA, 1.0, padding=0.5)
VECTOR = ServingSettings(Mode.VDP, 1.0, noise="paper")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Algorithm 3 without noise, on forty users whose items have words as titles."""
    return trained(tmp_path_factory.mktemp("news"), NEWS, rounds=1)


@pytest.mark.parametrize("settings", [PRINTED, SOUND, VECTOR], ids=lambda s: s.reason)
def test_the_client_makes_the_servers_queries(run, settings, tmp_path):
    """The same mechanism, basis and version on both sides, and a list comes back."""
    own = served_model(load(run), settings)
    with (
        running(run_offer(run, settings)) as url,
        Connection(url, tmp_path / "fetched") as server,
    ):
        found = server.served_model
        assert found.version == own.version
        assert found.mechanism.facts() == own.mechanism.facts()
        with pytest.raises(Refused, match="would cost"):
            # What is proven counts for the owner, and not what is claimed.
            server.recommend(HISTORY, 5, ledger=tmp_path / "ledger", epsilon=0.9)
        served = server.recommend(HISTORY, 5, ledger=tmp_path / "ledger", epsilon=10.0)
    assert served.ranked_by == "server"
    assert len(served.items) == 5


def test_a_basis_is_read_as_it_was_written(run, tmp_path):
    mechanism = served_model(load(run), PRINTED).mechanism
    path = tmp_path / "basis"
    path.write_bytes(write_basis(mechanism))
    found = read_basis(path)
    assert isinstance(found.interests, TrainedBasis)
    assert isinstance(found.attention, PublishedAttention)
    assert found.event(Unit.ITEM) == mechanism.event(Unit.ITEM)
    assert found.claimed == 1.0
    users = np.ones((3, len(mechanism.nobody)))
    keys = Key.from_seed(1).each(np.arange(3))
    assert np.array_equal(found.release(users, keys), mechanism.release(users, keys))


def test_a_basis_that_the_method_did_not_train_is_refused(
    run, vectors_run, tmp_path, monkeypatch
):
    """Gram's clients cannot encode for one; they would send queries about nobody."""
    settings = ServingSettings(Mode.DPA, 1.0, interests=2)
    width = len(served_model(load(vectors_run), settings).mechanism.nobody)
    foreign = NoisyAttention.printed(
        1.0, TrainedBasis(np.ones((2, width)), np.ones(width)), theta=1.0
    )
    monkeypatch.setattr(client, "read_basis", lambda path: foreign)
    with (
        running(run_offer(vectors_run, settings)) as url,
        Connection(url, tmp_path / "fetched") as server,
        pytest.raises(BadMessage, match="Gram did not train"),
    ):
        _ = server.served_model
