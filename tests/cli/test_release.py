"""`tacit release`: what was attacked, as an operator and an outsider would meet it."""

import contextlib
import json
import stat

import numpy as np
import pytest
from quick import some_of
from safetensors.numpy import load_file

import tacit as tacit_package
from tacit.keys import Key
from tacit.mechanisms import gaussian
from tacit.mechanisms.item_selection import ItemSelection
from tacit.runtime import run as runs
from tacit.runtime.secrets import Secrets

USERS, ITEMS = 60, 12

SETTINGS = """
[data]
source = "table"
population = 100

[data.table]
path = "{events}"
user = "user"
item = "item"
{more}
[method]
name = "{method}"

[privacy]
mechanism = "{mechanism}"
channel = "{channel}"
target_epsilon = 4.0
delta = 1e-6

[run]
rounds = 2

[evaluate]
metrics = ["ndcg@10"]
baselines = ["popularity"]
"""
ITEMS_TABLE = """
[data.table.items]
path = "{items}"
item = "item"
columns = ["topic"]
"""
ALICE = ["alice,item1,t1", "alice,letter-from-the-clinic,my own words about it"]


class Table:
    """A shop's events and its list of items."""

    def __init__(self, path):
        self.path = path
        rng = np.random.default_rng(1)
        rows = [
            f"u{u},item{i},t{i % 3}"
            for u in range(USERS)
            for i in rng.choice(ITEMS, 4, replace=False)
        ]
        self.write("events.csv", ["user,item,topic", *rows])
        self.write("with-alice.csv", ["user,item,topic", *rows, *ALICE])
        listed = [f"item{i},t{i % 3}" for i in range(ITEMS)]
        self.write("items.csv", ["item,topic", *listed])

    def write(self, name, lines):
        (self.path / name).write_text("\n".join(lines) + "\n")

    def experiment(
        self,
        events="events.csv",
        *,
        method="gram",
        mechanism="central",
        channel="secure_sum",
        more=ITEMS_TABLE,
        drop=(),
    ):
        text = SETTINGS.format(
            events=self.path / events,
            more=more.format(items=self.path / "items.csv"),
            method=method,
            mechanism=mechanism,
            channel=channel,
        )
        # Two planned rounds, in which Gram cannot end early.
        text = text.replace('"gram"\n', '"gram"\ncount_rounds = 1\n')
        kept = [line for line in text.splitlines() if not line.startswith(drop)]
        path = self.path / f"{events}.toml"
        path.write_text("\n".join(kept) + "\n")
        return path


@pytest.fixture
def table(tmp_path):
    return Table(tmp_path)


def model(run):
    return (run / "model.safetensors").read_bytes() + (run / "model.json").read_bytes()


# --- What it says --------------------------------------------------------------------


def test_a_release_has_no_figure_of_users(tacit, table, tmp_path):
    run = tmp_path / "release"
    said = tacit("release", table.experiment(), "--out", run, "--json")
    assert said.code == 0, said.err
    assert said.json.keys() == {
        *("method", "simulation", "epsilons", "epsilons_with_earlier", "run")
    }
    assert said.json["simulation"] is False
    lines = (run / "metrics.jsonl").read_text().splitlines()
    said_of_rounds = [json.loads(line) for line in lines]
    assert [line["round"] for line in said_of_rounds] == [0, 1]
    assert {*said_of_rounds[0], *said_of_rounds[1]} == {"round", "checksum"}
    proven = [line for line in said.json["epsilons"] if line["standing"] == "PROVEN"]
    assert len(proven) >= 2
    for line in proven:
        assert line["epsilon"] <= 4.0
        assert "AES-256 and the operating system's randomness" in line["assumes"]
        assert "items, population and settings are public" in line["assumes"]
    card = json.loads((run / "privacy-card.json").read_text())
    assert card["simulation"] is False
    assert card["data"]["people"] == 100  # declared, not counted
    page = (run / "privacy-card.html").read_text()
    assert "This is a release" in page
    assert "This was a simulation" not in page
    assert "This is a release" in (run / "report.html").read_text()
    listed = tacit("recommend", run, "--history", "item1,item2", "--json").json
    assert listed["items"]


@pytest.mark.slow
def test_the_demo_says_its_purpose_first(tacit, tmp_path):
    said = tacit("demo", "--out", tmp_path / "demo").out
    assert said.splitlines()[0].startswith("simulation: ")


@pytest.mark.parametrize("command", ["plan", "train", "release"])
def test_every_output_says_its_purpose_first(tacit, table, tmp_path, command):
    out = [] if command == "plan" else ["--out", tmp_path / "run"]
    said = tacit(command, table.experiment(), *out).out
    first = said.splitlines()[0]
    assert first.startswith("release: " if command == "release" else "simulation: ")


def test_what_to_publish_is_said(tacit, table, tmp_path):
    said = tacit("release", table.experiment(), "--out", tmp_path / "run").out
    assert "publish: " in said
    assert "keep checkpoint/ and inputs.json" in said


# --- Public inputs -------------------------------------------------------------------


def test_a_catalog_collected_from_histories_is_refused(tacit, table, tmp_path):
    """A model named the item that one user has, and had her words in it."""
    bare = table.experiment("with-alice.csv", more='item_columns = ["topic"]')
    said = tacit("release", bare, "--out", tmp_path / "run")
    assert said.code == 2
    assert "[data.table.items]" in said.err
    simulated = tmp_path / "simulated"
    assert tacit("train", bare, "--out", simulated).code == 0
    assert b"letter-from-the-clinic" in model(simulated)  # so it is caught


def test_a_release_names_no_item_that_only_one_user_has(tacit, table, tmp_path):
    """With her and without her the model has the same items, features and users."""
    facts, weights = [], []
    for events in ("events.csv", "with-alice.csv"):
        run = tmp_path / f"of-{events}"
        said = tacit("release", table.experiment(events), "--out", run)
        assert said.code == 0, said.err
        assert b"letter-from-the-clinic" not in model(run)
        assert b"my own words" not in model(run)
        made = json.loads((run / "model.json").read_text())
        facts.append({k: v for k, v in made.items() if k not in ("digest", "checksum")})
        arrays = load_file(run / "model.safetensors")
        weights.append({n: (v.dtype, v.shape) for n, v in arrays.items()})
    assert facts[0] == facts[1]
    names = [{n for n in one if "head" not in n} for one in weights]
    assert names[0] == names[1]


def test_a_population_that_is_counted_is_refused(tacit, table, tmp_path):
    bare = table.experiment(drop=("population",))
    said = tacit("release", bare, "--out", tmp_path / "run")
    assert said.code == 2
    assert "declare it with data.population" in said.err


@pytest.mark.parametrize(
    ("mechanism", "method", "refused"),
    [
        ("none", "gram", "nothing is proven about what the model tells"),
        ("published", "privrec", "there to compare and to learn from"),
    ],
)
def test_a_release_without_a_proven_promise_is_refused(
    tacit, table, tmp_path, mechanism, method, refused
):
    path = table.experiment(
        mechanism=mechanism, method=method, drop=("target_epsilon",)
    )
    paper = ["--set", "method.mode=paper"] if mechanism == "published" else []
    said = tacit("release", path, "--out", tmp_path / "run", *paper)
    assert said.code == 2
    assert refused in said.err
    assert not (tmp_path / "run" / "experiment.toml").exists()


# --- Randomness ----------------------------------------------------------------------


def test_no_seed_gives_the_same_release_again(tacit, table, tmp_path):
    path = table.experiment()
    models = {}
    for command in ("train", "release"):
        for again in range(2):
            run = tmp_path / f"{command}{again}"
            assert tacit(command, path, "--out", run).code == 0
            models[command, again] = load_file(run / "model.safetensors")
    for command in ("train", "release"):
        one, other = models[command, 0], models[command, 1]
        is_same = one.keys() == other.keys() and all(
            np.array_equal(one[n], other[n]) for n in one
        )
        assert is_same == (command == "train")


@pytest.mark.parametrize("channel", ["secure_sum", "direct"])
@pytest.mark.parametrize("method", ["gram", "federated_popularity"])
def test_no_fast_generator_draws_what_protects(
    tacit, table, tmp_path, monkeypatch, method, channel
):
    """Philox and SFC64 gave themselves away; a release must not even ask them."""

    def no(*_, **__):
        raise AssertionError("a release drew from a generator that is no cipher")

    path = table.experiment(method=method, channel=channel)
    monkeypatch.setattr(gaussian, "fast_stream", no)
    monkeypatch.setattr(gaussian, "standard_normal", no)
    monkeypatch.setattr("tacit.keys._philox", no)
    monkeypatch.setattr(Key, "from_seed", no)
    said = tacit("release", path, "--out", tmp_path / "run")
    assert said.code == 0, said.err


def test_the_noise_is_known_to_nobody_afterwards(tacit, table, tmp_path, monkeypatch):
    """Every secret was on the disk, in a file of its owner's; none is there later."""
    seen, run = [], tmp_path / "run"
    real = runs.save_checkpoint

    def spied(path, state, *, digest):
        real(path, state, digest=digest)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        content = path.read_bytes()
        for secrets in seen:
            assert secrets.round not in content
        if state.secrets is not None:
            assert state.secrets.round in content
            seen.append(state.secrets)

    monkeypatch.setattr(runs, "save_checkpoint", spied)
    assert tacit("release", table.experiment(), "--out", run).code == 0
    assert len({secrets.round for secrets in seen}) == 2  # one a round
    assert len({secrets.run for secrets in seen}) == 1
    for path in run.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for secrets in seen:
                assert secrets.round not in content
                assert secrets.run not in content
                assert secrets.round.hex().encode() not in content


class Killed(Exception):
    """As by a signal."""


@pytest.mark.parametrize("step", ["_spend", "_append", "save_checkpoint"])
@pytest.mark.parametrize("life", some_of([2, 1, 3], 1))
def test_killed_and_resumed_it_draws_the_same_noise(
    tacit, table, tmp_path, monkeypatch, step, life
):
    """A round that is played again says the same bytes; nobody gets two draws."""
    path, run = table.experiment(), tmp_path / "run"
    sums, real = [], runs.Simulation.step

    def noted(self, state):
        after, tally = real(self, state)
        memory = {n: v.tobytes() for n, v in after.server.memory.items()}
        sums.append((state.server.round, memory))
        return after, tally

    monkeypatch.setattr(runs.Simulation, "step", noted)
    asked, whole = [], getattr(runs, step)

    def dies(*arguments, **named):
        asked.append(1)
        if len(asked) == life:
            raise Killed
        return whole(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(runs, step, dies)
        with contextlib.suppress(Killed):
            tacit("release", path, "--out", run)
    resumed = ["--resume"] if (run / "experiment.toml").exists() else []
    said = tacit("release", path, "--out", run, *resumed)
    assert said.code == 0, said.err
    for round_ in (0, 1):
        drawn = [memory for played, memory in sums if played == round_]
        assert drawn
        assert all(memory == drawn[0] for memory in drawn)


def test_a_checkpoint_without_its_secret_is_not_played_on(
    tacit, table, tmp_path, monkeypatch
):
    path, run = table.experiment(), tmp_path / "run"
    monkeypatch.setattr(Secrets, "of_next_round", lambda self: None)
    said = tacit("release", path, "--out", run)
    assert said.code == 2
    assert "has no secret to draw from" in said.err


def test_a_resume_with_another_table_is_refused(tacit, table, tmp_path, monkeypatch):
    """The same noise over two tables would show where they differ."""
    path, run = table.experiment(), tmp_path / "run"

    def dies(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(runs, "_append", dies)
        with pytest.raises(Killed):
            tacit("release", path, "--out", run)
    events = tmp_path / "events.csv"
    events.write_text(events.read_text().replace("u0,", "u1,", 1))
    said = tacit("release", path, "--out", run, "--resume")
    assert said.code == 2
    assert "was begun with other data" in said.err


# --- Items selected under noise ------------------------------------------------------

SELECTION = """
[data.selection]
most = 4
noise_multiplier = 1.5  # with 2, noise left no item to select in one of 150 runs
failure = 1e-7
"""


def test_items_may_be_selected_under_noise(tacit, table, tmp_path):
    path = table.experiment("with-alice.csv", more=SELECTION)
    run = tmp_path / "run"
    said = tacit("release", path, "--out", run, "--json")
    assert said.code == 0, said.err
    assert b"letter-from-the-clinic" not in model(run)
    card = json.loads((run / "privacy-card.json").read_text())
    assert "set of items" in {line["what"] for line in card["releases"]}
    listed = json.loads((run / "selected-items.json").read_text())
    assert listed["items"] == list(tacit_package.load(run).catalog.ids)
    found = [line["epsilon"] for line in said.json["epsilons"] if line["epsilon"]]
    assert found
    assert max(found) <= 4.0


def test_selected_items_are_not_drawn_again(tacit, table, tmp_path, monkeypatch):
    path = table.experiment(more=SELECTION)
    run = tmp_path / "run"

    def dies(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(runs, "_append", dies)
        with pytest.raises(Killed):
            tacit("release", path, "--out", run)
    first = (run / "selected-items.json").read_bytes()
    monkeypatch.setattr(ItemSelection, "select", dies)
    said = tacit("release", path, "--out", run, "--resume")
    assert said.code == 0, said.err
    assert (run / "selected-items.json").read_bytes() == first


# --- What a release cannot be used for -----------------------------------------------


def test_a_release_refreshes_only_a_release(tacit, table, tmp_path):
    path = table.experiment()
    for command in ("train", "release"):
        assert tacit(command, path, "--out", tmp_path / command).code == 0
    again = tmp_path / "again"
    said = tacit("release", path, "--from", tmp_path / "train", "--out", again)
    assert said.code == 2
    assert "was a simulation" in said.err
    said = tacit("release", path, "--from", tmp_path / "release", "--out", again)
    assert said.code == 0, said.err


def test_nobody_of_a_release_can_be_ranked_for(tacit, table, tmp_path):
    run = tmp_path / "run"
    assert tacit("release", table.experiment(), "--out", run).code == 0
    said = tacit("evaluate", run)
    assert said.code == 2
    assert "a release holds nobody out" in said.err


def test_a_simulation_needs_somebody_to_rank_for(tacit, table, tmp_path):
    said = tacit(
        *("train", table.experiment(), "--out", tmp_path / "run"),
        *("--set", "data.split=none"),
    )
    assert said.code == 2
    assert "data.split = 'none' holds nobody out" in said.err
    assert not (tmp_path / "run" / "experiment.toml").exists()
