from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import NonPrivateDpEvent
from mechanisms.local_audit import DRAWS, assert_no_louder, clients
from scipy.stats import laplace as laplace_law

from tacit.accounting.epsilon import epsilon as account
from tacit.errors import BadValue
from tacit.mechanisms.private_attention import (
    GaussianAttention,
    clip_attention,
    l2_sensitivity,
)
from tacit.mechanisms.published import (
    PublishedAttention,
    PublishedGradient,
    PublishedLabels,
)
from tacit.testing.statistics import assert_distribution, assert_frequencies
from tacit.tree import Tree

SERVED = PublishedAttention(10.0, 5, theta=0.1, delta=1e-5, padding=0.5)


def test_gaussian_noise_by_hand():
    """theta sqrt(2 ln(1.25 · 0.5 / 1e-5)) / 10.693124 = 0.1 · 4.699606 / 10.693124."""
    assert SERVED.noise == pytest.approx(0.0439498, abs=1e-6)
    plain = PublishedAttention(10.0, 5, theta=0.1, delta=1e-5)
    assert plain.noise == pytest.approx(0.0484481, abs=1e-6)


def test_laplace_noise_by_hand():
    """delta 0, as in the paper's tables: theta / eps0."""
    pure = PublishedAttention(1.0, 3, theta=0.2, delta=0.0, padding=0.5)
    assert pure.noise == pytest.approx(0.2 / 1.489880, rel=1e-6)


def test_the_sensitivity_is_short_by_the_root_of_two():
    """Two users are farther apart than the theta that the noise is made for."""
    one, other = clip_attention(np.eye(5)[:2], theta=SERVED.theta)
    apart = float(np.linalg.norm(one - other))
    assert apart == pytest.approx(math.sqrt(2) * SERVED.theta)
    assert apart == pytest.approx(l2_sensitivity(SERVED.theta))


def test_what_it_really_costs():
    """Claimed is 10; the actual noise gives 18.27 at the user level (delta 1e-5)."""
    found = account(SERVED.event, delta=1e-5, adjacency="replace_one").value
    assert found == pytest.approx(18.267, abs=5e-3)  # more than even eps0, 10.69
    ours = GaussianAttention(found, 5, theta=0.1, delta=1e-5)
    assert ours.sigma == pytest.approx(SERVED.noise, rel=1e-4)
    pure = PublishedAttention(1.0, 3, theta=0.2, delta=0.0)
    assert pure.event.epsilon == pytest.approx(1 + math.sqrt(2))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_reports_are_distributions(delta):
    mechanism = PublishedAttention(1.0, 3, theta=0.2, delta=delta, padding=0.5)
    weights = mechanism.privatize(np.full((50, 3), 1 / 3), clients(1, 50))
    assert weights.sum(axis=1) == pytest.approx(1)
    assert weights.std() > 0


def test_the_chance_to_keep_a_label_by_hand():
    """k = 4, C = 37, eps 10: b = ln(4/36) + 10 = 7.80; C = 37, eps 1: b = 0."""
    keep = PublishedLabels(10.0, 4).keep([37])
    grown = 4 / 36 * math.exp(10)
    assert keep == pytest.approx([grown / (4 + grown)])
    assert PublishedLabels(1.0, 4).keep([37]) == pytest.approx([1 / 5])


def candidates(click: int, seed: int) -> np.ndarray:
    mechanism = PublishedLabels(1.0, 2)
    shown = mechanism.privatize(
        np.full(DRAWS, click), clients(seed), sizes=np.full(DRAWS, 6)
    )
    return shown.values.reshape(DRAWS, 3)


def test_labels_are_kept_as_printed():
    """False alarm below 1e-9; sees a probability 1 % off. b = max(0, ln(2 e / 5))."""
    labels = candidates(4, 1)[:, 0]
    keep = 2 * math.e / 5 / (2 + 2 * math.e / 5)
    others = np.full(6, (1 - keep) / 5)
    others[4] = keep
    assert_frequencies(np.bincount(labels), others, false_alarm=1e-9)


def test_the_candidates_always_hold_the_click():
    """Infinite loss: whoever is missing was not clicked, whatever epsilon says."""
    one, other = candidates(0, 1), candidates(1, 2)
    assert (one == 0).any(axis=1).all()
    without = ~(other == 0).any(axis=1)
    assert without.mean() > 0.5
    with pytest.raises(AssertionError, match="never for the other"):
        assert_no_louder(without, ~(one == 0).any(axis=1), 9.0)
    assert PublishedLabels(1.0, 2).event == NonPrivateDpEvent()


def test_a_short_impression_has_all_its_items_as_candidates():
    """Two items, k = 4: both are candidates, and b is epsilon itself."""
    mechanism = PublishedLabels(1.0, 4)
    shown = mechanism.privatize([1, 0], clients(3, 2), sizes=[2, 7])
    assert shown.lengths.tolist() == [2, 5]
    assert sorted(shown[0].tolist()) == [0, 1]
    assert 0 in shown[1].tolist()
    assert mechanism.keep([2]) == pytest.approx([math.e / (1 + math.e)])


def test_clipped_as_printed_weights_are_two_apart_for_any_theta():
    """Line 8 has no theta: Laplace noise of theta / eps0 then costs 2 eps0 / theta."""
    printed = PublishedAttention(1.0, 5, theta=0.1, delta=0.0, clip=1.0)
    assert printed.event.epsilon == pytest.approx(2 / 0.1)
    far = np.abs(clip_attention(np.eye(5), theta=1.0)[0] - np.eye(5)[1]).sum()
    assert far == pytest.approx(2.0)


GRADIENT = {"w": np.array([[3.0, 4.0]]), "b": np.array([[0.0]])}


def test_gradients_are_clipped_jointly_and_get_the_printed_noise():
    """False alarm below 1e-9 if the seed were drawn anew; sees a scale 3 % off."""
    mechanism = PublishedGradient(2.0, theta=0.005)
    assert mechanism.noise == pytest.approx(0.005)
    one = {name: np.repeat(v, DRAWS, axis=0) for name, v in GRADIENT.items()}
    noisy = mechanism.privatize(Tree.dense(**one), clients(4))
    clipped = {"w": 0.001 * GRADIENT["w"], "b": GRADIENT["b"]}
    for name, value in clipped.items():
        drawn = (noisy[name] - value) / mechanism.noise
        assert_distribution(drawn.ravel(), laplace_law.cdf, false_alarm=1e-9)


def test_what_a_noisy_gradient_costs():
    """Claimed is 1. By zCDP it is 5.3 at delta 1e-6, and sqrt(d) at delta 0."""
    event = PublishedGradient(1.0).event
    found = account(event, delta=1e-6, adjacency="replace_one").value
    assert found == pytest.approx(5.24, abs=0.1)
    assert account(event, delta=0.0, adjacency="replace_one").value is None
    gaussian = PublishedGradient(10.0, delta=1e-6)
    found = account(gaussian.event, delta=1e-6, adjacency="replace_one").value
    assert found > 10.0  # the classic formula is for epsilon < 1


def test_the_zcdp_of_a_noisy_gradient_covers_its_exact_divergence():
    """Of gradients that differ by the whole diameter, in one number or spread out."""
    epsilon, orders = 2.0, np.array([1.5, 2.0, 8.0, 64.0])
    for n in (1, 4, 1000):
        t = epsilon / math.sqrt(n)  # shift of each number over the scale
        # Mironov 2017, Proposition 6, in logarithms
        a = np.log(orders / (2 * orders - 1)) + (orders - 1) * t
        b = np.log((orders - 1) / (2 * orders - 1)) - orders * t
        exact = n * np.logaddexp(a, b) / (orders - 1)
        bound = PublishedGradient(epsilon).event.rho * orders
        assert (exact <= bound * (1 + 1e-9)).all()
    # Shifts that are small against the order come close to it.
    assert exact[:2] == pytest.approx(bound[:2], rel=0.05)


def test_nonsense_is_refused():
    with pytest.raises(BadValue):
        PublishedAttention(1.0, 3, theta=0.0, delta=0.0)
    with pytest.raises(BadValue):
        PublishedAttention(1.0, 3, theta=1.0, delta=0.0, padding=1.0)
    with pytest.raises(BadValue, match="smallest_impression"):
        PublishedLabels(1.0, 5).privatize([0], clients(0, 1), sizes=[1])
    with pytest.raises(BadValue, match="theta"):
        PublishedGradient(1.0, theta=0.0)
    with pytest.raises(BadValue):
        PublishedLabels(1.0, 2).privatize([5], clients(0, 1), sizes=[5])
