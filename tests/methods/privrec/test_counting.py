"""PrivRec that counts first: how often an item is liked becomes one of its features.

That such a run keeps the contract is in test_method.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from methods.privrec.worlds import TINY, mixed

from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.runtime.simulate import Simulation
from tacit.sampling import Once, Poisson
from tacit.statement import account

COUNTING = PrivRec(**TINY, count_rounds=1, positive_from=3.0, local_epochs=1)


def servers(method, world, plan, seed=0):
    key = Key.from_seed(seed)
    run = Simulation(method, plan, world.catalog, world.profiles, world.shards, key)
    return [run.start().server, *(state.server for state, _ in run.run(run.start()))]


def test_the_counts_are_of_likes_of_length_one():
    """By hand: everyone's liked items over the root of how many they are."""
    world = mixed()
    _, counted, trained = servers(COUNTING, world, Plan(len(world.shards), rounds=2))
    expected = np.zeros(len(world.catalog))
    for i in range(len(world.shards)):
        mine = world.shards.take([i])
        liked = np.unique(mine.items[mine.values >= 3])
        expected[liked] += 1 / np.sqrt(max(1, len(liked)))
    np.testing.assert_allclose(counted.memory["counts"], expected, rtol=1e-9)
    np.testing.assert_array_equal(trained.memory["counts"], counted.memory["counts"])


def test_items_alike_are_told_apart_by_their_counts():
    """Two kinds by features, more once they are counted; standardised logarithms."""
    world = mixed()
    method = replace(COUNTING, items=("parity",))
    before, after, _ = servers(method, world, Plan(len(world.shards), rounds=2))
    kinds = [len(np.unique(s.weights["catalog.kinds"])) for s in (before, after)]
    assert kinds[0] == 3 < kinds[1]  # even, odd, unknown
    each = after.weights["catalog.numbers"][after.weights["catalog.kinds"], -1]
    logs = np.log(np.maximum(after.memory["counts"], 1.0))
    np.testing.assert_allclose(each, (logs - logs.mean()) / logs.std(), atol=1e-5)


def test_what_noise_may_have_made_is_no_more_than_the_noise():
    world = mixed()
    noise = {"counts": 1000.0, "updates": 1.0}
    noisy = replace(COUNTING, privacy=CentralGaussian(noise))
    plan = Plan(len(world.shards), rounds=2, channel="secure_sum")
    _, counted, _ = servers(noisy, world, plan)
    told = counted.weights["catalog.numbers"][counted.weights["catalog.kinds"], -1]
    is_drowned = counted.memory["counts"] <= 1000.0
    assert is_drowned.sum() > 1
    assert len(np.unique(told[is_drowned])) == 1


@pytest.mark.parametrize("sampler", [Poisson(0.2), Once()])
def test_one_budget_for_both_parts(sampler):
    plan = Plan(
        1000,
        rounds=5,
        sampler=sampler,
        channel="secure_sum",
        delta=1e-6,
        target_epsilon=2.0,
    )
    privacy = CentralGaussian(clip_quantile=0.5)
    method = replace(COUNTING, privacy=privacy).calibrated(plan)
    releases = method.releases(plan)
    spent = account(plan, releases).worst(view=View.RELEASE)
    assert 1.95 < spent <= 2.0
    assert len(releases) == (1 if isinstance(sampler, Once) else 2)
    cells = [release.cells[Unit.USER, View.SERVER] for release in releases]
    assert all(cell.event is not None for cell in cells)


def test_counting_without_privacy_promises_nothing():
    releases = COUNTING.releases(Plan(10, rounds=2))
    assert [release.what for release in releases] == [
        "counts of likes, without noise",
        "updates of the model, without noise",
    ]
    events = [release.cells[Unit.USER, View.RELEASE].event for release in releases]
    assert events == [None, None]


@pytest.mark.parametrize("known", ["counts", "updates"])
def test_both_parts_need_their_noise(known):
    """Whoever gives the noise of one gives that of the other."""
    method = replace(COUNTING, privacy=CentralGaussian({known: 2.0}))
    [lacking] = {"counts", "updates"} - {known}
    with pytest.raises(BadValue, match=lacking):
        method.releases(Plan(10, rounds=2))


def test_stars_that_are_learnt_are_counted_where_they_are_liked():
    """A network that learns stars is told of likes, not of low stars."""
    world = mixed()
    stars = {"head": "linear", "negatives": 0}
    plan = Plan(len(world.shards), rounds=2)
    one, other = (
        servers(m, world, plan) for m in (COUNTING, replace(COUNTING, **stars))
    )
    np.testing.assert_array_equal(one[1].memory["counts"], other[1].memory["counts"])


def test_counting_that_cannot_be():
    with pytest.raises(BadValue, match="count_rounds=1 is not in the paper"):
        PrivRec(mode="paper", count_rounds=1)
    plan = Plan(10, rounds=1)
    for refusing in (COUNTING.calibrated, COUNTING.releases, COUNTING.phases):
        with pytest.raises(Refused, match=r"rounds=1 .* PrivRec counts, then trains"):
            refusing(plan)
