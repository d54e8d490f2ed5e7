"""Tables 8 and 9 and Figure 3 on a tiny world."""

from __future__ import annotations

from pathlib import Path

import pytest
from tacit_study_dpvae import bench as bench_of
from tacit_study_dpvae import contenders, rows
from tacit_study_dpvae.benches import PUBLISHED
from tacit_study_dpvae.comparison import DEPTHS

from tacit.experiment.training import Nobody
from tacit.reproduction.cells import Results
from tacit.reproduction.claims import difference
from tacit.reproduction.page import render

PAGES = Path(__file__).parents[3] / "docs" / "reproduction"


@pytest.fixture(scope="module")
def table_8(reproduced):
    return reproduced("8")


def test_table_8_has_every_contender(table_8):
    [table] = table_8.tables
    assert [row.published for row in table.rows] == PUBLISHED["table-8"].numbers()
    rows = {row.label: row for row in table.rows}
    assert rows["DP-VAE, NDCG@100"].sound is not None
    assert rows["DPMF, NDCG@100"].budget == rows["DPAE, NDCG@100"].budget
    assert rows["DPAE, NDCG@100"].budget == "proved 1.00"
    assert rows["KNN, NDCG@100"].budget == "not private"
    assert table_8.unexplained == ()


def test_what_was_not_run_says_why(table_8):
    [table] = table_8.tables
    row = next(row for row in table.rows if row.label == "LightFM, NDCG@100")
    assert row.paper is not None or "not installed" in row.reason


def test_reasons_are_computed(table_8):
    [table] = table_8.tables
    rows = {row.label: row for row in table.rows}
    assert "797 S" in rows["DP-VAE, NDCG@100"].reason
    popular = f"popularity {rows['VAE, NDCG@100'].beside['popularity']:.3f}"
    assert popular in rows["VAE, NDCG@100"].reason


def test_table_8_answers_rq4(table_8):
    texts = [claim.text for claim in table_8.claims]
    assert all(text.startswith("RQ4: ") for text in texts)
    assert any("DP-VAE loses at most 0.03 to the VAE" in text for text in texts)
    assert any("sound DP-VAE beats popularity" in text for text in texts)


@pytest.mark.slow
def test_table_9_has_both_stand_ins(reproduced):
    found = reproduced("9")
    rows = [row for table in found.tables for row in table.rows]
    assert [row.published for row in rows] == PUBLISHED["table-9"].numbers()
    assert all("stands in" in table.name for table in found.tables)
    assert len(found.claims) == 2


@pytest.mark.slow
def test_figure_3_draws_all_contenders(reproduced):
    found = reproduced("figure-3")
    assert len(found.charts) == 2 * 3
    for chart in found.charts:
        assert {"DP-VAE", "sound DP-VAE", "VAE", "KNN", "SVD"} <= {*chart.lines}
        assert {line.x for line in chart.lines.values()} == {tuple(map(float, DEPTHS))}
    assert any("Recall@R for every R" in claim.text for claim in found.claims)
    assert "<svg" in render(found, "dpvae")


def test_the_page_says_what_the_command_prints_of_sound_mode(real_data, tmp_path):
    """RQ4 on MovieLens 100K: above DPMF, not above DPAE; half a minute of training."""
    bench = bench_of("ML-100K", "quick")
    rivals = contenders.trained(bench, bench.usual, priors=True)
    cells = {"sound": bench.sound(), **{who: rivals[who] for who in ("DPMF", "DPAE")}}
    results = Results(tmp_path, cells.values(), Nobody())
    found = {who: results[cell] for who, cell in cells.items()}
    page = (PAGES / "dpvae.md").read_text(encoding="utf-8")
    [line] = [one for one in page.splitlines() if "sound DP-VAE beats them" in one]
    by = rows.chance(results, bench)
    for who, holds in (("DPMF", True), ("DPAE", False)):
        claim = rows.above("x", bench, found["sound"], found[who], by=by)
        assert claim.ok is holds
        gain = difference(found["sound"].evaluations, found[who].evaluations, rows.MAIN)
        mean, low, high = (
            f"{x:+.3f}".replace("0.", ".").replace("-", "−")
            for x in (gain.mean, gain.low, gain.high)
        )
        assert f"{mean} ({low} to {high})" in line
