"""No protection: nothing is changed, nothing is promised, and every cell says so."""

import numpy as np
import pytest

from tacit.aggregation.krum import Krum
from tacit.aggregation.mean import Mean
from tacit.keys import Key
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import Unprotected
from tacit.release import Standing
from tacit.statement import account
from tacit.transport.channels import Each, Sum, Unlinked
from tacit.tree import Tree

COUNTS = Phase("counts", range(1), what="counts")
UPDATES = Phase("updates", range(1, 3), what="updates")


def test_reports_leave_as_they_are():
    tree, keys = Tree.dense(b=np.ones((2, 3))), Key.from_seed(0).each(np.arange(2))
    codes = np.zeros(2, np.int64)
    assert Unprotected().report(tree, COUNTS, {}, codes=codes, keys=keys) is tree


@pytest.mark.parametrize("phases", [(COUNTS,), (COUNTS, UPDATES)])
def test_every_phase_is_a_release_without_a_promise(phases):
    plan = Plan(10, rounds=3)
    releases = Unprotected().releases(plan, phases)
    assert len(releases) == len(phases)
    told = account(plan, releases)
    assert {line.standing for line in told.totals} == {Standing.NONE}
    assert all(line.epsilon is None for line in told.totals)


def test_a_mean_reads_every_delivery_and_others_stay_as_they_are():
    assert {*Unprotected().aggregator(Mean()).accepts} == {Each, Unlinked, Sum}
    krum = Krum(1)
    assert Unprotected().aggregator(krum) is krum
