from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from tacit.attacks.leaks import Attempt, Histories
from tacit.attacks.leaks.membership import (
    AUC,
    CAUGHT,
    MembershipByLoss,
    auc,
    caught,
    ceilings,
    reconstruction_loss,
)
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.release import Standing, View


@pytest.fixture(scope="module")
def attempts() -> tuple[Attempt, ...]:
    rng = np.random.default_rng(0)
    histories: Histories = (rng.random((160, 50)) < 0.15).astype(np.uint8)
    return MembershipByLoss(items=45, repeats=8).attack(histories, Key.from_seed(0))


def test_exact_sums_remember_who_trained(attempts: tuple[Attempt, ...]) -> None:
    off = attempts[0]
    assert off.statement.standing is Standing.NONE
    assert off.scores[AUC].mean > 0.9
    assert off.scores[CAUGHT].mean > 0.2
    assert off.scores[AUC].most is None


def test_noisy_sums_do_not(attempts: tuple[Attempt, ...]) -> None:
    """Below the ceiling by 5 s.e. of the repeats (false alarm below 1e-3)."""
    for attempt in attempts[1:]:
        said, found = attempt.statement, attempt.scores[AUC]
        assert said.standing is Standing.PROVEN
        assert said.view is View.RELEASE
        assert found.most is not None
        assert found.se is not None
        assert found.mean < found.most + 5 * found.se
    assert attempts[2].scores[AUC].mean < 0.6


def test_the_ceiling_is_reached_by_whoever_knows_the_rest() -> None:
    """The best test on one Gaussian release; 40,000 draws, false alarm below 1e-6.

    An AUC's standard error is at most 1 / sqrt(20,000) here; 0.025 is over 5 of them
    by Hoeffding's bound on its U-statistic: exp(-2 · 20,000 · 0.025²) < 1e-10.
    """
    noise = GaussianSum(1.0, 1.5)
    is_member = np.arange(40_000) % 2 == 0
    sums = noise.add({"rest": is_member.astype(float)}, Key.from_seed(1))["rest"]
    most = ceilings(noise.noise_multiplier)
    assert auc(sums, is_member) == pytest.approx(most[AUC], abs=0.025)
    assert caught(sums, is_member) == pytest.approx(most[CAUGHT], abs=0.015)


def test_the_ceiling_is_the_gaussian_trade_off() -> None:
    normal = NormalDist()
    assert ceilings(1.0)[CAUGHT] == pytest.approx(normal.cdf(1 + normal.inv_cdf(0.01)))
    assert ceilings(1e9)[AUC] == pytest.approx(0.5)


def test_auc_and_catches_by_hand() -> None:
    is_member = np.array([True, True, False, False])
    assert auc(np.array([4.0, 3.0, 2.0, 1.0]), is_member) == 1.0
    assert auc(np.array([4.0, 1.0, 2.0, 1.0]), is_member) == (1 + 1 + 0 + 0.5) / 4
    assert caught(np.array([4.0, 1.5, 2.0, 1.0]), is_member, false_alarms=0.0) == 0.5
    assert caught(np.array([4.0, 1.5, 2.0, 1.0]), is_member, false_alarms=0.5) == 1.0


def test_the_loss_is_that_of_the_closed_form() -> None:
    rng = np.random.default_rng(3)
    units = rng.random((30, 6))
    gram = units.T @ units
    precision = np.linalg.inv(gram + 0.5 * np.eye(6))
    weights = -precision / np.diag(precision)
    np.fill_diagonal(weights, 0.0)
    expected = ((units - units @ weights) ** 2).sum(axis=1)
    found = reconstruction_loss(units, gram, ridge=0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_too_few_users_are_refused() -> None:
    with pytest.raises(BadValue, match="n_users=3 must be >= 20"):
        MembershipByLoss().attack(np.ones((3, 5), np.uint8), Key.from_seed(0))
