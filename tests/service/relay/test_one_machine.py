"""A trial on one machine: both roles as processes of their own, and a model."""

from pathlib import Path

import numpy as np
import pytest
from service.relay.places import SETTINGS

from tacit.errors import Refused
from tacit.experiment.assemble import assemble
from tacit.experiment.settings import check_experiment, read_experiment
from tacit.release import Unit, View
from tacit.service.federation.client import FederationClient
from tacit.service.federation.history import History, history_of
from tacit.service.federation.history_file import read_ids, read_slates
from tacit.service.relay.one_machine import RelayTrial


def assembled():
    data = {"source": "synthetic", "validation": 10, "test": 10}
    privacy = {**SETTINGS["privacy"], "min_contributors": 10}
    return assemble(check_experiment({**SETTINGS, "data": data, "privacy": privacy}))


@pytest.mark.slow
def test_a_trial_ends_with_a_published_model(tmp_path):
    found = RelayTrial.prepared(assembled(), tmp_path / "a", clients=20, port=0)
    said = []
    with found.running():
        status = found.play(told=said.append, counted=lambda *_: None)
        FederationClient.join(tmp_path / "b", found.url, lambda _: History(()))
    with FederationClient(tmp_path / "b") as client:
        agreed = {s.view: s for s in client.show().agreed if s.unit is Unit.USER}
    assert agreed[View.SERVER].epsilon == agreed[View.COLLUSION].epsilon
    assert "are one machine" in agreed[View.SERVER].reason
    assert status["is_published"]
    assert (found.published / "model.safetensors").is_file()
    assert said == [
        "round 0: 20 reports are counted; the relay mixes and forwards them"
    ]
    lines = found.run.assembled.simulation.account.totals
    shown = {one.view: one.epsilon for one in lines if one.unit is Unit.USER}
    assert shown[View.SERVER] == shown[View.COLLUSION] == pytest.approx(12.0)


def test_a_folder_that_is_used_is_refused(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(Refused, match="not empty"):
        RelayTrial.prepared(assembled(), tmp_path, clients=20, port=0)


def test_a_trial_of_slates_has_files_of_a_user_who_was_shown_some(tmp_path):
    news = read_experiment(
        Path(__file__).parents[3]
        / "experiments"
        / "synthetic-news-privaterec-local.toml",
        [
            *("data.world.users=60", "data.world.news=80", "privacy.channel=shuffle"),
            *("privacy.delta=1e-6", "privacy.min_contributors=10"),
        ],
    )
    made = assemble(news)
    found = RelayTrial.prepared(made, tmp_path / "a", clients=20, port=0)
    slates = read_slates(found.folder / "impressions.csv")
    ids = read_ids(found.folder / "history.csv")
    history = history_of(ids, made.split.catalog, slates)
    assert slates
    assert not history.unknown
    shards = history.shards(made.split.catalog, value=1.0)
    first = made.split.test.users[0]
    own, got = made.split.test.take_users([first]), shards.impressions
    np.testing.assert_array_equal(got.slates.shown[0], own.slates.shown[0])
    np.testing.assert_array_equal(got.slates.histories[0], own.slates.histories[0])
    np.testing.assert_array_equal(got.clicked, own.clicked)
