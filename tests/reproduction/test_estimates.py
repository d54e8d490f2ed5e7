"""An estimate is of what is missing, scaled from what was timed, by hand here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import Diverged
from tacit.experiment.training import Nobody
from tacit.reproduction import estimates as module
from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.estimates import Estimate, duration, estimate

EXPERIMENT = """
[data]
source = "synthetic"
world = { users = 60, items = 30, events_per_user = 8.0 }
validation = 10
test = 10

[method]
name = "federated_popularity"

[privacy]
mechanism = "central"
channel = "secure_sum"
noise_multiplier = 1.0
delta = 1e-6

[run]
rounds = 8
sampler = { name = "fixed_size", size = 5 }

[evaluate]
metrics = ["ndcg@10"]
baseline_settings.mult_vae = { hidden = [4], latent = 2, epochs = 30, batch = 20 }
"""
ROUND, OVERHEAD, FIT = 0.5, 2.0, 3.0  # seconds


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    path = tmp_path / "paper" / "small.toml"
    path.parent.mkdir()
    path.write_text(EXPERIMENT)
    return Cell(path, seeds=2)


@pytest.fixture
def timed(monkeypatch) -> list:
    """What is timed: a training of some rounds, or a fit with some epochs."""
    begun: list = []

    def train(experiment):
        begun.append(experiment.run)
        return {"round": ROUND, "overhead": OVERHEAD}

    def fit(name, experiment):
        begun.append((name, experiment.evaluate.baseline_settings.get(name, {})))
        return {"fit": FIT}

    monkeypatch.setattr(module, "_time_training", train)
    monkeypatch.setattr(module, "_time_fit", fit)
    return begun


def results(tmp_path: Path, *cells: Cell) -> Results:
    return Results(tmp_path / "out", cells, Nobody())


def test_trainings_are_scaled_by_rounds_and_clients(tmp_path, cell, timed):
    """Two seeds of 8 rounds × 5 clients and two of 4 × 10: 0.05 s a client."""
    large = cell.but("run.rounds=4", "run.sampler.size=10", "run.seed=5")
    found = estimate(results(tmp_path, cell, large))
    assert (found.missing, found.finished, found.timed) == (4, 0, 1)
    (run,) = timed
    assert run.rounds == module.ROUNDS
    a_client = ROUND / run.sampler["size"]
    assert found.seconds == pytest.approx(4 * OVERHEAD + a_client * 4 * 40)


def test_fits_are_scaled_by_users_items_and_epochs(tmp_path, cell, timed):
    """Of 60 users one epoch is fitted; 30 epochs, and 30 of twice the users, twice."""
    world = "data.world={users = 120, items = 30, events_per_user = 8.0}"
    small, large = cell.beside("mult_vae"), cell.but(world).beside("mult_vae")
    found = estimate(results(tmp_path, small, large))
    assert timed == [("mult_vae", {**timed[0][1], "epochs": 1})]
    ratio = sum(module._size(c.experiments()[0])[0] for c in (small, large))
    ratio /= module._size(small.experiments()[0])[0]
    assert found.seconds == pytest.approx(2 * 30 * FIT * ratio)


def test_only_what_is_missing_counts(tmp_path, cell):
    """Trained for once: the second estimate has nothing left, and times nothing."""
    made = results(tmp_path, cell, cell.beside("popularity"))
    before = estimate(made)
    assert (before.missing, before.finished, before.timed) == (4, 0, 2)
    assert before.seconds > 0
    made[cell], made[cell.beside("popularity")]
    after = estimate(results(tmp_path, cell, cell.beside("popularity")))
    assert (after.missing, after.finished) == (0, 4)
    assert after.seconds == 0
    assert "nothing is left" in after.text


def test_a_timing_is_made_once_for_an_out(tmp_path, cell, timed):
    first = estimate(results(tmp_path, cell))
    assert estimate(results(tmp_path, cell)) == first
    assert len(timed) == 1


def test_a_run_that_diverged_is_not_missing(tmp_path, cell, timed):
    made = results(tmp_path, cell)
    for seed in (0, 1):
        place = tmp_path / "out" / "runs" / cell.folder / f"seed-{seed}"
        place.mkdir(parents=True)
        (place / "diverged.json").write_text("{}")
    assert estimate(made).missing == 0
    made.progress.retry_diverged = True
    assert estimate(made).missing == 2


def test_a_training_that_diverges_at_once_ends_no_estimate(tmp_path, cell, monkeypatch):
    def lose(*_, **__):
        raise Diverged("'items' has values as large as nan", 0, ("method.rate = 9",))

    monkeypatch.setattr(module, "train", lose)
    found = estimate(results(tmp_path, cell))
    assert (found.missing, found.timed) == (2, 1)
    assert found.seconds >= 0


def test_a_document_says_how_it_was_estimated():
    found = Estimate(3, 1, 2, 7_200.0)
    assert found.to_json()["seconds"] == 7_200.0
    assert "2 of them were begun here" in found.to_json()["method"]
    assert found.text.startswith("1 of 4 runs are there; the others take about 2 h")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (29, "29 s"),
        (61, "1 min"),
        (3_600 * 3 + 60 * 20, "3 h 20 min"),
        (86_400 + 3_600 * 2 + 60, "1 day 2 h"),
        (86_400 * 18, "18 days"),
    ],
)
def test_a_duration_has_two_units(seconds, text):
    assert duration(seconds) == text
