import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from tacit.errors import BadValue
from tacit.plans import Plan
from tacit.privacy.guarantees import set_of_items
from tacit.release import View
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup

PLAN = Plan(
    10,
    rounds=4,
    sampler=Poisson(0.5),
    delta=1e-6,
    target_epsilon=2.0,
    groups={"young": 4, "old": 6},
)

CHANGED = {
    "population": replace(PLAN, population=11, groups={"young": 4, "old": 7}),
    "rounds": replace(PLAN, rounds=5),
    "sampler": replace(PLAN, sampler=Poisson(0.25)),
    "channel": replace(PLAN, channel="secure_sum"),
    "delta": replace(PLAN, delta=1e-5),
    "target_epsilon": replace(PLAN, target_epsilon=None),
    "target_view": replace(PLAN, channel="two_servers", target_view="release"),
    "groups": replace(PLAN, groups={"young": 5, "old": 5}),
    "min_contributors": replace(PLAN, min_contributors=2),
    "counted_by": replace(PLAN, counted_by="uploads"),
    "assumed_sybils": replace(PLAN, min_contributors=3, assumed_sybils=1),
    "before": replace(PLAN, before=(set_of_items(PLAN, GaussianDpEvent(9.0)),)),
}

SAMPLERS = [
    Poisson(0.5),
    Poisson(0.25),
    FixedSize(5),
    FixedSize(4),
    Everyone(),
    Once(),
    PoissonByGroup({"young": 0.5, "old": 0.5}),
    PoissonByGroup({"young": 0.5, "old": 0.25}),
]


# --- Digest --------------------------------------------------------------------------


def test_every_field_of_a_plan_is_tried_below():
    assert CHANGED.keys() == {field.name for field in fields(Plan)}


@pytest.mark.parametrize("name", CHANGED)
def test_the_digest_changes_with_every_field(name):
    assert CHANGED[name].digest != PLAN.digest
    assert len(PLAN.digest) == 16


def test_the_digest_tells_the_view_of_a_target():
    shared = replace(PLAN, channel="two_servers")
    plans = [shared, *(replace(shared, target_view=v) for v in ("server", "release"))]
    assert len({plan.digest for plan in plans}) == 3


def test_the_digest_tells_samplers_and_their_fields_apart():
    digests = {replace(PLAN, sampler=sampler).digest for sampler in SAMPLERS}
    assert len(digests) == len(SAMPLERS)


def test_the_digest_changes_with_the_order_of_groups():
    """A client's group is its place in the plan: another order is another group."""
    turned = replace(PLAN, groups={"old": 6, "young": 4})
    assert turned.digest != PLAN.digest


def test_the_digest_is_the_value_not_its_type():
    assert Plan(np.int64(10), rounds=np.int64(2)).digest == Plan(10, rounds=2).digest


def test_the_digest_is_the_same_in_another_process():
    code = """
from tacit.plans import Plan
from tacit.privacy.guarantees import set_of_items
from tacit.sampling import Poisson
groups = {"young": 4, "old": 6}
sampler = Poisson(0.5)
plan = Plan(10, 4, sampler, delta=1e-6, target_epsilon=2.0, groups=groups)
print(plan.digest.hex())
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == PLAN.digest.hex()


# --- Refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"population": 0}, "population=0 must be >= 1"),
        ({"population": 2.5}, "population=2.5 must be a whole number"),
        ({"rounds": 0}, "rounds=0 must be >= 1"),
        ({"rounds": 1.5}, "rounds=1.5 must be a whole number"),
        ({"delta": 0.0}, r"delta=0.0 must be in \(0, 1\)"),
        ({"delta": 1.0}, r"delta=1.0 must be in \(0, 1\)"),
        ({"target_epsilon": 0.0}, "target_epsilon=0.0 must be > 0; leave it out"),
        ({"groups": {"a": 3}}, r"groups {'a': 3} must add up to population=10"),
        ({"groups": {"a": 12, "b": -2}}, r"groups\[b\]=-2 must be >= 0"),
        ({"groups": {"a": 4, "everyone": 6}}, "'everyone', the word for all of them"),
        ({"sampler": FixedSize(11)}, "size=11 must be <= 10"),
        (
            {"groups": {"a": 4, "b": 6}, "target_epsilon": {"a": 1.0}},
            r"target_epsilon names the groups \['a'\]; the plan has \['a', 'b'\]",
        ),
        (
            {"groups": {"a": 4, "b": 6}, "target_epsilon": {"a": 1.0, "b": 0.0}},
            r"target_epsilon\[b\]=0.0 must be > 0; leave it out",
        ),
        ({"target_epsilon": {"a": 1.0}}, "give each of them a target"),
        (
            {"channel": "two_servers", "target_view": "collusion"},
            "target_view='collusion' is not known; known: release, server",
        ),
        (
            {"channel": "secure_sum", "target_view": "server"},
            "target_view=server is for channel 'two_servers'; over 'secure_sum'",
        ),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changed, complaint):
    with pytest.raises(BadValue, match=complaint):
        Plan(**{"population": 10, **changed})


def test_a_target_is_of_all_or_by_group():
    by_group = replace(PLAN, target_epsilon={"young": 1.0, "old": 3.0})
    assert [by_group.target_of(group) for group in PLAN.groups] == [1.0, 3.0]
    assert [PLAN.target_of(group) for group in PLAN.groups] == [2.0, 2.0]
    assert replace(PLAN, target_epsilon=None).target_of("young") is None
    turned = replace(PLAN, target_epsilon={"young": 3.0, "old": 1.0})
    assert len({plan.digest for plan in (PLAN, by_group, turned)}) == 3


def test_a_target_is_for_the_server_of_two_and_else_for_readers():
    shared = replace(PLAN, channel="two_servers")
    assert shared.noise_shares == 2
    assert shared.calibrated_view is View.SERVER
    assert replace(shared, target_view="release").calibrated_view is View.RELEASE
    assert PLAN.noise_shares == 0
    assert PLAN.calibrated_view is View.RELEASE


def test_a_plan_over_other_rounds_is_the_same_in_all_else():
    assert PLAN.over(7) == replace(PLAN, rounds=7)
    assert PLAN.over(7).digest == replace(PLAN, rounds=7).digest != PLAN.digest


def test_without_groups_everyone_is_one_group():
    assert Plan(7).groups == {"everyone": 7}
    assert Plan(8, rounds=4, sampler=Once()).cohort_size == 2.0
