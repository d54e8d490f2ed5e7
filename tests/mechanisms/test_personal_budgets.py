"""Each group's epsilon follows from its own rate or clip, and nobody else's."""

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.personal_budgets import ByClip, ByRate
from tacit.plan import Plan
from tacit.sampling import PoissonByGroup
from tacit.testing.mechanism_contract import MechanismContract
from tacit.tree import Tree

RATES = {"strict": 0.005530, "middle": 0.010624, "open": 0.020238}
EPSILONS = {"strict": 0.9986, "middle": 1.9993, "open": 3.9994}


class TestOneGroup(MechanismContract):
    """`ByClip` for the members of one group, as the account of that group sees it."""

    group = "strict"

    def mechanism(self):
        return _OneGroup(ByClip(2.0, {"open": 0.8, "strict": 4.0}), self.group)


class TestOtherGroup(TestOneGroup):
    group = "open"


class TestWhateverTheGroup(MechanismContract):
    """`ByClip` as a sum sees it that knows nobody's group."""

    def mechanism(self):
        return ByClip(2.0, {"open": 0.8, "strict": 4.0})


class _OneGroup:
    def __init__(self, whole, group):
        self.whole, self.group = whole, group
        self.add, self.scale = whole.add, whole.scale
        self.sensitivity = whole.sensitivity_of(group)
        self.event = whole.event_of(group)

    def enforce(self, tree):
        return self.whole.enforce(tree)

    def bound(self, tree):
        code = [*self.whole.multipliers].index(self.group)
        return self.whole.bound(tree, np.full(len(tree), code))


def test_each_group_has_the_epsilon_of_its_rate():
    """The vectors of section 9: one noise, three rates."""
    made = ByRate(GaussianSum(1.0, noise_multiplier=1.0626), RATES)
    plan = Plan(
        300,
        rounds=1000,
        sampler=PoissonByGroup(made.rates),
        groups=dict.fromkeys(RATES, 100),
    )
    for group, expected in EPSILONS.items():
        event = plan.sampler.event(made.event(group), group=group, plan=plan)
        found = epsilon(event, delta=1e-6).value
        assert found == pytest.approx(expected, abs=5e-4)


def test_each_group_has_the_clip_and_event_of_its_multiplier():
    made = ByClip(6.0, {"open": 1.0, "strict": 3.0})
    tree = Tree.dense(a=np.full((3, 1), 30.0), b=np.full((3, 1), 40.0))
    bounded = made.bound(tree, np.array([1, 0, 1]))
    np.testing.assert_allclose(bounded.norms(), [2.0, 6.0, 2.0])
    assert (made.sensitivity_of("open"), made.sensitivity_of("strict")) == (6.0, 2.0)
    assert made.event_of("strict").noise_multiplier == 3.0
    assert made.event_of("open").noise_multiplier == 1.0


def test_a_sum_that_knows_no_groups_is_that_of_the_largest_clip():
    """The most that anybody may send, whatever the order of the groups."""
    made = ByClip(6.0, {"strict": 3.0, "open": 1.0})
    assert made.sensitivity == made.sensitivity_of("open") == 6.0
    assert made.event == made.event_of("open")
    tree = Tree.dense(a=np.array([[9.0], [1.0]]))
    np.testing.assert_allclose(made.bound(tree).norms(), [6.0, 1.0])


def test_noise_is_common_to_all_groups():
    made = ByClip(6.0, {"open": 1.0, "strict": 3.0})
    twin = GaussianSum(2.0, noise_multiplier=3.0)
    total = {"x": np.zeros(5)}
    np.testing.assert_array_equal(
        made.add(total, Key.from_seed(1))["x"], twin.add(total, Key.from_seed(1))["x"]
    )


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_nonsense_is_refused(bad):
    with pytest.raises(BadValue, match=r"rates\[a\]="):
        ByRate(GaussianSum(1.0, 1.0), {"a": bad})
    with pytest.raises(BadValue, match=r"multipliers\[a\]="):
        ByClip(1.0, {"a": bad})
    with pytest.raises(BadValue, match="sigma="):
        ByClip(bad, {"a": 1.0})


def test_unknown_and_missing_groups_are_refused():
    with pytest.raises(BadValue, match="no group is named"):
        ByRate(GaussianSum(1.0, 1.0), {})
    with pytest.raises(BadValue, match="no group is named"):
        ByClip(1.0, {})
    with pytest.raises(BadValue, match="did you mean 'strict'"):
        ByClip(1.0, {"strict": 1.0}).event_of("strikt")
    with pytest.raises(BadValue, match="did you mean 'strict'"):
        ByRate(GaussianSum(1.0, 1.0), {"strict": 1.0}).event("strikt")


def test_a_sum_enforces_the_largest_clip():
    made = ByClip(6.0, {"open": 1.0, "strict": 3.0})
    bounded = made.enforce(Tree.dense(a=np.array([[9.0], [1.0]])))
    np.testing.assert_allclose(bounded.norms(), [6.0, 1.0])


def test_codes_are_places_in_the_plan():
    made = ByClip(6.0, {"open": 1.0, "strict": 3.0})
    with pytest.raises(BadValue, match=r"groups: 2 is not in \[0, 2\)"):
        made.bound(Tree.dense(x=np.ones((1, 1))), np.array([2]))
