from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from tacit.baselines.ease import Ease
from tacit.baselines.popularity import Popularity
from tacit.baselines.ranker import Ranker
from tacit.data.shards import Shards
from tacit.data.sources import load
from tacit.data.splits import Split, new_users
from tacit.data.synthetic.ground_truth import Oracle
from tacit.data.synthetic.world import World
from tacit.evaluation.evaluate import evaluate
from tacit.evaluation.ranking import Factors, Personal
from tacit.keys import Key
from tacit.results import Metric


@pytest.fixture(scope="module")
def demo() -> tuple[Oracle, Split]:
    dataset = load("synthetic")
    split = new_users(dataset, n_validation=150, n_test=300, key=Key.from_seed(1))
    return World().oracle(dataset), split


def ndcg(score, split: Split) -> np.ndarray:
    return evaluate(score, split.test, metrics=("ndcg@100",)).values["ndcg@100"]


@pytest.mark.parametrize(
    ("baseline", "at_most"), [(Popularity(), 0.6), (Ease(500.0), 0.95)]
)
def test_no_baseline_comes_near_the_oracle(demo, baseline: Ranker, at_most):
    """NDCG@100 measured: popularity 0.294, EASE 0.500, oracle 0.575.

    Paired over 300 users, the gap is more than 8 standard errors.
    """
    oracle, split = demo
    best = ndcg(Factors(oracle.represent, oracle.items), split)
    other = ndcg(baseline.fit(split.train, key=Key.from_seed(2)).score, split)
    gap = Metric.of(best - other)
    assert gap.mean > 8 * gap.se
    assert other.mean() < at_most * best.mean()


def test_its_two_forms_rank_alike(demo):
    oracle, split = demo
    np.testing.assert_allclose(
        ndcg(Personal(oracle.next_pick), split),
        ndcg(Factors(oracle.represent, oracle.items), split),
    )


def test_the_next_pick_is_one_of_the_rest():
    """Weights 1, 2, 5: without the last, which is had twice, 1/3 and 2/3."""
    oracle = Oracle(np.ones((2, 1)), np.log([[1.0], [2.0], [5.0]]))
    history = Shards.of_history([2, 2], n_items=3)
    np.testing.assert_allclose(
        oracle.next_pick(np.array([1]), history), [[1 / 3, 2 / 3, 0.0]]
    )
    np.testing.assert_allclose(
        oracle.first_pick(np.array([0])), [[1 / 8, 2 / 8, 5 / 8]]
    )
    everything = Shards.of_history([0, 1, 2], n_items=3)
    assert oracle.next_pick(np.array([0]), everything).tolist() == [[0.0, 0.0, 0.0]]


def test_it_follows_a_filtered_set():
    world = World(users=60, items=50, events_per_user=10, topics=4)
    whole, part = world.dataset(), world.dataset().filtered(min_value=5)
    rows = [whole.profiles.index(user) for user in part.profiles.ids]
    columns = whole.catalog.indices(list(part.catalog.ids))
    assert len(rows) < 60
    everyone = world.oracle(whole).weights(np.array(rows))
    np.testing.assert_allclose(
        world.oracle(part).weights(np.arange(len(rows))), everyone[:, columns]
    )


def chance_of_set(items: tuple[int, ...], weights: np.ndarray) -> float:
    """Of picking these items, in whatever order."""
    orders = np.array(list(permutations(items)))
    picked = weights[orders]
    taken = np.cumsum(picked, axis=1) - picked
    return float((picked / (weights.sum() - taken)).prod(axis=1).sum())


@pytest.mark.parametrize("history", [(), (0,), (5,), (1, 4)])
def test_heavier_items_are_likelier_targets(history):
    """Four of six items are picked, a random part of them is the history: for each
    other item the exact probability of being picked too rises with its weight.
    """
    weights = np.array([0.2, 0.3, 1.0, 2.0, 3.0, 40.0])
    rest = [i for i in range(6) if i not in history]
    chances = np.zeros(6)
    for targets in combinations(rest, 4 - len(history)):
        chances[list(targets)] += chance_of_set((*history, *targets), weights)
    assert (np.diff(chances[rest]) > 0).all()
