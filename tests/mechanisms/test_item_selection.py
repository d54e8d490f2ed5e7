"""Items that enough users have: weights, threshold, and what one user can change."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from tacit.accounting.epsilon import epsilon
from tacit.accounting.profiles import gaussian_delta
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.item_selection import STEPS, ItemSelection
from tacit.testing.statistics import assert_frequencies

RARE = 1e-9


def users(*histories, n_items=10):
    users = [u for u, items in enumerate(histories) for _ in items]
    items = [item for own in histories for item in own]
    log = Interactions.of_columns(users, items, n_users=len(histories), n_items=n_items)
    return Shards.of(log)


def keys(n, seed=1):
    return Key.from_seed(seed).each(np.arange(n))


# Weights


@pytest.mark.parametrize("most", [1, 2, 3, 100, 2**16])
def test_nobody_weighs_more_than_one(most):
    """In whole numbers, so exactly; and no weight could be a step larger."""
    made = ItemSelection(most, 1.0, 1e-7)
    assert len(made.weights) == most
    for j, w in enumerate(made.weights, start=1):
        assert j * w * w <= STEPS**2 < j * (w + 1) ** 2


def test_sums_by_hand():
    made = ItemSelection(2, 1.0, 1e-7)
    named = users([1, 2], [2], [])
    half = math.isqrt(STEPS**2 // 2)
    assert made.add_up(named).tolist() == [0, half, half + STEPS, *[0] * 7]
    assert made.add_up(named).dtype == np.int64


def test_who_lies_names_nothing():
    """More items than agreed, or one item several times, would weigh more than one."""
    made = ItemSelection(2, 1.0, 1e-7)
    liars = users([1, 2, 3], [4, 4])
    assert not made.add_up(liars).any()


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=6))
def test_leaving_one_user_out_moves_the_sums_by_one_at_the_most(histories):
    made = ItemSelection(3, 1.0, 1e-7)
    named = made.name(users(*histories), keys(len(histories)))
    assert (named.lengths <= 3).all()
    whole = made.add_up(named)
    for row in range(len(histories)):
        rest = np.delete(np.arange(len(histories)), row)
        moved = whole - made.add_up(named.take(rest))
        assert (moved**2).sum() <= STEPS**2


def test_a_user_chooses_by_its_own_coins():
    """Each of four items is named alike, and nobody notices who else is there.

    False alarm below 1e-9; sees a share of 1/4 that is off by 0.02.
    """
    made, n = ItemSelection(1, 1.0, 1e-7), 40_000
    crowd = users(*[[2, 3, 5, 7]] * n)
    named = made.name(crowd, keys(n))
    counts = np.bincount(named.items, minlength=10)[[2, 3, 5, 7]]
    assert_frequencies(counts, [0.25] * 4, false_alarm=RARE)
    alone = made.name(crowd.take([5]), keys(n)[[5]])
    assert alone.items.tolist() == named.take([5]).items.tolist()


# The threshold


@pytest.mark.parametrize(
    ("most", "z", "failure", "rho"),
    [
        # max over t <= k of 1/sqrt(t) + z * norm.ppf((1 - failure) ** (1 / t)), from
        # forty digits
        (1, 1.0, 1e-6, 5.7534),
        (1, 5.0, 1e-7, 26.9967),
        (10, 5.0, 1e-7, 28.3762),
        (100, 3.0, 5e-7, 17.2922),
    ],
)
def test_the_threshold_is_the_papers(most, z, failure, rho):
    """Gopi et al. 2020, in units of one user; half a step is for rounded noise."""
    made = ItemSelection(most, z, failure)
    expected = max(
        1 / math.sqrt(t) + z * norm.isf(-math.expm1(math.log1p(-failure) / t))
        for t in range(1, most + 1)
    )
    assert expected == pytest.approx(rho, abs=5e-5)
    assert expected <= made.users_needed <= expected + 4 / STEPS


@given(
    most=st.integers(1, 40),
    z=st.sampled_from([0.3, 1.0, 5.0, 30.0]),
    failure=st.sampled_from([1e-9, 1e-6, 1e-2]),
)
def test_items_of_one_user_pass_as_rarely_as_promised(most, z, failure):
    """For every number of items; with the worst one the promise is nearly used up."""
    made = ItemSelection(most, z, failure)
    passing = [any_passes(made, j, w) for j, w in enumerate(made.weights, start=1)]
    assert max(passing) <= failure
    assert max(passing) >= failure * (1 - 1e-3 / z)


def any_passes(made, j, weight):
    """That one of j items passes which the same user alone named."""
    one = norm.sf((made.threshold - weight - 0.5) / made.deviation)
    return -math.expm1(j * math.log1p(-one))


def test_items_of_one_user_pass_at_the_promised_rate():
    """On the code that runs. False alarm below 1e-9; sees 0.25 that is off by 0.02."""
    made = ItemSelection(3, 1.0, 0.25)
    worst = max(range(1, 4), key=lambda j: any_passes(made, j, made.weights[j - 1]))
    n = 40_000
    sums = np.full(worst * n, made.weights[worst - 1])
    chosen = made.select(sums, made.noise(Key.from_seed(4)))
    failed = len(np.unique(chosen // worst))
    rate = any_passes(made, worst, made.weights[worst - 1])
    assert 0.2499 < rate <= 0.25
    assert_frequencies([failed, n - failed], [rate, 1 - rate], false_alarm=RARE)


def test_what_nobody_named_is_never_published():
    """Not even under noise that lifts everything; and it gets no draw."""
    asked = []

    def lift(n):
        asked.append(n)
        return np.full(n, 10**9)

    sums = np.array([0, 5, 0, 7])
    chosen = ItemSelection(1, 1.0, 1e-7).select(sums, lift)
    assert chosen.tolist() == [1, 3]
    assert asked == [2]


def test_noise_is_whole_and_exactly_what_was_drawn_decides():
    made = ItemSelection(1, 1.0, 1e-7)
    sums = np.full(3, STEPS)
    need = made.threshold - STEPS
    draws = np.array([need - 1, need, need + 1])
    assert made.select(sums, lambda n: draws[:n]).tolist() == [1, 2]
    assert made.noise(Key.from_seed(1))(5).dtype == np.int64


# The account


@given(
    others=st.integers(0, 40),
    most=st.integers(1, 4),
    z=st.sampled_from([0.5, 1.0, 4.0]),
    failure=st.sampled_from([1e-6, 1e-3, 0.05]),
    eps=st.sampled_from([0.1, 1.0, 3.0]),
)
def test_the_published_set_is_as_private_as_the_event_says(
    others, most, z, failure, eps
):
    """Exactly, for a user with one shared item and the rest of their own.

    Both directions: the user's contribution taken away, and put there.
    """
    made = ItemSelection(most, z, failure)
    weight, shared = made.weights[most - 1], others * STEPS // 4

    def passes(total):
        return float(norm.sf((made.threshold - total - 0.5) / made.deviation))

    own = any_passes(made, most - 1, weight) if most > 1 else 0.0
    # Outcomes: the shared item is out or in, and whether an own item is in at all.
    here = np.outer([1 - passes(shared + weight), passes(shared + weight)], [1, 0])
    here = here * (1 - own) + np.outer([0, own], [0, 1])  # an own item tells all
    gone = np.outer([1 - passes(shared), passes(shared)], [1, 0])
    if not others:  # then nobody else named it: it cannot pass without the user
        own = any_passes(made, most, weight)
        here, gone = np.diag([1 - own, own]), np.diag([1.0, 0.0])
    allowed = failure + (1 - failure) * float(
        gaussian_delta(np.array([eps]), noise_multiplier=z)[0]
    )
    for one, other in ((here, gone), (gone, here)):
        told = np.maximum(one - math.exp(eps) * other, 0).sum()
        assert told <= allowed * (1 + 1e-9)


def test_the_event_is_a_gaussian_that_may_fail():
    made = ItemSelection(50, 6.0, 2e-7)
    found = epsilon(made.event, delta=1e-6)
    alone = epsilon(made.event.events[0], delta=1e-6)
    assert made.event.events[0].noise_multiplier == 6.0
    assert alone.value < found.value < 1.02 * alone.value


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"most": 0}, "most=0"),
        ({"most": 2**17}, "most=131072 must be <= 65536"),
        ({"noise_multiplier": 0.0}, "noise_multiplier=0.0"),
        ({"failure": 0.0}, "failure=0.0"),
        ({"failure": 1.0}, "failure=1.0"),
    ],
)
def test_nonsense_is_refused(bad, problem):
    good = {"most": 3, "noise_multiplier": 1.0, "failure": 1e-7}
    with pytest.raises(BadValue, match=problem):
        ItemSelection(**good | bad)
