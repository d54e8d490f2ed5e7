"""A cell trains through the `train` of every experiment, once, and survives a kill."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.documents import read_document
from tacit.errors import BadRun, BadValue, Diverged
from tacit.experiment import comparison, training
from tacit.experiment.build_report import Finished, write_report
from tacit.experiment.saved_run import SavedRun
from tacit.experiment.settings import read_experiment
from tacit.experiment.training import Nobody, train
from tacit.release import View
from tacit.reproduction import cells, claims
from tacit.reproduction.cells import Cell, Results
from tacit.runtime.run import RunDirectory

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
rounds = 2
sampler = { name = "once" }

[evaluate]
metrics = ["ndcg@10", "recall@5"]
full_metrics = ["recall@10"]
"""


class Counted(Nobody):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.rounds: list[tuple[int, int]] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def round(self, done, planned, facts) -> None:
        self.rounds.append((done, planned))


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    path = tmp_path / "paper" / "small.toml"
    path.parent.mkdir()
    path.write_text(EXPERIMENT)
    return Cell(path, seeds=2)


def results(tmp_path: Path, *cells: Cell, watch=None) -> Results:
    return Results(tmp_path / "out", cells, watch or Nobody())


def test_a_cell_is_what_train_gives_on_the_same_file(tmp_path, cell):
    found = results(tmp_path, cell)[cell]
    experiment = read_experiment(cell.experiment, ["evaluate.baselines=[]"])
    alone = train(experiment, tmp_path / "alone")
    ours, own = found.evaluations[0], alone.evaluations["federated_popularity"]
    assert ours.to_json() == own.to_json()
    assert len(found.evaluations) == 2
    assert found.evaluations[0].users.tolist() != found.evaluations[1].users.tolist()


def test_what_is_finished_is_read_and_not_trained_again(tmp_path, cell, monkeypatch):
    first = results(tmp_path, cell)[cell]
    monkeypatch.setattr(comparison, "train", lambda *a, **k: pytest.fail("trained"))
    again = results(tmp_path, cell)[cell]
    assert again.mean("ndcg@10") == first.mean("ndcg@10")


def test_runs_of_another_version_are_named(tmp_path, cell, monkeypatch):
    results(tmp_path, cell)[cell]
    same, other = Counted(), Counted()
    results(tmp_path, cell, watch=same)[cell]
    monkeypatch.setattr(cells, "__version__", "9.9")
    results(tmp_path, cell, watch=other)[cell]
    assert same.said == []
    assert [line for line in other.said if "this is 9.9" in line] == other.said
    assert len(other.said) == 2  # one per seed


def test_a_killed_cell_goes_on_from_its_run_directories(tmp_path, cell, monkeypatch):
    """Killed in the second seed when its rounds are over and its model is not saved."""
    whole = Results(tmp_path / "whole", [cell], Nobody())[cell]
    save, saved = training.save_model, []

    def killed(*model) -> None:
        saved.append(model)
        if len(saved) == 2:
            raise KeyboardInterrupt
        save(*model)

    monkeypatch.setattr(training, "save_model", killed)
    with pytest.raises(KeyboardInterrupt):
        results(tmp_path, cell)[cell]
    watch = Counted()
    after = results(tmp_path, cell, watch=watch)[cell]
    assert watch.said == ["paper.small, seed 1"]
    assert after.mean("ndcg@10") == whole.mean("ndcg@10")


def test_the_page_of_a_run_is_drawn_when_somebody_asks(tmp_path, cell):
    directory = results(tmp_path, cell)[cell].runs[0].directory
    assert not directory.report.exists()
    assert directory.privacy_card.exists()
    drawn = write_report(Finished.saved(SavedRun.at(directory.path)))
    assert "<svg" in drawn.read_text()


def test_changes_make_another_cell(tmp_path, cell):
    other = cell.but("run.rounds=3", "data.test=12").but("run.rounds=4")
    assert other.changes == ("run.rounds=4", "data.test=12")
    assert other.folder != cell.folder
    assert cell.folder == "paper.small"
    assert other.experiments()[0].run.rounds == 4
    assert "--set 'run.rounds=4'" in other.command


def test_a_directory_of_another_experiment_is_refused(tmp_path, cell):
    results(tmp_path, cell)[cell]
    cell.experiment.write_text(EXPERIMENT.replace("rounds = 2", "rounds = 3"))
    with pytest.raises(BadRun, match=r"run\.rounds"):
        results(tmp_path, cell)[cell]


def test_a_file_that_is_wrong_is_refused_before_any_data_are_read(cell):
    with pytest.raises(BadValue, match="rounds"):
        cell.but("run.rounds=0").experiments()


def test_only_declared_cells_can_be_asked_for(tmp_path, cell):
    made = results(tmp_path, cell)
    with pytest.raises(BadValue, match="not declared"):
        made[cell.but("run.rounds=3")]


def test_baselines_are_fitted_once_for_cells_measured_alike(tmp_path, cell):
    one, other = cell, cell.but("privacy.noise_multiplier=2.0")
    watch = Counted()
    made = results(
        tmp_path, one.beside("popularity"), other.beside("popularity"), watch=watch
    )
    found = [made[c.beside("popularity")] for c in (one, other)]
    assert found[0].mean("ndcg@10") == found[1].mean("ndcg@10")
    assert watch.said == ["popularity, seed 0", "popularity, seed 1"]
    assert watch.rounds[-1] == (4, 4)


def test_what_is_found_has_both_rankings_the_budget_and_the_curve(tmp_path, cell):
    found = results(tmp_path, cell)[cell]
    assert 0 < found.mean_among_all("recall@10") <= 1
    assert found.se("ndcg@10") == found.pooled("ndcg@10").se_seeds
    assert found.spent(View.RELEASE) > 0
    assert found.size()[0] == 40
    curve = found.curve("ndcg@10")
    assert curve.x == (1.0, 2.0)
    assert all(se > 0 for se in curve.se)
    with pytest.raises(BadValue, match=r"ndcg@11.*ndcg@10"):
        found.mean("ndcg@11")


def test_a_measure_is_made_once_for_its_inputs(tmp_path):
    asked = []

    def make() -> list[int]:
        asked.append(1)
        return [1, 2]

    for k in (1, 1, 2):
        assert results(tmp_path).measured("bytes", {"k": k}, make) == [1, 2]
    assert len(asked) == 2


def test_extras_are_those_of_the_baseline_or_the_method(cell):
    assert cell.extras() == {}
    assert cell.beside("ials").extras() == {"implicit": "baselines"}
    assert cell.beside("popularity").extras() == {}


# A cell that diverges


DIVERGING = """
[method]
name = "fmf_ldp"
learning_rate = 1e9

[run]
rounds = 12

"""


@pytest.fixture
def diverging(cell: Cell) -> Cell:
    first, last = EXPERIMENT.index("[method]"), EXPERIMENT.index("[evaluate]")
    path = cell.experiment.with_name("diverging.toml")
    path.write_text(EXPERIMENT[:first] + DIVERGING + EXPERIMENT[last:])
    return Cell(path)


def test_a_cell_that_diverges_is_written_down_and_the_others_are_made(
    tmp_path, cell, diverging
):
    watch = Counted()
    found = results(tmp_path, diverging, cell, watch=watch)
    lost, whole = found[diverging], found[cell]
    assert np.isnan(lost.mean("ndcg@10"))
    assert np.isnan(lost.mean_among_all("recall@10"))
    assert lost.spent(View.RELEASE) is None
    assert whole.mean("ndcg@10") > 0
    path = tmp_path / "out" / "runs" / diverging.folder / "seed-0" / "diverged.json"
    kept = read_document(path)
    assert kept["round"] >= 0
    assert kept["lower"] == ["method.learning_rate = 1e+09"]
    assert kept["settings"]["method"]["learning_rate"] == 1e9
    [said] = found.diverged
    assert "method.learning_rate = 1e+09" in said
    assert f"in round {kept['round']}" in said
    assert watch.rounds[-1] == (3, 3)


def test_nothing_is_claimed_of_it(tmp_path, cell, diverging):
    found = results(tmp_path, diverging, replace(cell, seeds=1))
    pair = (found[diverging].evaluations, found[replace(cell, seeds=1)].evaluations)
    bar = {"ndcg@10": 0.0}
    for more, less in (pair, pair[::-1]):
        claim = claims.is_above("better", more, less, metric="ndcg@10", chance=bar)
        assert not claim.ok
        close = claims.is_close(
            "close", more, less, metric="ndcg@10", within=1.0, chance=bar
        )
        assert not close.ok
    with pytest.raises(Diverged):
        found[diverging].curve("ndcg@10")


def test_it_is_tried_again_only_when_asked(tmp_path, diverging, monkeypatch):
    results(tmp_path, diverging)[diverging]
    tries = []

    def count(experiment, out, **options):
        tries.append(RunDirectory(out).checkpoint.exists())
        return train(experiment, out, **options)

    monkeypatch.setattr(comparison, "train", count)
    again = results(tmp_path, diverging)
    assert np.isnan(again[diverging].mean("ndcg@10"))
    assert len(again.diverged) == 1
    assert not tries
    anew = Results(tmp_path / "out", [diverging], Nobody(), retry_diverged=True)
    assert np.isnan(anew[diverging].mean("ndcg@10"))
    assert tries == [False]  # from the start
