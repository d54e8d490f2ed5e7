"""The papers' own protections: what they print, and what that is worth."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.mechanisms.adaptive_clip import BIT
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy import LocalBits, PublishedClippedSum, PublishedVotes
from tacit.release import Adjacency, Standing, Unit, View
from tacit.sampling import Everyone, FixedSize, Once, Poisson
from tacit.statement import account
from tacit.transport.messages import Reports, Slot
from tacit.tree import Tree

GRADIENTS = Phase("gradients", range(20), what="gradients", is_clipped=True)
UPDATES = Phase("updates", range(3), what="updates", is_clipped=True, step=0.5)
RULE = {"noise_multiplier": 1.0, "quantile": 0.9, "clip_rate": 0.5}
SAMPLERS = {FixedSize(5): Adjacency.REPLACE_ONE, Everyone(): Adjacency.ZERO_OUT}
KEYS, CODES = Key.from_seed(0).each(np.arange(4)), np.zeros(4, np.int64)


# --- FMF-LDP -------------------------------------------------------------------------


def test_the_papers_figure_is_that_of_an_epoch_and_ours_that_of_the_run():
    plan = Plan(100, rounds=20)
    [release] = PublishedVotes(epsilon=2.5).releases(plan, (GRADIENTS,))
    assert {c.published_epsilon for c in release.cells.values()} == {250.0}
    told = account(plan, (release,)).totals
    assert [line.epsilon for line in told] == [5000.0] * 6
    [sound] = LocalBits(epsilon=2.5, votes=100).releases(plan, (GRADIENTS,))
    assert {c.published_epsilon for c in sound.cells.values()} == {None}
    assert [c.event for c in release.cells.values()] == [
        c.event for c in sound.cells.values()
    ]


def test_the_paper_has_a_hundred_votes_with_replacement():
    """Two coordinates are enough for a hundred votes."""
    privacy = PublishedVotes(epsilon=1.0)
    assert privacy.coordinates(2, KEYS).shape == (4, 100)
    plan = Plan(9, rounds=20, target_epsilon=5000.0)
    made = privacy.calibrated(plan, (GRADIENTS,))
    assert made == privacy  # its epsilon is given
    follows = PublishedVotes().calibrated(plan, (GRADIENTS,))
    assert follows == PublishedVotes(epsilon=2.5, votes=100)


# --- DP-PrivRec ----------------------------------------------------------------------


def test_the_bit_is_taken_after_the_clip():
    """So it is 1 for the longest update too, and for a broken one, which is zero."""
    privacy = PublishedClippedSum(**RULE, clip=2.0)
    told = privacy.told(UPDATES, {})
    lengths = np.array([[0.0], [1.0], [50.0], [np.nan]])
    sent = privacy.report(Tree.dense(w=lengths), UPDATES, told, codes=CODES, keys=KEYS)
    assert sent["w"][:, 0].tolist() == pytest.approx([0.0, 1.0, 2.0, 0.0])
    assert sent[BIT].tolist() == [1.0, 1.0, 1.0, 1.0]
    slots = {"w": Slot("float64", (1,))}
    privacy.layout(UPDATES, slots).check(Reports(sent))


def test_the_clip_falls_by_line_11_and_stops_at_its_floor():
    """S - α₄ (1 - γ) with a bit of 1 from everyone; by itself it falls below zero."""
    privacy = PublishedClippedSum(**RULE, clip=2.0, least_clip=1.9)
    memory, clips = {}, []
    for _ in range(4):
        told = privacy.told(UPDATES, memory)
        clips.append(float(told["clip"]))
        total = {BIT: np.array(10.0)}
        memory = privacy.after(UPDATES, told, total, planned=10.0)
    assert clips == pytest.approx([2.0, 1.95, 1.9, 1.9])


def test_a_clip_below_the_floor_is_refused():
    privacy = PublishedClippedSum(**RULE, least_clip=0.25)
    with pytest.raises(Refused, match=r"clip=0\.2 must be at least 0\.25"):
        privacy.mechanism(UPDATES, {"clip": np.array(0.2)})


def test_a_clip_that_is_not_given_is_the_phases_own():
    assert float(PublishedClippedSum().told(UPDATES, {})["clip"]) == UPDATES.bound


def test_noise_and_event_know_the_servers_step():
    """Line 9 adds the noise outside the step, so the sum gets it over the step."""
    sums = PublishedClippedSum(1.0, clip=2.0, balance=0.7)
    for step in (0.5, 1.0):
        phase = Phase("updates", range(3), what="updates", is_clipped=True, step=step)
        made = sums.mechanism(phase, sums.told(phase, {}))
        assert made.scale("w") == pytest.approx(4.0 / step * (1 / 0.3) ** 0.5)
        for sampler, adjacency in SAMPLERS.items():
            plan = Plan(10, 3, sampler, channel="secure_sum", delta=1e-6)
            [release] = sums.releases(plan, (phase,))
            cell = release.cells[Unit.USER, View.SERVER]
            assert cell.adjacency is adjacency
            assert cell.each == made.clipping.event(step, adjacency=adjacency)
            assert ("bits reveal" in cell.reason) is (adjacency is Adjacency.ZERO_OUT)


@pytest.mark.parametrize(("step", "provable"), [(0.1, 0.0378), (1, 0.5670), (2, 1.88)])
def test_what_a_thousand_rounds_as_published_cost(step, provable):
    """30 of 4800, delta 1e-6: the bits of cohorts of a fixed size tell nothing."""
    phase = replace(UPDATES, rounds=range(1000), step=step)
    plan = Plan(4800, 1000, FixedSize(30), channel="direct", delta=1e-6)
    releases = PublishedClippedSum(1.0, balance=0.7).releases(plan, (phase,))
    found = account(plan, releases).worst(view=View.RELEASE)
    assert found == pytest.approx(provable, abs=5e-4)


@pytest.mark.parametrize("sampler", [Poisson(0.1), Once()])
def test_cohorts_of_another_kind_are_refused(sampler):
    plan = Plan(100, 3, sampler, delta=1e-6)
    for refusing in (PublishedClippedSum().calibrated, PublishedClippedSum().releases):
        with pytest.raises(Refused, match=type(sampler).__name__):
            refusing(plan, (UPDATES,))


def test_whole_cohorts_have_no_published_figure():
    """The paper's bound is one for samples; without a delta there is none either."""
    name = Unit.USER, View.RELEASE
    for plan, has_one in [
        (Plan(100, 3, FixedSize(10), delta=1e-6), True),
        (Plan(100, 3, FixedSize(10)), False),
        (Plan(100, 3, Everyone(), delta=1e-6), False),
    ]:
        [release] = PublishedClippedSum().releases(plan, (UPDATES,))
        cell = release.cells[name]
        assert (cell.published_epsilon is not None) == has_one
        assert cell.standing is Standing.PROVEN


@pytest.mark.parametrize(
    "fields",
    [
        {"noise_multiplier": 0.0},
        {"clip": -1.0},
        {"quantile": 1.5},
        {"clip_rate": 0.0},
        {"balance": 1.0},
        {"least_clip": 0.0},
    ],
)
def test_fields_that_cannot_be(fields):
    [(name, value)] = fields.items()
    pattern = f"{name.removeprefix('clip_')}={value}"
    with pytest.raises(BadValue, match=pattern):
        PublishedClippedSum(**fields)
