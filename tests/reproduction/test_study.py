"""A study is found, loaded by either spelling, and asks for extras before it trains."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tacit.errors import BadValue, Diverged, MissingExtra
from tacit.reproduction import reproduce
from tacit.reproduction.cells import Cell
from tacit.reproduction.study import Study, Table, find_studies, load_study, papers
from tacit.reproduction.tables import Claim, Reproduction

SOURCE = """
from tacit.reproduction.study import Study, Table
from tacit.reproduction.tables import Claim, Reproduction
from .beside import TEXT


def study(scale):
    claim = Claim(f"{TEXT}, {scale}", True, "")
    return Study("some-paper", {"1": Table(lambda _: Reproduction((), (claim,)))})
"""


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    home = tmp_path / "reproductions" / "some_paper"
    home.mkdir(parents=True)
    (home / "study.py").write_text(SOURCE)
    (home / "beside.py").write_text("TEXT = 'it is so'\n")
    return home.parent


@pytest.mark.parametrize("spelling", ["some-paper", "some_paper"])
def test_a_paper_has_two_spellings(studies, spelling):
    found = reproduce(spelling, scale="smoke", studies=studies)
    assert found.claims[0].text == "it is so, smoke"


def test_an_unknown_paper_names_the_known(studies):
    with pytest.raises(BadValue, match="some-paper"):
        load_study("some-papper", studies, "quick")


def test_an_unknown_table_names_the_known(studies):
    with pytest.raises(BadValue, match=r"table 9 of some-paper.*known: 1"):
        reproduce("some-paper", table=9, studies=studies)


def test_studies_are_found_here_or_beside_the_checkout(studies, monkeypatch):
    monkeypatch.chdir(studies.parent)
    assert find_studies() == studies.resolve()
    monkeypatch.chdir(studies)
    assert "fmf_ldp" in papers(find_studies())  # of this checkout


def test_a_folder_without_studies_says_what_to_do(tmp_path):
    with pytest.raises(BadValue, match="--studies"):
        find_studies(tmp_path)


def test_every_missing_extra_is_named_before_the_first_step(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "implicit", None)
    made: list[str] = []

    def make(_):
        made.append("made")
        return Reproduction((), (Claim("", True, ""),))

    ials = Cell(tmp_path / "none.toml").beside("ials")
    later = Table(make, (ials,), {"torch": "train"})
    study = Study("p", {"1": Table(make), "2": later})
    with pytest.raises(MissingExtra, match=r"\[baselines,train\]"):
        study.reproduced(tmp_path)
    assert made == []
    study.reproduced(tmp_path, table="1")  # which needs neither
    assert made == ["made"]


def test_a_table_that_needs_a_model_which_diverged_ends_no_other(tmp_path):
    def lose(results):
        raise Diverged("'items' has values as large as nan", 3, ("method.rate = 9",))

    claim = Claim("it is so", True, "")
    study = Study(
        "some-paper",
        {"1": Table(lose), "2": Table(lambda _: Reproduction((), (claim,)))},
    )
    found = study.reproduced(tmp_path)
    assert found.claims == (claim,)
    [said] = found.diverged
    assert "round 3" in said
    assert "method.rate = 9" in said
