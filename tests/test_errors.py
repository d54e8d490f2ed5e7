"""The errors say where and what, form the drawn tree, and survive a process border."""

import pickle

import pytest

from tacit import errors
from tacit.errors import (
    BadData,
    BadExperiment,
    BadValue,
    Damaged,
    EmptyCohort,
    MissingExtra,
    Refused,
    TacitError,
)

ERRORS = [e for e in vars(errors).values() if isinstance(e, type)]
OURS = [e for e in ERRORS if issubclass(e, Exception) and e is not TacitError]


@pytest.mark.parametrize("error", OURS)
def test_one_root_and_every_error_is_drawn(error):
    assert issubclass(error, TacitError)
    assert f" {error.__name__} " in errors.__doc__


def test_the_branches_are_as_drawn():
    assert issubclass(BadExperiment, BadValue)
    assert issubclass(EmptyCohort, Refused)
    assert issubclass(BadValue, ValueError)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BadData("a.csv", 3, "two columns"), "a.csv, line 3: two columns"),
        (BadData("a.csv", None, "empty"), "a.csv: empty"),
        (
            Damaged("run/ledger.json", "its checksum does not match"),
            "run/ledger.json is damaged: its checksum does not match; restore it from "
            "a copy, or make it again",
        ),
        (BadExperiment("e.toml", ["no data"]), "e.toml: 1 problem\n  - no data"),
        (BadExperiment("e", ["a", "b"]), "e: 2 problems\n  - a\n  - b"),
        (
            MissingExtra("torch", "train"),
            "torch is not installed; it comes with the extra 'train': "
            "pip install 'tacit-recommender[train]'",
        ),
        (
            MissingExtra("weights", "text", "some-weights"),
            "weights is not installed; it comes with the extra 'text': "
            "pip install 'tacit-recommender[text]' && "
            "pip install --no-deps some-weights",
        ),
    ],
)
def test_messages_and_pickling(error, said):
    assert str(error) == said
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == said
    assert vars(again) == vars(error)
