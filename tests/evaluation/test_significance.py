from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadValue
from tacit.evaluation import significance
from tacit.evaluation.significance import paired_bootstrap, paired_interval
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
            paired_interval([best], [one], "x", confidence=1 - 0.05 / m)
            for one in rankers
            if one is not best
        ]
        alarms += any(one.is_told_apart for one in found)
    assert alarms <= 8


def test_one_user_proves_nothing():
    one = Evaluation("full", np.arange(1), {"x": np.ones(1)}, Groups.everyone(1))
    two = Evaluation("full", np.arange(1), {"x": np.zeros(1)}, Groups.everyone(1))
    found = paired_interval([one], [two], "x", confidence=0.95)
    assert (found.mean, found.is_told_apart) == (1.0, False)
