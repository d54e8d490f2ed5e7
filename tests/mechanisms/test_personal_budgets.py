"""Each group's epsilon follows from its own rate or clip, and nobody else's."""

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, ClippedSumWithBits
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.personal_budgets import ByClip, ByClipWithBits, ByRate
from tacit.plans import Plan
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


SCALES = {"open": 0.8, "strict": 0.2}


class TestOneGroupOfAMovingClip(MechanismContract):
    """The bits take a visible part of the budget here: z_D is 1.25 z."""

    group = "strict"

    def mechanism(self):
        common = ClippedSumWithBits(0.8, noise_multiplier=0.6, bit_noise=0.5)
        return _OneGroup(ByClipWithBits(common, SCALES), self.group)

    def names(self):
        return (*self.shapes, BIT)


class TestOtherGroupOfAMovingClip(TestOneGroupOfAMovingClip):
    group = "open"


class TestWhateverTheGroupOfAMovingClip(TestOneGroupOfAMovingClip):
    def mechanism(self):
        return super().mechanism().whole


class _OneGroup:
    def __init__(self, whole, group):
        self.whole, self.group = whole, group
        self.add, self.scale = whole.add, whole.scale
        self.sensitivity = whole.sensitivity_of(group)
        self.event = whole.event_of(group)

    def enforce(self, tree):
        return self.whole.enforce(tree)

    def bound(self, tree):
        named = getattr(self.whole, "multipliers", None) or self.whole.scales
        code = [*named].index(self.group)
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


MOVING = ByClipWithBits(ClippedSumWithBits(2.0, 1.0, 5.0), {"open": 1.0, "strict": 0.2})


def test_update_and_bit_of_a_moving_clip_have_the_scale_of_the_group():
    """The bit says whether the norm is within the whole clip, whoever asks."""
    tree = Tree.dense(x=np.array([[3.0], [1.0], [3.0], [1.0], [0.1], [np.nan]]))
    sent = MOVING.bound(tree, np.array([0, 0, 1, 1, 1, 1]))
    np.testing.assert_allclose(sent["x"][:, 0], [2.0, 1.0, 0.4, 0.4, 0.1, 0.0])
    np.testing.assert_allclose(sent[BIT], [-0.5, 0.5, -0.1, 0.1, 0.1, 0.0])


def test_a_moving_clip_costs_a_group_its_share_of_both():
    """(s C / z_D C)² + (s / 2 σ_b)² = (s / z)², with the numbers of the paper."""
    common = MOVING.common
    for group, scale in MOVING.scales.items():
        in_noise = (scale / common.update_multiplier) ** 2 + (scale / 2 / 5.0) ** 2
        z = MOVING.event_of(group).noise_multiplier
        assert z == pytest.approx(in_noise**-0.5, rel=1e-12)
        assert z == pytest.approx(1.0 / scale, rel=1e-12)
    assert MOVING.event == MOVING.event_of("open")
    assert MOVING.sensitivity == MOVING.sensitivity_of("open")


def test_a_sum_with_bits_enforces_the_largest_group():
    made = ByClipWithBits(MOVING.common, SCALES)
    lies = Tree.dense(x=np.array([[9.0], [1.0]]), **{BIT: np.array([7.0, np.nan])})
    bounded = made.enforce(lies)
    np.testing.assert_allclose(bounded["x"][:, 0], [1.6, 1.0])
    np.testing.assert_allclose(bounded[BIT], [0.4, 0.0])
    update, bit = made.bounded(["x", BIT])
    assert (update.bound, bit.bound) == (pytest.approx(1.6), pytest.approx(0.4))
    assert (update.deviation, bit.deviation) == (made.scale("x"), 5.0)
    assert update.has_smaller
    assert bit.has_smaller


def test_groups_of_a_moving_clip_are_checked():
    with pytest.raises(BadValue, match="no group is named"):
        ByClipWithBits(MOVING.common, {})
    with pytest.raises(BadValue, match=r"scales\[a\]=1.5"):
        ByClipWithBits(MOVING.common, {"a": 1.5})
    with pytest.raises(BadValue, match="did you mean 'strict'"):
        MOVING.event_of("strikt")
    with pytest.raises(BadValue, match=r"groups: 2 is not in \[0, 2\)"):
        MOVING.bound(Tree.dense(x=np.ones((1, 1))), np.array([2]))
