import json

import dp_accounting as dp
import numpy as np
import pytest
from ledger.small import bare, gaussian, in_turn, response, training

from tacit.accounting import events
from tacit.accounting.parts import _known
from tacit.errors import BadValue
from tacit.ledger.written import (
    in_short,
    plain_event,
    read_event,
    read_terms,
    write_terms,
)

GAUSSIAN = dp.GaussianDpEvent(0.1 + 0.2)
EVENTS = [
    *(dp.NoOpDpEvent(), dp.NonPrivateDpEvent(), GAUSSIAN, dp.LaplaceDpEvent(2.0)),
    *(dp.RandomizedResponseDpEvent(0.25, 7), dp.PoissonSampledDpEvent(0.5, GAUSSIAN)),
    dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, GAUSSIAN), 1000),
    dp.ComposedDpEvent([GAUSSIAN, dp.SelfComposedDpEvent(dp.LaplaceDpEvent(1.0), 2)]),
    dp.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN),
    dp.TruncatedSubsampledGaussianDpEvent(4800, 0.00625, 60, 2.0),
    dp.dp_event.RepeatAndSelectDpEvent(GAUSSIAN, 3.0, 1.0),
    *(events.PureDpEvent(1e-3, 5), events.PaddedDpEvent(0.5, GAUSSIAN)),
    *(events.ShuffledDpEvent(2.5, 1000), events.SkellamDpEvent(100.0, 3.0, 3.0)),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_comes_back_as_it_was(event):
    assert read_event(plain_event(event)) == event
    assert in_short(event)


def test_every_event_that_has_an_account_can_be_written():
    assert {type(event) for event in EVENTS} >= {*_known()}


def test_no_event_is_no_event():
    assert plain_event(None) is None
    assert read_event(None) is None


def test_numbers_of_numpy_are_numbers():
    found = plain_event(dp.SelfComposedDpEvent(dp.GaussianDpEvent(np.float64(5)), 3))
    assert found == {
        "SelfComposedDpEvent": {
            "event": {"GaussianDpEvent": {"noise_multiplier": 5.0}},
            "count": 3,
        }
    }


@pytest.mark.parametrize("made", [bare, gaussian, in_turn, response, training])
def test_terms_come_back_as_they_were_and_have_one_text(made):
    terms = made()
    text = write_terms(terms)
    assert read_terms(text) == terms
    assert write_terms(read_terms(text)) == text


def test_terms_that_were_written_before_rounds_were_told():
    """Every round has every release, and the text is as it was."""
    old = write_terms(in_turn().in_every_round())
    assert [charge.rounds for charge in read_terms(old).charges] == [None, None]
    assert "[0, 2]" in write_terms(in_turn())
    assert "[0, 2]" not in old
    charges = json.loads(old)["charges"]
    assert [set(charge) for charge in charges] == [{"promises", "seen_by", "what"}] * 2


def test_an_unknown_event_is_neither_written_nor_read():
    with pytest.raises(BadValue, match="'ZCDpEvent' is not known"):
        plain_event(dp.ZCDpEvent(1.0))
    with pytest.raises(BadValue, match="'Popen' is not known"):
        read_event({"Popen": {"args": "true"}})


def test_a_few_words():
    assert in_short(None) == "nothing"
    assert in_short(EVENTS[6]) == "1000 × PoissonSampled 0.01 (Gaussian 0.3)"
    assert in_short(EVENTS[7]) == "Gaussian 0.3 + 2 × Laplace 1"
