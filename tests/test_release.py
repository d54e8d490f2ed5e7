import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

from tacit.errors import BadValue
from tacit.plan import Plan
from tacit.release import (
    Adjacency,
    Cell,
    Release,
    Standing,
    Unit,
    View,
    epsilon_a_report,
    local,
    noise_for_target,
    summed,
    unprotected,
)
from tacit.sampling import Everyone, FixedSize, Once, Poisson, PoissonByGroup

EVENT = GaussianDpEvent(1.0)


@pytest.mark.parametrize("standing", [Standing.PROVEN, Standing.CLAIMED])
def test_a_guarantee_needs_an_event(standing):
    with pytest.raises(BadValue, match="a guarantee needs an event"):
        Cell(standing, "Theorem 1")
    assert Cell(standing, "Theorem 1", EVENT).event is EVENT


def test_no_guarantee_has_no_event():
    with pytest.raises(BadValue, match="no guarantee has none"):
        Cell(Standing.NONE, "bare", EVENT)
    assert Cell.none("bare").adjacency is Adjacency.ZERO_OUT


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("view", View)
def test_a_release_must_speak_for_every_unit_and_view(unit, view):
    cells = {**unprotected("bare")}
    del cells[unit, view]
    with pytest.raises(BadValue, match=f"'votes' says nothing for {unit}/{view}"):
        Release("votes", "server", "each round", cells)


# --- Cells of the usual protections --------------------------------------------------


def test_what_is_published_earns_sampling_and_the_server_counts_participations():
    plan = Plan(100, 7, Poisson(0.1), channel="secure_sum")
    cells = summed(plan, EVENT, reason="Theorem 1")
    sampled = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, EVENT), 7)
    for unit in Unit:
        assert cells[unit, View.RELEASE].event == sampled
        assert cells[unit, View.SERVER].event == SelfComposedDpEvent(EVENT, 7)
        assert cells[unit, View.COLLUSION].standing is Standing.NONE
    assert {c.assumes for c in cells.values()} == {"trusted aggregator", "nothing"}


@pytest.mark.parametrize("channel", ["direct", "shuffle"])
def test_a_server_that_sees_reports_bare_has_no_guarantee(channel):
    cells = summed(Plan(100, channel=channel), EVENT, reason="Theorem 1")
    assert cells[Unit.USER, View.RELEASE].standing is Standing.PROVEN
    assert cells[Unit.USER, View.SERVER].standing is Standing.NONE
    assert cells[Unit.USER, View.COLLUSION].standing is Standing.NONE


def test_a_cohort_of_fixed_size_is_accounted_for_by_exchange():
    """Its size would give a removal away; an exchange moves the sum by two clips."""
    plan = Plan(100, sampler=FixedSize(10), channel="secure_sum")
    cell = summed(plan, EVENT, reason="Theorem 1")[Unit.USER, View.RELEASE]
    assert cell.adjacency is Adjacency.REPLACE_ONE
    halved = GaussianDpEvent(EVENT.noise_multiplier / 2)
    assert cell.event == SampledWithoutReplacementDpEvent(100, 10, halved)


def test_local_cells_are_the_same_for_everybody_who_looks():
    cells = local(Plan(100, 5, Once()), EVENT, reason="Theorem 1")
    assert {cell.event for cell in cells.values()} == {EVENT}
    assert {c.adjacency for c in cells.values()} == {Adjacency.REPLACE_ONE}
    again = local(Plan(100, 5, Everyone()), EVENT, reason="Theorem 1")
    assert {c.event for c in again.values()} == {SelfComposedDpEvent(EVENT, 5)}


# --- Calibration ---------------------------------------------------------------------


def test_noise_meets_the_target_of_the_group_that_spends_most():
    rates = {"seldom": 0.005, "often": 0.01}
    plan = Plan(
        *(200, 1000, PoissonByGroup(rates)),
        delta=1e-6,
        target_epsilon=2.0,
        groups={"seldom": 100, "often": 100},
    )
    assert noise_for_target(plan) == pytest.approx(1.0290, abs=1e-3)


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [(Plan(10, delta=1e-6), "target_epsilon"), (Plan(10, target_epsilon=1.0), "delta")],
)
def test_noise_needs_a_target_and_a_delta(plan, complaint):
    with pytest.raises(BadValue, match=complaint):
        noise_for_target(plan)


def test_local_reports_share_the_target():
    plan = Plan(10, 4, Everyone(), target_epsilon=2.0)
    assert epsilon_a_report(plan) == 0.5
    assert epsilon_a_report(Plan(10, 4, Once(), target_epsilon=2.0)) == 2.0
