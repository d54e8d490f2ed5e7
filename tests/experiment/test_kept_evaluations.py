"""A run that is stopped while it is evaluated goes on, also with other baselines."""

import pytest

from tacit.errors import BadRun
from tacit.experiment import evaluate, training
from tacit.experiment.kept_evaluations import KeptEvaluations
from tacit.experiment.settings import check_experiment
from tacit.experiment.training import train
from tacit.runtime.run import RunDirectory


def experiment(*baselines, **settings):
    world = {"users": 60, "items": 12, "rank": 2, "events_per_user": 5}
    return check_experiment(
        {
            "data": {"source": "synthetic", "world": world},
            "method": {"name": "federated_popularity"},
            "run": {"rounds": 2},
            "evaluate": {
                "metrics": ["ndcg@5"],
                "full_metrics": ["recall@5"],
                "baselines": list(baselines),
                **settings,
            },
        }
    )


@pytest.fixture
def ranked(monkeypatch):
    """The names of the contenders that were ranked by, in their order."""
    names, own = [], training._evaluate_one

    def noted(assembled, name, *rest):
        names.append(name)
        return own(assembled, name, *rest)

    monkeypatch.setattr(training, "_evaluate_one", noted)
    return names


@pytest.fixture
def failing(monkeypatch):
    """A baseline whose fit fails, as for want of memory."""
    own = evaluate.baseline_scorer

    def fit(assembled, name, **options):
        if name == "ease":
            raise MemoryError
        return own(assembled, name, **options)

    monkeypatch.setattr(evaluate, "baseline_scorer", fit)


def test_a_run_goes_on_without_the_baseline_that_failed(tmp_path, ranked, failing):
    with pytest.raises(MemoryError):
        train(experiment("popularity", "ease"), tmp_path, page=False)
    assert ranked == ["federated_popularity", "popularity"]
    ranked.clear()
    asked = experiment("item_knn", "popularity")
    found = train(asked, tmp_path, resume=True, page=False)
    assert ranked == ["item_knn"]  # nothing else is ranked again
    assert [*found.evaluations] == ["federated_popularity", "item_knn", "popularity"]
    assert not (tmp_path / "evaluations").exists()
    whole = train(asked, tmp_path.with_name("whole"), page=False)
    for key in ("evaluations", "evaluations_among_all"):
        one, two = (r.document["simulation_only"][key] for r in (found, whole))
        assert one == two


def test_other_settings_of_a_baseline_are_another_baseline(tmp_path):
    asked = experiment("ease")
    kept = KeptEvaluations.of(asked, RunDirectory(tmp_path))
    other = experiment("ease", baseline_settings={"ease": {"regularization": 9.0}})
    assert kept._path("ease") != KeptEvaluations(other, kept.folder)._path("ease")
    assert kept._path("popularity") == KeptEvaluations(other, kept.folder)._path(
        "popularity"
    )


def test_other_metrics_are_another_experiment(tmp_path, failing):
    with pytest.raises(MemoryError):
        train(experiment("ease"), tmp_path, page=False)
    with pytest.raises(BadRun, match=r"evaluate\.metrics"):
        train(experiment(metrics=["ndcg@7"]), tmp_path, resume=True, page=False)
