import sys

import pytest
from quick import some_or_all


@pytest.mark.slow
def test_published_reproduced_and_provable(tacit):
    answer = tacit("reproduce", "privrec", "--table", 4, "--json")
    assert answer.code == 0
    (table,) = answer.json["tables"]
    assert len(table["rows"]) == 18
    for row in table["rows"]:
        assert row.keys() >= {"label", "published", "paper", "sound", "ok"}
        assert row["ok"]
    assert answer.json["claims"][0].keys() >= {"text", "ok", "evidence"}


@some_or_all("table", ("fmf-ldp", "5.3"), ("privrec", "4"))
def test_for_people(tacit, table):
    paper, number = table
    answer = tacit("reproduce", paper, "--table", number)
    assert "same" in answer.out
    assert "holds" in answer.out


def test_an_unknown_paper(tacit):
    answer = tacit("reproduce", "privreck")
    assert answer.code == 2
    assert "did you mean 'privrec'" in answer.err


def test_costs_of_fmf_ldp_with_documents(tacit, tmp_path):
    answer = tacit("reproduce", "fmf-ldp", "--table", "5.3", "--out", tmp_path)
    assert answer.code == 0  # what differs says why
    assert "DIFFERS" in answer.out
    assert "envelopes" in answer.out
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"fmf-ldp.json", "fmf-ldp.html"}


def test_an_unknown_scale(tacit):
    answer = tacit("reproduce", "fmf-ldp", "--scale", "tiny")
    assert answer.code == 2
    assert "scale='tiny' is not known" in answer.err


@pytest.mark.parametrize("spelling", ["fmf-ldp", "fmf_ldp"])
def test_a_paper_is_known_by_either_spelling(tacit, spelling):
    answer = tacit("reproduce", spelling, "--table", "5.3", "--json")
    assert answer.code == 0
    assert answer.json["claims"][0]["ok"]


def test_stopped_and_given_again_it_goes_on(tacit, tmp_path):
    """The second call trains nothing: every run of Figure 3 is at hand."""
    call = ("reproduce", "fmf-ldp", "--table", 3, "--scale", "smoke")
    first = tacit(*call, "--out", tmp_path, "--json")
    again = tacit(*call, "--out", tmp_path, "--json")
    assert (first.code, again.code) == (0, 0)
    assert again.json == first.json
    assert "seed 0" in first.err
    assert "seed 0" not in again.err
    assert "4 of 4" in again.err


@pytest.mark.parametrize(
    ("paper", "module", "install"),
    [
        ("fmf-ldp", "implicit", "[baselines]'"),
        ("privrec", "torch", "[train]'"),
        ("privrec", "implicit", "[baselines]'"),
    ],
)
def test_a_missing_extra_is_named_before_the_first_step(
    tacit, tmp_path, monkeypatch, paper, module, install
):
    monkeypatch.setitem(sys.modules, module, None)
    answer = tacit("reproduce", paper, "--out", tmp_path)
    assert answer.code == 2
    (line,) = [line for line in answer.err.splitlines() if line.startswith("error")]
    assert module in line
    assert install in line
    assert [*tmp_path.iterdir()] == []


def test_studies_that_are_not_here(tacit, tmp_path):
    answer = tacit("reproduce", "fmf-ldp", "--studies", tmp_path)
    assert answer.code == 2
    assert "--studies" in answer.err


STUDY = """
from pathlib import Path

from tacit.reproduction.cells import Cell
from tacit.reproduction.study import Study, Table
from tacit.reproduction.tables import Claim, Reproduction


def study(scale):
    cell = Cell(Path(__file__).parent / "small.toml")

    def make(results):
        return Reproduction((), (Claim("it ends", bool(results[cell]), ""),))

    return Study("some-paper", {"1": Table(make, (cell,))})
"""
SMALL = """
[data]
source = "synthetic"
world = { users = 60, items = 30, events_per_user = 8.0 }
[method]
name = "federated_popularity"
[run]
rounds = 4
[evaluate]
metrics = ["ndcg@10"]
"""


@pytest.fixture
def studies(tmp_path):
    home = tmp_path / "reproductions" / "some_paper"
    home.mkdir(parents=True)
    (home / "study.py").write_text(STUDY)
    (home / "small.toml").write_text(SMALL)
    return home.parent


def test_a_full_study_prints_its_time_first_and_resumes(tacit, studies, tmp_path):
    call = ("reproduce", "some-paper", "--studies", studies, "--scale", "full")
    first = tacit(*call, "--out", tmp_path / "out", "--json")
    assert first.code == 0
    assert first.json["estimate"]["missing"] == 1
    assert first.json["estimate"]["seconds"] > 0
    told, trained = "0 of 1 runs are there", "reproducing some-paper"
    assert first.err.index(told) < first.err.index(trained)
    again = tacit(*call, "--out", tmp_path / "out", "--json")
    assert again.json["estimate"]["missing"] == 0
    assert "1 of 1 runs are there; nothing is left to train" in again.err


def test_an_estimate_alone_trains_nothing_of_the_study(tacit, studies, tmp_path):
    call = ("reproduce", "some-paper", "--studies", studies, "--estimate")
    answer = tacit(*call, "--out", tmp_path / "out", "--json")
    assert answer.code == 0
    assert [*answer.json] == ["estimate"]
    assert not (tmp_path / "out" / "runs").exists()
    assert "0 of 1 runs are there" in tacit(*call).out
