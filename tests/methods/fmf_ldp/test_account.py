"""What is said of it: paper and provable figures, the relay, targets that are met."""

import math

import pytest

from tacit.errors import BadValue
from tacit.methods.fmf_ldp import FmfLdp
from tacit.methods.fmf_ldp.budget import BEST_MIXED_EPSILON, Budget
from tacit.plan import Plan
from tacit.release import Adjacency, Standing, Unit, View
from tacit.sampling import Everyone, Once
from tacit.statement import account

HEADLINE = FmfLdp(mode="paper", epsilon=2.5)


def told(method, plan):
    lines = account(plan, method.releases(plan)).releases
    return {line.view: line for line in lines if line.unit is Unit.USER}


def test_the_headline_of_the_paper_and_what_it_is_worth():
    """250 is the paper's, for an epoch; a run of twenty costs 5,000."""
    found = told(HEADLINE, Plan(50_000, rounds=20))
    assert {line.published_epsilon for line in found.values()} == {250.0}
    assert [line.epsilon for line in found.values()] == [5000.0] * 3
    assert {line.delta for line in found.values()} == {0.0}
    assert {line.adjacency for line in found.values()} == {Adjacency.REPLACE_ONE}


def test_a_relay_is_worth_something_only_if_it_promises_a_crowd():
    """Figure of the privacy page, section 9; relay and server together see it all."""
    plan = Plan(50_000, channel="shuffle", min_contributors=50_000, delta=1e-6)
    found = told(HEADLINE, plan)
    for view in (View.RELEASE, View.SERVER):
        assert found[view].epsilon == pytest.approx(1.129, abs=0.01)
        assert found[view].delta == 1e-6
        assert "50000 honest devices" in found[view].assumes
    assert (found[View.COLLUSION].epsilon, found[View.COLLUSION].delta) == (250.0, 0.0)
    alone = told(HEADLINE, Plan(50_000, channel="shuffle", delta=1e-6))
    assert {line.epsilon for line in alone.values()} == {250.0}
    pure = told(HEADLINE, Plan(50_000, channel="shuffle", min_contributors=9))
    assert {line.epsilon for line in pure.values()} == {250.0}  # it has no delta


def test_a_delta_too_large_for_so_many_people_proves_nothing():
    plan = Plan(200_000, channel="shuffle", min_contributors=1000, delta=1e-6)
    found = told(FmfLdp(report="one_bit", votes=1, epsilon=1.0), plan)
    assert found[View.SERVER].epsilon is None
    assert "5e-07" in found[View.SERVER].reason
    assert found[View.COLLUSION].epsilon == 1.0


def test_without_protection_nothing_is_promised():
    plan = Plan(10)
    assert {line.standing for line in told(FmfLdp("none"), plan).values()} == {
        Standing.NONE
    }


@pytest.mark.parametrize(
    ("rounds", "sampler", "expected"), [(5, Once(), 1), (5, Everyone(), 5)]
)
def test_one_whole_report_a_participation(rounds, sampler, expected):
    found = told(FmfLdp(report="priv_unit", epsilon=3.0), Plan(100, rounds, sampler))
    assert [line.epsilon for line in found.values()] == [3.0 * expected] * 3


# --- Targets -------------------------------------------------------------------------


@pytest.mark.parametrize("report", ["one_bit", "priv_unit"])
@pytest.mark.parametrize("sampler", [Once(), Everyone()])
def test_a_local_target_is_met_exactly(report, sampler):
    plan = Plan(1000, 4, sampler, target_epsilon=6.0)
    method = FmfLdp(report=report).calibrated(plan)
    found = told(method, plan)
    assert [line.epsilon for line in found.values()] == pytest.approx([6.0] * 3)
    assert method.calibrated(plan) == method


@pytest.mark.parametrize("report", ["one_bit", "priv_unit"])
def test_a_mixed_target_is_met_from_below(report):
    plan = Plan(
        *(500, 2, Once()),
        channel="shuffle",
        min_contributors=200,
        delta=1e-6,
        target_epsilon=2.0,
    )
    method = FmfLdp(report=report, votes=3 if report == "one_bit" else None)
    found = told(method.calibrated(plan), plan)
    assert 1.99 < found[View.RELEASE].epsilon <= 2.0
    assert found[View.COLLUSION].epsilon > 2.1


def test_mixed_votes_are_as_many_as_fit():
    """Nine fit and ten do not, by the account itself."""
    mixed = {"channel": "shuffle", "min_contributors": 5000, "delta": 1e-6}
    plan = Plan(5000, sampler=Once(), target_epsilon=0.5, **mixed)
    votes = Budget(plan).votes()
    assert 1 < votes < 100

    def spent(k):
        return told(
            FmfLdp(report="one_bit", votes=k, epsilon=BEST_MIXED_EPSILON), plan
        )[View.SERVER].epsilon

    assert spent(votes) <= 0.5 < spent(votes + 1) + 0.01


def test_paper_mode_keeps_its_hundred_votes():
    method = FmfLdp(mode="paper").calibrated(Plan(9, rounds=20, target_epsilon=5000.0))
    assert (method.votes, method.epsilon) == (100, 2.5)


@pytest.mark.parametrize(
    ("total", "votes"),
    [(0.5, 1), (2.18, 1), (4.0, 2), (8.0, 4), (218.0, 100), (1e4, 100)],
)
def test_votes_share_a_local_target_where_the_noise_is_least(total, votes):
    plan = Plan(10, sampler=Once(), target_epsilon=total)
    found = Budget(plan).votes()
    assert found == votes

    def noise(k):
        return 1 / k / math.tanh(total / k / 2) ** 2

    assert noise(found) <= min(noise(k) for k in range(1, 101)) * (1 + 1e-12)


def test_the_best_epsilon_of_a_mixed_vote():
    """Of e^eps coth²(eps / 2), by a fine grid."""
    grid = [0.001 * i for i in range(1, 5000)]
    best = min(grid, key=lambda e: math.exp(e) / math.tanh(e / 2) ** 2)
    assert pytest.approx(best, abs=1e-3) == BEST_MIXED_EPSILON


def test_a_mixed_target_needs_a_delta():
    plan = Plan(10, channel="shuffle", min_contributors=5, target_epsilon=1.0)
    with pytest.raises(BadValue, match="delta"):
        FmfLdp().calibrated(plan)
