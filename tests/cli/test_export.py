"""`tacit export`: two files are enough to rank, and what is refused is explained.

Also tests `tacit.experiment.exporting`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from onnx_device import run as run_onnx

from tacit import train

METHODS = {
    "federated_popularity": {},
    "fedvae": {"hidden": [6], "latent": 4},
    "dplcf": {},
    "gram": {"head": 12, "count_rounds": 0},
}
EXPERIMENT = {
    "data": {"source": "table", "min_interactions": 2, "validation": 8, "test": 8},
    "run": {"rounds": 1},
    "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
}
PRIVACY = {
    "federated_popularity": {
        "mechanism": "central",
        "channel": "secure_sum",
        "target_epsilon": 4.0,
        "delta": 1e-6,
    },
    "dplcf": {"mechanism": "local", "epsilon": 3.0},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each method on forty users, trained when it is first asked for."""
    place = tmp_path_factory.mktemp("runs")
    lines = (f"p{p},item {(p * 7 + i * i) % 15}" for p in range(40) for i in range(9))
    (place / "table.csv").write_text("who,what\n" + "\n".join(lines) + "\n")

    @cache
    def run(name):
        table = {"path": str(place / "table.csv"), "user": "who", "item": "what"}
        train(
            {
                **EXPERIMENT,
                "data": {**EXPERIMENT["data"], "table": table},
                "method": {"name": name, **METHODS[name]},
                "privacy": PRIVACY.get(name, {}),
            },
            out=place / name,
        )
        return place / name

    return run


def ranked(folder, history, k=10):
    """What a client makes of the two files, as docs/export.md says."""
    facts = json.loads((folder / "model.json").read_text("utf-8"))
    ids = [item["id"] for item in facts["items"]]
    x = np.array([[i in history for i in ids]], float)
    (scores,) = run_onnx(folder / "model.onnx", x)
    order = np.argsort(-scores, kind="stable")
    return [ids[i] for i in order if ids[i] not in history][:k]


@pytest.mark.parametrize("name", ["federated_popularity", "fedvae"])
def test_a_device_with_the_two_files_recommends_the_same(tacit, runs, name, tmp_path):
    run, out = runs(name), tmp_path / "device"
    answer = tacit("export", run, "--out", out)
    assert answer.code == 0, answer.err
    for history in ([], ["item 1"], ["item 1", "item 4", "item 9"]):
        listed = tacit("recommend", run, "--history", ",".join(history), "--json").json
        assert ranked(out, history) == [line["id"] for line in listed["items"]]


def test_files_for_a_session_take_weights(tacit, runs, tmp_path):
    run, out = runs("gram"), tmp_path / "device"
    assert tacit("export", run, "--out", out, "--for", "session").code == 0
    facts = json.loads((out / "model.json").read_text("utf-8"))
    assert facts["list_for"] == "session"
    assert "1 / (1 + the number of items" in facts["onnx"]["input"]["meaning"]
    ids, history = [i["id"] for i in facts["items"]], ["item 9", "item 4", "item 1"]
    x = np.zeros((1, len(ids)))
    for later, item in enumerate(reversed(history)):
        x[0, ids.index(item)] = 1 / (1 + later)
    (scores,) = run_onnx(out / "model.onnx", x)
    scores[x[0] > 0] = -np.inf
    best = [ids[i] for i in np.argsort(-scores, kind="stable")[:5]]
    asked = ("recommend", run, "--history", ",".join(history), "-k", 5, "--json")
    listed = tacit(*asked, "--for", "session").json
    assert best == [line["id"] for line in listed["items"]]
    refused = tacit("export", runs("fedvae"), "--for", "visit")
    assert "cannot weigh a history" in refused.err


def test_the_document_says_what_is_in_it_and_what_was_promised(tacit, runs, tmp_path):
    run, out = runs("federated_popularity"), tmp_path / "device"
    said = tacit("export", run, "--out", out, "--json").json
    facts = json.loads((out / "model.json").read_text("utf-8"))
    content = (out / "model.onnx").read_bytes()
    assert facts["onnx"]["sha256"] == sha256(content).hexdigest()
    assert facts["onnx"]["bytes"] == len(content)
    assert facts["onnx"]["input"]["type"] == "float32"
    assert facts["method"]["name"] == "federated_popularity"
    assert facts["privacy"]["mechanism"] == "central"
    assert facts["items"][0].keys() == {"id", "title"}
    card = json.loads((run / "privacy-card.json").read_text("utf-8"))
    assert facts["epsilons"] == card["totals"]
    proven = [line for line in facts["epsilons"] if line["standing"] == "PROVEN"]
    assert proven[0]["epsilon"] == pytest.approx(4, abs=0.01)
    assert said.pop("n_items") == len(facts.pop("items")) == 15
    assert said.pop("model") == str(out / "model.onnx")
    assert said.pop("facts") == str(out / "model.json")
    assert said == facts


def test_people_read_the_same(tacit, runs, tmp_path):
    answer = tacit("export", runs("fedvae"), "--out", tmp_path / "device")
    assert "history to scores" in answer.out
    assert "15 items" in answer.out
    assert "Against everyone who sees the model: no promise" in answer.out


def test_double_precision(tacit, runs, tmp_path):
    run = runs("federated_popularity")
    said = tacit("export", run, "--out", tmp_path / "device", "--double", "--json").json
    assert said["onnx"]["input"]["type"] == said["onnx"]["output"]["type"] == "float64"


@pytest.mark.slow
def test_torch_takes_no_part(runs, tmp_path):
    arguments = ["tacit", "export", str(runs("fedvae")), "--out", str(tmp_path / "out")]
    code = (
        "import sys\nfrom tacit.cli import main\n"
        f"sys.argv = {arguments!r}\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert 'onnx' in sys.modules\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "model.onnx").stat().st_size > 0


# what is refused


def test_nothing_is_overwritten(tacit, runs, tmp_path):
    run = runs("federated_popularity")
    assert tacit("export", run).code == 0  # into the run
    before = (run / "export" / "model.onnx").read_bytes()
    again = tacit("export", run, "--double")
    assert again.code == 2
    assert "nothing is overwritten" in again.err
    assert (run / "export" / "model.onnx").read_bytes() == before
    (tmp_path / "file").write_text("mine")
    assert tacit("export", run, "--out", tmp_path / "file").code == 2
    (tmp_path / "empty").mkdir()
    assert tacit("export", run, "--out", tmp_path / "empty").code == 0


def test_a_run_that_is_not_there_or_not_finished(tacit, runs, tmp_path):
    answer = tacit("export", tmp_path / "nowhere")
    assert answer.code == 2
    assert "holds no run" in answer.err
    run, out = tmp_path / "begun", tmp_path / "device"
    shutil.copytree(runs("federated_popularity"), run)
    (run / "model.safetensors").unlink()
    answer = tacit("export", run, "--out", out, "--json")
    assert answer.code == 2
    assert "no finished model" in answer.json["error"]["message"]
    assert not out.exists()


def test_a_method_without_a_formula_names_those_with_one(tacit, runs):
    answer = tacit("export", runs("dplcf"))
    assert answer.code == 2
    assert "Dplcf has no formula" in answer.err
    can = "dpvae, federated_popularity, fedvae, fmf_ldp, gram"
    assert f"Methods that can be exported: {can}" in answer.err


def test_without_onnx_the_extra_is_named(tacit, runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    run, out = runs("federated_popularity"), tmp_path / "device"
    answer = tacit("export", run, "--out", out)
    assert answer.code == 2
    assert "pip install 'tacit-recommender[onnx]'" in answer.err
    assert not out.exists()


def test_a_killed_export_leaves_nothing_that_blocks_the_next(
    tacit, runs, tmp_path, monkeypatch
):
    """Stopped before its last step, and as an earlier process left it."""
    run, out = runs("federated_popularity"), tmp_path / "place" / "device"
    kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
    monkeypatch.setattr("os.rename", kill)
    child = os.fork()
    if not child:
        tacit("export", run, "--out", out)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    monkeypatch.undo()
    assert not out.exists()
    assert len([*out.parent.iterdir()]) == 1  # a draft, with both files in it
    assert tacit("export", run, "--out", out).code == 0
    assert [*out.parent.iterdir()] == [out]
    assert {path.name for path in out.iterdir()} == {"model.onnx", "model.json"}
