"""What pure local mechanisms share: an epsilon of a whole report, from the plan."""

import pytest

from tacit.errors import BadValue
from tacit.plans import Plan
from tacit.privacy import LocalClicks, LocalFlips, LocalNoisyClicks, LocalPrivUnit
from tacit.privacy.local_report import LocalReport
from tacit.sampling import Once

KINDS = [LocalClicks, LocalNoisyClicks, LocalFlips, LocalPrivUnit]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_epsilon_is_positive_and_finite(kind, epsilon):
    with pytest.raises(BadValue, match="epsilon="):
        kind(epsilon)


@pytest.mark.parametrize("kind", KINDS)
def test_without_an_epsilon_the_plan_decides(kind):
    plan = Plan(1_000, target_epsilon=3.0, delta=1e-6, sampler=Once())
    assert kind().calibrated(plan, ()).epsilon == pytest.approx(3.0)
    assert kind(0.5).calibrated(plan, ()).epsilon == 0.5


def test_nothing_is_releasable_unless_a_mechanism_says_so():
    assert not LocalReport.is_releasable
    assert [kind.is_releasable for kind in KINDS] == [True, False, True, True]
