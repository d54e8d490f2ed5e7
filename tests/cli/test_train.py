"""A run from the command line: trained, stopped, resumed, evaluated and shown.

Also tests `tacit.cli.evaluate`, `tacit.cli.report`, `tacit.experiment.build_report`,
`tacit.experiment.evaluate`, `tacit.experiment.evaluated_run` and
`tacit.experiment.training`.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quick import some_of

KEYS = {  # nothing else stands outside `simulation_only`
    *(
        "method",
        "simulation",
        "could_be_released",
        "epsilons",
        "epsilons_with_earlier",
        "seconds",
    ),
    *("simulation_only", "run"),
}
MEASURED = {  # on private users
    *("metrics", "asked", "took_part", "bytes_up", "bytes_down"),
    *("clients_per_second", "memory_bytes"),
}
FILES = (
    "experiment.toml",
    "inputs.json",
    "metrics.jsonl",
    "result.json",
    "ledger.json",
    "model.safetensors",
    "model.json",
    "privacy-card.json",
    "report.html",
    "checkpoint/state.safetensors",
)


def test_train_then_everything_that_follows(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    trained = tacit("train", experiment, "--out", run, "--json")
    assert trained.code == 0, trained.err
    assert trained.json.keys() == KEYS
    simulated = trained.json["simulation_only"]
    assert simulated.keys() == MEASURED
    assert set(simulated["metrics"]["ndcg@10"]) >= {"mean", "se"}
    assert {line["standing"] for line in trained.json["epsilons"]} == {"NONE"}
    for name in FILES:
        assert (run / name).stat().st_size > 0, name

    kept = json.loads((run / "result.json").read_text())
    assert kept.keys() == KEYS - {"run"} | {"checksum"}
    assert kept["simulation_only"].keys() == MEASURED | {
        *("evaluations", "evaluations_among_all")
    }
    for line in (run / "metrics.jsonl").read_text().splitlines():
        said = json.loads(line).keys()
        assert said == {"round", "seconds", "simulation_only", "checksum"}

    evaluated = tacit("evaluate", run, "--json").json
    assert evaluated["metrics"] == simulated["metrics"]
    labels = {(d["method"], d["against"]) for d in evaluated["differences"]}
    assert {one for pair in labels for one in pair} >= {"popularity", "ease"}

    listed = tacit("recommend", run, "--user", "user 3", "-k", 4, "--json").json
    assert [sorted(line) for line in listed["items"]] == [["id", "score", "title"]] * 4

    page = tacit("report", run, "--user", "user 3", "--json").json["report"]
    assert "user 3" in Path(page).read_text(encoding="utf-8")


def test_progress_is_told_while_data_are_read_and_users_ranked(
    tacit, experiment, tmp_path, monkeypatch
):
    monkeypatch.setattr("tacit.cli.console.PLAIN_SECONDS", 0.0)
    said = tacit("train", experiment, "--out", tmp_path / "run").err
    for told in ("of the table read", "8 of 8  ranked by ease"):
        assert told in said
    assert "8 of 8  ranked by ease" in tacit("evaluate", tmp_path / "run").err


def test_a_run_of_an_earlier_version_is_read(tacit, experiment, tmp_path):
    """It had metrics and bytes outside `simulation_only`, and no checksums.

    Reports are the same; a note says that nothing vouches for their figures.
    """
    run = tmp_path / "run"
    assert tacit("train", experiment, "--out", run).code == 0
    evaluated = tacit("evaluate", run, "--json").json
    page = Path(tacit("report", run, "--json").json["report"])
    shown = page.read_text(encoding="utf-8")
    result = json.loads((run / "result.json").read_text())
    del result["checksum"]
    for name in ("metrics", "clients_per_second", "bytes_up", "bytes_down"):
        result[name] = result["simulation_only"].pop(name)
    (run / "result.json").write_text(json.dumps(result))
    lines = [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["checksum"]
        for name in ("bytes_up", "bytes_down"):
            line[name] = line["simulation_only"].pop(name)
    logged = "".join(json.dumps(line) + "\n" for line in lines)
    (run / "metrics.jsonl").write_text(logged)

    assert tacit("evaluate", run, "--json").json == evaluated
    assert tacit("report", run, "--json").code == 0
    assert page.read_text(encoding="utf-8") == shown
    again = tacit("train", experiment, "--out", run, "--resume", "--json").json
    assert again["simulation_only"]["bytes_up"] == result["bytes_up"]


def test_for_people_it_prints_a_table(tacit, experiment, tmp_path):
    answer = tacit("train", experiment, "--out", tmp_path / "run")
    assert "federated_popularity" in answer.out
    assert "no promise" in answer.out
    assert "report.html" in answer.out
    assert "3 of 3" in answer.err  # progress survives a pipe


def test_a_run_is_never_overwritten(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    assert tacit("train", experiment, "--out", run).code == 0
    again = tacit("train", experiment, "--out", run)
    assert again.code == 2
    assert "--resume" in again.err


def test_resuming_a_finished_run_gives_the_same_result(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    first = tacit("train", experiment, "--out", run, "--json").json
    again = tacit("train", experiment, "--out", run, "--resume", "--json").json
    assert again == first


def test_another_experiment_cannot_resume_a_run(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    tacit("train", experiment, "--out", run)
    changed = ("--set", "method.max_votes=3")
    answer = tacit("train", experiment, "--out", run, "--resume", *changed)
    assert answer.code == 2
    assert "another experiment" in answer.err
    assert "method.max_votes (300, now 3)" in answer.err
    kept = (run / "experiment.toml").read_text()
    assert "max_votes = 300" in kept


def killed_after_a_round(tacit, monkeypatch, *arguments):
    """A run that dies when its first round was delivered and not kept yet."""

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tacit.runtime.run.save_checkpoint", die)
        assert tacit("train", *arguments).code == 130


def test_a_run_is_resumed_with_the_data_that_it_began_with(
    tacit, experiment, tmp_path, monkeypatch
):
    """One user's item changes in between; users and items are as many as before."""
    run, table = tmp_path / "run", tmp_path / "table.csv"
    killed_after_a_round(tacit, monkeypatch, experiment, "--out", run)
    before = table.read_text()
    table.write_text(before.replace("user 39,item 3\n", "user 39,item 5\n", 1))
    assert table.read_text() != before
    lines = (run / "metrics.jsonl").read_text()
    answer = tacit("train", experiment, "--out", run, "--resume")
    assert answer.code == 2
    said = " ".join(answer.err.split())
    assert "was begun with other data: 24 users and 15 items then" in said
    assert "restore the data, or train into another directory" in said
    assert (run / "metrics.jsonl").read_text() == lines  # nobody was asked
    table.write_text(before)
    assert tacit("train", experiment, "--out", run, "--resume").code == 0


def test_a_run_of_an_earlier_version_resumes_without_a_digest(
    tacit, experiment, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    killed_after_a_round(tacit, monkeypatch, experiment, "--out", run)
    (run / "inputs.json").unlink()
    assert tacit("train", experiment, "--out", run, "--resume").code == 0
    assert (run / "inputs.json").stat().st_mode & 0o077 == 0  # the data's own secret


def test_damaged_inputs_are_refused(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    tacit("train", experiment, "--out", run)
    (run / "inputs.json").write_text("[]")
    answer = tacit("train", experiment, "--out", run, "--resume")
    assert answer.code == 2
    assert "inputs.json is damaged" in answer.err


@pytest.mark.parametrize("stop", some_of([signal.SIGINT, signal.SIGKILL], 1))
def test_a_stopped_run_resumes_to_the_same_model(tacit, experiment, tmp_path, stop):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    long = ("--set", "run.rounds=60", "--set", "evaluate.every=30")
    assert tacit("train", experiment, "--out", whole, *long).code == 0
    command = [sys.executable, "-m", "tacit", "train", str(experiment), *long]
    with subprocess.Popen(
        [*command, "--out", str(broken)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # tests that run in the background may have been told to ignore it
        _wait_for_lines(broken / "metrics.jsonl", 10)
        process.send_signal(stop)
        _, said = process.communicate(timeout=60)
    assert process.returncode == (130 if stop == signal.SIGINT else -signal.SIGKILL)
    assert ("--resume" in said) == (stop == signal.SIGINT)
    assert not (broken / "result.json").exists()
    assert tacit("train", experiment, "--out", broken, *long, "--resume").code == 0
    for name in ("model.safetensors", "checkpoint/state.safetensors"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    lines = (broken / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == list(range(60))


def _wait_for_lines(path: Path, n: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n:
            return
        time.sleep(0.005)
    raise AssertionError(f"{path} never had {n} lines")


PRIVATE = (
    *("--set", "privacy.mechanism=central", "--set", "privacy.channel=secure_sum"),
    *("--set", "privacy.delta=1e-6"),
)


def test_a_private_run_states_what_it_spent(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    target = ("--set", "privacy.target_epsilon=3.0")
    answer = tacit("train", experiment, "--out", run, *PRIVATE, *target, "--json")
    assert answer.code == 0, answer.err
    proven = [s for s in answer.json["epsilons"] if s["standing"] == "PROVEN"]
    assert {s["view"] for s in proven} == {"release", "server"}
    assert all(0 < s["epsilon"] <= 3.0 for s in proven)
    assert tacit("recommend", run, "--user", "user 3").code == 0


def test_a_run_past_its_target_never_begins(tacit, experiment, tmp_path):
    run = tmp_path / "run"
    little = ("--set", "privacy.noise_multiplier=0.5")
    target = ("--set", "privacy.target_epsilon=1.0")
    answer = tacit("train", experiment, "--out", run, *PRIVATE, *little, *target)
    assert answer.code == 2
    assert "for everyone and the target is 1.0" in answer.err
    assert not (run / "experiment.toml").exists()


@pytest.mark.parametrize(("view", "code"), [("server", 2), ("release", 0)])
def test_a_target_of_two_servers_is_held_against_its_own_view(
    tacit, experiment, tmp_path, view, code
):
    """Noise that readers need for the target, and that one server does not leave."""
    chosen = {
        "privacy.mechanism": "central",
        "privacy.channel": "two_servers",
        "privacy.delta": 1e-6,
        "privacy.noise_multiplier": 8.0,
        "privacy.target_epsilon": 1.0,
        "privacy.target_view": view,
        "run.sampler": "{ name = 'everyone' }",
        "run.rounds": 3,
    }
    changes = [part for k, v in chosen.items() for part in ("--set", f"{k}={v}")]
    answer = tacit("train", experiment, "--out", tmp_path / "run", *changes)
    assert answer.code == code, answer.err
    if code:
        assert "epsilon 1.3" in answer.err
        assert "for everyone and the target is 1.0" in answer.err


def test_a_target_without_protection_is_refused(tacit, experiment, tmp_path):
    target = ("--set", "privacy.target_epsilon=1.0")
    answer = tacit("train", experiment, "--out", tmp_path / "run", *target)
    assert answer.code == 2
    assert "no provable epsilon" in answer.err


BUDGETS = """
[data]
source = "synthetic"
world = { users = 150, items = 30, rank = 2, events_per_user = 8 }

[method]
name = "{method}"

[privacy]
mechanism = "central"
channel = "secure_sum"
delta = 1e-6
groups = { strict = 2, balanced = 2, open = 1 }
target_epsilon = { strict = 1.0, balanced = 4.0, open = 8.0 }
{more}

[run]
rounds = 4
sampler = {sampler}

[evaluate]
metrics = ["ndcg@10"]
baselines = []
"""
TARGETS = {"strict": 1.0, "balanced": 4.0, "open": 8.0}
EVERYONE, COINS = '{ name = "everyone" }', '{ name = "poisson", rate = 0.5 }'
MOVING, SAMPLED = "clip_quantile = 0.5", 'budgets = "sample"'


@pytest.mark.parametrize(
    ("method", "sampler", "more"),
    [
        ("gram", EVERYONE, ""),
        ("dpvae", EVERYONE, ""),
        ("dpvae", EVERYONE, MOVING),
        pytest.param("dpvae", COINS, "", marks=pytest.mark.slow),
        pytest.param("dpvae", COINS, MOVING, marks=pytest.mark.slow),
        pytest.param("dpvae", COINS, SAMPLED, marks=pytest.mark.slow),
        pytest.param("dpvae", COINS, f"{SAMPLED}\n{MOVING}", marks=pytest.mark.slow),
        pytest.param("gram", COINS, SAMPLED, marks=pytest.mark.slow),
    ],
    ids=[
        "gram",
        "dpvae",
        "dpvae, moving clip",
        "dpvae, coins",
        "dpvae, coins and moving clip",
        "dpvae, by rate",
        "dpvae, by rate and moving clip",
        "gram, by rate",
    ],
)
def test_nobody_is_above_the_cap_of_the_group_in_the_ledger(
    tacit, tmp_path, method, sampler, more
):
    """Read back from the run: one line per group, at or just below its target."""
    fields = {"{method}": method, "{sampler}": sampler, "{more}": more}
    text = BUDGETS
    for name, value in fields.items():
        text = text.replace(name, value)
    (tmp_path / "budgets.toml").write_text(text)
    answer = tacit("train", tmp_path / "budgets.toml", "--out", tmp_path / "run")
    assert answer.code == 0, answer.err
    spent = json.loads((tmp_path / "run" / "ledger.json").read_text())["spent"]
    found = {
        line["group"]: line
        for line in spent
        if (line["unit"], line["view"]) == ("user", "release")
    }
    assert found.keys() == TARGETS.keys()
    for group, target in TARGETS.items():
        assert found[group]["standing"] == "PROVEN"
        assert found[group]["epsilon"] <= target
        # Phases that Gram plans have shares that are decided after the rates.
        if (method, more) != ("gram", SAMPLED):
            assert found[group]["epsilon"] > 0.98 * target
