"""What a ledger spends: PRIVACY.md sections 7 and 9, and caps."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent
from hypothesis import given
from hypothesis import strategies as st
from ledger.small import (
    BARE,
    alike,
    bare,
    each,
    gaussian,
    in_every_round,
    in_turn,
    local,
    response,
    training,
)

from tacit.accounting.calibration import gaussian_epsilon
from tacit.accounting.events import pure_local
from tacit.accounting.views import allowed_participations
from tacit.errors import BadValue
from tacit.ledger.budget import Cap, allowed_rounds, fits, spent
from tacit.ledger.terms import Terms
from tacit.release import CELLS, Unit, View

DELTA = 1e-6
RELEASE, SERVER, COLLUSION = CELLS[:3]


def value(taken, name=SERVER, delta=DELTA) -> float | None:
    return spent(taken, name, delta=delta).value


def near(figure: float):
    return pytest.approx(figure, abs=5e-4)


def test_the_vector():
    """PRIVACY.md, section 9, Ledger; the client took part in 12 of 1000 rounds."""
    train, noise, choices = (
        (training(), range(12)),
        (gaussian(5.0), range(5)),
        (response(0.1), range(30)),
    )
    assert value([train], RELEASE) == near(2.1245)
    assert value([train], SERVER) == near(21.8392)
    assert value([noise]) == near(1.9945)
    assert value([choices]) == near(1.5002)
    everything = [train, noise, choices]
    assert value(everything, RELEASE) == near(3.3910)
    assert value(everything, SERVER) == near(22.2195)
    assert value(everything, COLLUSION) is None  # the aggregator could side with it


def test_nothing_said_is_nothing_spent():
    assert value([]) == 0.0
    assert value([(bare(), range(0)), (training(), range(0))]) == 0.0


def test_what_covers_a_run_counts_once_from_the_first_participation_on():
    found = {
        n: value([(training(0.2, 4.0, 50), range(n))], RELEASE) for n in (1, 3, 50)
    }
    assert found[50] == found[3]
    # one participation, seen in full, says less than fifty rounds drawn in secret
    assert found[1] == pytest.approx(gaussian_epsilon(4.0, delta=DELTA))
    assert found[1] < found[3]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_a_device_that_sits_rounds_out_costs_no_more_than_one_that_never_does(rate):
    """The proof of docs/ledger.md, integrated: two rounds, at most one participation.

    Both hockey-stick divergences, from and to the device that says nothing.
    """
    x = np.linspace(-9, 10, 1901)
    density = np.exp(-(x**2) / 2)
    weight = np.outer(density, density) / density.sum() ** 2
    a = np.exp(x - 0.5)[:, None]  # the likelihood ratio of a round with a contribution
    b = a.T
    free = (1 - rate + rate * a) * (1 - rate + rate * b)
    capped = (1 - rate) ** 2 + rate * a + (1 - rate) * rate * b
    for bound in np.exp([-2.0, -1.0, -0.3, 0.0, 0.3, 1.0, 2.0]):
        for gain in (lambda r, t=bound: r - t, lambda r, t=bound: 1 - t * r):
            less, more = (
                (weight * np.maximum(gain(ratio), 0)).sum() for ratio in (capped, free)
            )
            assert less <= more + 1e-12


def test_what_is_not_protected_once_is_not_protected():
    assert all(
        value([(gaussian(), range(3)), (bare(), range(1))], name) is None
        for name in CELLS
    )


def test_cells_do_not_mix():
    """A bare release to the server alone leaves the item's or others' figures alone."""
    seen = alike("x", each(GaussianDpEvent(4.0)))
    cells = {**seen.cells, SERVER: BARE, COLLUSION: BARE}
    terms = Terms((replace(seen, cells=cells),))
    assert value([(terms, range(1))], SERVER) is None
    assert value([(terms, range(1))], RELEASE) == pytest.approx(
        gaussian_epsilon(4.0, delta=DELTA)
    )
    assert value([(terms, range(1))], (Unit.ITEM, View.SERVER)) is not None


def test_a_local_exchange_may_join_a_central_removal_and_a_central_one_may_not():
    removal = gaussian(5.0)
    exchange = local(GaussianDpEvent(5.0), adjacency="replace_one")
    both = spent([(removal, range(1)), (exchange, range(1))], SERVER, delta=DELTA)
    assert both.adjacency == "zero_out"
    assert both.value == pytest.approx(gaussian_epsilon(5.0, count=5, delta=DELTA))
    central = SampledWithoutReplacementDpEvent(100, 10, GaussianDpEvent(2.0))
    fixed = local(central, adjacency="replace_one")
    assert value([(fixed, range(1))]) is not None
    assert value([(fixed, range(1)), (removal, range(1))]) is None


# --- Rounds that are not alike -------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "counts", "updates"),
    [([0], 1, 0), ([5], 0, 1), ([1, 2, 8], 1, 2), (range(9), 2, 7)],
)
def test_each_release_counts_by_its_own_rounds(rounds, counts, updates):
    """Gaussians compose exactly: 1 / z² adds up over what was made."""
    noise = (counts / 2.0**2 + updates / 3.0**2) ** -0.5
    expected = gaussian_epsilon(noise, delta=DELTA)
    assert value([(in_turn(2, 9), rounds)]) == pytest.approx(expected, rel=1e-6)


@given(st.sets(st.integers(0, 8)), st.integers(0, 8))
def test_a_participation_more_costs_no_less_and_the_run_is_the_most(rounds, another):
    terms = in_turn(2, 9)
    here, after = (value([(terms, one)]) for one in (rounds, rounds | {another}))
    assert here <= after <= value([(terms, range(9))])
    assert here <= value([(in_every_round(terms), rounds)])  # as it was once counted


def test_what_was_not_said_does_not_spoil_what_was():
    """Bare counts and noisy updates: a client that came later is protected."""
    counts, updates = in_turn(2, 9).releases
    cells = dict.fromkeys(CELLS, BARE)
    terms = Terms((replace(counts, cells=cells), updates), 9, 9)
    assert value([(terms, [1, 5])]) is None
    one = gaussian_epsilon(3.0, delta=DELTA)
    assert value([(terms, [5])]) == pytest.approx(one, rel=1e-6)


def test_what_covers_a_run_counts_whichever_rounds_one_was_in():
    """Drawn in secret, the counting is accounted for even if one was not in it."""
    [secret] = training(0.5, 4.0, 2).releases
    counts = replace(secret, rounds=range(2))
    [secret] = training(0.5, 9.0, 7).releases
    terms = Terms((counts, replace(secret, what="x", rounds=range(2, 9))), 9, 9)
    found = [value([(terms, rounds)], RELEASE) for rounds in (range(2, 9), range(9))]
    assert found[0] == found[1] > value([(training(0.5, 9.0, 7), range(7))], RELEASE)


def test_how_often_depends_on_what_was_said_before():
    terms, cap = in_turn(2, 99, count=2.0, train=5.0), [Cap(4.0, DELTA)]
    part = range(2, 99)
    assert allowed_rounds(terms, cap, part=part) == 17
    # a count of noise 2 costs 25 / 4 updates of noise 5
    assert allowed_rounds(terms, cap, part=part, earlier=[0]) == 11
    assert allowed_rounds(terms, cap, part=part, earlier=[0, 1]) == 5
    assert allowed_rounds(terms, cap) == 2 + 5
    assert allowed_rounds(terms, [Cap(0.1)], part=part, earlier=[0]) == 0
    assert allowed_rounds(terms, [], part=part, earlier=[0, 1]) == 97
    once = replace(terms, most=1)
    assert allowed_rounds(once, [], part=part) == 1
    assert allowed_rounds(once, [], part=part, earlier=[0]) == 0


# --- Caps ----------------------------------------------------------------------------


def test_the_filter_of_personal_budgets():
    """PRIVACY.md: (4, 1e-6) and noise 5 allow 17 participations."""
    assert allowed_rounds(gaussian(5.0), [Cap(4.0, DELTA)]) == 17
    assert allowed_participations(5.0, target=4.0, delta=DELTA) == 17


@given(st.floats(0.5, 20.0), st.floats(0.2, 12.0))
def test_for_gaussians_it_is_the_filter_that_was_there(noise, target):
    found = allowed_rounds(gaussian(noise, most=2000), [Cap(target, DELTA)])
    assert found == min(2000, allowed_participations(noise, target=target, delta=DELTA))


@pytest.mark.parametrize("most", [1, 2, 7, 10, 11])
def test_reports_that_share_a_budget_use_all_of_it(most):
    """Rounding does not cost the last one: 10 × 0.1 is 1 here."""
    shared = response(1.0 / most, most=most + 5)
    assert allowed_rounds(shared, [Cap(1.0, 0.0)]) == most
    assert allowed_rounds(shared, [Cap(1.0 - 1e-6, 0.0)]) == most - 1


def test_the_last_that_fits_fits_and_one_more_does_not():
    cap = Cap(2.0, DELTA)
    n = allowed_rounds(response(0.1), [cap])
    assert 20 < n < 100  # more than 2 / 0.1: composed, not added
    assert cap.holds([(response(0.1), range(n))])
    assert not cap.holds([(response(0.1), range(n + 1))])
    assert (
        value([(response(0.1), range(n))])
        <= 2.0
        < value([(response(0.1), range(n + 1))])
    )


def test_what_was_said_before_counts():
    cap = [Cap(4.0, DELTA)]
    assert allowed_rounds(gaussian(5.0), cap, before=[(gaussian(5.0), range(10))]) == 7
    assert allowed_rounds(gaussian(5.0), cap, before=[(bare(), range(1))]) == 0


def test_no_cap_allows_what_was_agreed_and_several_caps_the_least():
    assert allowed_rounds(bare(most=9), []) == 9
    assert allowed_rounds(gaussian(5.0, most=3), [Cap(4.0)]) == 3
    assert allowed_rounds(gaussian(5.0), [Cap(4.0), Cap(2.0, view=View.RELEASE)]) == 5
    assert allowed_rounds(training(), [Cap(2.2, view=View.RELEASE)]) == 1000
    assert allowed_rounds(training(), [Cap(2.2, view=View.COLLUSION)]) == 0


def test_a_cap_for_a_weaker_cell_is_kept_by_a_stronger_guarantee():
    assert (
        allowed_rounds(gaussian(5.0), [Cap(4.0, view=View.RELEASE, unit=Unit.ITEM)])
        == 17
    )


@pytest.mark.parametrize(
    ("cap", "complaint"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0 must be > 0; remove the cap"),
        ({"epsilon": math.inf}, "finite"),
        ({"epsilon": 1.0, "delta": 1e-3}, "larger ones are not called a guarantee"),
        ({"epsilon": 1.0, "delta": 1e-12}, "delta=1e-12 must be 0 or in"),
        ({"epsilon": 1.0, "view": "servers"}, "did you mean 'server'"),
        ({"epsilon": 1.0, "unit": "person"}, "is not known"),
    ],
)
def test_a_cap_that_is_none(cap, complaint):
    with pytest.raises(BadValue, match=complaint):
        Cap(**cap)


def test_a_cap_in_words_is_the_cap_in_names():
    """A guarantee for items keeps no cap for a user, however it is spelled."""
    named = Cap(9.0, unit=Unit.USER, view=View.SERVER)
    worded = Cap(9.0, unit="user", view="server")
    assert (worded.unit, worded.view) == (named.unit, named.view)
    assert [*map(type, worded.cell)] == [Unit, View]
    seen = alike("x", each(GaussianDpEvent(4.0)))
    cells = {name: BARE if name[0] is Unit.USER else seen.cells[name] for name in CELLS}
    taken = [(Terms((replace(seen, cells=cells),)), [0])]
    assert not named.holds(taken)
    assert not worded.holds(taken)
    assert value(taken, ("user", "server")) is None
    assert Cap(9.0, unit="item").holds(taken)


def test_pure_reports_have_a_pure_total():
    found = spent([(local(pure_local(0.5)), range(4))], SERVER, delta=0.0)
    assert (found.value, found.accountant) == (2.0, "basic composition")
    assert value([(gaussian(), range(1))], delta=0.0) is None


# --- Noise that is chosen as a run goes ----------------------------------------------


def test_chosen_noise_fits_while_the_whole_is_as_private_as_one_release():
    """1 / z² adds up: four of noise 2 are one of noise 1, rounding included."""
    assert fits([], total=1.0)
    assert fits([2.0] * 4, total=1.0)
    assert not fits([2.0] * 5, total=1.0)
    assert fits([0.1**-0.5] * 10, total=1.0)
    assert not fits([0.99], total=1.0)
