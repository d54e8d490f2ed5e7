from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, SelfComposedDpEvent
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.local_audit import clients

from tacit.accounting.epsilon import epsilon as account
from tacit.accounting.events import PaddedDpEvent, pure_local
from tacit.errors import BadValue, Refused
from tacit.mechanisms.padding import Padding
from tacit.mechanisms.private_attention import GaussianAttention
from tacit.testing.statistics import assert_frequencies


@pytest.mark.parametrize(
    ("epsilon", "p", "inner"),
    [(1.0, 0.2, 1.146720), (1.0, 0.5, 1.489880), (10.0, 0.5, 10.693124)],
)
def test_inner_epsilons(epsilon, p, inner):
    assert Padding(p).inner_epsilon(epsilon) == pytest.approx(inner, abs=5e-7)


def test_inner_deltas():
    assert Padding(0.2).inner_delta(1e-6) == pytest.approx(1.25e-6)
    assert Padding(0.5).inner_delta(0.0) == 0.0
    with pytest.raises(BadValue, match="lower delta or pad less"):
        Padding(0.9).inner_delta(0.2)


@given(st.floats(1e-3, 800), st.floats(1e-3, 0.999))
def test_inner_and_item_epsilon_undo_each_other(epsilon, p):
    padding = Padding(p)
    assert padding.inner_epsilon(epsilon) >= epsilon
    back = padding.item_epsilon(padding.inner_epsilon(epsilon))
    assert back == pytest.approx(epsilon, rel=1e-9)


@given(st.floats(0.01, 5), st.floats(0.05, 0.95))
def test_amplification_is_that_of_the_exact_mixture(epsilon, p):
    """Binary randomised response behind a coin, worked out in full.

    The replacement is the worst legal one: it answers as the other input does.
    """
    keep = 1 / (1 + math.exp(-epsilon))
    seen, other = (1 - p) * keep + p * (1 - keep), 1 - keep
    ratio = math.log(seen / other)
    assert ratio == pytest.approx(Padding(p).item_epsilon(epsilon), rel=1e-9)


def test_interactions_are_padded_at_the_stated_rate():
    """False alarm below 1e-9; sees a rate 4 % off."""
    lengths = np.arange(2000) % 50
    padded = Padding(0.3).pad(lengths, clients(1, 2000))
    assert len(padded) == lengths.sum()
    assert_frequencies(np.bincount(padded), [0.7, 0.3], false_alarm=1e-9)


def test_a_client_does_not_depend_on_the_others():
    lengths, keys = np.array([3, 0, 5]), clients(2, 3)
    together = Padding(0.5).pad(lengths, keys)
    assert (Padding(0.5).pad(lengths[[2]], keys[[2]]) == together[3:]).all()


SERVED = GaussianAttention(1.0, 5, theta=0.3, delta=1e-6)


def test_gaussian_releases_at_both_levels():
    """One release of eps0 = 1: 0.5933 for an interaction, 1 for the user."""
    padding = Padding(0.5)
    item, user = padding.item_event(SERVED.event), padding.user_event(SERVED.event)
    assert item == PaddedDpEvent(0.5, SERVED.event)
    found = account(item, delta=1e-6, adjacency="replace_one").value
    assert found == pytest.approx(0.5933, abs=5e-4)
    found = account(user, delta=1e-6, adjacency="replace_one").value
    assert found == pytest.approx(1.0, abs=5e-4)


@pytest.mark.parametrize(("releases", "total"), [(30, 3.2111), (365, 13.5244)])
def test_padded_releases_compose_for_an_interaction(releases, total):
    event = SelfComposedDpEvent(Padding(0.5).item_event(SERVED.event), releases)
    found = account(event, delta=1e-6, adjacency="replace_one").value
    assert found == pytest.approx(total, abs=5e-4)


def test_pure_releases_at_both_levels():
    padding, event = Padding(0.5), pure_local(1.489880, choices=5)
    item = padding.item_event(event)
    assert item.epsilon == pytest.approx(1.0, abs=1e-6)
    assert padding.user_event(event) is event


def test_other_releases_are_not_amplified():
    with pytest.raises(Refused, match="keep the event"):
        Padding(0.5).item_event(NonPrivateDpEvent())
    with pytest.raises(Refused):
        Padding(0.5).item_event(PaddedDpEvent(0.5, GaussianDpEvent(1.0)))


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_bad_probabilities_are_refused(p):
    with pytest.raises(BadValue, match="probability"):
        Padding(p)
