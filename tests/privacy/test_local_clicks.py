"""Local clicks: one epsilon for the interest and all labels of a report together."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.codes import Code
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import LocalClicks, LocalNoisyClicks
from tacit.release import EVERYONE, Unit, View
from tacit.sampling import Once
from tacit.statement import account
from tacit.tree import Tree

PARTS = (
    Phase("interests", range(2), what="interests", share=0.3, proof="one response"),
    Phase("clicks", range(2), what="clicks", share=0.7, proof="one response"),
)


@pytest.mark.parametrize("kind", [LocalClicks, LocalNoisyClicks])
@pytest.mark.parametrize(("sampler", "times"), [(Once(), 1), (None, 2)])
def test_the_total_is_epsilon_in_every_view(kind, sampler, times):
    plan = Plan(100, 2, *([sampler] if sampler else []))
    releases = kind(3.0).releases(plan, PARTS)
    assert [one.group for one in releases] == [EVERYONE] * 2
    told = account(plan, releases)
    for line in told.totals:
        if line.unit is Unit.USER:
            is_exact = kind is LocalClicks  # else its noise is in floats
            assert line.standing.name == ("PROVEN" if is_exact else "ASSUMED")
            assert 0.999 * 3.0 * times < line.epsilon <= 3.0 * times
            assert str(Code("public_slates")) in line.assumes


def test_labels_divide_their_share():
    made = LocalClicks(3.0).labels(share=0.7, slates=4, negatives=5)
    assert 0.999 * 2.1 < 4 * made.epsilon <= 2.1
    assert made.negatives == 5


def test_a_target_is_met_from_below():
    plan = Plan(100, 2, target_epsilon=3.0)
    made = LocalClicks().calibrated(plan, PARTS)
    assert made.epsilon == pytest.approx(1.5)
    assert made.calibrated(plan, PARTS) is made
    told = account(plan, made.releases(plan, PARTS))
    assert told.worst(view=View.SERVER) <= 3.0


def test_interests_of_a_loud_report_are_the_nearest_ones():
    attention = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1]])
    keys = Key.from_seed(0).each(np.arange(2))
    said = LocalClicks(200.0).interests(attention, keys, share=0.5)
    np.testing.assert_array_equal(said, [[0, 1, 0], [1, 0, 0]])
    noisy = LocalNoisyClicks(1e6).interests(attention, keys, share=0.5)
    np.testing.assert_allclose(noisy, attention, atol=1e-3)
    assert noisy.dtype == np.float32


def test_what_is_expected_knows_the_noise():
    said = np.eye(3, dtype=np.float32)[[0, 0, 1, 2]]
    loud = LocalClicks(200.0).expected(said, share=0.5)
    quiet = LocalClicks(0.01).expected(said, share=0.5)
    np.testing.assert_allclose(loud, said, atol=1e-9)
    assert np.ptp(quiet, axis=0).max() < 0.01
    assert np.ptp(LocalNoisyClicks(0.01).expected(said, share=0.5), axis=0).max() < 0.01


def test_only_whole_numbers_may_be_released():
    assert LocalClicks.is_releasable
    assert not LocalNoisyClicks.is_releasable


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_an_epsilon_that_is_none_is_named(epsilon):
    with pytest.raises(BadValue, match="epsilon"):
        LocalClicks(epsilon)


def test_a_tree_of_numbers_is_no_click():
    keys, codes = Key.from_seed(0).each(np.arange(1)), np.zeros(1, np.int64)
    with pytest.raises(Refused, match="single reports"):
        LocalClicks(1.0).report(Tree.dense(), PARTS[0], {}, codes=codes, keys=keys)
