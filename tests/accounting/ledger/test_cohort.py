"""The array form, and that it refuses exactly when the durable form does."""

import numpy as np
import pytest
from accounting.ledger.small import bare, gaussian, response, training
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting.ledger.cohort import CohortLedger
from tacit.accounting.ledger.durable import DeviceLedger
from tacit.accounting.ledger.spending import Cap, allowed_rounds, spent
from tacit.accounting.ledger.terms import PLACES
from tacit.errors import BadValue


def test_who_may_take_part():
    ledger = CohortLedger(np.array([0, 3, 2]), np.array([0, 3, 3]), rounds=10)
    assert ledger.permits(np.array([2, 1, 0, 2]), round=9).tolist() == [
        *(True, False, False, True)
    ]
    assert not ledger.permits(np.array([2, 1, 0, 2]), round=10).any()


@pytest.mark.usefixtures("without_axis_checks")
def test_counts_and_limits_are_of_the_same_devices():
    with pytest.raises(BadValue, match="counts of 2 devices and limits of 1"):
        CohortLedger(np.zeros(2, np.int64), np.zeros(1, np.int64), 1)
    with pytest.raises(BadValue, match="clients: 2 is not in"):
        CohortLedger(*np.ones((2, 2), np.int64), 1).permits(np.array([2]), round=0)


TERMS = {
    "gaussian": (gaussian(2.0, most=9), [Cap(6.0)]),
    "response": (response(0.4, most=9), [Cap(1.6, 0.0, view="collusion")]),
    "training": (training(0.5, 2.0, 9), [Cap(6.0), Cap(9.0, view="release")]),
    "bare": (bare(9), [Cap(100.0)]),
    "no cap": (bare(4), []),
}


@pytest.mark.parametrize("kind", TERMS)
@given(asked=st.lists(st.lists(st.booleans(), min_size=2, max_size=2), max_size=9))
@settings(max_examples=4)
def test_both_forms_refuse_in_the_same_rounds_and_have_spent_the_same(
    kind, asked, tmp_path_factory
):
    """Two devices, asked at random: one row of counts against two files."""
    terms, caps = TERMS[kind]
    folder = tmp_path_factory.mktemp(kind)
    files = [opened(folder / str(i), terms, caps) for i in range(2)]
    taken = np.zeros(2, np.int64)
    most = np.full(2, allowed_rounds(terms, caps))
    for round_, row in enumerate(asked):
        here = np.flatnonzero(row)
        may = CohortLedger(taken, most, terms.rounds).permits(here, round=round_)
        assert may.tolist() == [answers(files[i], round_) for i in here]
        taken[here[may]] += 1
    for count, file in zip(taken, files, strict=True):
        for place in PLACES:
            expected = spent([(terms, int(count))], place, delta=1e-6)
            assert file.spent(place, delta=1e-6) == expected
        file.close()


def opened(path, terms, caps) -> DeviceLedger:
    ledger = DeviceLedger(path)
    ledger.join("run", terms, key=bytes(16), state=b"")
    for cap in caps:
        ledger.set_cap(cap)
    return ledger


def answers(ledger: DeviceLedger, round_: int) -> bool:
    with ledger.transaction():
        return ledger.permits("run", round_, asked=b"?")
