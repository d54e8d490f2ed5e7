"""Who is ranked for, among what, and with which settings of a baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.baselines import TUNED
from tacit.baselines.item_knn import ItemKnn
from tacit.errors import BadExperiment, BadValue
from tacit.experiment.assemble import assemble
from tacit.experiment.evaluate import (
    baseline_scorer,
    evaluate_among_all,
    evaluate_scores,
    ranked_for,
    scorers,
)
from tacit.experiment.registry import baseline, baseline_names
from tacit.experiment.scorer import fit
from tacit.experiment.settings import check_experiment
from tacit.experiment.training import AMONG_ALL, evaluate_all, train
from tacit.results import Evaluation


def experiment(**evaluate):
    world = {"users": 80, "items": 30, "events_per_user": 10.0, "repeats": 0.0}
    return check_experiment(
        {
            "data": {"source": "synthetic", "world": world, "split": "leave-one-out"},
            "method": {"name": "federated_popularity"},
            "evaluate": {"metrics": ["hr@5"], **evaluate},
        }
    )


def test_at_most_so_many_users_are_ranked_for():
    made = assemble(experiment(max_users=7))
    heldout = ranked_for(made.experiment, made.split.test)
    assert heldout.users.tolist() == made.split.test.users[:7].tolist()
    assert len(heldout.history) == len(heldout.targets) == 7
    assert ranked_for(experiment(), made.split.test) is made.split.test


def test_who_lacks_candidates_is_skipped_only_if_asked():
    own = {"protocol": "sampled", "candidates": 18}
    made = assemble(experiment(**own))
    test = made.split.test
    lacks = test.history.n_items - test.history.lengths - 1
    assert (lacks < 18).any()
    (_, score, _), *_ = scorers(made, made.simulation.start())
    with pytest.raises(BadValue, match="sample fewer"):
        evaluate_scores(made, score, test)
    skipping = assemble(experiment(**own, too_few_candidates="skip"))
    found = evaluate_scores(skipping, score, test)
    assert found.users.tolist() == test.users[lacks >= 18].tolist()


def test_full_metrics_stand_beside_the_protocols_own(tmp_path):
    made = experiment(
        protocol="sampled", candidates=10, too_few_candidates="skip", max_users=20
    )
    both = experiment(
        **{"protocol": "sampled", "candidates": 10, "too_few_candidates": "skip"},
        **{"max_users": 20, "full_metrics": ["hr@10"], "baselines": ["random"]},
    )
    outcome = train(both, tmp_path / "run")
    among_all = outcome.document["simulation_only"][AMONG_ALL]
    assert list(among_all) == ["federated_popularity", "random"]
    for name, own in outcome.evaluations.items():
        assert own.protocol == "sampled 10 candidates"
        assert among_all[name]["protocol"] == "full ranking"
        assert list(among_all[name]["metrics"]) == ["hr@10"]
        assert among_all[name]["people"]["users"] == own.users.tolist()
    assembled = assemble(made)
    (_, score, _), *_ = scorers(assembled, assembled.simulation.start())
    assert evaluate_among_all(assembled, score, assembled.split.test) is None


def test_a_baseline_has_the_settings_of_the_file():
    settings = {"item_knn": {"neighbors": 3}}
    made = experiment(baseline_settings=settings, baselines=["item_knn"])
    assert made.evaluate.baseline_settings == settings
    assert baseline("item_knn", settings["item_knn"]) == ItemKnn(neighbors=3)
    assert baseline("item_knn") == ItemKnn()
    again = check_experiment(made.resolved())
    bare = experiment(baselines=["item_knn"])
    assert again.resolved() == made.resolved() != bare.resolved()
    assert made.digest == bare.digest  # the same model, with another one beside it


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"item_knn": {"neighbours": 3}}, "neighbours.*neighbors"),
        ({"item_knn": {"neighbors": 0}}, "neighbors=0"),
        ({"item_nn": {}}, "item_nn.*item_knn"),
    ],
)
def test_wrong_settings_of_a_baseline_are_problems_of_the_file(settings, problem):
    with pytest.raises(BadExperiment, match=problem):
        experiment(baseline_settings=settings)


@pytest.mark.parametrize("name", baseline_names())
def test_extras_are_what_a_baseline_cannot_be_fitted_without(name, monkeypatch):
    """Every optional module is blocked; those that name one fail, the others fit."""
    import sys

    from tacit.data.features import Vectors
    from tacit.data.splits import everyone_trains
    from tacit.data.synthetic.news_world import NewsWorld
    from tacit.errors import MissingExtra
    from tacit.keys import Key

    for module in ("implicit", "lightfm", "torch"):
        for known in [m for m in sys.modules if m.split(".")[0] == module]:
            monkeypatch.setitem(sys.modules, known, None)
        monkeypatch.setitem(sys.modules, module, None)
    # News have all that any baseline reads: impressions, times, texts and labels.
    whole = NewsWorld(users=30, news=120).dataset("t")
    vectors = Vectors(np.eye(len(whole.catalog), dtype=np.float32))
    known = {**whole.catalog.features, "title_vector": vectors}
    catalog = replace(whole.catalog, features=known)
    train_on = everyone_trains(replace(whole, catalog=catalog, listed=catalog))
    ranker = baseline(name, {"epochs": 1} if name == "mult_vae" else None)
    extras = getattr(type(ranker), "EXTRAS", {})
    if not extras:
        fit(ranker, train_on, key=Key.from_seed(0))
        return
    with pytest.raises(MissingExtra) as caught:
        fit(ranker, train_on, key=Key.from_seed(0))
    assert {caught.value.module: caught.value.extra} == extras


def test_the_users_of_two_subsets_are_the_same_users():
    world = {"users": 80, "items": 30, "events_per_user": 10.0}
    few, many = (
        assemble(
            check_experiment(
                {
                    "data": {
                        **{"source": "synthetic", "world": world},
                        **{"split": "leave-one-out", "subset": subset},
                    },
                    "method": {"name": "federated_popularity"},
                }
            )
        ).split
        for subset in ({"users": 20}, {})
    )
    assert len(few.users) == 20
    for row, user in enumerate(few.test.users[:10].tolist()):
        at = int(np.flatnonzero(many.test.users == user)[0])
        held = few.test.history.histories[row], many.test.history.histories[at]
        np.testing.assert_array_equal(*held)


@pytest.fixture(scope="module")
def few_users():
    """Eighty users train, to whom a ridge of 700 leaves hardly more than counts."""
    world = {"users": 160, "items": 60, "events_per_user": 15}
    return assemble(
        check_experiment(
            {
                "data": {"source": "synthetic", "world": world, "test": 40},
                "method": {"name": "federated_popularity"},
                "evaluate": {
                    "metrics": ["ndcg@10"],
                    "baselines": ["ease", "popularity"],
                    "baseline_settings": {"item_knn": {"neighbors": 7}},
                },
            }
        )
    )


def test_a_baseline_without_privacy_is_chosen_on_validation_users(few_users):
    test, validation = few_users.split.test, few_users.split.validation
    tuned, chosen = baseline_scorer(few_users, "ease")
    usual, nothing = baseline_scorer(few_users, "ease", budget=0)
    assert nothing is None
    assert (chosen.tried, *chosen.settings) == (7, "regularization")
    assert chosen.settings["regularization"] < 700
    for part in (validation, test):
        one, other = (
            evaluate_scores(few_users, score, part).metrics()["ndcg@10"].mean
            for score in (tuned, usual)
        )
        assert one > other


def test_nothing_is_searched_that_a_file_sets_or_that_takes_minutes(few_users):
    for name in ("item_knn", "popularity"):
        assert baseline_scorer(few_users, name)[1] is None
    assert baseline_scorer(few_users, "item_knn", budget=2)[1].tried == 2
    assert not TUNED & {"mult_vae", "bpr", "lightfm", "nrms", "naml", "plm_nr"}


def test_what_was_chosen_is_kept_with_the_figures(few_users):
    found = evaluate_all(few_users, few_users.simulation.start(), few_users.split.test)[
        "ease"
    ]
    assert Evaluation.from_json(found.to_json()).chosen == found.chosen
    assert str(found.chosen).endswith("(the best of 7)")


def test_a_search_ranks_as_the_experiment_does():
    """Metrics of a target alone go with no other protocol, while searching too."""
    world = {"users": 80, "items": 30, "events_per_user": 10.0}
    table = {
        "data": {"source": "synthetic", "world": world, "split": "adapt-half"},
        "method": {"name": "federated_popularity"},
        "evaluate": {
            "metrics": ["hr_each@5"],
            "protocol": "each-alone",
            "baselines": ["ease"],
        },
    }
    assembled = assemble(check_experiment(table))
    assert baseline_scorer(assembled, "ease")[1].tried == 7
