from __future__ import annotations

import numpy as np
import pytest

from tacit.baselines import matrix
from tacit.baselines.ials import FittedIals, Ials
from tacit.errors import BadValue
from tacit.keys import Key

KEY = Key.from_seed(0)


def _loss(x: np.ndarray, w: np.ndarray, fitted: FittedIals) -> float:
    """The loss as the module's docstring has it, for users with vectors `w`."""
    scores = w @ fitted.items.T
    weight = np.where(x > 0, fitted.confidence, 1.0)
    ridge = fitted.regularization * (w**2).sum()
    return float((weight * (x - scores) ** 2).sum() + ridge)


def test_fold_in_is_the_weighted_ridge_regression_of_one_user(shards, table):
    fitted = Ials(5, confidence=4.0, regularization=2.0).fit(shards(table), key=KEY)
    found = fitted.represent(shards(table[:7]))
    h = fitted.items.astype(float)
    for x, w in zip(table[:7], found, strict=True):
        weights = np.diag(np.where(x > 0, 4.0, 1.0))
        left, right = h.T @ weights @ h + 2.0 * np.eye(5), h.T @ weights @ x
        np.testing.assert_allclose(w, np.linalg.solve(left, right), rtol=1e-4)


def test_what_is_fitted_minimizes_the_stated_loss(shards, table):
    """With users solved for, no small step of any item's vector lowers the loss."""
    ranker = Ials(3, confidence=4.0, regularization=2.0, iterations=300)
    fitted = ranker.fit(shards(table), key=KEY)
    w = fitted.represent(shards(table)).astype(float)
    weights = np.where(table > 0, 4.0, 1.0)
    residuals = weights * (w @ fitted.items.T - table)
    gradient = residuals.T @ w + 2.0 * fitted.items
    assert np.abs(gradient).max() < 1e-3 * np.abs(residuals.T @ w).max()


def test_the_fold_in_has_the_least_loss(shards, table):
    fitted = Ials(3, regularization=2.0).fit(shards(table), key=KEY)
    w = fitted.represent(shards(table)).astype(float)
    least = _loss(table, w, fitted)
    for step in np.random.default_rng(0).normal(size=(20, *w.shape)):
        assert _loss(table, w + 0.01 * step, fitted) > least


def test_blocks_of_users_change_nothing(shards, table, monkeypatch):
    fitted = Ials(3, regularization=1.0).fit(shards(table), key=KEY)
    whole = fitted.represent(shards(table))
    monkeypatch.setattr(matrix, "_NUMBERS_AT_ONCE", 7 * 3**2)
    np.testing.assert_allclose(fitted.represent(shards(table)), whole, rtol=1e-5)


def test_another_key_starts_elsewhere(shards, table):
    one, two = (
        Ials(3, iterations=1, regularization=1.0).fit(
            shards(table), key=Key.from_seed(s)
        )
        for s in (0, 1)
    )
    assert not np.allclose(one.items, two.items)


@pytest.mark.parametrize(
    "wrong",
    [{"factors": 0}, {"confidence": 0.5}, {"regularization": 0.0}, {"iterations": 0}],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(BadValue, match=r"must be >"):
        Ials(**wrong)
