import subprocess
import sys

import pytest


@pytest.fixture
def run(tacit, experiment, tmp_path):
    path = tmp_path / "run"
    assert tacit("train", experiment, "--out", path).code == 0
    return path


def test_nobody_is_recommended_what_they_have(tacit, run):
    listed = tacit("recommend", run, "--history", "item 1,item 2", "--json").json
    ids = {line["id"] for line in listed["items"]}
    assert ids
    assert not ids & {"item 1", "item 2"}


def test_an_empty_history_gets_the_popular_items(tacit, run):
    assert len(tacit("recommend", run, "--history", "", "--json").json["items"]) == 10


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "either --user ID or --history"),
        (("--user", "user 3", "--history", "x"), "either --user ID or --history"),
        (("--user", "usr 3"), "did you mean 'user 3'"),
        (("--history", "item 99"), "'item 99' is not known"),
    ],
)
def test_bad_input(tacit, run, arguments, problem):
    answer = tacit("recommend", run, *arguments)
    assert answer.code == 2
    assert problem in answer.err


def test_a_run_that_is_not_there(tacit, tmp_path):
    answer = tacit("recommend", tmp_path / "nowhere", "--user", "x")
    assert answer.code == 2
    assert "train it first" in answer.err


def test_a_user_is_served_without_torch(run):
    code = (
        "import sys, tacit\n"
        f"best = tacit.load({str(run)!r}).recommend(['item 1'], k=3)\n"
        "assert len(best) == 3\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_the_two_model_files_are_needed(tacit, run, tmp_path):
    client = tmp_path / "device"
    client.mkdir()
    for name in ("model.safetensors", "model.json"):
        (client / name).write_bytes((run / name).read_bytes())
    answer = tacit("recommend", client, "--history", "item 3", "--json")
    assert len(answer.json["items"]) == 10


def test_why(tacit, experiment, tmp_path):
    out = tmp_path / "gram"
    gram = ("--set", "method.name=gram", "--set", "run.rounds=2")
    everyone = ("--set", 'run.sampler={name="everyone"}')
    trained = tacit("train", experiment, "--out", out, *gram, *everyone)
    assert trained.code == 0, trained.err
    listed = tacit("recommend", out, "--user", "user 3", "--why", "--json").json
    assert all(len(line["because"]) <= 3 for line in listed["items"])
    assert any(line["because"] for line in listed["items"])
    said = tacit("recommend", out, "--user", "user 3", "--why").out
    assert "because of" in said
