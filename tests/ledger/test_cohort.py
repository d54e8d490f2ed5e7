"""The array form, and that it refuses exactly when the durable form does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.small import bare, gaussian, in_turn, response, training

from tacit.errors import BadValue
from tacit.ledger.budget import Cap, spent
from tacit.ledger.cohort import CohortLedger, Limits
from tacit.ledger.durable import ClientLedger
from tacit.release import CELLS, View, stretches


def test_who_may_take_part():
    ledger = CohortLedger(np.array([0, 3, 2]), np.array([0, 3, 3]), rounds=10)
    assert ledger.permits(np.array([2, 1, 0, 2]), round=9).tolist() == [
        *(True, False, False, True)
    ]
    assert not ledger.permits(np.array([2, 1, 0, 2]), round=10).any()


@pytest.mark.usefixtures("without_axis_checks")
def test_counts_and_limits_are_of_the_same_devices():
    with pytest.raises(BadValue, match="counts of 2 clients and limits of 1"):
        CohortLedger(np.zeros(2, np.int64), np.zeros(1, np.int64), 1)
    with pytest.raises(BadValue, match="clients: 2 is not in"):
        CohortLedger(*np.ones((2, 2), np.int64), 1).permits(np.array([2]), round=0)


def test_noise_that_is_chosen_must_fit_into_what_each_device_has_left():
    """Budgets in 1 / z²: a client that spent half of it answers at twice the rest."""
    ledger = CohortLedger(
        np.zeros(3, np.int64),
        np.full(3, 9),
        rounds=9,
        spent=np.array([0.0, 0.5, 1.0]),
        budgets=np.ones(3),
    )
    here = np.arange(3)
    noises = {z: np.full(3, z) for z in (1.0, 2.0**0.5, 9.0)}
    may = {
        z: ledger.permits(here, round=0, multipliers=noise).tolist()
        for z, noise in noises.items()
    }
    assert may == {
        1.0: [True, False, False],
        2.0**0.5: [True, True, False],
        9.0: [True, True, False],
    }
    assert not ledger.permits(here, round=9, multipliers=noises[9.0]).any()
    # nobody can say what the round costs
    assert not ledger.permits(here, round=0).any()


TERMS = {
    "gaussian": (gaussian(2.0, most=9), [Cap(6.0)]),
    "response": (response(0.4, most=9), [Cap(1.6, 0.0, view=View.COLLUSION)]),
    "training": (training(0.5, 2.0, 9), [Cap(6.0), Cap(9.0, view=View.RELEASE)]),
    "in turn": (in_turn(3, 9, count=2.0, train=2.5), [Cap(5.0)]),
    "once in turn": (replace(in_turn(3, 9), most=1), []),
    "bare": (bare(9), [Cap(100.0)]),
    "no cap": (bare(4), []),
}


@pytest.mark.parametrize("kind", TERMS)
@given(asked=st.lists(st.lists(st.booleans(), min_size=2, max_size=2), max_size=9))
@settings(max_examples=4)
def test_both_forms_refuse_in_the_same_rounds_and_have_spent_the_same(
    kind, asked, tmp_path_factory
):
    """Two clients, asked at random: one row of counts against two files."""
    terms, caps = TERMS[kind]
    folder = tmp_path_factory.mktemp(kind)
    files = [opened(folder / str(i), terms, caps) for i in range(2)]
    made = stretches(terms.rounds, (release.rounds for release in terms.releases))
    limits = Limits([terms], np.zeros(2, np.int64), [tuple(caps)], made)
    taken = np.zeros((2, len(made)), np.int64)
    for round_, row in enumerate(asked):
        here = np.flatnonzero(row)
        part = next((i for i, one in enumerate(made) if round_ in one), 0)
        most = limits.within(part, taken)
        ledger = CohortLedger(taken[:, part], most, terms.rounds)
        may = ledger.permits(here, round=round_)
        assert may.tolist() == [answers(files[i], round_) for i in here]
        taken[here[may], part] += 1
    for counts, file in zip(taken.tolist(), files, strict=True):
        rounds = [r for part, n in zip(made, counts, strict=True) for r in part[:n]]
        for name in CELLS:
            expected = spent([(terms, rounds)], name, delta=1e-6)
            assert file.spent(name, delta=1e-6) == expected
        file.close()


def test_limits_of_groups_and_of_what_was_said_before():
    """A count of noise 2 costs 25 / 4 updates of noise 5, of which 17 fit."""
    told = [in_turn(2, 99, count=2.0, train=z) for z in (5.0, 50.0)]
    groups = np.array([0, 0, 0, 1, 0])
    caps = [(Cap(4.0),)] * 2
    limits = Limits(told, groups, caps, (range(2), range(2, 99)))
    taken = np.array([[0, 3], [1, 0], [2, 9], [2, 0], [0, 1]])
    assert limits.within(0, taken).tolist() == [2] * 5
    assert limits.within(1, taken).tolist() == [17, 11, 5, 97, 17]
    taken[2:4, 0] = 3, 0  # the first is more than there are, and counts as all of them
    assert limits.within(1, taken).tolist() == [17, 11, 5, 97, 17]


def test_every_group_has_caps_of_its_own():
    told, groups = [gaussian(5.0, most=99)] * 2, np.array([0, 1, 0])
    limits = Limits(told, groups, [(Cap(4.0),), (Cap(2.0),)], (range(99),))
    never = np.zeros((3, 1), np.int64)
    assert limits.within(0, never).tolist() == [17, 5, 17]


def opened(path, terms, caps) -> ClientLedger:
    ledger = ClientLedger(path)
    ledger.join("run", terms, state=b"")
    for cap in caps:
        ledger.set_cap(cap)
    return ledger


def answers(ledger: ClientLedger, round_: int) -> bool:
    with ledger.transaction():
        return ledger.permits("run", round_, asked=b"?")
