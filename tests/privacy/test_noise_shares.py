"""From a plan's target to the noise of each phase, on one budget."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent
from quick import some_of

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadValue
from tacit.models.histories import log_counts
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import CentralGaussian, Unprotected
from tacit.privacy.budgets import (
    LocalBudget,
    least_total,
    noise_by_phase,
    rates_for_targets,
)
from tacit.release import EVERYONE, Unit, View
from tacit.sampling import Everyone, Once, Poisson, PoissonByGroup

PLAN = Plan(
    1000, rounds=5, channel="secure_sum", delta=1e-6, target_epsilon=2.0
)  # everyone, every round
SERVER = Unit.USER, View.SERVER


def counting(rounds: int, share: float, *, total: int) -> tuple[Phase, ...]:
    """The first rounds count, for a share of the budget; the others work."""
    later = range(rounds, total)
    if not rounds:
        return (Phase("updates", later, what="updates"),)
    counts = Phase("counts", range(rounds), what="histories", share=share)
    return counts, Phase("updates", later, what="updates", share=1 - share)


def calibrated(plan: Plan, phases: tuple[Phase, ...]) -> CentralGaussian:
    return CentralGaussian().calibrated(plan, phases)


def spent(plan: Plan, phases: tuple[Phase, ...], privacy: CentralGaussian) -> float:
    releases = privacy.releases(plan, phases)
    events = [r.cells[Unit.USER, View.RELEASE].event for r in releases]
    return epsilon(ComposedDpEvent(events), delta=1e-6, adjacency="zero_out").value


def test_the_budget_is_shared_as_asked():
    """Without sampling 1 / z² of all rounds adds up, and a fifth of it counts."""
    phases = counting(2, 0.2, total=5)
    made = calibrated(PLAN, phases)
    count, other = (made.noise_multiplier[name] for name in ("counts", "updates"))
    assert (2 / count**2) / (2 / count**2 + 3 / other**2) == pytest.approx(0.2)
    assert spent(PLAN, phases, made) == pytest.approx(2.0, rel=1e-3)


def test_what_the_phases_add_up_to_is_the_total():
    phases = counting(2, 0.2, total=5)
    total = least_total(PLAN, phases, EVERYONE)
    noise = noise_by_phase(PLAN, phases, total)
    assert noise == calibrated(PLAN, phases).noise_multiplier
    squares = sum(len(phase.rounds) / noise[phase.name] ** 2 for phase in phases)
    assert squares**-0.5 == pytest.approx(total)


def test_nothing_counted_and_all_for_the_others():
    phases = counting(0, 0.2, total=5)
    made = calibrated(PLAN, phases)
    assert made.noise_multiplier.keys() == {"updates"}
    assert 1.99 < spent(PLAN, phases, made) <= 2.0


def test_sampling_is_counted():
    plan = Plan(
        1000, 30, Poisson(0.2), channel="secure_sum", delta=1e-6, target_epsilon=2.0
    )
    phases = counting(1, 0.1, total=30)
    assert 1.98 < spent(plan, phases, calibrated(plan, phases)) <= 2.0


def test_who_speaks_once_spends_everything_there():
    plan = Plan(1000, 4, Once(), channel="secure_sum", delta=1e-6, target_epsilon=2.0)
    made = calibrated(plan, counting(1, 0.1, total=4))
    assert made.noise_multiplier["counts"] == made.noise_multiplier["updates"]


def test_a_noise_that_is_given_is_kept():
    phases, given = counting(2, 0.2, total=5), {"counts": 2.0, "updates": 3.0}
    for noise in (given, 2.5):
        made = CentralGaussian(noise).calibrated(PLAN, phases)
        assert made.noise_multiplier == noise
    assert [CentralGaussian(2.5).noise_of(phase) for phase in phases] == [2.5, 2.5]
    assert [CentralGaussian(given).noise_of(phase) for phase in phases] == [2.0, 3.0]


def test_a_phase_without_noise_is_refused_by_name():
    """Phases share one budget: whoever gives the noise of one gives that of all."""
    phases = counting(2, 0.2, total=5)
    with pytest.raises(BadValue, match=r"noise_multiplier.*'updates'"):
        CentralGaussian({"counts": 2.0}).releases(PLAN, phases)
    with pytest.raises(BadValue, match=r"noise_multiplier is not set: set it, or.*tar"):
        CentralGaussian().releases(PLAN, phases)


def test_each_part_is_released_in_its_own_rounds():
    first, later = CentralGaussian({"counts": 2.0, "updates": 3.0}).releases(
        PLAN, counting(2, 0.2, total=5)
    )
    assert "histories" in first.what
    assert "updates" in later.what
    assert (first.rounds, later.rounds) == (range(2), range(2, 5))
    assert first.when == "in rounds 1 to 2"
    assert later.when == "in rounds 3 to 5"
    # the total of a cell is for as many rounds
    assert [one.cells[SERVER].event.count for one in (first, later)] == [2, 3]
    assert [one.cells[SERVER].each.noise_multiplier for one in (first, later)] == [2, 3]


def test_a_run_of_one_part_is_released_in_all_rounds():
    [only] = CentralGaussian(2.0).releases(PLAN, counting(0, 0.2, total=5))
    assert (only.rounds, only.when) == (None, "in every round")


def test_who_speaks_once_pays_for_the_dearer_part():
    plan, phases = replace(PLAN, sampler=Once()), counting(2, 0.2, total=5)
    for noise in ({"counts": 2.0, "updates": 3.0}, {"counts": 3.0, "updates": 2.0}):
        [either] = CentralGaussian(noise).releases(plan, phases)
        assert either.rounds is None
        assert [one.when for one in either.leaving()] == [
            *("in rounds 1 to 2", "in rounds 3 to 5"),
        ]
        assert either.cells[SERVER].event.noise_multiplier == 2.0


def test_what_noise_may_have_made_is_no_count():
    """Of two rounds with noise of 5 each: 7.07, or 1 without any."""
    counts, phase = np.array([70.0, 4.0, 0.5, -9.0]), Phase("x", range(2), what="x")
    each = CentralGaussian(5.0).variance(phase, users=9.0, size=4)
    noisy = log_counts(counts, floor=math.sqrt(2 * each))
    assert noisy[1] == noisy[2] == noisy[3] == pytest.approx(np.log(50) / 2)
    assert noisy[0] == pytest.approx(np.log(70))
    nothing = Unprotected().variance(phase, users=9.0, size=4)
    bare = log_counts(counts, floor=math.sqrt(2 * nothing))
    assert bare.tolist() == pytest.approx([np.log(70), np.log(4), 0, 0])


# --- Groups --------------------------------------------------------------------------


@pytest.mark.slow
def test_noise_meets_the_target_of_the_group_that_spends_most():
    rates = {"seldom": 0.005, "often": 0.01}
    plan = Plan(
        *(200, 1000, PoissonByGroup(rates)),
        delta=1e-6,
        target_epsilon=2.0,
        groups={"seldom": 100, "often": 100},
    )
    made = calibrated(plan, counting(0, 0.2, total=1000))
    assert made.noise_multiplier["updates"] == pytest.approx(1.0290, abs=1e-3)


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [(Plan(10, delta=1e-6), "target_epsilon"), (Plan(10, target_epsilon=1.0), "delta")],
)
def test_noise_needs_a_target_and_a_delta(plan, complaint):
    with pytest.raises(BadValue, match=complaint):
        calibrated(plan, counting(0, 0.2, total=1))


GROUPS = {"shy": 400, "open": 600}
TARGETS = Plan(
    *(1000, 20),
    channel="secure_sum",
    delta=1e-6,
    target_epsilon={"shy": 1.0, "open": 3.0},
    groups=GROUPS,
)


def epsilons(plan: Plan, phases: tuple[Phase, ...], privacy: CentralGaussian):
    """What every group spends in the release view."""
    found = {group: [] for group in plan.groups}
    for one in privacy.releases(plan, phases):
        found[one.group].append(one.cells[Unit.USER, View.RELEASE].event)
    return {
        group: epsilon(ComposedDpEvent(events), delta=1e-6, adjacency="zero_out").value
        for group, events in found.items()
    }


@pytest.mark.parametrize("sampler", some_of([Everyone(), Poisson(0.3)], 1))
def test_every_group_meets_its_own_target_by_its_scale(sampler):
    plan, phases = replace(TARGETS, sampler=sampler), counting(2, 0.2, total=20)
    made = calibrated(plan, phases)
    assert made.scale["open"] == 1.0
    assert 0 < made.scale["shy"] < 1.0
    found = epsilons(plan, phases, made)
    for group, target in TARGETS.target_epsilon.items():
        assert 0.97 * target < found[group] <= target * (1 + 1e-9)


@pytest.mark.slow
def test_every_group_meets_its_own_target_by_its_rate():
    """The rate of the plan is that of the largest target, which decides the noise."""
    phases = counting(0, 0.2, total=20)
    rates = rates_for_targets(replace(TARGETS, sampler=Poisson(0.3)), phases)
    assert rates.rates["open"] == 0.3
    assert 0 < rates.rates["shy"] < 0.3
    plan = replace(TARGETS, sampler=rates)
    made = calibrated(plan, phases)
    assert not made.scale
    found = epsilons(plan, phases, made)
    for group, target in TARGETS.target_epsilon.items():
        assert 0.97 * target < found[group] <= target * (1 + 1e-6)


# --- Reports that clients protect themselves -----------------------------------------


def test_local_reports_share_the_target():
    plan = Plan(10, 4, Everyone(), target_epsilon=2.0)
    assert LocalBudget(plan).epsilon() == 0.5
    assert LocalBudget(Plan(10, 4, Once(), target_epsilon=2.0)).epsilon() == 2.0
    assert LocalBudget(plan).epsilon(messages=5) == pytest.approx(0.1)


def test_local_reports_have_one_target_for_all():
    with pytest.raises(BadValue, match="goes with mechanism = 'central'"):
        LocalBudget(TARGETS).epsilon()
