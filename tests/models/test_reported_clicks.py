"""Reported clicks: the likelihood of a randomised label, its gradient and its fit."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.ragged import Ragged
from tacit.keys import Key
from tacit.mechanisms.randomized_response import RandomizedResponse, respond
from tacit.models.reported_clicks import (
    Prior,
    ReportedClicks,
    _loss,
    _Posterior,
    fit,
    lies,
)

PRIOR = Prior(head=0.3, taste=0.5, effect=1.0)
ITEMS, AXES, SHOWN = 12, 3, 5
NONE, SOME = np.zeros(ITEMS), np.where(np.arange(ITEMS) % 2, 1.0, -1.0)


def vectors() -> np.ndarray:
    draws = Key.from_seed(0).generator().normal(size=(ITEMS, AXES))
    return draws / np.linalg.norm(draws, axis=1, keepdims=True)


def reports(n: int, *, epsilon: float | None, effects=NONE) -> ReportedClicks:
    """Slates of five, clicked by content similarity and the effects of the items."""
    draws, v = Key.from_seed(1).generator(), vectors()
    users = v[draws.integers(0, ITEMS, n)]
    shown = np.array([draws.choice(ITEMS, SHOWN, replace=False) for _ in range(n)])
    scores = 3.0 * np.einsum("ij,ikj->ik", users, v[shown]) + effects[shown]
    label = (scores + draws.gumbel(size=scores.shape)).argmax(axis=1)
    lie = np.zeros(n)
    if epsilon is not None:
        sizes = np.full(n, SHOWN)
        label = respond(
            label, Key.from_seed(2).each(np.arange(n)), sizes=sizes, epsilon=epsilon
        )
        lie = lies(epsilon, sizes=sizes, sent=sizes)
    for row, place in enumerate(label):
        shown[row, [0, place]] = shown[row, [place, 0]]
    return ReportedClicks(users, Ragged.of_lengths([SHOWN] * n, shown.ravel()), lie)


def test_a_whole_slate_is_randomised_response_exactly():
    """The chance of a label is o + (k - o) p: by hand for two scores."""
    how = RandomizedResponse(1.5, 2)
    two = np.array([2])
    lie = lies(1.5, sizes=two, sent=two)
    assert lie == pytest.approx(how.other)
    one = ReportedClicks(np.zeros((1, 1)), Ragged.of_lengths([2], np.arange(2)), lie)
    p = np.exp(0.7) / (1 + np.exp(0.7))
    found, _ = _loss(one, np.array([0.7, 0.0]))
    assert found == pytest.approx(-np.log(how.other + (how.keep - how.other) * p))


@pytest.mark.parametrize("sent", [2, 5, 20])
def test_chances_of_what_was_sent_sum_to_one(sent):
    """Over the m items that were sent: m l + (1 - m l) = 1, and l is below 1 / m."""
    lie = lies(0.5, sizes=np.array([20]), sent=np.array([sent]))
    assert 0 < lie[0] < 1 / sent


def test_without_noise_nothing_lies():
    assert lies(1e4, sizes=np.array([7]), sent=np.array([3])) == 0


def test_the_gradient_is_that_of_the_loss():
    some = reports(40, epsilon=2.0)
    posterior = _Posterior([some], vectors(), 3.0, PRIOR)
    x = 0.3 * Key.from_seed(5).generator().normal(size=posterior.size)
    _, gradient = posterior.loss(x)
    for cell in range(0, posterior.size, 4):
        step = np.zeros(posterior.size)
        step[cell] = 1e-5
        sides = [posterior.loss(x + sign * step)[0] for sign in (1, -1)]
        assert gradient[cell] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-5)


def test_blocks_do_not_matter(monkeypatch):
    some = reports(30, epsilon=2.0)
    whole = fit(some, vectors(), scale=3.0, prior=PRIOR, passes=5)
    monkeypatch.setattr("tacit.models.reported_clicks._SLATES_AT_ONCE", 7)
    cut = fit(some, vectors(), scale=3.0, prior=PRIOR, passes=5)
    np.testing.assert_allclose(cut.head, whole.head, atol=1e-9)
    np.testing.assert_allclose(cut.effects, whole.effects, atol=1e-9)


@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_effects_are_found_under_noise(epsilon):
    """4,000 reports: an effect has deviation 0.1 or less, and effects differ by 2."""
    some = reports(4_000, epsilon=epsilon, effects=SOME)
    found = fit(some, vectors(), scale=3.0, prior=PRIOR, passes=50)
    centred = found.effects + vectors() @ found.taste
    centred -= centred.mean()
    np.testing.assert_allclose(centred, SOME, atol=0.5)


def test_reports_that_are_noise_leave_content_similarity():
    """At epsilon 0.01 the likelihood is flat, and the prior decides."""
    some = reports(4_000, epsilon=0.01, effects=SOME)
    found = fit(some, vectors(), scale=3.0, prior=PRIOR, passes=50)
    assert np.abs(found.effects).max() < 0.1
    assert np.abs(found.head - np.eye(AXES)).max() < 0.1


def test_no_pass_is_the_start():
    found = fit(reports(9, epsilon=2.0), vectors(), scale=3.0, prior=PRIOR, passes=0)
    np.testing.assert_array_equal(found.head, np.eye(AXES))


def test_no_report_is_the_start():
    nothing = ReportedClicks(
        np.zeros((0, AXES)), Ragged.of_lengths([], np.zeros(0, np.int64)), np.zeros(0)
    )
    found = fit(nothing, vectors(), scale=3.0, prior=PRIOR, passes=5)
    np.testing.assert_array_equal(found.head, np.eye(AXES))
    assert not found.effects.any()
    assert not found.taste.any()
