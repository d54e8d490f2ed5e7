from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tacit.data.synthetic import weighted_sampling
from tacit.data.synthetic.ground_truth import Oracle
from tacit.data.synthetic.weighted_sampling import pick
from tacit.keys import Key
from tacit.testing.statistics import assert_frequencies

WEIGHTS = np.array([30.0, 4.0, 1.0, 0.5, 2.0])


def twins(weights: np.ndarray, n: int) -> Oracle:
    """`n` users for whom items have these weights."""
    return Oracle(np.ones((n, 1)), np.log(weights)[:, None])


def picked(oracle: Oracle, counts: np.ndarray, *, seed: int = 1, tries: int = 2):
    users = np.arange(len(counts))
    keys = Key.from_seed(seed).each(users)
    return pick(oracle, users, counts=counts, keys=keys, tries=tries)


def chance(order: tuple[int, ...]) -> float:
    """Of picking these items in this order, one after another, by weight."""
    taken = np.cumsum([0.0, *WEIGHTS[list(order)]])[:-1]
    return float(np.prod(WEIGHTS[list(order)] / (WEIGHTS.sum() - taken)))


def test_picks_are_draws_without_replacement_by_weight():
    """All 60 orders of 3 of 5 items against their exact probabilities.

    False alarm below 1e-9 if the seed were drawn anew; sees the likeliest order, of
    probability 0.24, if its frequency is 8 % off.
    """
    n = 100_000
    found = picked(twins(WEIGHTS, n), np.full(n, 3)).reshape(n, 3)
    orders = list(permutations(range(5), 3))
    code = found @ [25, 5, 1]
    counts = [int((code == np.dot(order, [25, 5, 1])).sum()) for order in orders]
    assert_frequencies(counts, [chance(o) for o in orders], false_alarm=1e-9)


def test_they_agree_with_the_largest_of_chance_plus_noise():
    """Another exact method, Gumbel noise on log weights: which sets of 3 are picked.

    The shares of a set in two samples of n are further apart than the bound with
    probability below 2 exp(-n bound ** 2), by Hoeffding: for all ten sets 1e-9.
    """
    n = 50_000
    noise = Key.from_seed(2).each(np.arange(n)).uniform(5)
    race = np.log(WEIGHTS) - np.log(-np.log1p(-noise))
    plain = np.argsort(-race, axis=1)[:, :3]
    ours = picked(twins(WEIGHTS, n), np.full(n, 3)).reshape(n, 3)
    shares = [
        np.bincount((1 << sets).sum(axis=1), minlength=32) / n for sets in (plain, ours)
    ]
    bound = np.sqrt(np.log(2 * 10 / 1e-9) / n)
    assert np.abs(shares[0] - shares[1]).max() < bound


def test_more_tries_change_nothing_but_the_time():
    """The heavy item is drawn again and again, so with few tries most start anew."""
    weights, counts = np.array([1e4, *[1.0] * 19]), np.arange(1, 20)
    few, many = (picked(twins(weights, 19), counts, tries=t) for t in (1, 4096))
    np.testing.assert_array_equal(few, many)


def test_nobody_has_an_item_twice_and_all_can_be_had():
    counts = np.array([20, 3, 20, 1])
    found = np.split(
        picked(twins(np.geomspace(1, 1e4, 20), 4), counts), np.cumsum(counts)
    )
    assert [len(set(items)) for items in found[:-1]] == counts.tolist()


@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_blocks_and_others_do_not_matter(monkeypatch, size):
    rng = np.random.default_rng(0)
    oracle = Oracle(rng.normal(size=(9, 3)), rng.normal(size=(30, 3)))
    counts = rng.integers(1, 15, 9)
    whole = np.split(picked(oracle, counts), np.cumsum(counts))
    monkeypatch.setattr(weighted_sampling, "_WEIGHTS", size)
    some = np.array([6, 2, 7])
    keys = Key.from_seed(1).each(some)
    part = pick(oracle, some, counts=counts[some], keys=keys)
    np.testing.assert_array_equal(part, np.concatenate([whole[i] for i in some]))
