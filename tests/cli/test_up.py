"""`tacit up`: three real processes, simulated clients, a model, and a client of it."""

import json
import socket
import tomllib
from pathlib import Path

import pytest
from cli.one_life import EXPERIMENT, SHUFFLED, Life, assert_nothing_is_left
from service.federation.overviews import a_coordinator
from typer.testing import CliRunner

from tacit.cli.app import app
from tacit.codes import Code
from tacit.errors import BadValue, ChildEnded, Refused
from tacit.experiment.assemble import assemble
from tacit.experiment.saved_run import load
from tacit.experiment.settings import check_experiment, read_experiment
from tacit.service.federation.one_machine import TwoServersTrial
from tacit.service.federation.operator_metrics import metrics_text
from tacit.service.federation.operator_page import operator_page
from tacit.service.federation.overview import Budget, spent_by
from tacit.service.relay.one_machine import RelayTrial
from tacit.statement import Statement


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
    page = operator_page(seen).split("Spent: by")[1].split("</table>")[0]
    assert page.count(" (zero_out, delta 1e-06; ") == 2  # planned, and spent
    assert page.count("5.3") == 2
    assert "one machine" in page
    shown = CliRunner().invoke(app, ["ledger", "show", str(run)]).output
    assert "no client took part more than 1 times" in " ".join(shown.split())
    assert "epsilon 5.3" in shown
    for text in (page, shown):
        assert "epsilon 0" not in text
        assert "NOTHING" not in text


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
        TwoServersTrial.prepared(assembled, tmp_path / "new", clients=1000)
    assert not (tmp_path / "new").exists()
    (tmp_path / "something").touch()
    with pytest.raises(Refused, match="is not empty"):
        TwoServersTrial.prepared(assembled, tmp_path)


# --- A start that fails ---------------------------------------------------------------


def refused(experiment, out, *more):
    """The error of a `tacit up` that does not begin."""
    found = CliRunner().invoke(app, ["up", str(experiment), "--out", str(out), *more])
    assert found.exit_code, found.output
    return found.exception


FEW = (
    (("--clients", "25"), "25 of at least 30 reports", "--clients 30 or more"),
    (("--clients", "25", "--seats", "4"), "29 of at least 30", "--clients 26 or more"),
)


@pytest.mark.parametrize("channel", [(), SHUFFLED], ids=["two_servers", "shuffle"])
@pytest.mark.parametrize(("more", "counted", "remedy"), FEW)
def test_fewer_clients_than_the_minimum_are_refused_with_numbers(
    more, counted, remedy, channel, experiment, tmp_path
):
    changes = [*channel[:2], "privacy.min_contributors=30"]
    changes = [word for one in changes for word in ("--set", one)]
    error = refused(experiment, tmp_path / "f", *more, *changes)
    assert isinstance(error, Refused)
    assert counted in str(error)
    assert remedy in str(error)
    assert not (tmp_path / "f").exists()


def test_where_each_reports_once_the_reports_of_a_round_are_counted(tmp_path):
    """Forty clients in four rounds make ten reports of a round, as can be expected."""
    changes = ["run.rounds=4", "run.sampler.name=once", "privacy.min_contributors=11"]
    path = tmp_path / "exp.toml"
    path.write_text(EXPERIMENT)
    settings = read_experiment(path, [*SHUFFLED, *changes])
    with pytest.raises(Refused, match="10 of at least 11 reports a round"):
        RelayTrial.prepared(assemble(settings), tmp_path / "f")
    settings = read_experiment(path, [*SHUFFLED, *changes[:2]])
    with pytest.raises(Refused, match="--seats 1 over a relay need"):
        RelayTrial.prepared(assemble(settings), tmp_path / "f", seats=1)
    assert not (tmp_path / "f").exists()


def test_a_port_that_is_taken_is_told_and_nothing_is_left(experiment, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = refused(experiment, tmp_path / "f", "--port", str(port))
    assert isinstance(error, Refused)
    assert f"port {port} of 127.0.0.1 is in use" in str(error)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_start_that_fails_removes_what_it_made_and_nothing_else(is_there, tmp_path):
    """A role dies at its start: a second attempt finds the folder as it was."""
    assembled, folder = assemble(check_experiment(tomllib.loads(EXPERIMENT))), tmp_path
    if not is_there:
        folder /= "new"
    trial = TwoServersTrial.prepared(assembled, folder)
    settings, note = folder / "helper.toml", folder / "note"
    settings.write_text(settings.read_text().replace('"helper"', '"leader"', 1))
    if is_there:
        note.write_text("somebody has put this here meanwhile")
    said = pytest.raises(ChildEnded, match=r"helper ended with code 2.*helper_url")
    with said, trial.running():
        raise AssertionError("it runs")
    assert not trial.children
    assert folder.exists() is is_there
    assert not is_there or [*folder.iterdir()] == [note]


def test_only_a_trial_knows_of_how_many_reports_a_void_round_was(tmp_path):
    assembled = assemble(check_experiment(tomllib.loads(EXPERIMENT)))
    trial = TwoServersTrial.prepared(assembled, tmp_path / "f")
    object.__setattr__(trial.run.invitation.plan, "min_contributors", 1000)
    rows = [{"round": 0, "why": ""}, {"round": 1, "why": "fewer than 1,000"}]
    found = {"withheld": None, "rounds": rows}
    assert trial._why(found, {0: 1000, 1: 10}) == (
        "round 2 is void: 10 of at least 1,000 reports"
    )
    assert trial._why(found, {0: 1000, 1: 1000}) == "round 2 is void: fewer than 1,000"


# --- Real clients ---------------------------------------------------------------------


def commands_of_readme():
    """The three commands with which README lets a real client contribute."""
    text = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    lines = [one.partition("   #")[0].split() for one in text.splitlines()]
    lines = [
        one for one in lines if one[:1] == ["tacit"] and one[1] in ("up", "client")
    ]
    assert [one[1:3] for one in lines] == [
        *(["up", "--seats"], ["client", "join"], ["client", "recommend"])
    ]
    return lines


@pytest.mark.parametrize("channel", ["two_servers", "shuffle"])
def test_the_three_commands_of_readme_contribute_a_history(tacit, channel, tmp_path):
    """With a smaller world, and over a relay with a ticket; the same words else."""
    begin, join, recommend = commands_of_readme()
    life = Life(tmp_path, channel, more=(*begin[2:], "--set", "run.rounds=2"))
    folder = tmp_path / "client"
    try:
        life.wait_for("tacit client join")
        [printed] = [one for one in life.said.splitlines() if "client join" in one]
        url, out = printed.split()[3], str(life.out)
        readmes = " ".join(join).replace("http://127.0.0.1:8000", url)
        readmes = readmes.replace("federation/", f"{out}/")
        ticket = (life.out / "tickets").read_text() if channel == "shuffle" else ""
        given = ["--ticket", *ticket.split()] if ticket else []
        assert {*printed.split()} == {*readmes.split(), *given}
        joined = tacit(*readmes.split()[1:], *given, "--folder", folder)
        assert joined.code == 0, joined.err
        assert "a trial: both operators are one machine" in joined.out
        assert joined.out.endswith("over: the last round is answered\n")
        ranked = tacit(*recommend[1:], "--folder", folder)
        assert ranked.out.endswith("the history was not sent\n"), ranked
        life.wait_for("serving")
        assert "the model of 26 clients, 1 of them real, is published" in life.said
        told = tacit("client", "show", "--folder", folder, "--json").json
        assert len(told["releases"]) == 2
        assert all(one["sent"] for one in told["releases"])
        assert_promised_nothing(told, channel)
        if channel == "shuffle":
            assert_roles_are_relay_and_collector(life.out)
        late = tacit(*readmes.split()[1:], "--folder", tmp_path / "late")
        assert late.code == 0, late.err
        assert late.out.startswith("the run is over, and its model is published")
        assert "nothing of yours is contributed" in late.out.splitlines()[0]
        assert "next:" not in late.out
    finally:
        ports = life.ports()
        life.process.terminate()
        assert life.end() == 0
        life.kill()
    assert life.said.endswith("stopped\n")
    assert_nothing_is_left(life, ports)


def assert_roles_are_relay_and_collector(out):
    told = json.loads((out / "collector" / "run" / "result.json").read_text())
    views = {line["view"]: line for line in told["epsilons"] if line["unit"] == "user"}
    assert views["server"]["epsilon"] == views["collusion"]["epsilon"]
    assert tomllib.loads((out / "relay.toml").read_text())["folder"] == "relay"
    assert load(out / "collector" / "run").catalog
    assert {*(path.name for path in out.glob("*.toml"))} == {
        *("relay.toml", "collector.toml", "experiment.toml")
    }


def assert_promised_nothing(told, channel):
    """A client of a trial: its pages and ledger say what its machine can do."""
    assert "one machine" in told["one_operator"]
    for lines in (told["agreed"], told["spent"]):
        views = {line["view"]: line for line in lines if line["unit"] == "user"}
        assert views["release"]["standing"] == "PROVEN"
        if channel == "two_servers":
            assert views["server"]["epsilon"] is None
            assert views["server"]["standing"] == "NONE"
            assert views["server"]["reason"] == str(Code("one_machine"))
