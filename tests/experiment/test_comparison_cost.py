"""Costs of several runs as one figure each."""

from dataclasses import replace

import numpy as np
import tomli_w

from tacit.experiment import comparison, training
from tacit.experiment.comparison_cost import Cost, measure
from tacit.experiment.comparison_grid import Grid
from tacit.experiment.settings import check_experiment
from tacit.runtime.run import ONLY

WORLD = {"users": 120, "items": 12, "rank": 2, "events_per_user": 5}
PRIVACY = {
    "mechanism": "central",
    "channel": "secure_sum",
    "target_epsilon": 4.0,
    "delta": 1e-6,
}


def test_bytes_are_means_times_the_quickest_and_memory_the_largest():
    first = Cost(10.0, 4.0, 0.9, 90.0, 100)
    second = Cost(20.0, 6.0, 0.1, 10.0, 300)
    assert Cost.of_runs([first, second]) == Cost(15.0, 5.0, 0.1, 10.0, 300)


def test_what_one_run_did_not_measure_is_not_known():
    assert Cost.of_runs([Cost(seconds=1.0, memory_bytes=5), Cost(seconds=2.0)]) == Cost(
        seconds=1.0
    )


def test_work_is_measured_and_its_result_is_kept():
    made, took = measure(lambda: 3)
    assert made == 3
    assert took.seconds >= 0


def test_a_warm_training_is_the_same_training(tmp_path):
    """Rounds that are thrown away leave no trace in what is learnt and measured."""
    experiment = check_experiment(
        {
            "data": {"source": "synthetic", "world": WORLD},
            "method": {"name": "gram"},
            "privacy": PRIVACY,
            "evaluate": {"metrics": ["ndcg@10"], "baselines": []},
        }
    )
    cold = training.train(experiment, tmp_path / "cold", page=False)
    warm = training.train(experiment, tmp_path / "warm", page=False, warm=True)
    same = ("asked", "took_part", "bytes_up", "bytes_down")
    counted = [one.document[ONLY] for one in (cold, warm)]
    assert [counted[0][name] for name in same] == [counted[1][name] for name in same]
    values = [one.evaluations["gram"].values["ndcg@10"] for one in (cold, warm)]
    assert np.array_equal(*values)


def test_every_line_is_warmed_once_and_measured_then(tmp_path, monkeypatch):
    """Whatever the order of lines: the first run of each is not the one that loads."""
    file = tmp_path / "exp.toml"
    settings = {
        "data": {"source": "synthetic", "world": WORLD},
        "method": {"name": "federated_popularity"},
        "privacy": PRIVACY,
        "evaluate": {"metrics": ["ndcg@10"], "baselines": ["popularity"]},
    }
    file.write_text(tomli_w.dumps(settings))
    warmed, fitted, warm_up = [], [], training.warm_up
    fit = comparison.baseline_scorer

    def note(assembled):
        warmed.append(assembled.plan.target_epsilon)
        warm_up(assembled)

    def note_fit(assembled, name, **settings):
        fitted.append(name)
        return fit(assembled, name, **settings)

    monkeypatch.setattr(training, "warm_up", note)
    monkeypatch.setattr(comparison, "baseline_scorer", note_fit)
    grid = Grid((file,), epsilons=(1.0, 4.0), seeds=2)
    found = comparison.compare(grid, tmp_path / "c")
    assert warmed == [1.0, 4.0]
    assert fitted == ["popularity"] * 3  # a fit to be warm, and one a seed
    assert all(line.cost.memory_bytes is not None for line in found.lines)
    comparison.compare(replace(grid, seeds=3), tmp_path / "c")
    assert warmed == [1.0, 4.0] * 2  # another process begins cold
