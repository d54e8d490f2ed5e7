"""What a reproduction yields, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

DIVERGED = "diverged"  # what stands where a figure is NaN


@dataclass(frozen=True)
class Row:
    """One cell of a published table: theirs, ours as published, ours as proven.

    `published` is None where the paper draws a figure and states no number. A figure
    of a training that diverged is NaN.
    """

    label: str
    published: float | None
    paper: float | None
    sound: float | None
    ok: bool  # whether `paper` is the published figure as near as the table asks
    note: str = ""
    reason: str = ""  # why it is not, where it is not
    budget: str = ""  # what a user spends for `paper`
    beside: Mapping[str, float] = field(default_factory=dict)  # others, judged alike
    se: float | None = None  # over users, or over seeds if there are several

    @property
    def has_diverged(self) -> bool:
        """Whether a training of one of its own figures diverged."""
        return any(x is not None and math.isnan(x) for x in (self.paper, self.sound))


def is_near(found: float, published: float | None, *, within: float) -> bool:
    """Whether a figure is the published one; what is not printed cannot differ."""
    return published is None or abs(found - published) <= within


@dataclass(frozen=True)
class ReproducedTable:
    """A table of a paper."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and whether we find it so."""

    text: str
    ok: bool
    evidence: str


@dataclass(frozen=True)
class Line:
    """One line of a chart: a value and its standard error at each place."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    se: tuple[float, ...]


@dataclass(frozen=True)
class Chart:
    """A figure of a paper, redrawn; `levels` are lines across."""

    name: str
    x: str
    y: str
    lines: Mapping[str, Line]
    levels: Mapping[str, float] = field(default_factory=dict)
    over: str = "users"  # or "seeds": what standard errors are over


@dataclass(frozen=True)
class Reproduction:
    """Tables, claims and charts, and in a sentence each the trainings that diverged."""

    tables: tuple[ReproducedTable, ...]
    claims: tuple[Claim, ...]
    charts: tuple[Chart, ...] = ()
    diverged: tuple[str, ...] = ()

    @classmethod
    def joined(cls, parts: Sequence[Reproduction]) -> Reproduction:
        """Several reproductions as one: their tables, claims and charts in order."""
        return cls(
            tuple(table for part in parts for table in part.tables),
            tuple(claim for part in parts for claim in part.claims),
            tuple(chart for part in parts for chart in part.charts),
        )

    @property
    def unexplained(self) -> tuple[Row, ...]:
        """Rows that differ from what was published and do not say why."""
        rows = (row for table in self.tables for row in table.rows)
        return tuple(
            row for row in rows if not (row.ok or row.reason or row.has_diverged)
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; a figure that diverged is null."""
        plain: dict[str, Any] = _without_nan(asdict(self))
        return plain


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value
