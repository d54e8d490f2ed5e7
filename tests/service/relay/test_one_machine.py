"""A trial on one machine: both roles as processes of their own, and a model."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from service.relay.places import SETTINGS

from tacit.errors import Refused, Unanswered
from tacit.experiment.assemble import assemble
from tacit.experiment.settings import check_experiment, read_experiment
from tacit.release import Standing, Unit, View
from tacit.service.federation import trial
from tacit.service.federation.client import FederationClient
from tacit.service.federation.history import History, history_of
from tacit.service.federation.history_file import read_ids, read_slates
from tacit.service.federation.simulated_clients import Counts
from tacit.service.relay.one_machine import RelayTrial


def assembled(data=None, **privacy):
    data = {"source": "synthetic", "validation": 10, "test": 10, **(data or {})}
    privacy = {**SETTINGS["privacy"], "min_contributors": 10, **privacy}
    return assemble(check_experiment({**SETTINGS, "data": data, "privacy": privacy}))


@pytest.mark.slow
def test_a_trial_ends_with_a_published_model(tmp_path):
    """With tickets, one for each simulated client; who joins late has none."""
    made = assembled(counted_by="tickets")
    found = RelayTrial.prepared(made, tmp_path / "a", clients=20)
    said = []
    with found.running():
        status = found.play(told=said.append, counted=lambda *_: None)
        assert len(found.tickets) == 20
        FederationClient.join(tmp_path / "b", found.url, lambda _: History(()))
    with FederationClient(tmp_path / "b") as client:
        agreed = {s.view: s for s in client.show().agreed if s.unit is Unit.USER}
    assert agreed[View.SERVER].epsilon == agreed[View.COLLUSION].epsilon
    assert "one machine runs the relay" in agreed[View.SERVER].reason
    assert status["is_published"]
    assert (found.published / "model.safetensors").is_file()
    assert said == [
        "round 1: 20 reports are with the relay, which mixes and forwards them"
    ]
    lines = found.run.assembled.simulation.account.totals
    shown = {one.view: one.epsilon for one in lines if one.unit is Unit.USER}
    assert shown[View.SERVER] == shown[View.COLLUSION] == pytest.approx(12.0)


@pytest.mark.slow
def test_a_trial_of_votes_as_printed_promises_what_is_proven(tmp_path):
    """FMF-LDP's paper mode: two epochs of 6 votes of epsilon 2, of which it says 12."""
    made = assemble(
        check_experiment(
            {
                **SETTINGS,
                "data": {"source": "synthetic", "validation": 10, "test": 10},
                "method": {"name": "fmf_ldp", "mode": "paper", "factors": 2},
                "privacy": {
                    **SETTINGS["privacy"],
                    "mechanism": "published",
                    "min_contributors": 10,
                    "counted_by": "tickets",
                },
                "run": {"rounds": 2},
            }
        )
    )
    found = RelayTrial.prepared(made, tmp_path / "a", clients=20)
    with found.running():
        status = found.play(told=lambda _: None, counted=lambda *_: None)
    assert status["is_published"]
    assert (found.published / "model.safetensors").is_file()
    lines = found.run.assembled.simulation.account.totals
    mine = {line.view: line for line in lines if line.unit is Unit.USER}
    assert {line.published_epsilon for line in mine.values()} == {12.0}
    assert {line.standing for line in mine.values()} == {Standing.PROVEN}
    assert mine[View.SERVER].epsilon == mine[View.COLLUSION].epsilon
    assert mine[View.SERVER].epsilon == pytest.approx(24.0)


def test_a_folder_that_is_used_is_refused(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(Refused, match="not empty"):
        RelayTrial.prepared(assembled(), tmp_path, clients=20)


@pytest.mark.parametrize(
    ("clients", "least", "population"), [(5, 10, None), (5, "all", 5000), (5, 10, 5000)]
)
def test_fewer_clients_than_the_minimum_are_refused_before_anything_starts(
    tmp_path, clients, least, population
):
    """A relay would forward nothing, or sign nothing, for ever."""
    data = {"population": population} if population else {}
    made = assembled(data=data, min_contributors=least)
    said = r"5 clients make 5 of at least [0-9,]+ reports a round \(privacy.min"
    with pytest.raises(Refused, match=said):
        RelayTrial.prepared(made, tmp_path / "a", clients=clients)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("counted_by", ["tickets", "uploads"])
def test_a_relay_asks_for_what_the_experiment_counts(tmp_path, counted_by):
    """Else the relay would sign no round."""
    made = assembled(counted_by=counted_by)
    RelayTrial.prepared(made, tmp_path / "a", clients=20)
    limits = tomllib.loads((tmp_path / "a" / "relay.toml").read_text())["limits"]
    assert limits["needs_tickets"] is (counted_by == "tickets")


def played(tmp_path, monkeypatch, answer):
    """A trial whose collector and clients say what the test says; what was told."""
    found = RelayTrial.prepared(assembled(), tmp_path / "a", clients=20)
    statuses = [
        {"is_over": False, "rounds": [0], "trouble": "the relay does not sign it"},
        {"is_over": True, "rounds": [0], "is_published": True, "trouble": None},
    ]
    monkeypatch.setattr(trial, "_LASTING", 0.0)
    monkeypatch.setattr(RelayTrial, "status", lambda _: statuses.pop(0))
    monkeypatch.setattr(trial.SimulatedClients, "answer", lambda *_, **__: answer)
    said = []
    found.play(told=said.append, counted=lambda *_: None)
    return said


def test_a_trial_that_waits_says_why(tmp_path, monkeypatch):
    said = played(tmp_path, monkeypatch, None)
    assert said == ["waiting: the relay does not sign it"]


def test_trouble_is_told_once_and_only_if_it_lasts():
    said, now = [], [0.0]
    trouble = trial.Lasting(said.append, clock=lambda: now[0])
    for seconds, text in [
        *((0, "a"), (3, None), (4, "a"), (8.9, "a")),  # it came and went
        *((9, "a"), (20, "a"), (21, "b"), (26, "b")),
        *((27, None), (28, "a"), (40, "a")),
    ]:
        now[0] = float(seconds)
        trouble.look(text)
    assert said == ["waiting: a", "waiting: b"]


def test_reports_that_were_not_taken_are_looked_for_at_the_relay(tmp_path, monkeypatch):
    with pytest.raises(Unanswered, match=r"20 of 20 reports.*/relay/log"):
        played(tmp_path, monkeypatch, Counts(0, 20))


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
    found = RelayTrial.prepared(made, tmp_path / "a", clients=20)
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
