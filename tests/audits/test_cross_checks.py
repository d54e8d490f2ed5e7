"""Plan, statement, ledger and channel agree for every plan that a method may have."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from audits.subjects import PLAN, POPULARITY

from tacit.audits.cross_checks import check_books, check_trust
from tacit.mechanisms.gaussian import gaussian_event
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.privacy.guarantees import set_of_items
from tacit.release import EVERYONE
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup

SAMPLERS = (Everyone(), Poisson(0.05), FixedSize(50), Once())
METHODS = (
    POPULARITY,
    FederatedPopularity(privacy=LocalPrivUnit(0.5)),
    Gram(head=10, privacy=CentralGaussian({"counts": 5.0, "relations": 2.0})),
)
GROUPS = {"few": 100, "many": 200}


def wrong(method, plan, group=EVERYONE):
    return [c.name for c in check_books(method, plan, group=group) if not c.ok]


@pytest.mark.parametrize(("method", "sampler"), [*product(METHODS, SAMPLERS)])
def test_honest_books_agree(method, sampler):
    plan = Plan(300, 3, sampler, channel="secure_sum", delta=1e-6)
    assert wrong(method, plan) == []


@pytest.mark.parametrize("group", GROUPS)
def test_groups_with_budgets_of_their_own(group):
    rates = PoissonByGroup({"few": 0.1, "many": 0.02})
    plan = Plan(300, 3, rates, channel="secure_sum", delta=1e-6, groups=GROUPS)
    scaled = CentralGaussian(2.0, scale={"few": 1.0, "many": 0.5})
    assert wrong(FederatedPopularity(privacy=scaled), plan, group) == []


def test_what_was_released_before_the_first_round_is_counted():
    found = set_of_items(PLAN, gaussian_event(3.0))
    assert wrong(POPULARITY, replace(PLAN, before=(found,))) == []


def test_shuffled_reports_are_recomputed():
    mixed = replace(PLAN, channel="shuffle", min_contributors=60)
    method = FederatedPopularity(privacy=LocalPrivUnit(1.0))
    found = {check.name: check for check in check_books(method, mixed, group=EVERYONE)}
    assert all(check.ok for check in found.values())
    exact = found["share of the exact epsilon that a figure lacks"]
    assert "shuffled reports" in exact.detail


def test_a_fault_says_where_it_is():
    class Trusts(CentralGaussian):
        def releases(self, plan, phases, *, is_chosen=False):
            return super().releases(replace(plan, channel="secure_sum"), phases)

    method = FederatedPopularity(privacy=Trusts(1.5))
    found = check_trust(method, replace(PLAN, channel="direct"))
    assert not found.ok
    assert "against those who see the reports in the server view over" in found.detail
