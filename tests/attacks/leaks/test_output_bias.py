"""What the output layer of a report gives away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.attacks.leaks import Attempt, Histories
from tacit.attacks.leaks.output_bias import (
    KNOWING,
    PRECISION,
    RECALL,
    Subject,
    attack_output,
)
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.method import CentralGaussian
from tacit.methods.fedvae import FedVae
from tacit.plans import Plan
from tacit.release import Standing, Unit, View

USERS, ITEMS = 120, 40
BARE = FedVae(hidden=(8,), latent=4, rate=0.05)
NOISY = replace(BARE, privacy=CentralGaussian())
OUTPUT = "decoder/1"


@pytest.fixture(scope="module")
def histories() -> Histories:
    """Ten items a user at the median; some are popular, nobody has none."""
    shares = np.linspace(0.6, 0.05, ITEMS)
    drawn = np.random.default_rng(0).random((USERS, ITEMS)) < shares
    drawn[:, 0] |= ~drawn.any(axis=1)
    return drawn.astype(np.uint8)


def attacked(histories: Histories, subject: Subject) -> Attempt:
    return attack_output(subject, histories, Key.from_seed(1))


def noisy(epsilon: float, channel: str) -> Subject:
    plan = Plan(USERS, channel=channel, delta=1e-6, target_epsilon=epsilon)
    return Subject("noisy", NOISY.calibrated(plan), plan, OUTPUT)


def means(attempt: Attempt) -> list[float]:
    return [attempt.scores[name].mean for name in (PRECISION, RECALL, KNOWING)]


def test_a_bare_report_is_the_history(histories: Histories) -> None:
    attempt = attacked(histories, Subject("bare", BARE, Plan(USERS), OUTPUT))
    assert means(attempt) == [1.0, 1.0, 1.0]
    assert attempt.statement.standing is Standing.NONE


def test_a_trained_model_hides_popular_items_from_signs_only(
    histories: Histories,
) -> None:
    """Where n p > 1 the sign turns; whoever has the model solves for the history."""
    subject = Subject("later", BARE, Plan(USERS, rounds=31), OUTPUT, round=30)
    precision, recall, knowing = means(attacked(histories, subject))
    assert precision == 1.0
    assert 0.5 < recall < 1.0
    assert knowing == 1.0


def test_clipping_hides_nothing_from_a_server_that_sees_reports(
    histories: Histories,
) -> None:
    attempt = attacked(histories, noisy(1.0, "direct"))
    assert means(attempt) == [1.0, 1.0, 1.0]
    assert attempt.statement.standing is Standing.NONE


@pytest.mark.slow
def test_a_noisy_sum_leaves_little_more_than_a_guess(histories: Histories) -> None:
    """Within 5 s.e. of guessing: one-sided false alarm below 1e-6."""
    attempt = attacked(histories, noisy(1.0, "secure_sum"))
    score, said = attempt.scores[RECALL], attempt.statement
    assert (said.unit, said.view) == (Unit.USER, View.SERVER)
    assert said.standing is Standing.PROVEN
    assert said.epsilon == pytest.approx(1.0, abs=1e-3)
    assert score.se is not None
    assert abs(score.mean - score.chance) < 5 * score.se
    assert means(attempt) == [score.mean] * 3


def test_a_weak_sum_is_seen_through(histories: Histories) -> None:
    """The attack is no straw man: with next to no noise it finds nearly everything."""
    subject = noisy(8.0, "secure_sum")
    weak = replace(NOISY, privacy=CentralGaussian(1e-3))
    found = attacked(histories, replace(subject, method=weak))
    assert found.scores[RECALL].mean > 0.95


def test_chance_is_what_popularity_gives(histories: Histories) -> None:
    attempt = attacked(histories, Subject("bare", BARE, Plan(USERS), OUTPUT))
    popular = np.argsort(-histories.sum(axis=0), kind="stable")
    hits = [row[popular[: row.sum()]].sum() / row.sum() for row in histories]
    assert attempt.scores[RECALL].chance == pytest.approx(np.mean(hits))


def test_what_cannot_be(histories: Histories) -> None:
    plan = Plan(USERS, channel="secure_sum")
    with pytest.raises(BadValue, match="a bare sum hides nobody"):
        attacked(histories, Subject("sum", BARE, plan, OUTPUT))
    with pytest.raises(BadValue, match="leaf 'decoder/7' must be one outer product"):
        attacked(histories, Subject("bare", BARE, Plan(USERS), "decoder/7"))
