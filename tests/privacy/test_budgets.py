"""How clients that protect their own reports share a target among their messages."""

import math

import pytest
from quick import some_of

from tacit.errors import BadValue
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import LocalBits, LocalPrivUnit
from tacit.privacy.budgets import BEST_MIXED_EPSILON, LocalBudget, given
from tacit.release import Unit, View
from tacit.sampling import Everyone, Once
from tacit.statement import account

MIXED = {"channel": "shuffle", "min_contributors": 5000, "delta": 1e-6}


def spent(privacy, plan, view):
    phases = (Phase("gradients", range(plan.rounds), what="gradients"),)
    told = account(plan, privacy.releases(plan, phases)).releases
    [line] = [s for s in told if (s.unit, s.view) == (Unit.USER, view)]
    return line.epsilon


def test_mixed_votes_are_as_many_as_fit():
    """Nine fit and ten do not, by the account itself."""
    plan = Plan(5000, sampler=Once(), target_epsilon=0.5, **MIXED)
    votes = LocalBudget(plan).votes()
    assert 1 < votes < 100

    def cost(k):
        privacy = LocalBits(epsilon=BEST_MIXED_EPSILON, votes=k)
        return spent(privacy, plan, View.SERVER)

    assert cost(votes) <= 0.5 < cost(votes + 1) + 0.01


@pytest.mark.parametrize(
    ("total", "votes"),
    [(0.5, 1), (2.18, 1), (4.0, 2), (8.0, 4), (218.0, 100), (1e4, 100)],
)
def test_votes_share_a_local_target_where_the_noise_is_least(total, votes):
    plan = Plan(10, sampler=Once(), target_epsilon=total)
    found = LocalBudget(plan).votes()
    assert found == votes

    def noise(k):
        return 1 / k / math.tanh(total / k / 2) ** 2

    assert noise(found) <= min(noise(k) for k in range(1, 101)) * (1 + 1e-12)


def test_the_best_epsilon_of_a_mixed_vote():
    """Of e^eps coth²(eps / 2), by a fine grid."""
    grid = [0.001 * i for i in range(1, 5000)]
    best = min(grid, key=lambda e: math.exp(e) / math.tanh(e / 2) ** 2)
    assert pytest.approx(best, abs=1e-3) == BEST_MIXED_EPSILON


@pytest.mark.parametrize("messages", some_of([1, 3], 1))
@pytest.mark.parametrize("sampler", some_of([Once(), Everyone()], 1))
def test_a_mixed_target_is_met_from_below(messages, sampler):
    """What relay and server see together is more than that."""
    crowd = MIXED | {"min_contributors": 200}
    plan = Plan(500, 2, sampler, target_epsilon=2.0, **crowd)
    epsilon = LocalBudget(plan).epsilon(messages=messages)
    privacy = LocalBits(epsilon=epsilon, votes=messages)
    assert 1.99 < spent(privacy, plan, View.RELEASE) <= 2.0
    assert spent(privacy, plan, View.COLLUSION) > 2.1


@pytest.mark.parametrize("privacy", [LocalPrivUnit(), LocalBits(votes=1), LocalBits()])
def test_a_mixed_target_needs_a_delta(privacy):
    plan = Plan(10, channel="shuffle", min_contributors=5, target_epsilon=1.0)
    with pytest.raises(BadValue, match="delta"):
        privacy.calibrated(plan, ())


def test_a_setting_that_follows_from_a_plan_is_refused_while_it_does_not():
    assert given(0.5, "epsilon") == 0.5
    with pytest.raises(BadValue, match=r"privacy\.votes is not set"):
        given(None, "votes")
