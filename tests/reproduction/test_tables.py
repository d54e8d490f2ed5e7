"""Rows, claims and charts of several tables as one; what differs says why."""

import pytest

from tacit.reproduction.page import render
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
    is_near,
)


def row(label, *, ok, reason=""):
    return Row(label, 0.5, 0.4, None, ok, reason=reason)


@pytest.mark.parametrize(
    ("found", "published", "near"), [(0.5, 0.52, True), (0.5, 0.6, False)]
)
def test_a_figure_is_near_within_what_the_table_asks(found, published, near):
    assert is_near(found, published, within=0.05) == near


def test_what_is_not_printed_cannot_differ():
    assert is_near(0.5, None, within=0.0)


def test_a_difference_without_a_reason_is_unexplained():
    rows = row("a", ok=True), row("b", ok=False), row("c", ok=False, reason="drawn")
    made = Reproduction((ReproducedTable("1", rows),), ())
    assert [one.label for one in made.unexplained] == ["b"]


def test_joined_keeps_everything_in_order():
    chart = Chart("f", "x", "y", {"l": Line((1.0,), (2.0,), (0.1,))})
    first = Reproduction((ReproducedTable("1", ()),), (Claim("a", True, "e"),))
    second = Reproduction(
        (ReproducedTable("2", ()),), (Claim("b", True, "e"),), (chart,)
    )
    both = Reproduction.joined([first, second])
    assert [table.name for table in both.tables] == ["1", "2"]
    assert [claim.text for claim in both.claims] == ["a", "b"]
    assert both.charts == (chart,)


def test_a_figure_that_diverged_explains_itself_and_is_no_number():
    row = Row("AUC", 0.6, float("nan"), None, ok=False)
    found = Reproduction((ReproducedTable("1", (row,)),), (), diverged=("in round 3",))
    assert not found.unexplained
    assert found.to_json()["tables"][0]["rows"][0]["paper"] is None
    assert "diverged" in render(found, "some-paper")
