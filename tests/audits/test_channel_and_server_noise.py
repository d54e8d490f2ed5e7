"""A server that sums by itself makes the sum that a trusted one would make."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from audits.subjects import PLAN, POPULARITY, AdaptiveFactors, NoisyFactors

from tacit.aggregation.mean import Mean
from tacit.audits.channel_and_server_noise import check_same_sum
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.privacy import CentralGaussian
from tacit.transport.channels import Each, Sum


@pytest.mark.parametrize(
    "honest",
    [POPULARITY, NoisyFactors(), AdaptiveFactors(), FederatedPopularity()],
    ids=lambda method: type(method).__name__,
)
def test_honest_methods_make_the_same_sum(honest):
    assert check_same_sum(honest, PLAN).ok


@dataclass(frozen=True)
class SumsInItsOwnWay(FederatedPopularity):
    """Derives something of the round a second time where it sums by itself."""

    other: GaussianSum | Key | None = field(default=None, compare=False)

    def aggregate(self, server, delivery, context):
        if isinstance(delivery, Each):
            is_key = isinstance(self.other, Key)
            name = "key" if is_key else "mechanism"
            context = replace(context, **{name: self.other})
        return super().aggregate(server, delivery, context)


@pytest.mark.parametrize(
    "other",
    [GaussianSum(2.0, 1.5), GaussianSum(1.0, 1.4), Key.from_seed(9), None],
    ids=["another clip", "another noise", "another key", "no noise at all"],
)
def test_a_sum_of_the_servers_own_making_is_caught(other):
    method = SumsInItsOwnWay(privacy=CentralGaussian(1.5), other=other)
    found = check_same_sum(method, PLAN)
    assert not found.ok
    assert "trusted sum" in found.name


def test_a_method_that_reads_sums_alone_is_not_compared():
    @dataclass(frozen=True)
    class OnlySums(FederatedPopularity):
        def aggregators(self, plan):
            return (Mean((Sum,)),)

    found = check_same_sum(OnlySums(privacy=CentralGaussian(1.5)), PLAN)
    assert found.ok
    assert found.detail.startswith("not compared")
