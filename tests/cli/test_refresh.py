"""A finished run, refreshed with other users: what is learnt and what is told."""

import json
import tomllib

import pytest
import tomli_w
from safetensors import safe_open
from safetensors.numpy import save

from tacit.experiment.assemble import assemble
from tacit.experiment.settings import read_experiment
from tacit.runtime.checkpoint import checksum

GRAM = """
[data]
source = "table"
validation = 8
test = 8
table = { path = "table.csv", user = "who", item = "what" }

[method]
name = "gram"
head = 6

[privacy]
mechanism = "central"
channel = "secure_sum"
delta = 1e-6
target_epsilon = 4.0

[run]
rounds = 3

[evaluate]
metrics = ["ndcg@10"]
"""
LATER = ("--set", "run.rounds=1", "--set", "privacy.target_epsilon=1.0")


def table(path, *, users, items=12):
    """Two kinds of users; everyone has five items of their kind."""
    lines = [
        f"user {p},thing {(p % 2 + 2 * k + 2 * p) % items}"
        for p in users
        for k in range(5)
    ]
    path.write_text("\n".join(["who,what", *lines]) + "\n", encoding="utf-8")


@pytest.fixture
def experiment(tmp_path):
    table(tmp_path / "table.csv", users=range(60))
    path = tmp_path / "exp.toml"
    path.write_text(GRAM, encoding="utf-8")
    return path


def worst(lines, view="release"):
    return next(x["epsilon"] for x in lines if (x["unit"], x["view"]) == ("user", view))


def test_a_run_is_refreshed_and_says_what_either_costs(tacit, experiment, tmp_path):
    spring, autumn = tmp_path / "spring", tmp_path / "autumn"
    assert tacit("train", experiment, "--out", spring).code == 0
    # Other users and the same things, in another order.
    table(tmp_path / "table.csv", users=range(100, 150))

    planned = tacit("plan", experiment, "--from", spring, *LATER, "--json").json
    assert worst(planned["totals"]) == pytest.approx(1.0, abs=1e-3)
    assert worst(planned["earlier"]) == pytest.approx(4.0, abs=5e-3)
    both = worst(planned["both"])
    assert 4.0 < both < 5.0
    assert len(planned["releases"]) == 6
    assert all("relations" in line["what"] for line in planned["releases"])
    assert planned["cost"]["bytes_model"] > planned["cost"]["bytes_down_a_round"] > 0

    answer = tacit("train", experiment, "--from", spring, "--out", autumn, *LATER)
    assert answer.code == 0, answer.err
    assert "\nwith the earlier runs\n" in answer.out
    result = json.loads((autumn / "result.json").read_text())
    assert worst(result["epsilons"]) == pytest.approx(1.0, abs=1e-3)
    assert worst(result["epsilons_with_earlier"]) == both
    card = json.loads((autumn / "privacy-card.json").read_text())
    assert worst(card["both"]) == both
    assert "The earlier runs and this one" in (autumn / "privacy-card.html").read_text()
    ledger = json.loads((autumn / "ledger.json").read_text())
    assert worst(ledger["spent_with_earlier"]) == both
    metrics = result["simulation_only"]["metrics"]
    assert tacit("evaluate", autumn, "--json").json["metrics"] == metrics

    keys = {
        assemble(read_experiment(experiment, run)).simulation.key
        for run in ([], [f"run.refreshes={spring}"], [f"run.refreshes={autumn}"])
    }
    assert len(keys) == 3  # one seed, and no noise twice

    again = tacit("plan", experiment, "--from", autumn, *LATER, "--json").json
    assert worst(again["earlier"]) == both  # of both runs before
    assert worst(again["both"]) > both
    assert "2 earlier runs" in again["both"][0]["what"]
    resumed = ("--out", autumn, "--resume", "--json")
    same = tacit("train", experiment, "--from", spring, *LATER, *resumed).json
    assert same["simulation_only"]["metrics"] == metrics


def test_what_does_not_fit_is_refused(tacit, experiment, tmp_path):
    spring = tmp_path / "spring"
    assert "holds no run" in tacit("plan", experiment, "--from", spring).err
    assert tacit("train", experiment, "--out", spring).code == 0

    other = tacit("plan", experiment, "--from", spring, "--set", "method.head=5")
    assert other.code == 2
    assert "head=6, now 5" in other.err

    held = (spring / "result.json").read_text()
    (spring / "result.json").unlink()
    assert "is not finished" in tacit("plan", experiment, "--from", spring).err
    (spring / "result.json").write_text(held)

    table(tmp_path / "table.csv", users=range(60), items=14)
    found = tacit("plan", experiment, "--from", spring)
    assert found.code == 2
    assert "2 items of table, such as 'thing 12', are new" in found.err


def made_before(run):
    """Turn a run into what the version wrote that had protections in `[method]`."""
    table = tomllib.loads((run / "experiment.toml").read_text(encoding="utf-8"))
    own = {"mechanism", "budgets", "clip_rate", "clip_span", "scale"}
    table["method"]["privacy"] = table["privacy"]["mechanism"]
    table["privacy"] = {k: v for k, v in table["privacy"].items() if k not in own}
    (run / "experiment.toml").write_text(tomli_w.dumps(table), encoding="utf-8")
    model = json.loads((run / "model.json").read_text(encoding="utf-8"))
    model["method"]["privacy"] = model.pop("privacy")["mechanism"]
    for later in ("arrays", "digest", "checksum"):
        del model[later]
    for name in ("result.json", "ledger.json", "inputs.json", "privacy-card.json"):
        document = json.loads((run / name).read_text(encoding="utf-8"))
        del document["checksum"]
        (run / name).write_text(json.dumps(document), encoding="utf-8")
    (run / "model.json").write_text(json.dumps(model | {"format": 1}))
    path = run / "checkpoint" / "state.safetensors"
    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()["facts"]) | {"format": "3"}
        names = [name for name in file.keys() if name != "clients/spent"]  # noqa: SIM118
        arrays = {name: file.get_tensor(name) for name in names}
    del facts["checksum"]
    facts["checksum"] = checksum(facts, arrays)
    path.write_bytes(save(arrays, metadata={"facts": json.dumps(facts)}))


def test_a_run_of_an_earlier_version_says_what_it_is_still_good_for(
    tacit, experiment, tmp_path
):
    run, again = tmp_path / "run", tmp_path / "again"
    assert tacit("train", experiment, "--out", run).code == 0
    made_before(run)
    kept = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for call in (
        ("report", run),
        ("evaluate", run),
        ("recommend", run, "--user", "user 3"),
        ("audit", run),
        ("train", experiment, "--out", run, "--resume"),
    ):
        answer = tacit(*call)
        assert answer.code == 2, call
        assert f"{run}: an earlier version made this run" in answer.err, call
    assert {path: path.read_bytes() for path in kept} == kept
    assert tacit("recommend", run, "--history", "thing 1").code == 0
    assert tacit("export", run, "--out", tmp_path / "export").code == 0
    later = ("train", experiment, "--from", run, "--out", again, *LATER)
    assert tacit(*later).code == 0


def test_settings_that_were_moved_by_hand_do_not_make_it_a_run_of_today(
    tacit, experiment, tmp_path
):
    """Its checkpoint belongs to the experiment as it was, whatever the file says."""
    run = tmp_path / "run"
    assert tacit("train", experiment, "--out", run).code == 0
    today = (run / "experiment.toml").read_text(encoding="utf-8")
    made_before(run)
    (run / "experiment.toml").write_text(today, encoding="utf-8")
    for call in (
        ("evaluate", run),
        ("train", experiment, "--out", run, "--resume"),
    ):
        answer = tacit(*call)
        assert answer.code == 2
        assert "format 3: an earlier version made this run" in answer.err
