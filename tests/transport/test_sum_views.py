"""What every channel declares of a noisy sum, whoever adds the noise."""

import math

import pytest
from dp_accounting import GaussianDpEvent

from tacit.mechanisms.skellam import skellam_event
from tacit.plans import Plan
from tacit.privacy.guarantees import summed
from tacit.release import CELLS, Adjacency, Standing, Unit, View
from tacit.transport.channels import CHANNELS, channel
from tacit.wire_names import wire_name

EVENT = GaussianDpEvent(4.0)


@pytest.fixture(params=CHANNELS)
def carrier(request):
    return channel(request.param)


def test_a_channel_has_a_name_on_the_wire(carrier):
    assert wire_name(type(carrier))[0] == carrier.name


def test_the_server_is_promised_something_only_where_another_adds_noise(carrier):
    cells = summed(Plan(100, channel=carrier.name), EVENT, reason="x")
    assert cells.keys() == {*CELLS}
    for unit in Unit:
        views = {view: cells[unit, view] for view in View}
        standing = Standing.ASSUMED if carrier.masks else Standing.PROVEN
        assert views[View.RELEASE].standing is standing
        # Of masks readers have what the server has: noise that some may not add.
        published = views[View.SERVER].event if carrier.masks else EVENT
        assert views[View.RELEASE].event == published
        assert views[View.COLLUSION].standing is Standing.NONE
        is_promised = views[View.SERVER].standing is not Standing.NONE
        assert is_promised is (carrier.noise_shares > 0 or carrier.masks)
        assert views[View.RELEASE].assumes


def test_a_server_that_knows_all_shares_but_one_sees_the_noise_of_one(carrier):
    """The variances of the shares add up to that of the sum."""
    cells = summed(Plan(100, channel=carrier.name), EVENT, reason="x")
    seen = cells[Unit.USER, View.SERVER].event
    if carrier.noise_shares:
        each = EVENT.noise_multiplier / math.sqrt(carrier.noise_shares)
        assert seen.noise_multiplier == pytest.approx(each)
    elif carrier.masks:  # one client of a hundred, where no more are promised
        assert seen == skellam_event(EVENT.noise_multiplier * math.sqrt(0.01))
    else:
        assert cells[Unit.USER, View.SERVER].standing is Standing.NONE


def test_how_the_noise_is_added_stands_in_the_reason(carrier):
    cells = carrier.sums.cells(
        EVENT, EVENT, each=None, adjacency=Adjacency.ZERO_OUT, reason="Theorem 1"
    )
    reason = cells[Unit.USER, View.RELEASE].reason
    assert reason.startswith("Theorem 1")
    assert (reason == "Theorem 1") is not bool(carrier.sums.how)


def test_one_process_that_would_be_two_operators_is_told_what_to_do(carrier):
    is_played = carrier.mixes or carrier.noise_shares > 1 or carrier.masks
    assert bool(carrier.in_one_process) is is_played
    assert bool(carrier.third) is (carrier.name != "direct")
