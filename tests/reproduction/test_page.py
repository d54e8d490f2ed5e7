from __future__ import annotations

import pytest

from tacit.reproduction.page import render
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)


@pytest.fixture
def found() -> Reproduction:
    rows = (
        Row("a <b>", 0.5, 0.49, None, True, beside={"popularity": 0.25}, se=0.01),
        Row("later", 0.6, None, None, False, reason="not run"),
    )
    line = Line((1.0, 20.0), (0.1, 0.2), (0.01, 0.02))
    chart = Chart("Figure 9", "epoch", "HR@10", {"ours": line}, {"popularity": 0.15})
    claim = Claim("it learns", False, "it did not")
    return Reproduction((ReproducedTable("Table 9", rows),), (claim,), (chart,))


def test_everything_is_on_the_page(found):
    page = render(found, "some-paper")
    for text in ("a &lt;b&gt;", "0.4900", "0.2500", "not run", "it learns: does not"):
        assert text in page
    assert "<b>" not in page
    assert page.count("<svg") == 1
    assert "Figure 9" in page


def test_a_row_without_a_reason_is_unexplained(found):
    assert found.unexplained == ()
    odd = Row("odd", 0.5, 0.1, None, False)
    tables = (ReproducedTable("", (odd,)),)
    assert Reproduction(tables, ()).unexplained == (odd,)


def test_joined_keeps_all_parts(found):
    twice = Reproduction.joined([found, found])
    assert [len(twice.tables), len(twice.claims), len(twice.charts)] == [2, 2, 2]
