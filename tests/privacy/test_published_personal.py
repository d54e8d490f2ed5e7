"""DP-VAE's own protection: its clip and noise by hand, and what they are worth."""

import numpy as np
import pytest

from tacit.accounting.epsilon import epsilon
from tacit.accounting.views import server_view
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.published import classic_sigma, optimal_clip
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import PublishedPersonalNoise
from tacit.release import Standing, Unit, View
from tacit.sampling import FixedSize
from tacit.statement import account
from tacit.transport.messages import Slot, zeros
from tacit.tree import Dense, Factored, Tree

PHASE = Phase("gradients", range(30), what="gradients", is_clipped=True)
N, J = 400, 3
KEYS, CODES = Key.from_seed(0).each(np.arange(N)), np.zeros(N, np.int64)


def tree(lengths, epsilons):
    """One layer of 2 × 3 for users whose examples have these norms."""
    left = np.zeros((len(lengths), J, 2))
    left[..., 0] = lengths
    right = np.zeros((len(lengths), J, 3))
    right[..., 0] = 1 / J  # a product is an example's gradient over their number
    leaves = {"layer": Factored(left, right), "epsilon": Dense(np.array(epsilons))}
    return Tree(leaves)


def told(privacy, lengths, epsilons):
    report = privacy.report(
        tree(lengths, epsilons), PHASE, {}, codes=CODES, keys=KEYS[: len(lengths)]
    )
    assert [*report.leaves] == ["layer"]
    return report["layer"].reshape(len(lengths), 6)


def test_a_constant_clip_by_hand():
    """Norms 1, 2 and 9, S = 3: clipped 1, 2 and 3, of mean 2."""
    privacy = PublishedPersonalNoise(clip=3.0, noise_delta=0.5, most_epsilon=1e9)
    found = told(privacy, [[1.0, 2.0, 9.0]], [1e9])
    np.testing.assert_allclose(found, [[2.0, 0, 0, 0, 0, 0]], atol=1e-6)


def test_the_bound_and_the_noise_are_the_users_own():
    """The smallest norm is the clip, and σ = 4.8 S / ε.

    Per user 2,000 numbers without signal: 400 rows of five. A deviation that is 8 % off
    is seen; false alarm below 1e-6 if the seed were drawn anew.
    """
    lengths, epsilons = [[4.0, 2.0, 8.0]] * N, [0.25] * N
    found = told(PublishedPersonalNoise(), lengths, epsilons)
    sigma = 2.0 * classic_sigma(0.25, delta=1 / 80_000)
    assert np.std(found[:, 1:]) == pytest.approx(sigma, rel=0.08)
    assert np.mean(found[:, 0]) == pytest.approx(2.0, abs=5 * sigma / N**0.5)


def test_where_the_noise_does_not_decide_the_error_is_computed():
    """With little noise a larger bound than the smallest norm is best."""
    quiet = PublishedPersonalNoise(most_epsilon=1e6, noise_delta=0.5)
    lengths = [[1.0, 5.0, 9.0]]
    found = told(quiet, lengths, [1e6])[0, 0]
    rows = np.zeros((3, 6))
    rows[:, 0] = lengths[0]
    bound = optimal_clip(rows, epsilon=1e6, delta=0.5)
    assert bound > 1
    assert found == pytest.approx(np.minimum(bound, lengths[0]).mean(), abs=1e-3)


def test_nothing_is_zero_and_a_constant_bound_still_has_its_noise():
    slots = {"layer": Slot("float64", (2, 3), J), "epsilon": Slot("float64", ())}
    for privacy, is_loud in (
        (PublishedPersonalNoise(), False),
        (PublishedPersonalNoise(clip=1.0), True),
    ):
        empty = privacy.empty(slots, 2, KEYS[:2])
        found = privacy.report(empty, PHASE, {}, codes=CODES, keys=KEYS[:2])
        assert found["layer"].any() == is_loud
    assert PublishedPersonalNoise().layout(PHASE, slots).slots == {
        "layer": Slot("float64", (2, 3))
    }
    assert not zeros(slots, 1)["epsilon"].any()


def test_users_choose_in_a_half_open_interval():
    """Uniform: the mean of 400 is within six deviations of a half."""
    found = PublishedPersonalNoise(most_epsilon=0.3).drawn(KEYS)
    assert found.min() > 0
    assert found.max() <= 0.3
    assert found.mean() == pytest.approx(0.15, abs=6 * 0.3 / (12 * N) ** 0.5)


def test_with_the_users_own_clip_there_is_no_guarantee():
    [release] = PublishedPersonalNoise().releases(Plan(943, 30), (PHASE,))
    assert {cell.standing for cell in release.cells.values()} == {Standing.NONE}
    assert {cell.published_epsilon for cell in release.cells.values()} == {1.0}


def test_with_a_constant_clip_the_rounds_are_composed():
    """Published is 1; thirty participations cost nearly six times as much."""
    plan = Plan(943, rounds=30, delta=1e-6)
    releases = PublishedPersonalNoise(clip=1.5).releases(plan, (PHASE,))
    found = account(plan, releases).worst(unit=Unit.USER, view=View.COLLUSION)
    noise = classic_sigma(1.0, delta=1 / 80_000)
    assert found == pytest.approx(epsilon(server_view(noise, 30), delta=1e-6).value)
    assert found == pytest.approx(5.68, abs=0.01)
    assert releases[0].cells[Unit.USER, View.SERVER].published_epsilon == 1.0


def test_a_fixed_cohort_may_ask_somebody_in_every_round():
    plan = Plan(943, rounds=30, delta=1e-6, sampler=FixedSize(10))
    releases = PublishedPersonalNoise(clip=1.5).releases(plan, (PHASE,))
    assert account(plan, releases).worst(view=View.SERVER) > 5.6


@pytest.mark.parametrize(
    "wrong", [{"most_epsilon": 0.0}, {"noise_delta": 1.0}, {"clip": 0.0}]
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(BadValue, match=next(iter(wrong))):
        PublishedPersonalNoise(**wrong)


def test_leaves_without_examples_are_refused():
    bare = Tree.dense(layer=np.zeros((1, 2)), epsilon=np.ones(1))
    with pytest.raises(BadValue, match="examples"):
        PublishedPersonalNoise().report(bare, PHASE, {}, codes=CODES, keys=KEYS[:1])
