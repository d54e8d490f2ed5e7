"""Bounds, noise, events and budgets of the central mechanism meet in one value.

Also tests `tacit.privacy.privacy`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from quick import some_of

from tacit.accounting.epsilon import epsilon
from tacit.errors import BadMessage, BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT, ClippedSumWithBits
from tacit.mechanisms.gaussian import GaussianSum
from tacit.methods.fedvae import FedVae
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import (
    CentralGaussian,
    LocalBits,
    LocalPrivUnit,
    PublishedClippedSum,
)
from tacit.privacy.budgets import rates_for_targets
from tacit.release import EVERYONE, Unit, View
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup
from tacit.statement import account
from tacit.transport.messages import Slot
from tacit.tree import Tree

COUNTS = Phase("counts", range(1), what="histories", share=0.1)
UPDATES = Phase("updates", range(1, 50), what="updates", is_clipped=True, share=0.9)
BOTH = (COUNTS, UPDATES)
ALONE = (Phase("sums", range(10), what="things", bound=2.0),)
KEYS = Key.from_seed(0).each(np.arange(3))
NOBODY = np.zeros(3, np.int64)


def plan(rounds: int = 50, **fields) -> Plan:
    return Plan(
        **{
            "population": 1000,
            "rounds": rounds,
            "sampler": Poisson(0.2),
            "channel": "secure_sum",
            "delta": 1e-6,
            "target_epsilon": 4.0,
            **fields,
        }
    )


def spent(privacy: CentralGaussian, agreed: Plan, phases=BOTH) -> dict[str, float]:
    """Epsilon in the release view, by group."""
    told = account(agreed, privacy.releases(agreed, phases))
    return {
        line.group: line.epsilon
        for line in told.totals
        if (line.unit, line.view) == (Unit.USER, View.RELEASE)
    }


# --- Calibration ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", some_of([Everyone(), Once(), FixedSize(200), Poisson(0.2)], 2), ids=repr
)
def test_calibrated_noise_just_meets_the_target(sampler):
    agreed = plan(sampler=sampler)
    made = CentralGaussian().calibrated(agreed, BOTH)
    found = spent(made, agreed)[EVERYONE]
    assert 4.0 * (1 - 1e-3) < found <= 4.0
    less = {name: 0.99 * z for name, z in made.noise_multiplier.items()}
    assert spent(replace(made, noise_multiplier=less), agreed)[EVERYONE] > 4.0


def test_the_share_of_a_phase_is_of_the_budget():
    """1/z² of a phase, over its rounds, is its share of the whole."""
    made = CentralGaussian().calibrated(plan(sampler=Everyone()), BOTH)
    z = made.noise_multiplier
    counting, others = z["counts"] ** -2, 49 * z["updates"] ** -2
    assert counting / (counting + others) == pytest.approx(0.1)


def test_noise_that_is_given_is_not_moved():
    given = CentralGaussian({"counts": 5.0, "updates": 9.0})
    assert given.calibrated(plan(), BOTH) == given
    one = CentralGaussian(3.0)
    assert [one.noise_of(phase) for phase in BOTH] == [3.0, 3.0]


def test_a_phase_without_noise_is_named():
    with pytest.raises(BadValue, match=r"'updates'.*counts"):
        CentralGaussian({"counts": 5.0}).noise_of(UPDATES)
    with pytest.raises(BadValue, match=r"'typo' is not known.*updates"):
        CentralGaussian({"counts": 1.0, "updates": 1.0, "typo": 1.0}).releases(
            plan(), BOTH
        )
    with pytest.raises(BadValue, match="noise_multiplier is not set"):
        CentralGaussian().noise_of(UPDATES)
    with pytest.raises(BadValue, match=r"privacy\.target_epsilon"):
        CentralGaussian().calibrated(plan(target_epsilon=None), BOTH)
    with pytest.raises(BadValue, match=r"privacy\.delta"):
        CentralGaussian().calibrated(plan(delta=None), BOTH)


# --- The mechanism of a round ---------------------------------------------------------


def test_bound_and_noise_are_those_of_the_phase():
    privacy = CentralGaussian(1.5, clip=0.7)
    assert privacy.mechanism(ALONE[0], {}) == GaussianSum(2.0, 1.5)
    assert privacy.mechanism(UPDATES, {}) == GaussianSum(0.7, 1.5)
    assert CentralGaussian(1.5).mechanism(UPDATES, {}) == GaussianSum(1.0, 1.5)
    assert privacy.variance(UPDATES, users=99, size=7) == pytest.approx(1.05**2)


def test_the_event_of_a_release_is_that_of_the_mechanism():
    """What adds the noise and what the ledger reads are one object's numbers."""
    privacy, agreed = CentralGaussian(1.5), plan(10, sampler=Everyone())
    [release] = privacy.releases(agreed, ALONE)
    cell = release.cells[Unit.USER, View.SERVER]
    assert cell.each == privacy.mechanism(ALONE[0], {}).event
    assert release.rounds is None


def test_phases_are_charged_in_their_own_rounds():
    releases = CentralGaussian(5.0).releases(plan(), BOTH)
    assert [phase.what in r.what for phase, r in zip(BOTH, releases, strict=True)]
    assert [r.rounds for r in releases] == [range(1), range(1, 50)]


def test_a_client_that_speaks_once_pays_for_the_dearest_phase():
    agreed = plan(sampler=Once())
    privacy = CentralGaussian({"counts": 5.0, "updates": 2.0})
    [release] = privacy.releases(agreed, BOTH)
    found = epsilon(release.cells[Unit.USER, View.RELEASE].event, delta=1e-6)
    assert found.value == epsilon(GaussianSum(1.0, 2.0).event, delta=1e-6).value


def test_a_moving_clip_is_told_obeyed_and_moved():
    privacy = CentralGaussian(1.5, clip=2.0, clip_quantile=0.5).calibrated(plan(), BOTH)
    assert privacy.bit_noise == 0.05 * 200
    told = privacy.told(UPDATES, {})
    mechanism = privacy.mechanism(UPDATES, told)
    assert isinstance(mechanism, ClippedSumWithBits)
    assert mechanism.clip == 2.0
    assert BIT in privacy.layout(UPDATES, {"w": Slot("float64", (3,))}).slots
    assert BIT not in privacy.layout(COUNTS, {"c": Slot("float64", (3,))}).slots
    assert privacy.told(COUNTS, {}) == {}
    # All of 200 say within: the clip falls by exp(-0.2 (1 - 0.5)).
    after = privacy.after(UPDATES, told, {BIT: np.array(100.0)}, planned=200.0)
    assert float(after["clip"]) == pytest.approx(2.0 * math.exp(-0.1))
    with pytest.raises(Refused, match=r"clip=9999"):
        privacy.mechanism(UPDATES, {"clip": np.array(9999.0)})


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "none"),
        ({"clip": np.array([1.0, 2.0])}, r"an array of shape \(2,\)"),
        ({"clip": np.array([1.0])}, r"an array of shape \(1,\)"),
    ],
)
@pytest.mark.parametrize(
    "privacy",
    [
        CentralGaussian(1.5, clip_quantile=0.5, bit_noise=9.0),
        PublishedClippedSum(),
    ],
    ids=lambda privacy: type(privacy).__name__,
)
def test_a_broadcast_that_does_not_say_the_clip_is_refused(privacy, told, said):
    with pytest.raises(BadMessage, match=f"must say one 'clip'; has {said}"):
        privacy.mechanism(UPDATES, told)


def test_bits_that_spend_the_whole_budget_are_refused_by_the_plan():
    """Before a ledger is charged, not by the first round."""
    privacy = CentralGaussian(1.0, clip_quantile=0.5, bit_noise=0.5)
    with pytest.raises(BadValue, match=r"bits=0\.5 must be > 0\.5"):
        privacy.calibrated(plan(), BOTH).releases(plan(), BOTH)
    louder = replace(privacy, bit_noise=0.6)
    assert len(louder.calibrated(plan(), BOTH).releases(plan(), BOTH)) == 2


@pytest.mark.parametrize(
    ("privacy", "name"),
    [
        (CentralGaussian(1.5, clip=0.01), "clip"),
        (CentralGaussian(1.5, clip_quantile=0.5), "clip_quantile"),
        (LocalPrivUnit(1.0, clip=0.01), "clip"),
        (LocalBits(1.0, 3, clip=0.01), "clip"),
    ],
)
def test_a_clip_that_no_phase_has_is_refused(privacy, name):
    """It would change neither bound nor noise, and nobody would notice."""
    for step in (privacy.calibrated, privacy.releases):
        with pytest.raises(BadValue, match=f"{name}=.*leave {name} out"):
            step(plan(10), ALONE)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier=0.0"),
        ({"noise_multiplier": {"counts": -1.0}}, r"noise_multiplier\[counts\]=-1.0"),
        ({"clip": 0.0}, "clip=0.0"),
        ({"clip_quantile": 1.0}, "clip_quantile=1.0"),
        ({"bit_noise": 3.0}, "bit_noise=3.0"),
        ({"clip_span": 0.5}, "clip_span=0.5"),
        ({"scale": {"a": 1.5}}, r"scale\[a\]=1.5"),
        ({"total_noise": 0.0}, "total_noise=0.0"),
        ({"noise_multiplier": 1.0, "total_noise": 2.0}, "leave one of them out"),
    ],
)
def test_settings_that_cannot_be_are_refused(fields, said):
    with pytest.raises(BadValue, match=said):
        CentralGaussian(**fields)


# --- Personal budgets -----------------------------------------------------------------

GROUPS = {"careful": 400, "usual": 500, "open": 100}
TARGETS = {"careful": 1.0, "usual": 2.0, "open": 8.0}
GROUPED = plan(groups=GROUPS, target_epsilon=TARGETS)


@pytest.mark.slow
def test_scales_follow_from_the_targets_of_groups():
    """Every group just meets its own target; the largest one sends whole reports."""
    made = CentralGaussian().calibrated(GROUPED, BOTH)
    assert made.scale["open"] == 1.0
    assert made.scale["careful"] < made.scale["usual"] < 1.0
    found = spent(made, GROUPED)
    for group, target in TARGETS.items():
        assert target * (1 - 1e-3) < found[group] <= target * (1 + 1e-9)


def test_a_report_is_bounded_by_the_scale_of_its_group():
    privacy = CentralGaussian(1.5, scale={"a": 1.0, "b": 0.25})
    tree = Tree.dense(x=np.full((3, 4), 10.0))
    codes = np.array([0, 1, 1])
    sent = privacy.report(tree, ALONE[0], {}, codes=codes, keys=KEYS)
    assert sent.norms() == pytest.approx([2.0, 0.5, 0.5])


@pytest.mark.parametrize("is_clipped", [False, True])
def test_a_short_report_weighs_its_scale_where_the_bound_is_proven(is_clipped):
    """A mean over `planned` needs it; to a clip that is a choice it is only cut."""
    phase = replace(ALONE[0], bound=2.0, is_clipped=is_clipped)
    privacy = CentralGaussian(1.5, scale={"a": 0.5, "b": 0.25})
    tree = Tree.dense(x=np.full((3, 4), 0.1))  # norm 0.2, a tenth of the bound
    sent = privacy.report(tree, phase, {}, codes=np.array([0, 1, 1]), keys=KEYS)
    expected = [0.2, 0.2, 0.2] if is_clipped else [0.1, 0.05, 0.05]
    assert sent.norms() == pytest.approx(expected)


def test_an_outer_product_is_scaled_as_a_whole():
    """Gram's report of norm sqrt(1/2) has s_g times that norm, not s_g²."""
    from tacit.tree import Symmetric

    relations = Phase("relations", range(1), what="pairs", bound=math.sqrt(0.5))
    privacy = CentralGaussian(1.5, scale={"a": 1.0, "b": 0.25})
    root = np.zeros((2, 1, 3))
    root[:, 0, 0] = 1.0
    tree = Tree({"relations": Symmetric(root)})
    sent = privacy.report(
        tree, relations, {}, codes=np.array([0, 1]), keys=KEYS[np.array([0, 1])]
    )
    assert sent.norms() == pytest.approx([math.sqrt(0.5), 0.25 * math.sqrt(0.5)])


def test_a_group_has_the_multiplier_over_its_scale():
    """A tenth of the bound under the same noise is ten times the multiplier."""
    privacy = CentralGaussian(1.5, scale={"a": 1.0, "b": 0.1})
    agreed = plan(10, sampler=Everyone(), groups={"a": 500, "b": 500})
    releases = {r.group: r for r in privacy.releases(agreed, ALONE)}
    for group, z in {"a": 1.5, "b": 15.0}.items():
        cell = releases[group].cells[Unit.USER, View.SERVER]
        assert cell.each.noise_multiplier == pytest.approx(z)
        assert privacy.mechanism(ALONE[0], {}).event_of(group) == cell.each


def test_a_moving_clip_goes_with_groups():
    """The bits are scaled as the updates are, so the account is that of a fixed one."""
    scale = {"a": 1.0, "b": 0.1}
    agreed = plan(groups={"a": 500, "b": 500})
    fixed = CentralGaussian(1.5, scale=scale)
    moving = replace(fixed, clip_quantile=0.5).calibrated(agreed, BOTH)
    assert moving.bit_noise == pytest.approx(0.05 * 0.2 * (500 + 50))
    mechanism = moving.mechanism(UPDATES, moving.told(UPDATES, {}))
    for fixed_one, one in zip(
        fixed.releases(agreed, BOTH), moving.releases(agreed, BOTH), strict=True
    ):
        assert one.group == fixed_one.group
        cell = one.cells[Unit.USER, View.SERVER]
        assert cell.each == fixed_one.cells[Unit.USER, View.SERVER].each
        assert cell.each == mechanism.event_of(one.group)
    tree = Tree.dense(x=np.array([[3.0], [3.0], [0.05]]))
    told, codes = moving.told(UPDATES, {}), np.array([0, 1, 1])
    sent = moving.report(tree, UPDATES, told, codes=codes, keys=KEYS)
    np.testing.assert_allclose(sent["x"][:, 0], [1.0, 0.1, 0.05])
    np.testing.assert_allclose(sent[BIT], [-0.5, -0.05, 0.05])


@pytest.mark.slow
def test_a_scale_that_is_given_leaves_the_noise_to_the_dearest_group():
    agreed = plan(groups={"a": 500, "b": 500}, target_epsilon=2.0)
    made = CentralGaussian(scale={"b": 0.5, "a": 1.0}).calibrated(agreed, BOTH)
    assert [*made.scale] == ["a", "b"]  # in the order of the plan's groups
    found = spent(made, agreed)
    assert 2.0 * (1 - 1e-3) < found["a"] <= 2.0
    assert found["b"] < 1.1


def test_other_groups_than_the_plans_are_refused():
    privacy = CentralGaussian(1.5, scale={"a": 1.0, "c": 0.1})
    with pytest.raises(BadValue, match="'c'"):
        privacy.releases(plan(groups={"a": 500, "b": 500}), BOTH)


def test_a_cohort_counts_for_the_scales_of_its_members():
    privacy = CentralGaussian(1.5, scale={"a": 1.0, "b": 0.5})
    everyone = plan(sampler=Everyone(), groups={"a": 400, "b": 600})
    assert privacy.planned(everyone) == pytest.approx(400 + 300)
    by_group = plan(
        sampler=PoissonByGroup({"a": 0.5, "b": 0.1}), groups={"a": 400, "b": 600}
    )
    assert privacy.planned(by_group) == pytest.approx(200 + 30)


@pytest.mark.slow
def test_rates_by_which_each_group_meets_its_target():
    """`sample`: one noise for all; who may spend less is asked more rarely."""
    rates = rates_for_targets(GROUPED, BOTH)
    assert rates.rates["open"] == 0.2
    assert rates.rates["careful"] < rates.rates["usual"] < 0.2
    agreed = replace(GROUPED, sampler=rates)
    made = CentralGaussian().calibrated(agreed, BOTH)
    assert made.scale == {}
    found = spent(made, agreed)
    for group, target in TARGETS.items():
        assert target * (1 - 5e-3) < found[group] <= target * (1 + 1e-6)


def test_the_published_vectors_of_sampling_by_group():
    """z = 1.0626, 1000 rounds, delta 1e-6: see the vectors of `idp`."""
    groups = {"a": 300, "b": 300, "c": 400}
    rates = {"a": 0.005530, "b": 0.010624, "c": 0.020238}
    agreed = plan(1000, sampler=PoissonByGroup(rates), groups=groups)
    phase = (Phase("sums", range(1000), what="things"),)
    found = spent(CentralGaussian(1.0626), agreed, phase)
    assert found == pytest.approx({"a": 0.9986, "b": 1.9993, "c": 3.9994}, abs=5e-4)


def test_rates_need_a_target_for_each_group():
    with pytest.raises(BadValue, match="target_epsilon for each group"):
        rates_for_targets(plan(), BOTH)
    with pytest.raises(BadValue, match="careful"):
        plan(groups=GROUPS, target_epsilon={"careful": 1.0})


@pytest.mark.parametrize("privacy", ["central", LocalBits(1.0, 3)], ids=repr)
def test_a_method_refuses_what_it_does_not_offer(privacy):
    with pytest.raises(BadValue, match=r"privacy=.*Unprotected, CentralGaussian"):
        FedVae(privacy=privacy)
