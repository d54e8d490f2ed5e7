"""The study as a whole: its tables, what it lacks, and that it goes on."""

from __future__ import annotations

import sys

import pytest
import tacit_study_dpvae as own
from quick import some_of
from tacit_study_dpvae.benches import smoke

from tacit.errors import MissingExtra
from tacit.experiment import comparison
from tacit.reproduction import papers, reproduce
from tacit.reproduction.study import SCALES, Table, check_extras

TABLES = ["noise", "2", "5", "6", "7", "8", "9", "10", "figure-3", "11", "beta"]
SETS = ("movielens-100k", "movielens-1m")


@pytest.fixture
def at_hand(monkeypatch, tmp_path):
    """The study as if these archives, and word vectors or none, were there."""

    def made(scale: str, *here: str, has_words: bool = True):
        words = smoke("ML-100K").words if has_words else None
        monkeypatch.setattr(own, "has_data", lambda source: source in here)
        monkeypatch.setattr(own, "word_file", lambda: words)
        return own.study(scale)

    return made


def left_out(table: Table) -> dict[str, str]:
    """The reasons of a table that needs no cell."""
    found = table.make(None)
    return {row.label: row.reason for one in found.tables for row in one.rows}


def test_it_is_listed(study):
    assert "dpvae" in papers()
    assert [*study.tables] == TABLES


def test_quick_leaves_the_settings_of_netflix_to_full(at_hand):
    tables = at_hand("quick", *SETS).tables
    files = {c.experiment.stem for t in tables.values() for c in t.cells}
    assert "ml1m-as-ml20m-paper" in files
    assert not [file for file in files if "netflix" in file]
    tables = at_hand("full", *SETS).tables
    files = {c.experiment.stem for t in tables.values() for c in t.cells}
    assert "ml1m-as-netflix-paper" in files


@pytest.mark.parametrize(
    ("name", "source", "ratings"),
    [
        ("ML-20M", "movielens-20m", 20_000_263),
        ("Netflix", "netflix-prize", 70_613_395),
    ],
)
def test_with_an_archive_full_makes_from_it_what_needs_no_labels(
    at_hand, name, source, ratings
):
    """Tables with priors keep MovieLens 1M, which says something of its users."""
    tables = at_hand("full", *SETS, source).tables
    for number in ("5", "7"):
        made = [cell.experiments()[0] for cell in tables[number].cells]
        large = [one for one in made if one.data.source == source]
        to_the_letter = [one for one in large if "paper" in str(one.method)]
        assert {one.sampler.size for one in to_the_letter} == {20}
        drawn = {one.subset.users if one.subset else None for one in large}
        assert drawn == {311_266 if name == "Netflix" else None}
        for one in large:
            noise_delta = getattr(one.method.privacy, "noise_delta", None)
            assert noise_delta in (None, pytest.approx(1 / (0.8 * ratings)))
    for number in ("6", "9", "figure-3"):
        every = " ".join(" ".join(cell.changes) for cell in tables[number].cells)
        assert source not in every
    tables = at_hand("quick", *SETS, source).tables.values()
    every = " ".join(" ".join(c.changes) for table in tables for c in table.cells)
    assert source not in every


@pytest.mark.data
def test_table_2_is_counted_on_the_archive(real_data, monkeypatch, tmp_path):
    monkeypatch.setenv("TACIT_DATA", str(real_data))
    study = own.study("quick")
    (table,) = study.reproduced(tmp_path, table="2").tables
    assert len(table.rows) == 3 * 2 * 3
    counts = {row.label: row.paper for row in table.rows}
    assert counts["ML-100K, OL, ratings"] == counts["ML-100K, PD, ratings"] == 100_000
    assert all(row.ok for row in table.rows if row.label.startswith("ML-100K"))
    assert counts["ML-20M, OL, users"] is None  # not at hand, and not stood in for
    assert all(row.reason for row in table.rows if not row.ok)


def test_missing_data_have_a_row_that_says_so(at_hand):
    tables = at_hand("quick").tables
    assert "movielens-100k is not at hand" in left_out(tables["8"])["ML-100K"]
    reasons = left_out(tables["9"])
    assert "movielens-1m is not at hand" in reasons["ML-20M"]
    assert "--scale full" in reasons["Netflix"]


def test_without_word_vectors_tables_with_priors_are_left_out(at_hand):
    tables = at_hand("quick", *SETS, has_words=False).tables
    for number in ("6", "8", "9", "10", "figure-3"):
        assert tables[number].cells == ()
    assert "glove" in left_out(tables["8"])["ML-100K"]
    assert tables["5"].cells
    assert tables["7"].cells


@pytest.mark.parametrize("scale", some_of(SCALES[::-1], 1))
def test_every_cell_of_every_scale_is_a_sound_experiment(at_hand, scale):
    """Checked without data: a wrong setting is not found after hours."""
    tables = at_hand(scale, *SETS).tables.values()
    cells = {cell for table in tables for cell in table.cells}
    assert len(cells) > 30
    for cell in cells:
        made = cell.experiments()[0]
        assert made.evaluate.metrics[:3] == ("ndcg@100", "recall@20", "recall@50")
        assert made.data.split == "ratio"


def test_extras_are_asked_for_before_the_first_step(study, tmp_path, monkeypatch):
    """No cell needs one today; whichever a baseline or method declares is asked for."""
    needed = Table.joined([*study.tables.values()]).needed()
    check_extras(needed)
    cell = study.tables["8"].cells[0]
    monkeypatch.setattr(type(cell), "extras", lambda self: {"torch": "train"})
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match="train"):
        study.reproduced(tmp_path, table="8")
    assert [*tmp_path.iterdir()] == []


def test_it_goes_on_where_it_was(reproduced, out, monkeypatch):
    """What is trained is read: nothing is trained a second time."""
    first = reproduced("7")

    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(comparison, "train", refuse)
    assert reproduced("7") == first


def test_the_command_takes_the_smallest_table(tmp_path):
    found = reproduce("dpvae", table="noise", scale="smoke", out=tmp_path)
    assert len(found.tables) == 2
    assert found.unexplained == ()
