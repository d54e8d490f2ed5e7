"""All 36 cells of DP-PrivRec's Tables 3 and 4."""

from dataclasses import replace

import pytest

from tacit.accounting.published import PRIVREC_TABLES
from tacit.errors import BadValue
from tacit.reproduction import papers, reproduce
from tacit.reproduction.privrec.budgets import epsilon_table
from tacit.reproduction.tables import Reproduction


@pytest.fixture(scope="module")
def found():
    return Reproduction.joined([reproduce("privrec", table=n) for n in (3, 4)])


def test_all_cells_are_the_published_ones(found):
    rows = [row for table in found.tables for row in table.rows]
    assert len(rows) == 36
    assert [row.label for row in rows if row.paper != row.published] == []
    assert all(row.ok for row in rows)


def test_what_can_be_proven_stands_beside_them(found):
    """30 of 4800, 1000 rounds, delta 1e-6: 1.5244 tightly, 2.4460 by Rényi."""
    movielens = {row.label: row for row in found.tables[0].rows}
    row = movielens["M = 30, delta = 1e-06"]
    assert row.published == 16.6081
    assert row.sound == pytest.approx(1.5244, abs=5e-4)
    assert "2.4460" in row.note
    assert [claim.ok for claim in found.claims] == [True, True]


def test_a_changed_figure_would_be_noticed():
    table = PRIVREC_TABLES[1]
    wrong = {2: tuple(value + 1e-4 for value in table.rows[2])}
    found = epsilon_table(replace(table, rows=wrong))
    assert not any(row.ok for row in found.tables[0].rows)


def test_one_table_by_its_number():
    assert reproduce("privrec", table=4).tables[0].name.endswith("Table 4 (Frappe)")


@pytest.mark.parametrize(
    ("paper", "table", "complaint"),
    [("privreck", None, "did you mean 'privrec'"), ("privrec", 9, "known: 1, 2, 3, 4")],
)
def test_what_is_not_here(paper, table, complaint):
    with pytest.raises(BadValue, match=complaint):
        reproduce(paper, table=table)
    assert "privrec" in papers()
