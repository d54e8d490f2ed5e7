from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.local_audit import DRAWS, assert_no_louder, clients

from tacit.errors import BadValue
from tacit.mechanisms.label_choice import LabelChoice, negatives
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.testing.statistics import assert_frequencies


def draw(mechanism, click, *, size, seed, n=DRAWS):
    """Candidates of `n` clients with the same click; (clients, candidates)."""
    shown = mechanism.privatize(
        np.full(n, click), clients(seed, n), sizes=np.full(n, size)
    )
    return shown.values.reshape(n, -1)


@pytest.mark.parametrize("click", [0, 3])
def test_the_label_is_randomized_response_over_the_whole_impression(click):
    """False alarm below 1e-9; sees a probability 1 % off."""
    rr = RandomizedResponse(1.0, 5)
    labels = draw(LabelChoice(1.0, 2), click, size=5, seed=1)[:, 0]
    assert_frequencies(rr.counts(labels), rr.likelihoods()[click], false_alarm=1e-9)


def test_negatives_are_uniform_given_the_label_whatever_the_click():
    """False alarm below 1e-9; a click that is avoided or favoured by 3 % is seen."""
    shown = draw(LabelChoice(1.0, 2), 3, size=5, seed=2)
    rows = shown[shown[:, 0] == 0][:, 1:] - 1  # four places are left over
    pairs = {pair: i for i, pair in enumerate(permutations(range(4), 2))}
    counts = np.bincount([pairs[a, b] for a, b in rows.tolist()], minlength=len(pairs))
    assert_frequencies(counts, np.full(len(pairs), 1 / len(pairs)), false_alarm=1e-9)


def test_the_candidates_leak_no_more_than_the_label():
    """Every outcome, for two clicks, within e^epsilon. False alarm 1e-3 in all."""
    mechanism = LabelChoice(0.8, 1)
    one = draw(mechanism, 0, size=4, seed=3) @ [4, 1]
    other = draw(mechanism, 1, size=4, seed=4) @ [4, 1]
    for outcome in np.unique(one):
        assert_no_louder(one == outcome, other == outcome, mechanism.epsilon)
        assert_no_louder(other == outcome, one == outcome, mechanism.epsilon)


def test_candidates_drawn_around_the_click_are_caught():
    """Negatives that avoid the true click break the bound, label kept or not."""
    n = DRAWS

    def broken(click: int, seed: int) -> np.ndarray:
        keys = clients(seed)
        labels = RandomizedResponse(0.8, 4).privatize(np.full(n, click), keys)
        others = negatives(
            np.full(n, click), keys.at("n"), sizes=np.full(n, 4), count=1
        )
        return labels * 4 + others.values

    one, other = broken(0, 3), broken(1, 4)
    outcome = 0 * 4 + 1  # label 0, negative 1: impossible if 1 was clicked
    assert (one == outcome).any()
    assert not (other == outcome).any()


def test_held_fixed_the_label_decides_the_negatives_bit_for_bit():
    mechanism = LabelChoice(0.5, 3)
    one = draw(mechanism, 2, size=9, seed=5, n=500)
    other = draw(mechanism, 7, size=9, seed=5, n=500)
    same = one[:, 0] == other[:, 0]
    assert same.sum() > 50
    assert (one[same] == other[same]).all()


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=20),
    st.integers(1, 8),
    st.integers(0, 2**32),
)
def test_impressions_of_any_size(sizes, count, seed):
    mechanism, keys = LabelChoice(1.0, count), clients(seed, len(sizes))
    shown = mechanism.privatize(np.zeros(len(sizes), int), keys, sizes=sizes)
    for size, row in zip(sizes, shown, strict=True):
        assert len(row) == min(count, size - 1) + 1
        assert len(set(row.tolist())) == len(row)
        assert 0 <= row.min() <= row.max() < size


def test_a_client_does_not_depend_on_the_others():
    mechanism, keys = LabelChoice(0.5, 2), clients(3, 30)
    sizes, clicks = np.arange(30) % 7 + 1, np.arange(30) % (np.arange(30) % 7 + 1)
    together = mechanism.privatize(clicks, keys, sizes=sizes)
    for i in range(30):
        alone = mechanism.privatize(clicks[[i]], keys[[i]], sizes=sizes[[i]])
        assert alone[0].tolist() == together[i].tolist()


def test_every_place_turns_up_as_negative():
    shown = draw(LabelChoice(1.0, 3), 0, size=40, seed=6, n=5000)
    assert len(Counter(shown[:, 1:].ravel().tolist())) == 40


def test_the_event_is_pure_for_any_size():
    event = LabelChoice(0.3, 4).event
    assert (event.epsilon, event.choices) == (0.3, 2)


@pytest.mark.parametrize("bad", [(0.0, 1), (math.nan, 1), (1.0, 0), (1.0, 1.5)])
def test_nonsense_is_refused(bad):
    with pytest.raises(BadValue):
        LabelChoice(*bad)


@pytest.mark.parametrize(
    ("clicks", "sizes"), [([0, 3], [4, 3]), ([0, 0], [2, 0]), ([0, 0], [2])]
)
def test_clicks_outside_the_impression_are_refused(clicks, sizes):
    with pytest.raises(BadValue):
        LabelChoice(1.0, 2).privatize(clicks, clients(0, 2), sizes=sizes)
