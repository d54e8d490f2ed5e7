"""`[evaluate] release`: whether the model works, told under the budget."""

import contextlib
import importlib
import json

import numpy as np
import pytest
from quick import some_of

import tacit as library
from tacit.keys import Key
from tacit.mechanisms import gaussian
from tacit.runtime import run as runs

USERS, ITEMS = 300, 30
SETTINGS = """
[data]
source = "table"
population = 320

[data.table]
path = "events.csv"
user = "user"
item = "item"

[data.table.items]
path = "items.csv"
item = "item"

[method]
name = "gram"
count_rounds = 1

[privacy]
mechanism = "central"
channel = "secure_sum"
target_epsilon = 4.0
delta = 1e-6

[run]
rounds = 2

[evaluate]
metrics = ["ndcg@10"]
baselines = []
release = { share = 0.2, k = 2 }
"""


@pytest.fixture
def shop(tmp_path):
    """Two kinds of users, each with items of their kind; an item is shared."""
    rng = np.random.default_rng(1)
    kinds = [np.arange(k, ITEMS, 2) for k in (0, 1)]
    rows = [
        f"u{u},item{i}"
        for u in range(USERS)
        for i in rng.choice(kinds[u % 2][:8], 5, replace=False)
    ]
    (tmp_path / "events.csv").write_text("\n".join(["user,item", *rows]) + "\n")
    listed = [f"item{i}" for i in range(ITEMS)]
    (tmp_path / "items.csv").write_text("\n".join(["item", *listed]) + "\n")
    path = tmp_path / "shop.toml"
    path.write_text(SETTINGS)
    return path


def test_a_release_tells_how_well_it_works(tacit, shop, tmp_path, monkeypatch):
    def no(*_, **__):
        raise AssertionError("a release drew from a generator that is no cipher")

    # Modules that draw a constant when they are loaded must be loaded before.
    importlib.import_module("tacit.experiment.training")
    monkeypatch.setattr(gaussian, "fast_stream", no)
    monkeypatch.setattr(gaussian, "standard_normal", no)
    monkeypatch.setattr("tacit.keys._philox", no)
    monkeypatch.setattr(Key, "from_seed", no)
    run = tmp_path / "release"
    said = tacit("release", shop, "--out", run, "--json")
    assert said.code == 0, said.err
    [metric] = said.json["released_metrics"]
    assert metric.keys() == {"name", "value", "low", "high", "people"}
    assert metric["name"] == "hr@2"
    assert 0 <= metric["low"] < metric["value"] < metric["high"] <= 1
    assert metric["high"] - metric["low"] < 0.3
    assert abs(metric["people"] - USERS) < 60  # the noise; 320 were declared
    assert "simulation_only" not in said.json
    lines = (run / "metrics.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    assert [line["round"] for line in told] == [*range(3)]
    assert {*told[0]} == {"round", "checksum"}
    for line in said.json["epsilons"]:
        assert line["standing"] == "NONE" or line["epsilon"] <= 4.0
    card = json.loads((run / "privacy-card.json").read_text())
    leaving = [one["what"] for one in card["leaves"]]
    assert any("held-out hits and misses" in what for what in leaving)
    assert "hit_rate" in card["privacy"]["noise_multiplier"]
    assert "held-out hits" in (run / "privacy-card.html").read_text()
    page = (run / "report.html").read_text()
    assert f"hr@2 {metric['value']:.4f}" in page
    again = tacit("report", run)
    assert again.code == 0, again.err
    assert f"hr@2 {metric['value']:.4f}" in (run / "report.html").read_text()


def test_the_answer_has_the_figure_and_its_interval(tacit, shop, tmp_path):
    said = tacit("release", shop, "--out", tmp_path / "run").out
    [line] = [line for line in said.splitlines() if line.startswith("hr@2 ")]
    assert "by 95 % of the noise" in line


def test_a_simulation_has_the_true_figure_beside_it(tacit, shop, tmp_path):
    """False alarm of a wider interval, of 8 deviations, below 1e-14."""
    run = tmp_path / "run"
    said = tacit("train", shop, "--out", run, "--json")
    assert said.code == 0, said.err
    [told] = said.json["released_metrics"]
    [truth] = said.json["simulation_only"]["released_metrics"]
    result = json.loads((run / "result.json").read_text())
    assert result["released_metrics"] == [told]
    width = (told["high"] - told["low"]) / 2 / 1.96
    assert 0 < abs(told["value"] - truth["value"]) < 8 * width
    assert truth["low"] == truth["high"] == truth["value"]
    assert truth["value"] > 0.3  # chance: 2 of 26


def test_the_model_is_the_methods_own(tacit, shop, tmp_path):
    run = tmp_path / "run"
    assert tacit("release", shop, "--out", run).code == 0
    model = json.loads((run / "model.json").read_text())
    assert model["method"]["name"] == "gram"
    assert {*model["privacy"]["noise_multiplier"]} == {"counts", "relations"}
    best = library.load(run).recommend(["item0", "item2", "item4"], n=3)
    assert {line.id for line in best} <= {f"item{i}" for i in range(0, ITEMS, 2)}
    assert tacit("recommend", run, "--history", "item1,item3").code == 0
    exported = tacit("export", run)
    assert exported.code == 0, exported.err


@pytest.mark.slow
def test_an_audit_says_that_the_metric_is_left_out(tacit, shop, tmp_path):
    run = tmp_path / "run"
    assert tacit("release", shop, "--out", run).code == 0
    audited = tacit("audit", run, "--json")
    assert audited.code == 0, audited.err
    left_out = [one["what"] for one in audited.json["not_audited"]]
    assert any("held-out hits and misses" in what for what in left_out)


def test_the_plan_shows_what_it_costs(tacit, shop):
    said = tacit("plan", shop, "--json")
    assert said.code == 0, said.err
    lines = {line["what"]: line for line in said.json["releases"]}
    assert any("held-out hits and misses" in what for what in lines)
    [related] = [line for what, line in lines.items() if "relations" in what]
    assert related["horizon"] == "for round 2 of 3"
    assert said.json["method"]["name"] == "gram"
    assert "hr@2 will be known to about ±" in said.json["outlook"]
    assert said.json["cost"]["rounds"] == 3
    spent = [one["epsilon"] for one in said.json["totals"] if one["epsilon"]]
    assert max(spent) <= 4.0


class Killed(Exception):
    """As by a signal."""


@pytest.mark.parametrize("life", some_of([3, 2, 1], 1))
def test_killed_and_resumed_it_releases_the_same(
    tacit, shop, tmp_path, monkeypatch, life
):
    whole, run = tmp_path / "whole", tmp_path / "run"
    expected = tacit("train", shop, "--out", whole, "--json").json
    asked, real = [], runs._append

    def dies(*arguments):
        asked.append(1)
        if len(asked) == life:
            raise Killed
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(runs, "_append", dies)
        with contextlib.suppress(Killed):
            tacit("train", shop, "--out", run)
    said = tacit("train", shop, "--out", run, "--resume", "--json")
    assert said.code == 0, said.err
    assert said.json["released_metrics"] == expected["released_metrics"]
    again = tacit("train", shop, "--out", run, "--resume", "--json")
    assert again.json["released_metrics"] == expected["released_metrics"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["evaluate.release.share=0"], "share=0.0 must be in (0, 1)"),
        (["evaluate.release.share=1"], "share=1.0 must be in (0, 1)"),
        (["evaluate.release.k=0"], "k=0 must be >= 1"),
        (["evaluate.release.at=3"], "evaluate.release: key 'at'"),
        (["run.sampler.name=once"], "use run.sampler.name = 'everyone'"),
        (["privacy.mechanism=local"], "use privacy.mechanism = 'central'"),
        (["privacy.mechanism=none"], "use privacy.mechanism = 'central'"),
        (["privacy.noise_multiplier=2.0"], "leave noise_multiplier and scale out"),
        (["method.name=dplcf", "privacy.mechanism=local"], "Dplcf has no sums"),
        (["run.refreshes=spring"], "may have learnt the items"),
    ],
)
def test_what_cannot_be_measured_is_refused(tacit, shop, changes, said):
    told = tacit("plan", shop, *(x for change in changes for x in ("--set", change)))
    assert told.code == 2
    assert said in told.err
    assert "evaluate.release" in told.err


def test_no_target_is_refused(tacit, shop):
    shop.write_text(SETTINGS.replace("target_epsilon = 4.0\n", ""))
    told = tacit("plan", shop)
    assert told.code == 2
    assert "set privacy.target_epsilon" in told.err


def test_without_it_an_experiment_is_what_it_was(shop):
    """Runs of earlier versions go on: the digest has no trace of the setting."""
    from tacit.experiment.settings import read_experiment

    shop.write_text(SETTINGS.replace("release = { share = 0.2, k = 2 }\n", ""))
    assert "release" not in read_experiment(shop).resolved()["evaluate"]
