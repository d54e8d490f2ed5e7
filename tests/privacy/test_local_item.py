"""One randomised item per participation, whatever the history."""

import numpy as np
import pytest

from tacit.aggregation.mean import Mean
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import LocalItem
from tacit.release import Adjacency
from tacit.sampling import Once
from tacit.statement import account
from tacit.testing.statistics import assert_frequencies
from tacit.transport.channels import Each, RoundContext
from tacit.transport.messages import Reports, Slot
from tacit.tree import Tree

PHASE = Phase("votes", range(2), what="votes")
SLOTS = {"votes": Slot("float32", (5,))}


def said(privacy, votes, n, seed=0):
    """Which item each of `n` clients with the same votes names."""
    keys = Key.from_seed(seed).each(np.arange(n))
    tree = Tree.dense(votes=np.tile(np.float32(votes), (n, 1)))
    report = privacy.report(tree, PHASE, {}, codes=np.zeros(n, np.int64), keys=keys)
    privacy.layout(PHASE, SLOTS).check(Reports(report))
    assert (report["votes"].sum(axis=1) == 1).all()
    return report["votes"].argmax(axis=1)


def test_one_of_the_items_held_is_named_each_as_often():
    """Nearly without lies. Exact binomial, false alarm 1e-9."""
    items = said(LocalItem(epsilon=60.0), [0.2, 0, 0.2, 0.2, 0], 6000)
    counts = np.bincount(items, minlength=5)
    assert counts[[1, 4]].tolist() == [0, 0]
    assert_frequencies(counts[[0, 2, 3]], np.full(3, 1 / 3), false_alarm=1e-9)


def test_of_nothing_any_item_is_named():
    items = said(LocalItem(epsilon=60.0), [0, 0, 0, 0, 0], 6000)
    counts = np.bincount(items, minlength=5)
    assert_frequencies(counts, np.full(5, 0.2), false_alarm=1e-9)


def test_a_lie_is_as_likely_as_epsilon_says():
    """Over the whole catalog. Exact binomial, false alarm 1e-9."""
    items = said(LocalItem(epsilon=1.0), [0, 0, 0, 1, 0], 6000)
    chances = RandomizedResponse(1.0, 5).likelihoods()[3]
    assert_frequencies(np.bincount(items, minlength=5), chances, false_alarm=1e-9)


def test_a_catalog_of_one_item_says_nothing():
    privacy, keys = LocalItem(epsilon=0.1), Key.from_seed(0).each(np.arange(50))
    tree = Tree.dense(votes=np.arange(50, dtype=np.float32)[:, None] % 2)
    codes = np.zeros(50, np.int64)
    report = privacy.report(tree, PHASE, {}, codes=codes, keys=keys)
    assert (report["votes"] == 1).all()


def test_what_is_named_is_counted():
    privacy, keys = LocalItem(epsilon=60.0), Key.from_seed(0).each(np.arange(3))
    tree = Tree.dense(votes=np.eye(5, dtype=np.float32)[[1, 1, 4]])
    codes = np.zeros(3, np.int64)
    report = privacy.report(tree, PHASE, {}, codes=codes, keys=keys)
    context = RoundContext(privacy.layout(PHASE, SLOTS), Key.from_seed(0))
    delivery = Each([Reports(report)])
    found = privacy.total(delivery, context, PHASE, slots=SLOTS, wanted=Mean())
    assert found["votes"].tolist() == [0, 2, 0, 0, 1]


@pytest.mark.parametrize(("sampler", "times"), [(None, 2), (Once(), 1)])
def test_its_account_is_pure_and_the_same_for_everybody(sampler, times):
    plan = Plan(100, 2) if sampler is None else Plan(100, 2, sampler)
    [release] = LocalItem(epsilon=3.0).releases(plan, (PHASE,))
    assert "one item" in release.what
    told = account(plan, (release,)).totals
    assert [line.epsilon for line in told] == pytest.approx([3.0 * times] * 6)
    assert {line.delta for line in told} == {0.0}
    assert {line.adjacency for line in told} == {Adjacency.REPLACE_ONE}


def test_it_is_calibrated_as_a_whole_report_is():
    plan = Plan(100, 2, target_epsilon=4.0)
    assert LocalItem().calibrated(plan, (PHASE,)) == LocalItem(epsilon=2.0)


def test_what_is_refused():
    with pytest.raises(BadValue, match="epsilon=0"):
        LocalItem(epsilon=0.0)
    with pytest.raises(BadValue, match=r"clip=0\.5 .* leave clip out"):
        LocalItem(epsilon=1.0, clip=0.5)
    with pytest.raises(BadValue, match="epsilon is not set"):
        LocalItem().releases(Plan(10), (PHASE,))
    with pytest.raises(Refused, match="one randomised item"):
        LocalItem(epsilon=1.0).variance(PHASE, users=9.0, size=5)


def test_only_one_item_named_once_is_legal():
    rows = np.uint8([[0, 1, 0], [0, 0, 0], [0, 255, 0], [1, 1, 0], [1, 0, 2]])
    found = LocalItem(epsilon=1.0).legal(Tree.dense(votes=rows), PHASE, slots=SLOTS)
    assert found.tolist() == [True, False, False, False, False]
