"""What a run's ledger.json says, and which files are none."""

import json

import pytest

from tacit.documents import write_document
from tacit.errors import BadRun, Damaged
from tacit.experiment.run_ledger import RunLedger

LINE = {
    "what": "everything so far",
    "seen_by": "server",
    "group": "everyone",
    "unit": "user",
    "adjacency": "zero_out",
    "view": "release",
    "delta": 1e-6,
    "horizon": "3 participations in 1 run, of at most 3 agreed",
    "accountant": "PLD",
    "standing": "PROVEN",
    "assumes": "trusted aggregator",
    "epsilon": 4.0,
    "reason": "Gaussian sums",
    "published_epsilon": None,
}
LEDGER = {
    "rounds_begun": 2,
    "rounds_planned": 3,
    "most_participations": 2,
    "releases": ["counts"],
    "spent": [LINE],
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ledger.json"
    write_document(path, LEDGER)
    return path


def test_it_says_how_far_the_run_went(file):
    found = RunLedger.at(file)
    first, second = found.sentences()
    assert "2 of 3 rounds have begun" in first
    assert second == "released: counts"
    assert found.spent[0].epsilon == 4.0
    assert found.spent_with_earlier == ()


def test_other_files_are_refused(tmp_path, file):
    other = tmp_path / "result.json"
    write_document(other, {"method": "gram"})
    with pytest.raises(BadRun, match="is not the ledger of a run"):
        RunLedger.at(other)
    whole = json.loads(file.read_text())
    file.write_text(json.dumps(whole | {"rounds_begun": 3}))
    with pytest.raises(Damaged):
        RunLedger.at(file)
    write_document(file, LEDGER | {"spent": [{"unit": "user"}]})
    with pytest.raises(Damaged, match="it is no ledger"):
        RunLedger.at(file)


@pytest.mark.parametrize("standing", ["PROVEN", "NOTHING"])
def test_a_ledger_that_counts_nobody_in_rounds_that_began_is_refused(file, standing):
    """An earlier version wrote "epsilon 0 PROVEN" where one machine ran both roles."""
    horizon = "0 participations in 0 runs, of at most 0 agreed"
    empty = LINE | {"horizon": horizon, "epsilon": 0.0, "standing": standing}
    write_document(file, LEDGER | {"spent": [empty]})
    with pytest.raises(BadRun, match="counts 0 participations, and 2 rounds have begu"):
        RunLedger.at(file)
    write_document(file, LEDGER | {"spent": [empty], "rounds_begun": 0})
    assert RunLedger.at(file).spent
