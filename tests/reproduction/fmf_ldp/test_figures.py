"""Every figure on a tiny world: what stands in it, not how good it is."""

from __future__ import annotations

import pytest

from tacit.reproduction import papers, reproduce
from tacit.reproduction.fmf_ldp import TABLES, benches
from tacit.reproduction.fmf_ldp.published import FIGURE_4, FIGURE_5
from tacit.reproduction.page import render


@pytest.mark.usefixtures("tiny", "cheap")
def test_figure_2_has_every_k_and_its_claims():
    found = reproduce("fmf-ldp", table=2)
    (table,) = found.tables
    assert len(table.rows) == 4 + 4 * 2  # one epsilon for few people, two for all
    assert all(row.budget and row.published is None for row in table.rows)
    texts = " ".join(claim.text for claim in found.claims)
    for said in ("k = 1 is random", "beat 50", "more people help", "a report beats"):
        assert said in texts
    (chart,) = found.charts
    assert [*chart.lines] == ["k = 1", "k = 50", "k = 100", "k = 250"]
    assert "popularity" in chart.levels


@pytest.mark.usefixtures("tiny", "cheap")
def test_figure_3_has_four_curves():
    found = reproduce("fmf-ldp", table=3)
    (chart,) = found.charts
    assert len(chart.lines) == 4
    assert {line.x for line in chart.lines.values()} == {(1, 2)}
    assert len(found.tables[0].rows) == 8


@pytest.mark.usefixtures("tiny", "cheap")
def test_figure_4_has_all_nine_published_cells():
    found = reproduce("fmf-ldp", table=4)
    rows = [row for table in found.tables for row in table.rows]
    assert {r.published for r in rows if r.published} == {*FIGURE_4.values()}
    assert found.unexplained == ()
    ours = found.tables[0].rows
    assert len(ours) == 5  # two numbers of people, two of items, and the popular ones
    assert all(row.sound is not None and "printed rate" in row.beside for row in ours)
    assert "of the clicks" in found.tables[1].rows[0].note
    assert "<svg" in render(found, "fmf-ldp")


@pytest.mark.usefixtures("tiny", "cheap")
def test_figure_5_has_all_published_figures():
    found = reproduce("fmf-ldp", table=5)
    (table,) = found.tables
    published = [row.published for row in table.rows if row.published is not None]
    assert sorted(published) == sorted(sum(FIGURE_5.values(), ()))
    dplcf = next(row for row in table.rows if row.label == "DPLCF, HR@10")
    assert dplcf.budget == "650 local"  # 260 items, 2.5 a bit
    assert found.unexplained == ()


def test_costs_are_measured_from_the_codec():
    found = reproduce("fmf-ldp", table="5.3")
    rows = {row.label: row for row in found.tables[0].rows}
    assert rows["item matrix, 1,000 items"].ok
    assert rows["upload, an epoch"].paper > 400  # an envelope is not free
    assert "envelopes" in rows["upload, an epoch"].reason
    assert found.claims[0].ok


def test_it_is_listed():
    assert "fmf-ldp" in papers()
    assert [*TABLES] == ["2", "3", "4", "5", "5.3"]


def test_without_real_data_quick_takes_the_small_world(monkeypatch):
    benches.benches.cache_clear()
    monkeypatch.setattr(benches, "_is_here", lambda source: False)
    assert [b.source for b in benches.benches("quick")] == [benches.SMALL_WORLD]
    assert [b.source for b in benches.benches("full")] == [benches.WORLD]
    benches.benches.cache_clear()
