from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.local_audit import DRAWS, assert_no_louder, clients

from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms import integer_coins
from tacit.mechanisms.randomized_response import RandomizedResponse, respond
from tacit.testing.statistics import assert_frequencies

epsilons = st.floats(1e-3, 60)


@pytest.mark.parametrize(
    ("choices", "epsilon", "keep", "other"),
    [
        (2, 1.0, 0.731059, 0.268941),
        (5, 1.0, 0.404610, 0.148848),
        (5, 2.5, 0.752819, 0.061795),
        (37, 2.5, 0.252841, 0.020754),
    ],
)
def test_probabilities(choices, epsilon, keep, other):
    rr = RandomizedResponse(epsilon, choices)
    assert rr.keep == pytest.approx(keep, abs=5e-7)
    assert rr.other == pytest.approx(other, abs=5e-7)


@given(epsilons, st.integers(2, 9))
def test_the_likelihood_ratio_is_e_to_the_epsilon_for_all_neighbours(epsilon, choices):
    table = RandomizedResponse(epsilon, choices).likelihoods()
    assert table.sum(axis=1) == pytest.approx(1)
    worst = max(
        math.log(table[x, report] / table[y, report])
        for x, y in permutations(range(choices), 2)
        for report in range(choices)
    )
    assert worst == pytest.approx(epsilon, rel=1e-9)  # never above, and reached


@pytest.mark.parametrize("value", [0, 2, 4])
def test_reports_follow_the_likelihoods(value):
    """False alarm below 3e-9 in all; sees a keep probability 1 % off."""
    rr = RandomizedResponse(1.0, 5)
    reports = rr.privatize(np.full(DRAWS, value), clients(value))
    assert_frequencies(rr.counts(reports), rr.likelihoods()[value], false_alarm=1e-9)


@pytest.mark.parametrize("broken", ["keeps too often", "lies may be true"])
def test_a_broken_response_is_caught(broken):
    """The first is the keep probability of epsilon + 0.05, the second a common slip."""
    rr, keys = RandomizedResponse(1.0, 5), clients(1)
    if broken == "keeps too often":
        reports = RandomizedResponse(1.05, 5).privatize(np.zeros(DRAWS, int), keys)
    else:
        lies = keys.at("lie").uniform(1)[:, 0] > rr.keep
        reports = np.where(lies, keys.at("another").integers(1, below=5)[:, 0], 0)
    with pytest.raises(AssertionError):
        assert_frequencies(rr.counts(reports), rr.likelihoods()[0], false_alarm=1e-9)


def test_two_hundred_thousand_draws_of_an_extreme_pair():
    """False alarm 3e-5 a comparison; sees an epsilon that is 3 % larger."""
    rr = RandomizedResponse(2.5, 4)
    one = rr.privatize(np.zeros(DRAWS, int), clients(1))
    other = rr.privatize(np.ones(DRAWS, int), clients(2))
    for report in range(4):
        assert_no_louder(one == report, other == report, rr.epsilon)
        assert_no_louder(other == report, one == report, rr.epsilon)
    with pytest.raises(AssertionError):
        assert_no_louder(one == 0, other == 0, rr.epsilon * 0.97)


def test_estimates_are_unbiased_exactly():
    """In expectation over the report table, for every frequency."""
    rr = RandomizedResponse(0.7, 3)
    truth = np.array([600, 300, 100])
    expected = truth @ rr.likelihoods()  # counts, on average
    corrected = (expected / 1000 - rr.other) / (rr.keep - rr.other)
    assert corrected == pytest.approx(truth / 1000)
    whole = rr.estimate(np.rint(expected * 1e6).astype(int))
    assert whole == pytest.approx(truth / 1000, abs=1e-5)


def test_variance_of_the_estimate():
    """400 surveys of 500; the mean is in 4 s.e., the variance in 4 of its own, 28 %."""
    rr, surveys, n = RandomizedResponse(1.0, 3), 400, 500
    values = np.tile(np.repeat([0, 1], [400, 100]), surveys)
    reports = rr.privatize(values, clients(5)).reshape(surveys, n)
    found = np.array([rr.estimate(rr.counts(r)) for r in reports])
    for value, frequency in enumerate([0.8, 0.2, 0.0]):
        variance = rr.variance(frequency, reports=n)
        gap = abs(found[:, value].mean() - frequency)
        assert gap < 4 * math.sqrt(variance / surveys)
        assert abs(found[:, value].var() / variance - 1) < 4 * math.sqrt(2 / surveys)


def test_counts_of_batches_add_up():
    rr = RandomizedResponse(1.0, 3)
    assert rr.counts([0, 2, 2]).tolist() == [1, 0, 2]
    assert rr.counts([]).tolist() == [0, 0, 0]


def test_a_client_does_not_depend_on_the_others():
    rr, keys = RandomizedResponse(0.5, 7), clients(3, 50)
    values = np.arange(50) % 7
    together = rr.privatize(values, keys)
    alone = [rr.privatize(values[[i]], keys[[i]])[0] for i in range(50)]
    assert together.tolist() == alone


def test_a_huge_epsilon_still_lies_now_and_then(monkeypatch):
    """Of 2**64 equally likely words, the first forgets the value for any epsilon."""
    monkeypatch.setattr("tacit.keys.Keys.bits", lambda self, n: np.zeros((1, n), "u8"))
    for epsilon in (1.0, 60.0, 5000.0):
        reports = RandomizedResponse(epsilon, 2).privatize([1], clients(0, 1))
        assert reports.tolist() == [0]


@given(epsilons, st.integers(2, 9))
def test_exactly_so_many_words_forget_the_value(epsilon, choices):
    """The words below the number that test_chances.py checks; the rest say it."""
    words = integer_coins.lies(epsilon, choices)
    for word in {0, words // 2, words - 1, words, 2**64 - 1}:
        with pytest.MonkeyPatch.context() as patch:
            draw = np.full((choices, 1), word, np.uint64)
            patch.setattr("tacit.keys.Keys.bits", lambda self, n, draw=draw: draw)
            rr, values = RandomizedResponse(epsilon, choices), np.arange(choices)
            reports = rr.privatize(values, clients(0, choices))
        said = values if word >= words else np.full(choices, word * choices >> 64)
        np.testing.assert_array_equal(reports, said)


def test_every_client_may_have_its_own_number_of_choices():
    sizes = np.tile([1, 2, 30], 2000)
    reports = respond(sizes - 1, clients(4, 6000), sizes=sizes, epsilon=0.1)
    assert (reports[::3] == 0).all()
    assert set(reports[1::3].tolist()) == {0, 1}
    assert set(reports[2::3].tolist()) == set(range(30))


def test_the_event_is_the_exact_one():
    event = RandomizedResponse(0.3, 5).event
    assert (event.epsilon, event.choices) == (0.3, 5)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf])
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(BadValue, match="epsilon"):
        RandomizedResponse(epsilon, 2)


@pytest.mark.parametrize("choices", [1, 0, 2.5, True])
def test_bad_choices_are_refused(choices):
    with pytest.raises(BadValue, match="choices"):
        RandomizedResponse(1.0, choices)


def test_bad_values_are_refused():
    rr, keys = RandomizedResponse(1.0, 3), Key.from_seed(0).each([0, 1])
    for values in ([0, 3], [0, -1], [0], [0.5, 1.0]):
        with pytest.raises(BadValue):
            rr.privatize(values, keys)
    for counts in ([0, 0, 0], [1, 1]):
        with pytest.raises(BadValue, match="counts"):
            rr.estimate(counts)
