"""What is said of it: paper and provable figures, the relay, targets that are met."""

from dataclasses import replace

import pytest

from tacit.method import LocalPrivUnit
from tacit.methods.fmf_ldp import FmfLdp
from tacit.plans import Plan
from tacit.privacy import LocalBits, PublishedVotes
from tacit.release import Adjacency, Standing, Unit, View
from tacit.sampling import Everyone, Once
from tacit.statement import account

HEADLINE = FmfLdp(mode="paper", privacy=PublishedVotes(epsilon=2.5))


IDS = ["votes", "whole"]


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
        assert "50000 honest" in found[view].assumes
    assert (found[View.COLLUSION].epsilon, found[View.COLLUSION].delta) == (250.0, 0.0)
    alone = told(HEADLINE, Plan(50_000, channel="shuffle", delta=1e-6))
    assert {line.epsilon for line in alone.values()} == {250.0}
    pure = told(HEADLINE, Plan(50_000, channel="shuffle", min_contributors=9))
    assert {line.epsilon for line in pure.values()} == {250.0}  # it has no delta


def test_a_delta_too_large_for_so_many_users_leaves_what_needs_no_delta():
    """The relay is worth nothing then; what clients do themselves still holds."""
    plan = Plan(200_000, channel="shuffle", min_contributors=1000, delta=1e-6)
    found = told(FmfLdp(privacy=LocalBits(epsilon=1.0, votes=1)), plan)
    for line in found.values():
        assert (line.epsilon, line.delta, line.assumes) == (1.0, 0.0, "nothing")
    small = told(FmfLdp(privacy=LocalBits(1.0, votes=1)), replace(plan, delta=5e-7))
    assert small[View.SERVER].epsilon < 1.0


def test_without_protection_nothing_is_promised():
    plan = Plan(10)
    assert {line.standing for line in told(FmfLdp(), plan).values()} == {Standing.NONE}


@pytest.mark.parametrize(
    ("rounds", "sampler", "expected"), [(5, Once(), 1), (5, Everyone(), 5)]
)
def test_one_whole_report_a_participation(rounds, sampler, expected):
    method = FmfLdp(privacy=LocalPrivUnit(epsilon=3.0))
    found = told(method, Plan(100, rounds, sampler))
    assert [line.epsilon for line in found.values()] == [3.0 * expected] * 3


# --- Targets -------------------------------------------------------------------------


@pytest.mark.parametrize("privacy", [LocalBits(), LocalPrivUnit()], ids=IDS)
@pytest.mark.parametrize("sampler", [Once(), Everyone()])
def test_a_local_target_is_met_exactly(privacy, sampler):
    plan = Plan(1000, 4, sampler, target_epsilon=6.0)
    method = FmfLdp(privacy=privacy).calibrated(plan)
    found = told(method, plan)
    assert [line.epsilon for line in found.values()] == pytest.approx([6.0] * 3)
    assert method.calibrated(plan) == method


@pytest.mark.parametrize("privacy", [LocalBits(votes=3), LocalPrivUnit()], ids=IDS)
@pytest.mark.slow
def test_a_mixed_target_is_met_from_below(privacy):
    plan = Plan(
        *(500, 2, Once()),
        channel="shuffle",
        min_contributors=200,
        delta=1e-6,
        target_epsilon=2.0,
    )
    found = told(FmfLdp(privacy=privacy).calibrated(plan), plan)
    assert 1.99 < found[View.RELEASE].epsilon <= 2.0
    assert found[View.COLLUSION].epsilon > 2.1


def test_paper_mode_keeps_its_hundred_votes():
    plan = Plan(9, rounds=20, target_epsilon=5000.0)
    method = FmfLdp(mode="paper", privacy=PublishedVotes()).calibrated(plan)
    assert (method.privacy.votes, method.privacy.epsilon) == (100, 2.5)
