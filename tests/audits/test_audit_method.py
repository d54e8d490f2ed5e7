from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from audits.mutants import Quieter, popularity
from audits.subjects import (
    MECHANISM,
    PLAN,
    POPULARITY,
    NoisyFactors,
    sums_of,
)
from quick import some_of, some_or_all

from tacit.aggregation.mean import Mean
from tacit.audits import audit_method
from tacit.audits.audit_method import TICKS, audit, confirmed
from tacit.audits.checks import Check, Estimate
from tacit.audits.claims import read_claims
from tacit.audits.one_shot import one_shot
from tacit.errors import Refused
from tacit.keys import Key
from tacit.mechanisms.gaussian import GaussianSum
from tacit.method import Updates
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, LocalPrivUnit
from tacit.privacy.guarantees import summed
from tacit.release import Release
from tacit.transport.messages import Layout, Reports
from tacit.tree import Tree


@dataclass(frozen=True)
class OnlyThreeRounds(FederatedPopularity):
    def releases(self, plan):
        if plan.rounds != 3:
            raise Refused("three rounds or none")
        return super().releases(plan)


def test_a_method_that_wants_its_own_rounds_gets_them():
    ticks = []
    found = audit(
        OnlyThreeRounds(privacy=CentralGaussian(1.5)),
        replace(PLAN, rounds=3),
        key=Key.from_seed(1),
        subject="popularity",
        tick=lambda: ticks.append(1),
    )
    names = [check.name for check in found.checks]
    assert "mu of 3 rounds" in names
    assert "epsilon of 3 rounds, delta 1e-06" in names
    assert found.subject == "popularity"
    assert found.ok
    assert found.failed == ()
    assert len(ticks) <= TICKS


def test_every_section_is_part_of_an_audit(monkeypatch):
    """A check that nobody asks for catches nothing."""
    asked = []

    def noted(name, gives):
        def check(*args, **fields):
            asked.append(name)
            return gives

        monkeypatch.setattr(audit_method, name, check)

    sums = ("sums", "draws", "liars", "delivered", "whole")
    many = (*sums, "cohorts", "books", "minimum")
    found = Check("c", 0.0, 0.0, True, "")
    for name in (*many, "local_reports", "aggregators", "masks"):
        noted(f"check_{name}", [found])
    for name in ("replay", "alone", "closing"):
        noted(f"check_{name}", found)
    noted("one_shot", Estimate("e", 1.0, 1.0, 0.5, 1.5, 8))
    monkeypatch.setattr(
        audit_method,
        "_OF_SUMS",
        {n: getattr(audit_method, f"check_{n}") for n in sums[1:]},
    )
    assert audit_method._OF_SUMS.keys() == OF_SUMS
    audit(POPULARITY, PLAN, key=Key.from_seed(1))
    common = {"check_replay", "check_alone", "check_cohorts", "check_books"}
    of_sums = {f"check_{name}" for name in sums} | {"one_shot"}
    assert {*asked} == common | of_sums
    asked.clear()
    audit(POPULARITY, replace(PLAN, channel="two_servers"), key=Key.from_seed(1))
    assert {*asked} == common | of_sums | {"check_aggregators", "check_closing"}
    asked.clear()
    masked = replace(PLAN, channel="masked_sum", min_contributors=PLAN.population)
    audit(POPULARITY, masked, key=Key.from_seed(1))
    assert {*asked} == common | of_sums | {"check_masks"}
    asked.clear()
    local = FederatedPopularity(privacy=LocalPrivUnit(1.0))
    audit(local, PLAN, key=Key.from_seed(1))
    assert {*asked} == common | {"check_local_reports", "check_minimum"}


OF_SUMS = audit_method._OF_SUMS.keys()


def test_what_chance_may_fail_is_asked_twice():
    def ask(outcomes, alarm):
        left = iter(outcomes)
        keys = []

        def check(key):
            keys.append(key)
            return [Check("c", 1.0, 2.0, next(left), "seen", alarm)]

        [found] = confirmed(check, Key.from_seed(1))
        assert len({*keys}) == len(keys)
        return found.ok, len(keys)

    assert ask([True], 1e-3) == (True, 1)
    assert ask([False, True], 1e-3) == (True, 2)
    assert ask([False, False], 1e-3) == (False, 2)
    assert ask([False], 0.0) == (False, 1)


class Silent:
    """Noise that says nothing of itself."""

    def add(self, total, key):
        return dict(total)


@dataclass(frozen=True)
class Secretive(FederatedPopularity):
    def noise(self, broadcast, plan):
        return Silent()


def test_noise_that_does_not_state_its_scale_is_refused():
    method = Secretive(privacy=CentralGaussian(1.5))
    with pytest.raises(Refused, match="Silent, which states no scale"):
        audit(method, PLAN, key=Key.from_seed(1))


def test_few_coordinates_are_refused():
    @dataclass(frozen=True)
    class Short(FederatedPopularity):
        def layout(self, plan, catalog, *, round):
            whole = super().layout(plan, catalog, round=round)
            return replace(
                whole, slots={"a": replace(whole.slots["votes"], shape=(9,))}
            )

    method = Short(privacy=CentralGaussian(1.5))
    with pytest.raises(Refused, match="has 9 coordinates"):
        audit(method, PLAN, key=Key.from_seed(1))


@dataclass(frozen=True)
class TakesTurns(NoisyFactors):
    """Sums one leaf in the first round and the other one in the rest."""

    later: GaussianSum = MECHANISM

    def _wanted(self, round):
        return "b" if round == 0 else "V"

    def local_update(self, broadcast, clients, shards, keys):
        state, updates = super().local_update(broadcast, clients, shards, keys)
        name = self._wanted(broadcast.round)
        return state, Updates(Tree({name: updates.tree.leaves[name]}))

    def privatize(self, broadcast, clients, updates, keys):
        return Reports(self.noise(broadcast, clients.plan).bound(updates.tree))

    def noise(self, broadcast, plan):
        return self.mechanism if broadcast.round == 0 else self.later

    def layout(self, plan, catalog, *, round):
        name, slots = (
            self._wanted(round),
            super().layout(plan, catalog, round=round).slots,
        )
        return Layout({name: slots[name]})

    def aggregate(self, server, delivery, context):
        total = Mean().total(delivery, context)
        weights = {**server.weights}
        weights |= {name: weights[name] - 0.01 * value for name, value in total.items()}
        return server.after(weights=weights, memory={})

    def releases(self, plan):
        parts = ((1, self.mechanism), (plan.rounds - 1, self.later))
        return tuple(
            Release(f"sum {i}", "server", "each round", cells)
            for i, (rounds, noise) in enumerate(parts)
            for cells in [summed(replace(plan, rounds=rounds), noise.event, reason="")]
        )


@pytest.mark.parametrize(
    ("which", "kind"), some_of([("later", "1"), ("mechanism", "0")], 1)
)
def test_every_kind_of_round_is_looked_at(which, kind):
    """Noise that is wrong in one of them alone is seen there. False alarm 1e-3."""
    method = TakesTurns(**{which: Quieter(0.7, 1.5, share=0.9)})
    failed = [c.name for c in sums_of(method, Key.from_seed(1)) if not c.ok]
    of = {name[-1] for name in failed if name.startswith("noise variance")}
    assert of == {kind}


def estimate(method):
    mu = read_claims(method, PLAN).mu
    return one_shot(method, PLAN, mu=mu, delta=1e-6, key=Key.from_seed(2))


def test_the_one_shot_estimate_is_near_the_truth_and_only_monitoring():
    """Within 25 % for this seed: about two of its deviations."""
    honest = estimate(POPULARITY)
    assert honest.estimated == pytest.approx(honest.claimed, rel=0.25)
    assert honest.label == "monitoring, never a guarantee"
    quiet = popularity(Quieter(1.0, 1.5, share=0.5))
    assert estimate(quiet).estimated > 1.6 * honest.claimed


@some_or_all("seeds", 3, 10)
def test_the_interval_of_the_estimate_contains_an_honest_claim(seeds):
    """At 95 % and conservative: of ten seeds, three misses have a chance below 2 %."""
    mu = read_claims(POPULARITY, PLAN).mu
    found = [
        one_shot(POPULARITY, PLAN, mu=mu, delta=1e-6, key=Key.from_seed(seed))
        for seed in range(seeds)
    ]
    assert all(one.low <= one.estimated <= one.high for one in found)
    assert sum(not one.low <= one.claimed <= one.high for one in found) <= 2


def test_nothing_is_watched_of_a_group_that_accepts_no_promise():
    """Its bound is checked like all others; an epsilon of it would be no claim."""
    plan = Plan(
        400,
        channel="secure_sum",
        delta=1e-6,
        groups={"others": 360, "few": 40},
        target_epsilon={"others": 1.0, "few": None},
    )
    method = FederatedPopularity(privacy=CentralGaussian()).calibrated(plan)
    found = {
        group: audit(method, plan, key=Key.from_seed(1), group=group)
        for group in plan.groups
    }
    assert all(one.ok for one in found.values())
    assert found["others"].monitoring
    assert not found["few"].monitoring
