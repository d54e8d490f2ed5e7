from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.evaluation import significance
from tacit.evaluation.significance import (
    paired_bootstrap,
    paired_differences,
    users_to_tell,
)
from tacit.keys import Key
from tacit.results import Evaluation, Groups

KEY = Key.from_seed(3)


def _evaluation(**values):
    arrays = {name: np.asarray(value, float) for name, value in values.items()}
    n = len(next(iter(arrays.values())))
    return Evaluation("full ranking", np.arange(n), arrays, Groups.everyone(n))


def test_the_interval_matches_the_normal_one_on_many_users():
    """10,000 resamples put the ends within 0.1 standard errors; beyond 0.3 is a bug."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 2000), rng.normal(0.2, 1, 2000)
    found = paired_bootstrap(_evaluation(x=a), _evaluation(x=b), key=KEY)["x"]
    se = (a - b).std(ddof=1) / np.sqrt(2000)
    assert found.mean == pytest.approx((a - b).mean())
    assert found.low == pytest.approx(found.mean - 1.96 * se, abs=0.3 * se)
    assert found.high == pytest.approx(found.mean + 1.96 * se, abs=0.3 * se)
    assert found.n == 2000


def test_pairing_sees_a_small_steady_gain():
    noise = np.random.default_rng(0).normal(size=300)
    gain = 0.01 + 0.01 * np.random.default_rng(1).normal(size=300)
    better, worse = _evaluation(x=noise + gain), _evaluation(x=noise)
    found = paired_bootstrap(better, worse, key=KEY)["x"]
    assert found.p_value < 0.001
    assert found.low > 0


def test_the_same_ranker_is_never_better():
    same = _evaluation(x=[0.1, 0.5, 0.9])
    found = paired_bootstrap(same, same, key=KEY)["x"]
    assert (found.mean, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_p_values_are_fair_when_nothing_differs():
    """400 null comparisons at level 0.2: Binomial(400, 0.2) is outside 48 to 115 with
    probability below 1e-4 (exact binomial with a little slack for 100 users)."""
    rng = np.random.default_rng(4)
    values = {str(i): rng.normal(size=100) for i in range(400)}
    nothing = {name: np.zeros(100) for name in values}
    found = paired_bootstrap(
        _evaluation(**values), _evaluation(**nothing), key=KEY, resamples=1000
    )
    assert 48 <= sum(d.p_value < 0.2 for d in found.values()) <= 115


def test_a_key_fixes_the_result_whatever_fits_into_memory(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = _evaluation(x=rng.normal(size=50)), _evaluation(x=rng.normal(size=50))
    first = paired_bootstrap(a, b, key=KEY, resamples=500)
    assert paired_bootstrap(a, b, key=KEY, resamples=500) == first
    monkeypatch.setattr(significance, "_DRAWN_AT_ONCE", 50 * 64)
    assert paired_bootstrap(a, b, key=KEY, resamples=500) == first


def test_what_cannot_be_paired_is_refused():
    a = _evaluation(x=[1, 2])
    with pytest.raises(BadValue, match="different users"):
        paired_bootstrap(a, replace(a, users=np.array([0, 7])), key=KEY)
    with pytest.raises(BadValue, match="the protocols differ"):
        paired_bootstrap(a, replace(a, protocol="sampled 9 candidates"), key=KEY)
    with pytest.raises(BadValue, match="only one of the evaluations has y"):
        paired_bootstrap(a, _evaluation(x=[1, 2], y=[1, 2]), key=KEY)
    with pytest.raises(BadValue, match="resamples=10 must be >= 100"):
        paired_bootstrap(a, a, key=KEY, resamples=10)


def _seed(users, values):
    return Evaluation(
        "full ranking",
        np.asarray(users),
        {"x": np.asarray(values, float)},
        Groups.everyone(len(users)),
    )


def test_a_user_of_several_seeds_is_one_user():
    """Ten seeds with the same users say no more than one: the interval stays."""
    rng = np.random.default_rng(0)
    users, values = np.arange(200), rng.normal(size=200)
    once = [_seed(users, values)]
    nothing = [_seed(users, np.zeros(200))]
    single = paired_bootstrap(once, nothing, key=KEY)["x"]
    often = paired_bootstrap(once * 10, nothing * 10, key=KEY)["x"]
    assert often.mean == pytest.approx(single.mean)
    assert (often.low, often.high) == pytest.approx((single.low, single.high))
    assert often.n == 200


def test_seeds_with_other_users_say_more():
    """Four times the users halve the interval; resampling errs by a tenth at most."""
    rng = np.random.default_rng(0)
    seeds = [_seed(np.arange(i, i + 250), rng.normal(size=250)) for i in (0, 250, 500)]
    zero = [_seed(e.users, np.zeros(250)) for e in seeds]
    found = paired_bootstrap(seeds, zero, key=KEY)["x"]
    values = np.concatenate([e.values["x"] for e in seeds])
    assert found.mean == pytest.approx(values.mean())
    width = 2 * 1.96 * values.std() / np.sqrt(750)
    assert found.high - found.low == pytest.approx(width, rel=0.1)


def test_seeds_come_in_pairs():
    one = _seed([0, 1], [0.0, 1.0])
    with pytest.raises(BadValue, match="2 evaluations against 1"):
        paired_bootstrap([one, one], [one], key=KEY)
    with pytest.raises(BadValue, match="different users"):
        paired_bootstrap([one, one], [one, _seed([0, 2], [0.0, 1.0])], key=KEY)


def test_intervals_of_pairs_hold_together():
    """With m pairs at 1 - 0.05 / m each, one in twenty worlds has a false one.

    40 worlds of 10 equal rankers; more than 8 false alarms have a chance below 1e-3.
    """
    draw, m, alarms = np.random.default_rng(0), 45, 0
    for _ in range(40):
        values = draw.normal(size=(10, 60))
        rankers = [
            Evaluation("full", np.arange(60), {"x": row}, Groups.everyone(60))
            for row in values
        ]
        best = rankers[int(values.mean(axis=1).argmax())]
        found = [
            paired_differences([best], [one], pairs=m)["x"]
            for one in rankers
            if one is not best
        ]
        alarms += any(one.is_told_apart for one in found)
    assert alarms <= 8


def test_one_user_proves_nothing():
    one = Evaluation("full", np.arange(1), {"x": np.ones(1)}, Groups.everyone(1))
    two = Evaluation("full", np.arange(1), {"x": np.zeros(1)}, Groups.everyone(1))
    found = paired_differences(one, two)["x"]
    assert (found.mean, found.is_told_apart) == (1.0, False)
    assert found.users_to_tell is None


def test_the_interval_is_students_and_its_p_value_agrees_with_it():
    """By hand: differences 1, 2, 3, 4 have mean 2.5 and standard error 0.6455."""
    a, b = _evaluation(x=[2, 4, 6, 8]), _evaluation(x=[1, 2, 3, 4])
    found = paired_differences(a, b)["x"]
    assert found.mean == pytest.approx(2.5)
    assert found.high - found.mean == pytest.approx(3.1824 * 0.6455, rel=1e-4)
    assert found.p_value == pytest.approx(0.0305, abs=1e-4)  # t = 3.873 of 3 degrees
    assert found.is_told_apart
    of_ten = paired_differences(a, b, pairs=10)["x"]
    assert of_ten.p_value == pytest.approx(10 * found.p_value)
    assert not of_ten.is_told_apart
    assert of_ten.low < 0


def test_one_side_of_a_pair_is_the_other_with_its_sign_changed():
    draw = np.random.default_rng(3)
    a, b = (_evaluation(x=draw.normal(size=40)) for _ in range(2))
    one, other = paired_differences(a, b)["x"], paired_differences(b, a)["x"]
    assert (one.mean, one.low, one.high) == (-other.mean, -other.high, -other.low)
    assert one.users_to_tell == other.users_to_tell


def test_so_many_users_tell_a_difference_four_times_in_five():
    """800 worlds of as many users as it says: 640 should tell, and fewer than 600 or
    more than 680 would have a chance below 1e-3 (exact binomial, deviation 11)."""
    n = users_to_tell(0.3, deviation=1.0, alarm=0.05)
    assert n is not None
    assert 80 < n < 100  # (1.96 + 0.84)^2 / 0.09 = 87
    worlds = np.random.default_rng(5).normal(0.3, 1.0, size=(800, n))
    nothing = _evaluation(x=np.zeros(n))
    told = sum(
        paired_differences(_evaluation(x=one), nothing)["x"].is_told_apart
        for one in worlds
    )
    assert 600 <= told <= 680


def test_a_tie_says_how_many_users_would_tell_and_a_sure_pair_does_not():
    draw = np.random.default_rng(0)
    a, b = draw.normal(0.05, 1, 100), draw.normal(size=100)
    open_one = paired_differences(_evaluation(x=a), _evaluation(x=b))["x"]
    assert open_one.users_to_tell is not None
    assert open_one.users_to_tell > 100
    sure = paired_differences(_evaluation(x=a + 2), _evaluation(x=b))["x"]
    assert sure.is_told_apart
    assert sure.users_to_tell is None
    same = paired_differences(_evaluation(x=a), _evaluation(x=a))["x"]
    assert (same.mean, same.p_value, same.users_to_tell) == (0.0, 1.0, None)


def test_a_difference_that_a_thousand_times_the_users_would_not_tell_has_no_number():
    """Two equal means differ by rounding: 43,000,000 users say nothing to anybody."""
    a = np.random.default_rng(0).normal(size=100)
    b = np.random.default_rng(1).normal(size=100)
    b += a.mean() - b.mean() + 1e-3  # 1e-3 of a deviation of 1.4: millions of users
    assert paired_differences(_evaluation(x=b), _evaluation(x=a))["x"].mean > 0
    found = paired_differences(_evaluation(x=a), _evaluation(x=b))["x"]
    assert found.users_to_tell is None
