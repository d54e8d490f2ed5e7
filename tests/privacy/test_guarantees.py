"""Cells of the usual protections."""

import math
from dataclasses import replace

import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from quick import some_of

from tacit.accounting.epsilon import epsilon
from tacit.accounting.events import FailureDpEvent, ShuffledDpEvent, pure_local
from tacit.codes import Code
from tacit.errors import Refused
from tacit.ledger.budget import spent
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.privacy.guarantees import (
    local,
    set_of_items,
    shuffled,
    summed,
    unprotected,
    whole_run,
)
from tacit.release import CELLS, Adjacency, Standing, Unit, View
from tacit.runtime.ledger import terms_of
from tacit.sampling import Everyone, FixedSize, Once, Poisson
from tacit.statement import account

EVENT = GaussianDpEvent(1.0)


def test_nothing_is_promised_to_anybody_with_the_reason():
    cells = unprotected("bare_reports", "sent as they are")
    assert [*cells] == [*CELLS]
    assert {cell.standing for cell in cells.values()} == {Standing.NONE}
    assert {cell.reason for cell in cells.values()} == {"sent as they are"}


def test_what_is_published_earns_sampling_and_the_server_counts_participations():
    plan = Plan(100, 7, Poisson(0.1), channel="secure_sum")
    cells = summed(plan, EVENT, reason="Theorem 1")
    sampled = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, EVENT), 7)
    for unit in Unit:
        assert cells[unit, View.RELEASE].event == sampled
        assert cells[unit, View.RELEASE].each is None  # the run, from the first one on
        assert cells[unit, View.SERVER].event == SelfComposedDpEvent(EVENT, 7)
        assert cells[unit, View.SERVER].each == EVENT
        assert cells[unit, View.COLLUSION].standing is Standing.NONE
    assert {c.assumes for c in cells.values()} == {(Code("trusted_aggregator"),), ()}


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


def test_a_run_that_is_bounded_as_a_whole_costs_that_in_every_view():
    """Whatever each round costs: nothing is counted by participation."""
    plan = Plan(100, 7, channel="secure_sum")
    cells = whole_run(plan, EVENT, reason="Theorem 1")
    for view in (View.RELEASE, View.SERVER):
        cell = cells[Unit.USER, view]
        assert (cell.standing, cell.event, cell.each) == (Standing.PROVEN, EVENT, None)
    assert cells[Unit.USER, View.COLLUSION].standing is Standing.NONE


def test_of_two_servers_each_has_the_noise_of_the_other_against_it():
    """Three views as specified: both noises, one of them, and nothing."""
    plan, event = Plan(100, 7, channel="two_servers"), GaussianDpEvent(3.0)
    half = GaussianDpEvent(3.0 / math.sqrt(2))
    cells = summed(plan, event, reason="Theorem 1")
    whole = whole_run(plan, event, reason="Theorem 1")
    for unit in Unit:
        assert cells[unit, View.RELEASE].event == SelfComposedDpEvent(event, 7)
        assert cells[unit, View.RELEASE].assumes == (
            Code("both_aggregators_add_noise"),
        )
        server = cells[unit, View.SERVER]
        assert (server.event, server.each) == (SelfComposedDpEvent(half, 7), half)
        assert server.standing is Standing.PROVEN
        assert server.adjacency is Adjacency.ZERO_OUT
        assert Code("one_honest_aggregator") in server.assumes
        assert (whole[unit, View.RELEASE].event, whole[unit, View.SERVER].event) == (
            event,
            half,
        )
        assert cells[unit, View.COLLUSION].standing is Standing.NONE
        assert "open every report" in cells[unit, View.COLLUSION].reason


def test_two_servers_have_an_account_of_gaussian_noise_alone():
    plan = Plan(100, channel="two_servers")
    with pytest.raises(Refused, match="PureDpEvent is not Gaussian"):
        summed(plan, pure_local(1.0), reason="Theorem 1")
    with pytest.raises(Refused, match="selected by one aggregator"):
        set_of_items(plan, EVENT)


@pytest.mark.parametrize(
    ("view", "others"),
    [
        ("server", {1: 0.689, 2: 1.371, 4: 2.718, 8: 5.352}),
        ("release", {1: 1.455, 2: 2.930, 4: 5.934, 8: 12.114}),
    ],
)
def test_a_target_is_met_in_its_own_view_of_two_servers(view, others):
    for target, other in others.items():
        plan = Plan(
            5034,
            rounds=3,
            channel="two_servers",
            delta=1e-6,
            target_epsilon=float(target),
            target_view=view,
        )
        method = FederatedPopularity(privacy=CentralGaussian()).calibrated(plan)
        found = account(plan, method.releases(plan))
        spent = {v.value: found.worst(view=v) for v in (View.SERVER, View.RELEASE)}
        assert spent.pop(view) == pytest.approx(target, rel=1e-6)
        assert [*spent.values()] == [pytest.approx(other, abs=5e-4)]
        assert found.worst(view=View.COLLUSION) is None


def test_local_cells_are_the_same_for_everybody_who_looks():
    cells = local(Plan(100, 5, Once()), EVENT, reason="Theorem 1")
    assert {cell.event for cell in cells.values()} == {EVENT}
    assert {c.adjacency for c in cells.values()} == {Adjacency.REPLACE_ONE}
    again = local(Plan(100, 5, Everyone()), EVENT, reason="Theorem 1")
    assert {c.event for c in again.values()} == {SelfComposedDpEvent(EVENT, 5)}
    assert {c.each for c in again.values()} == {EVENT}


def test_a_relay_hides_messages_from_all_who_do_not_side_with_it():
    plan = Plan(100, 5, channel="shuffle", min_contributors=50)
    cells = shuffled(plan, 2.0, messages=3, reason="Theorem 1")
    alone = local(plan, SelfComposedDpEvent(pure_local(2.0), 3), reason="Theorem 1")
    mixed = SelfComposedDpEvent(ShuffledDpEvent(2.0, 50), 3)
    for unit in Unit:
        for view in (View.RELEASE, View.SERVER):
            assert cells[unit, view].each == mixed
            assert Code("honest_clients", (50,)) in cells[unit, view].assumes
        assert cells[unit, View.COLLUSION] == alone[unit, View.COLLUSION]


@pytest.mark.parametrize(
    "plan",
    [
        Plan(100, 5, channel="shuffle"),  # the relay may deliver a single report
        Plan(100, 5, channel="direct", min_contributors=50),
    ],
)
def test_messages_that_nobody_promises_to_mix_are_local(plan):
    assert not plan.is_mixed
    found = shuffled(plan, 2.0, messages=1, reason="Theorem 1")
    assert found == local(plan, pure_local(2.0), reason="Theorem 1")


# Before the first round


SELECTED = ComposedDpEvent([GaussianDpEvent(8.0), FailureDpEvent(2e-7)])


def totals(plan, method):
    told = account(plan, (*plan.before, *method.releases(plan)))
    return {(s.unit, s.view): s for s in told.totals}


@pytest.mark.parametrize("sampler", some_of([Everyone(), Once(), Poisson(0.1)], 2))
def test_noise_is_calibrated_to_what_the_set_of_items_leaves(sampler):
    """Delta and epsilon: the total is within the target, and just so."""
    plan = Plan(
        *(10_000, 5, sampler),
        channel="secure_sum",
        delta=1e-6,
        target_epsilon=1.0,
    )
    after = replace(plan, before=(set_of_items(plan, SELECTED),))
    method = FederatedPopularity(privacy=CentralGaussian())
    alone, rest = method.calibrated(plan), method.calibrated(after)
    cell = (Unit.USER, View.RELEASE)
    assert 0.99 < totals(after, rest)[cell].epsilon <= 1.0
    assert totals(after, alone)[cell].epsilon > 1.0
    [z] = {*alone.privacy.noise_multiplier.values()}
    [more] = {*rest.privacy.noise_multiplier.values()}
    assert z < more < 2 * z
    found = totals(after, rest)[Unit.USER, View.SERVER].assumes
    assert found == str(Code("trusted_aggregator"))


def test_a_client_agrees_to_the_set_of_items_and_counts_it_once():
    plan = Plan(10_000, 5, channel="secure_sum", delta=1e-6)
    plan = replace(plan, before=(set_of_items(plan, SELECTED),))
    method = FederatedPopularity(privacy=CentralGaussian(noise_multiplier=20.0))
    terms = terms_of(method, plan)
    cell = (Unit.USER, View.SERVER)
    one, five = (spent([(terms, range(n))], cell, delta=1e-6).value for n in (1, 5))
    first = GaussianDpEvent((8.0**-2 + 20.0**-2) ** -0.5)
    rest = (1e-6 - 2e-7) / (1 - 2e-7)
    assert one == pytest.approx(epsilon(first, delta=rest).value, rel=1e-9)
    all_five = GaussianDpEvent((8.0**-2 + 5 * 20.0**-2) ** -0.5)
    assert five == pytest.approx(epsilon(all_five, delta=rest).value, rel=1e-9)


def test_a_set_of_items_has_no_account_for_an_exchange():
    with pytest.raises(Refused, match="under zero_out only"):
        set_of_items(Plan(100, sampler=FixedSize(10)), SELECTED)
