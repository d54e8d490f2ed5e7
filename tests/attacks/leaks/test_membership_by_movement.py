"""The attack that comes with PrivRec."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from tacit.attacks import leaks
from tacit.attacks.leaks import Attempt, Histories, Score
from tacit.attacks.leaks.membership import AUC
from tacit.attacks.leaks.membership_by_movement import MembershipByMovement
from tacit.attacks.leaks.model_movement import CAUGHT_MORE, attack_movement
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.methods.privrec import PrivRec
from tacit.plans import Plan
from tacit.release import Adjacency, Standing, View
from tacit.transport.messages import Broadcast

LEAK = MembershipByMovement(epsilons=(1.0,), federations=6, n_users=10, rounds=4)
KEY = Key.from_seed(0)


@pytest.fixture(scope="module")
def histories() -> Histories:
    drawn = np.random.default_rng(0).random((60, 60)) < np.linspace(0.3, 0.05, 60)
    drawn[:, 0] |= ~drawn.any(axis=1)
    return drawn.astype(np.uint8)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Draws so many at once that the compiled generator is loaded: half of the time."""
    KEY.each(np.arange(5_000))


@pytest.fixture(scope="module")
def attempts(histories: Histories) -> tuple[Attempt, ...]:
    return LEAK.attack(histories, KEY)


def is_within(score: Score) -> bool:
    """Whether a guarantee may hold: below its bound by four errors.

    False alarm below 1 % if the seed were drawn anew: Student's t of six federations.
    """
    assert score.most is not None
    assert score.se is not None
    return score.mean < score.most + 4 * score.se


def test_it_is_installed_and_runs_for_privrec_alone() -> None:
    assert "membership_by_movement" in leaks.known()
    assert MembershipByMovement().method == "privrec"
    assert "16 federations of 20 users" in MembershipByMovement().question


@pytest.mark.slow
def test_bare_updates_tell_who_took_part(attempts: tuple[Attempt, ...]) -> None:
    off = attempts[0]
    assert off.statement.standing is Standing.NONE
    assert off.scores[AUC].mean > 0.75
    assert off.scores[CAUGHT_MORE].mean > 0.3
    assert off.scores[AUC].most is None


@pytest.mark.slow
def test_noise_keeps_within_its_promise(attempts: tuple[Attempt, ...]) -> None:
    _, paper, sound = attempts
    assert paper.is_protected
    assert sound.is_protected
    assert paper.statement.adjacency is Adjacency.REPLACE_ONE
    assert sound.statement.adjacency is Adjacency.ZERO_OUT
    assert sound.statement.view is View.RELEASE
    assert sound.statement.horizon == "for all 4 rounds together"
    assert sound.statement.epsilon == pytest.approx(1.0, abs=1e-3)
    assert is_within(paper.scores[AUC])
    assert is_within(sound.scores[AUC])


@pytest.mark.slow
def test_at_epsilon_one_the_attack_is_a_guess(attempts: tuple[Attempt, ...]) -> None:
    """Within 4 errors of one half: false alarm below 2 %, as `is_within`, two-sided."""
    score = attempts[-1].scores[AUC]
    assert score.se is not None
    assert abs(score.mean - 0.5) < 4 * score.se
    assert score.se < 0.08


class Silent(PrivRec):
    """Says that it adds noise, and adds none."""

    def noise(self, broadcast: Broadcast, plan: Plan) -> None: ...


@pytest.mark.slow
def test_noise_that_is_missing_is_found_out(histories: Histories) -> None:
    *_, sound = LEAK.subjects(60, KEY.at("catalog"))
    told = {f.name: getattr(sound.method, f.name) for f in fields(PrivRec)}
    broken = replace(sound, method=Silent(**told))
    score = attack_movement(broken, LEAK.dealt(histories), KEY.at("play")).scores[AUC]
    assert not is_within(score)


def test_what_cannot_be(histories: Histories) -> None:
    with pytest.raises(BadValue, match=r"epsilon=0\.0 must be > 0"):
        MembershipByMovement(epsilons=(0.0,))
    with pytest.raises(BadValue, match="federations=1 must be >= 2"):
        MembershipByMovement(federations=1)
    with pytest.raises(BadValue, match="n_users=19 must be >= 20"):
        LEAK.attack(histories[:19], KEY)
