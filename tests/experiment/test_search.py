from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.baselines.ease import Ease
from tacit.baselines.popularity import Popularity
from tacit.baselines.pure_svd import PureSvd
from tacit.data.splits import Split, new_users
from tacit.data.synthetic.world import World
from tacit.errors import BadValue
from tacit.evaluation.evaluate import evaluate
from tacit.experiment.search import BUDGET, search, settings_of
from tacit.keys import Key

KEY = Key.from_seed(0)
GRID = {"a": (1, 2, 3), "b": (1.0, 2.0)}


@pytest.fixture(scope="module")
def split() -> Split:
    world = World(users=120, items=40, events_per_user=10, seed=1)
    return new_users(world.dataset(), n_validation=20, n_test=20, key=KEY)


def test_a_small_grid_is_tried_whole():
    found = settings_of(GRID, 6, key=KEY)
    assert found == [{"a": a, "b": b} for a in (1, 2, 3) for b in (1.0, 2.0)]


def test_of_a_large_grid_different_settings_are_drawn():
    found = settings_of(GRID, 4, key=KEY)
    assert len({tuple(s.items()) for s in found}) == 4
    assert all(s["a"] in GRID["a"] and s["b"] in GRID["b"] for s in found)
    assert found == settings_of(GRID, 4, key=KEY)
    others = [settings_of(GRID, 4, key=Key.from_seed(s)) for s in range(1, 9)]
    assert any(other != found for other in others)


def test_the_best_has_the_largest_mean_on_the_validation_users(split):
    found = search(Ease(), split, grid={"regularization": (1.0, 30.0, 1e6)}, key=KEY)
    for trial in found.trials:
        fitted = trial.ranker.fit(split.train, key=KEY)
        judged = evaluate(fitted.score, split.validation).metrics()["ndcg@100"]
        assert trial.found == judged
    assert found.best.found.mean == max(t.found.mean for t in found.trials)
    assert found.best.ranker == Ease(found.best.settings["regularization"])
    assert found.to_json()["best"] == found.best.settings


def test_the_test_users_are_not_looked_at(split):
    """Without them, the same search."""
    blind = replace(split, test=None)
    grid = {"factors": (2, 4, 8)}
    found, again = (search(PureSvd(), s, grid=grid, key=KEY) for s in (split, blind))
    assert [t.found for t in found.trials] == [t.found for t in again.trials]


def test_nothing_to_choose_is_one_trial(split):
    found = search(Popularity(), split, metric="recall@20", key=KEY)
    assert [t.settings for t in found.trials] == [{}]
    assert found.metric == "recall@20"


def test_everyone_has_the_same_budget(split):
    found = search(PureSvd(), split, key=KEY)
    assert len(found.trials) == BUDGET == len(PureSvd.GRID["factors"])
    assert len(search(PureSvd(), split, budget=3, key=KEY).trials) == 3


def test_a_budget_is_at_least_one(split):
    with pytest.raises(BadValue, match="budget=0 must be >= 1"):
        search(Popularity(), split, budget=0, key=KEY)
