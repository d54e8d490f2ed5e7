"""A reproduction as one HTML file: its tables, its claims and its charts."""

from __future__ import annotations

import math

from tacit.reporting import charts, elements
from tacit.reporting.tables import Table
from tacit.reproduction.tables import (
    DIVERGED,
    Chart,
    ReproducedTable,
    Reproduction,
    Row,
)


def render(found: Reproduction, paper: str) -> str:
    """The tables, claims and charts of a reproduction as one HTML page."""
    title = f"{paper}, reproduced"
    charts = "".join(_chart(chart) for chart in found.charts)
    tables = "".join(elements.table(_table(t), heads=1) for t in found.tables)
    claims = elements.listing(
        f"{claim.text}: {'holds' if claim.ok else 'does not hold'}; {claim.evidence}"
        for claim in found.claims
    )
    if found.diverged:
        claims += elements.listing(f"diverged: {one}" for one in found.diverged)
    sections = (
        elements.section("claims", "What the paper says", claims),
        elements.section("charts", "Figures", charts) if charts else "",
        elements.section("tables", "Numbers", tables),
    )
    return elements.page(title, elements.head(title) + "".join(sections))


def _chart(chart: Chart) -> str:
    lines = {
        name: tuple(
            point
            for point in zip(line.x, line.y, line.se, strict=True)
            if not math.isnan(point[1])
        )
        for name, line in chart.lines.items()
    }
    drawn = charts.lines(lines, x=chart.x, y=chart.y, levels=chart.levels)
    caption = f"{chart.name}; bars are one standard error over {chart.over}."
    return elements.figure(drawn, caption)


def _table(table: ReproducedTable) -> Table:
    others = tuple(dict.fromkeys(name for row in table.rows for name in row.beside))
    header = ("", "published", "paper mode", "s.e.", "sound mode", *others)
    return Table(
        table.name,
        (*header, "spent", "remarks"),
        tuple(_cells(row, others) for row in table.rows),
        frozenset(range(1, len(header))),
    )


def _cells(row: Row, others: tuple[str, ...]) -> tuple[str, ...]:
    figures = (row.published, row.paper, row.se, row.sound)
    beside = (row.beside.get(name) for name in others)
    remarks = "; ".join(text for text in (row.note, row.reason) if text)
    return (row.label, *map(_number, (*figures, *beside)), row.budget, remarks)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if math.isnan(value):
        return DIVERGED
    return f"{value:,.0f}" if value >= 100 else f"{value:.4f}"
