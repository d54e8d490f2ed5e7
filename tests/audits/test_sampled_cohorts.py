"""Honest samplers pass, each against its own event. False alarm 1e-7 each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audits.subjects import PLAN, POPULARITY
from quick import some_of

from tacit.audits.sampled_cohorts import check_cohorts
from tacit.keys import Key
from tacit.plans import Plan
from tacit.release import EVERYONE
from tacit.runtime.simulate import Simulation
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup

SAMPLERS = {
    "often": Poisson(0.5),
    "rarely": Poisson(0.004),
    "certainly": Poisson(1.0),
    "fixed": FixedSize(30),
    "once": Once(),
}


def checked(plan, group=EVERYONE, seed=1):
    key = Key.from_seed(seed)
    return [*check_cohorts(POPULARITY, plan, group=group, key=key)]


@pytest.mark.parametrize("name", some_of([*SAMPLERS], 2))
def test_honest_samplers_pass(name):
    found = checked(replace(PLAN, sampler=SAMPLERS[name]))
    assert found
    assert [check.name for check in found if not check.ok] == []


@pytest.mark.parametrize("group", some_of(["few", "many"], 1))
def test_every_group_has_a_rate_of_its_own(group):
    rates = PoissonByGroup({"few": 0.3, "many": 0.05})
    plan = Plan(90, 5, rates, delta=1e-6, groups={"few": 30, "many": 60})
    assert all(check.ok for check in checked(plan, group))
    swapped = PoissonByGroup({"few": 0.05, "many": 0.3})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PoissonByGroup, "cohort", lambda *a: _COHORT(swapped, *a[1:]))
        assert not all(check.ok for check in checked(plan, group))


_COHORT = PoissonByGroup.cohort


def test_a_sampler_that_earns_nothing_is_not_drawn(monkeypatch):
    monkeypatch.setattr(Simulation, "step", None)
    assert checked(replace(PLAN, sampler=Everyone())) == []


def test_releases_that_the_event_leaves_out():
    class Forgets(Poisson):
        def event(self, inner, *, group, plan):
            return super().event(inner, group=group, plan=plan.over(plan.rounds - 1))

    [counted, _] = checked(replace(PLAN, sampler=Forgets(0.2)))
    assert not counted.ok
    assert counted.measured == 1
