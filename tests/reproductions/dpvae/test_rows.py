"""Reasons, budgets and claims of rows."""

from __future__ import annotations

import numpy as np
import pytest
from tacit_study_dpvae import rows
from tacit_study_dpvae.benches import METRICS, as_published, smoke

from tacit.reproduction.cells import Found
from tacit.results import Evaluation, Groups


def found(*means: float) -> Found:
    """Four users of whom all have one of these numbers, one per seed."""
    users, groups = np.arange(4), Groups.everyone(4)
    return Found(
        tuple(
            Evaluation(
                "full",
                users,
                {m: mean + np.array([-0.01, 0, 0, 0.01]) for m in METRICS},
                groups,
            )
            for mean in means
        ),
        (),
    )


def test_a_figure_is_the_same_within_a_hundredth():
    popularity = found(0.2)
    made = rows.rows(
        "KNN",
        found(0.255),
        {"ndcg@100": 0.26, "recall@20": 0.35, "recall@50": None}.get,
        popularity=popularity,
        reason="other data",
    )
    assert [row.ok for row in made] == [True, False, True]
    assert [row.reason for row in made] == ["", "other data", ""]
    assert {row.budget for row in made} == {"not private"}
    assert made[0].beside == {"popularity": pytest.approx(0.2)}


def test_less_budget_gives_a_larger_reason():
    bench = as_published("ML-100K", None)
    assert "797 S" in rows.because_of_noise(bench)
    assert "1,594 S" in rows.because_of_noise(bench, most=0.5)
    assert "stand" not in rows.because_of_noise(bench)
    assert "published on ML-20M" in rows.because_of_noise(smoke("ML-20M"))


def test_what_was_not_run_has_the_published_figure_and_a_reason():
    made = rows.not_run("LightFM", lambda metric: 0.25, "not installed")
    assert [(row.published, row.paper, row.ok) for row in made] == [
        (0.25, None, False)
    ] * 3


def test_users_of_their_own_have_the_errors_of_both():
    bench, by = smoke("ML-20M"), {"ndcg@100": 0.3}
    assert rows.apart("better", bench, found(0.4), found(0.3), by=by).ok
    assert not rows.apart("better", bench, found(0.3), found(0.2), by=by).ok
    claim = rows.apart("better", bench, found(0.301), found(0.3), by=by)
    assert not claim.ok
    assert "not the same users" in claim.evidence
