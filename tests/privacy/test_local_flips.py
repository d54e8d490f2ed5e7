"""Flipped bits: the epsilon is that of a whole row, never of one bit."""

import numpy as np
import pytest

from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import LocalFlips
from tacit.release import Unit, View
from tacit.statement import account
from tacit.tree import Tree

ROWS = (Phase("rows", range(1), what="histories"),)


@pytest.mark.parametrize("n_items", [1, 7, 20_000])
def test_all_bits_of_a_row_together_stay_within_epsilon(n_items):
    bits = LocalFlips(2.0).bits(n_items)
    assert bits.dimension == n_items
    assert 0.999 * 2.0 < bits.total_epsilon <= 2.0


def test_the_release_states_the_epsilon_of_the_row():
    plan = Plan(100, rounds=1, channel="direct")
    told = account(plan, LocalFlips(2.0).releases(plan, ROWS))
    [line] = [s for s in told.totals if (s.unit, s.view) == (Unit.USER, View.SERVER)]
    assert line.epsilon == pytest.approx(2.0)
    assert line.standing.name == "PROVEN"


def test_a_target_is_met_from_below():
    plan = Plan(100, rounds=1, channel="direct", target_epsilon=3.0)
    made = LocalFlips().calibrated(plan, ROWS)
    assert 0.99 * 3.0 < made.epsilon <= 3.0
    assert made.calibrated(plan, ROWS) is made


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_an_epsilon_that_is_none_is_named(epsilon):
    with pytest.raises(BadValue, match="epsilon"):
        LocalFlips(epsilon)


def test_a_tree_of_numbers_is_no_row_of_bits():
    keys, codes = Key.from_seed(0).each(np.arange(1)), np.zeros(1, np.int64)
    with pytest.raises(Refused, match="whole rows"):
        LocalFlips(1.0).report(Tree.dense(), ROWS[0], {}, codes=codes, keys=keys)
