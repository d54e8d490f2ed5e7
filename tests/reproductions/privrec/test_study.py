"""The study as a whole: its tables, its extras, data that are missing, a kill."""

from __future__ import annotations

import sys

import pytest
from tacit_study_privrec.contenders import Bench

from tacit.errors import BadValue, MissingExtra
from tacit.experiment import comparison
from tacit.reproduction import papers, reproduce
from tacit.reproduction.page import render
from tacit.reproduction.study import find_studies, load_study


def test_every_table_of_the_page():
    assert [*load_study("privrec", find_studies(), "full").tables] == [
        *("1", "2", "3", "4", "figure-2", "figures-3-4", "figure-5", "frontier"),
        *("bound", "adaptation", "readings", "cold-start"),
    ]
    assert "privrec" in papers()


@pytest.mark.parametrize("table", ["1", "2"])
def test_torch_is_asked_for_before_the_first_step(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match="train"):
        reproduce("privrec", table=table, scale="smoke", out=tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_missing_data_have_a_row_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    found = reproduce("privrec", table=2)
    [row] = found.tables[0].rows
    assert not row.ok
    assert "frappe is not at hand" in row.reason
    assert found.unexplained == ()


@pytest.mark.parametrize(
    ("paper", "table", "complaint"),
    [("privreck", None, "did you mean 'privrec'"), ("privrec", 9, "known: 1, 2, 3, 4")],
)
def test_what_is_not_here(paper, table, complaint):
    with pytest.raises(BadValue, match=complaint):
        reproduce(paper, table=table)


def test_after_a_kill_only_what_is_left_is_trained(out, reproduced, monkeypatch):
    """Killed at the second cell: the first is read, not trained again."""
    trained, train = [], comparison.train

    def counted(experiment, path, **how):
        trained.append(path.parent.name)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return train(experiment, path, **how)

    monkeypatch.setattr(comparison, "train", counted)
    with pytest.raises(KeyboardInterrupt):
        reproduced("figure-5")
    found = reproduced("figure-5")
    first, killed, *later = trained
    assert first not in later
    assert killed == later[0]
    assert "<svg" in render(found, "privrec")


def test_experiment_files_are_the_full_scale():
    """Nothing but the seeds, the source and the second measure is changed there."""
    for name in ("ml1m", "frappe"):
        cell = Bench(name, "full").cell("PrivRec, as published")
        changed = {change.partition("=")[0] for change in cell.changes}
        assert changed == {"data.source", "evaluate.full_metrics"}
        method = cell.experiments()[0].method
        assert (method.local_epochs, method.activation) == (100, "sigmoid")
        assert cell.seeds == 3
