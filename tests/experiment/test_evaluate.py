"""Who is ranked for, among what, and with which settings of a baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.baselines.item_knn import ItemKnn
from tacit.errors import BadExperiment, BadValue
from tacit.experiment.assemble import assemble
from tacit.experiment.evaluate import (
    evaluate_among_all,
    evaluate_scores,
    ranked_for,
    scorers,
)
from tacit.experiment.registry import baseline, baseline_names
from tacit.experiment.scorer import fit
from tacit.experiment.settings import check_experiment
from tacit.experiment.training import AMONG_ALL, train


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
    (_, score), *_ = scorers(made, made.simulation.start())
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
    (_, score), *_ = scorers(assembled, assembled.simulation.start())
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
