"""Events and releases as plain data, and back."""

import json
from dataclasses import replace

import dp_accounting as dp
import numpy as np
import pytest

from tacit.accounting import events
from tacit.accounting.decomposition import _known
from tacit.accounting.serialization import (
    event_from_json,
    event_in_short,
    event_to_json,
    release_from_json,
    release_to_json,
)
from tacit.codes import Code
from tacit.errors import BadValue
from tacit.release import CELLS, Adjacency, Cell, Part, Release, Standing, View

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
    *(events.FailureDpEvent(1e-7), dp.ZCDpEvent(0.5)),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_comes_back_as_it_was(event):
    assert event_from_json(event_to_json(event)) == event
    assert event_in_short(event)


def test_every_event_that_has_an_account_can_be_written():
    assert {type(event) for event in EVENTS} >= {*_known()}


def test_no_event_is_no_event():
    assert event_to_json(None) is None
    assert event_from_json(None) is None


def test_numbers_of_numpy_are_numbers():
    found = event_to_json(dp.SelfComposedDpEvent(dp.GaussianDpEvent(np.float64(5)), 3))
    assert found == {
        "SelfComposedDpEvent": {
            "event": {"GaussianDpEvent": {"noise_multiplier": 5.0}},
            "count": 3,
        }
    }


def test_an_unknown_event_is_neither_written_nor_read():
    with pytest.raises(BadValue, match="'UnsupportedDpEvent' is not known"):
        event_to_json(dp.UnsupportedDpEvent())
    with pytest.raises(BadValue, match="'Popen' is not known"):
        event_from_json({"Popen": {"args": "true"}})


def test_a_few_words():
    assert event_in_short(None) == "nothing"
    assert event_in_short(EVENTS[6]) == "1000 × PoissonSampled 0.01 (Gaussian 0.3)"
    assert event_in_short(EVENTS[7]) == "Gaussian 0.3 + 2 × Laplace 1"


# --- Releases ------------------------------------------------------------------------


def release() -> Release:
    """A cell of each standing, and every field at something that is no default."""
    run = dp.SelfComposedDpEvent(GAUSSIAN, 7)
    views = {
        View.RELEASE: Cell(
            Standing.CLAIMED, "the paper", run, published_epsilon=0.1 + 0.2
        ),
        View.SERVER: Cell(
            *(Standing.PROVEN, "Theorem 1", run, Adjacency.REPLACE_ONE),
            assumes=(Code("honest_clients", (50,)),),
            each=GAUSSIAN,
        ),
        View.COLLUSION: Cell.none("bare_reports", "sent as they are"),
    }
    cells = {name: views[name[1]] for name in CELLS}
    return Release("a sum", "server", "each round", cells, "young", range(2, 9))


@pytest.mark.parametrize("rounds", [range(2, 9), range(1), None])
def test_a_release_comes_back_as_it_was(rounds):
    made = replace(release(), rounds=rounds, parts=(Part("votes", "in round 1"),))
    text = json.dumps(release_to_json(made))
    assert release_from_json(json.loads(text)) == made


def test_a_release_is_plain_data():
    """Words, numbers and tables of known names: a later version reads the same."""
    document = release_to_json(release())
    assert document["rounds"] == [2, 9]
    assert set(document) == {
        *("what", "seen_by", "when", "cells", "group", "rounds", "channel", "parts"),
    }
    assert [(one["unit"], one["view"]) for one in document["cells"]] == [
        *map(tuple, (map(str, name) for name in CELLS))
    ]
    assert document["cells"][1] == {
        "unit": "user",
        "view": "server",
        "standing": "PROVEN",
        "reason": "Theorem 1",
        "event": {"SelfComposedDpEvent": {"event": GAUSS, "count": 7}},
        "adjacency": "replace_one",
        "assumes": [["honest_clients", 50]],
        "published_epsilon": None,
        "each": GAUSS,
        "is_local": False,
        "why_none": None,
    }
    assert document["cells"][2]["why_none"] == ["bare_reports"]


GAUSS = {"GaussianDpEvent": {"noise_multiplier": 0.1 + 0.2}}
