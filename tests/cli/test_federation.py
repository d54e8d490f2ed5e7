"""The roles of a federation on the command line, and `tacit.cli.rounds`."""

import json

import pytest
from service.federation.services import Place, a_run, aggregators, in_thread
from typer.testing import CliRunner

from tacit.cli.app import app
from tacit.errors import BadExperiment, BadRun, Refused
from tacit.service.federation.coordinator import CoordinatorSchedule
from tacit.service.federation.services import serve_coordinator
from tacit.service.federation.settings import read_secret, read_signing_key


def run(*words, code=0):
    found = CliRunner().invoke(app, [*map(str, words)])
    if code == 0:
        assert found.exit_code == 0, found.output + str(found.exception)
    return found


def toml(path, **values):
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_keys_are_made_once_and_for_their_owner_alone(tmp_path):
    found = run("serve", "keys", tmp_path, "--secret", "pair", "--json")
    told = json.loads(found.stdout)
    assert (tmp_path / "signing.pub").read_text().strip() == told["public_key"]
    assert len(read_signing_key(tmp_path / "signing.key")) == 32
    assert len(read_secret(tmp_path / "pair.secret")) == 64
    assert (tmp_path / "signing.key").stat().st_mode & 0o077 == 0
    again = run("serve", "keys", tmp_path, code=1)
    assert isinstance(again.exception, Refused)
    assert "there already" in str(again.exception)


def test_settings_with_problems_are_told_whole(tmp_path):
    path = toml(tmp_path / "leader.toml", role="leader", folder="x", wrong=1)
    found = run("serve", "leader", "--config", path, code=1)
    assert isinstance(found.exception, BadExperiment)
    said = str(found.exception)
    for part in ("wrong", "signing_key is missing", "least_multiplier is missing"):
        assert part in said


def test_a_helpers_file_is_no_leaders(tmp_path):
    place = Place(tmp_path)
    made = place.aggregator("helper")
    path = toml(
        tmp_path / "helper.toml",
        role="helper",
        folder="helper",
        signing_key=str(made.signing_key),
        leader_key=made.leader_key,
        helper_key=made.helper_key,
        coordinator_secret=str(made.coordinator_secret),
        pair_secret=str(made.pair_secret),
    )
    path.write_text(path.read_text() + "[limits]\nleast_multiplier = 0.5\n")
    found = run("serve", "leader", "--config", path, code=1)
    assert isinstance(found.exception, Refused)
    assert "tacit serve helper --config" in str(found.exception)
    tickets = run("serve", "tickets", "--config", path, code=1)
    assert isinstance(tickets.exception, BadRun)
    assert "start the service there once" in str(tickets.exception)


@pytest.fixture
def by_hand(tmp_path):
    """A coordinator that waits for words, and the file of its settings."""
    place = Place(tmp_path)
    run = a_run(place)
    with aggregators(place) as urls:
        schedule = CoordinatorSchedule(window=600, poll=0.02, by_hand=True)
        settings = place.coordinator(
            leader_url=urls.leader,
            helper_url=urls.helper,
            reports_url=urls.reports,
            schedule=schedule,
        )
        with in_thread(serve_coordinator, settings, run) as own:
            path = toml(
                tmp_path / "coordinator.toml",
                experiment="experiment.toml",
                folder="coordinator",
                leader_url=urls.leader,
                helper_url=urls.helper,
                reports_url=urls.reports,
                leader_key=settings.leader_key,
                helper_key=settings.helper_key,
                leader_secret=str(settings.leader_secret),
                helper_secret=str(settings.helper_secret),
                secret=str(settings.secret),
                private=own["private"].removeprefix("http://"),
            )
            yield path


def states(path):
    found = run("serve", "status", "--config", path, "--json")
    return [one["state"] for one in json.loads(found.stdout)["rounds"]]


def test_rounds_open_by_hand_and_a_run_is_retired(by_hand):
    from time import sleep

    assert states(by_hand) == []
    run("round", "open", "--config", by_hand)
    for _ in range(300):
        if states(by_hand) == ["open"]:
            break
        sleep(0.02)
    assert states(by_hand) == ["open"]
    shown = run("serve", "status", "--config", by_hand).stdout
    assert "round 1, votes: fewer than the minimum reports; open" in shown
    assert shown.startswith("Round 1 of at most 1 is open; the run waits for")
    run("round", "retire", "--config", by_hand)
    for _ in range(300):
        if states(by_hand) == ["void"]:
            break
        sleep(0.02)
    assert states(by_hand) == ["void"]
    assert "The run is retired" in run("serve", "status", "--config", by_hand).stdout


def test_nobody_answers(tmp_path, by_hand):
    path = tmp_path / "other.toml"
    text = by_hand.read_text().splitlines()
    lines = [one for one in text if not one.startswith("private")]
    path.write_text("\n".join([*lines, 'private = "127.0.0.1:9"']))
    found = run("round", "close", "--config", path, code=1)
    assert isinstance(found.exception, Refused)
    assert "no coordinator answers" in str(found.exception)
