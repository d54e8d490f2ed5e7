"""All 36 cells of DP-PrivRec's Tables 3 and 4."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tacit_study_privrec.budgets import epsilon_table

from tacit.accounting.published import PRIVREC_TABLES
from tacit.experiment.training import Nobody
from tacit.reproduction.cells import Results
from tacit.reproduction.tables import Reproduction

pytestmark = pytest.mark.slow  # half a minute of training


@pytest.fixture(scope="module")
def found(reproduced):
    return Reproduction.joined([reproduced(n) for n in ("3", "4")])


def test_all_cells_are_the_published_ones(found):
    rows = [row for table in found.tables for row in table.rows]
    assert len(rows) == 36
    assert [row.label for row in rows if row.paper != row.published] == []
    assert all(row.ok for row in rows)
    assert found.tables[1].name.endswith("Table 4 (Frappe)")


def test_what_can_be_proven_stands_beside_them(found):
    """30 of 4800, 1000 rounds, delta 1e-6: .5670 tightly, 1.1035 by Rényi."""
    movielens = {row.label: row for row in found.tables[0].rows}
    row = movielens["M = 30, delta = 1e-06"]
    assert row.published == 16.6081
    assert row.sound == pytest.approx(0.5670, abs=5e-4)
    assert "1.1035" in row.note
    assert "with the bit before the clip 1.5244" in row.note
    assert [claim.ok for claim in found.claims] == [True, True]


def test_a_changed_figure_would_be_noticed(tmp_path):
    """And one that is below what can be proven fails the claim."""
    table = PRIVREC_TABLES[1]
    wrong = {2: tuple(value / 100 for value in table.rows[2])}
    results = Results(tmp_path, (), Nobody())
    found = epsilon_table(replace(table, rows=wrong), results)
    assert not any(row.ok for row in found.tables[0].rows)
    assert not found.claims[0].ok
