"""`tacit up`: three real processes, simulated clients, a model, and a client of it."""

import json
import tomllib

import pytest
from service.federation.overviews import a_coordinator
from typer.testing import CliRunner

from tacit.cli.app import app
from tacit.codes import Code
from tacit.errors import BadValue, Refused
from tacit.experiment.assemble import assemble
from tacit.experiment.saved_run import load
from tacit.experiment.settings import check_experiment
from tacit.service.federation.one_machine import Trial
from tacit.service.federation.operator_metrics import metrics_text
from tacit.service.federation.operator_page import operator_page
from tacit.service.federation.overview import Budget, spent_by
from tacit.statement import Statement

EXPERIMENT = """
[data]
source = "synthetic"
validation = 10
test = 10
[data.world]
users = 60
items = 30
events_per_user = 8.0
[method]
name = "federated_popularity"
[privacy]
mechanism = "central"
channel = "two_servers"
target_epsilon = 8.0
delta = 1e-6
[run]
rounds = 1
"""


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    return path


def test_from_nothing_to_a_published_model(experiment, tmp_path, monkeypatch):
    """All of it with real processes; the statements say that one machine was both."""
    out = tmp_path / "federation"
    command = ["up", str(experiment), "--out", str(out), "--port", "0", "--json"]
    found = CliRunner().invoke(app, [*command, "--clients", "25"])
    assert found.exit_code == 0, found.output + str(found.exception)
    told = json.loads(found.stdout)
    assert told["clients"] == 25
    assert told["status"]["is_published"]
    [one] = told["status"]["rounds"]
    assert (one["state"], one["leaf"]) == ("deleted", "votes")
    views = {line["view"]: line for line in told["epsilons"] if line["unit"] == "user"}
    assert views["server"]["epsilon"] is None
    assert "one machine" in views["server"]["reason"]
    assert views["release"]["standing"] == "PROVEN"
    assert 5.3 < views["release"]["epsilon"] < 5.4
    assert_record_is_what_was_planned(out / "coordinator" / "run", told["epsilons"])
    recommender = load(out / "coordinator" / "run")
    assert len(recommender.recommend(["i01"], 3)) == 3
    assert (out / "history.csv").read_text().startswith("item\n")
    for role in ("leader", "helper", "coordinator"):
        tomllib.loads((out / f"{role}.toml").read_text())
        assert "Traceback" not in (out / role / "log").read_text()
    keys = [*(out / "leader" / "keys").glob("*.key")]
    assert [one.name for one in keys] == ["signing.key"]  # those of rounds are gone


def assert_record_is_what_was_planned(run, planned):
    """Whoever asks what was spent: the file, the operator's page, metrics, a terminal.

    The one round was played, so that it is what was planned, line by line.
    """
    entry = json.loads((run / "ledger.json").read_text())
    assert (entry["rounds_begun"], entry["most_participations"]) == (1, 1)
    names = ("unit", "view", "epsilon", "delta", "standing", "reason")
    expected = [{name: line[name] for name in names} for line in planned]
    assert [{name: line[name] for name in names} for line in entry["spent"]] == expected
    lines = tuple(map(Statement.from_json, planned))
    seen = a_coordinator(budget=Budget(lines, spent_by(run)))
    samples = metrics_text(seen, up_seconds=1.0).splitlines()
    spent = {one.replace('"spent"', '"planned"') for one in samples if '"spent"' in one}
    assert spent == {one for one in samples if '"planned"' in one} != set()
    assert all('view="release"' in one and "5.3" in one for one in spent)
    page = operator_page(seen).split("Spent: by")[1].split("Planned: if")[0]
    assert "5.3" in page
    assert "one machine" in page
    shown = CliRunner().invoke(app, ["ledger", "show", str(run)]).output
    assert "no client took part more than 1 times" in " ".join(shown.split())
    assert "epsilon 5.3" in shown
    for text in (page, shown):
        assert "epsilon 0" not in text
        assert "NOTHING" not in text


def test_who_joins_a_trial_is_promised_nothing_against_its_machine(tacit, tmp_path):
    """Real processes; the client's own pages and ledger say it, before and after."""
    assembled = assemble(check_experiment(tomllib.loads(EXPERIMENT)))
    trial = Trial.prepared(assembled, tmp_path / "f", clients=None, port=0)
    folder = tmp_path / "client"
    with trial.running():
        joining = ("client", "join", trial.url, "--folder", folder)
        joined = tacit(*joining, "--history", trial.folder / "history.csv")
        assert joined.code == 0, joined.err
        assert "a trial: both operators are one machine" in joined.out
        while (
            "no round is open"
            in (answer := tacit("client", "once", "--now", "--folder", folder)).out
        ):
            pass
        assert answer.out.startswith("sent: "), answer
        told = tacit("client", "show", "--folder", folder, "--json").json
    assert told["one_operator"] == str(Code("one_machine"))
    for lines in (told["agreed"], told["spent"]):
        views = {line["view"]: line for line in lines if line["unit"] == "user"}
        assert views["server"]["epsilon"] is None
        assert views["server"]["standing"] == "NONE"
        assert "one machine, which can open every report" in views["server"]["reason"]
        assert views["release"]["standing"] == "PROVEN"


def test_over_a_relay_the_roles_are_relay_and_collector(experiment, tmp_path):
    out = tmp_path / "relay"
    command = ["up", str(experiment), "--out", str(out), "--port", "0", "--json"]
    for change in (
        *("privacy.mechanism=local_item", "privacy.channel=shuffle"),
        "privacy.min_contributors=5",
    ):
        command += ["--set", change]
    found = CliRunner().invoke(app, [*command, "--clients", "25"])
    assert found.exit_code == 0, found.output + str(found.exception)
    told = json.loads(found.stdout)
    [one] = told["status"]["rounds"]
    assert (one["state"], one["leaf"]) == ("done", "messages")
    views = {line["view"]: line for line in told["epsilons"] if line["unit"] == "user"}
    assert views["server"]["epsilon"] == views["collusion"]["epsilon"]
    assert tomllib.loads((out / "relay.toml").read_text())["folder"] == "relay"
    assert load(out / "collector" / "run").catalog
    assert {*(path.name for path in out.glob("*.toml"))} == {
        *("relay.toml", "collector.toml", "experiment.toml")
    }


def test_the_help_names_the_roles_of_both_channels():
    said = " ".join(CliRunner().invoke(app, ["up", "--help"]).output.split())
    for word in ("Leader, helper and coordinator", "relay and a collector", "shuffle"):
        assert word in said


def test_another_channel_is_refused_with_the_way_out(experiment, tmp_path):
    given = ["up", str(experiment), "--out", str(tmp_path / "f")]
    found = CliRunner().invoke(app, [*given, "--set", "privacy.channel=secure_sum"])
    assert isinstance(found.exception, Refused)
    assert "--set privacy.channel=two_servers" in str(found.exception)
    assert not (tmp_path / "f").exists()


def test_a_trial_begins_in_an_empty_folder_and_with_clients_there_are(tmp_path):
    assembled = assemble(check_experiment(tomllib.loads(EXPERIMENT)))
    with pytest.raises(BadValue, match="clients=1000 must be from 1 to 40"):
        Trial.prepared(assembled, tmp_path / "new", clients=1000, port=0)
    assert not (tmp_path / "new").exists()
    (tmp_path / "something").touch()
    with pytest.raises(Refused, match="is not empty"):
        Trial.prepared(assembled, tmp_path, clients=None, port=0)
