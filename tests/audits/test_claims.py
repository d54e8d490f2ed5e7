from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
from audits.subjects import PLAN, POPULARITY, NoisyFactors
from dp_accounting import GaussianDpEvent

from tacit.audits.audit_method import audit, groups_of
from tacit.audits.claims import read_claims
from tacit.codes import Code
from tacit.errors import Refused
from tacit.keys import Key
from tacit.mechanisms.laplace import LaplaceSum
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.privacy import LocalItem, LocalPrivUnit
from tacit.privacy.guarantees import local, summed, unprotected
from tacit.release import EVERYONE, Release


def releasing(*releases):
    """Popularity that says this of itself."""

    @dataclass(frozen=True)
    class Saying(FederatedPopularity):
        def releases(self, plan):
            return tuple(releases)

    return Saying()


def release(cells, what="a sum", group=EVERYONE):
    return Release(what, "server", "each round", cells, group)


def test_mu_is_that_of_all_rounds():
    claims = read_claims(POPULARITY, PLAN)
    assert claims.mu == pytest.approx(math.sqrt(4) / 1.5)
    assert claims.report_epsilon is claims.report_mu is None


def test_several_sums_add_up():
    events = [summed(PLAN, GaussianDpEvent(z), reason="") for z in (2.0, 3.0)]
    found = read_claims(releasing(*map(release, events)), PLAN)
    assert found.mu == pytest.approx(math.sqrt(4 / 4 + 4 / 9))


@pytest.mark.parametrize("privacy", [LocalPrivUnit(0.7), LocalItem(0.7)])
def test_a_report_costs_its_share_of_the_run(privacy):
    method = FederatedPopularity(privacy=privacy)
    claims = read_claims(method, replace(PLAN, rounds=5))
    assert claims.report_epsilon == pytest.approx(0.7)
    assert claims.mu is None


def test_gaussian_noise_of_a_device_has_a_mu():
    cells = local(PLAN, GaussianDpEvent(4.0), reason="")
    claims = read_claims(releasing(release(cells)), PLAN)
    assert claims.report_epsilon is None
    assert claims.report_mu == pytest.approx(2 / 4.0)


def test_a_group_has_its_own_claims_and_the_common_ones():
    plan = Plan(10, groups={"young": 4, "old": 6}, channel="secure_sum")
    cells = {
        group: summed(plan, GaussianDpEvent(z), reason="", group=group)
        for group, z in (("young", 1.0), ("old", 2.0))
    }
    method = releasing(*(release(c, group=g) for g, c in cells.items()))
    assert groups_of(method, plan) == ["young", "old"]
    assert groups_of(POPULARITY, plan) == [EVERYONE]
    assert read_claims(method, plan, group="young").mu == pytest.approx(1.0)
    assert read_claims(method, plan, group="old").mu == pytest.approx(0.5)


def test_what_is_not_promised_is_listed_with_the_reason():
    bare = release(unprotected("bare_reports", "it is a toy"), "gradients")
    beside = release(local(PLAN, GaussianDpEvent(4.0), reason=""), "labels")
    claims = read_claims(releasing(bare, beside, *POPULARITY.releases(PLAN)), PLAN)
    assert claims.others == (
        "gradients: it is a toy",
        "labels: stands beside noisy sums",
    )


def test_nothing_promised_means_nothing_checked():
    found = audit(FederatedPopularity(), PLAN, key=Key.from_seed(0))
    assert found.checks == ()
    assert found.ok
    assert str(Code("bare_reports")) in found.not_audited[0]


def test_other_noise_is_refused_by_name():
    method = NoisyFactors(mechanism=LaplaceSum(1.0, 1.0))
    with pytest.raises(Refused, match="Laplace"):
        audit(method, PLAN, key=Key.from_seed(0))
