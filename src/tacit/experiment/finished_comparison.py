"""A comparison with its verdict: as a document, as rows, and as files.

out/comparison.json    everything
out/comparison.csv     one row per line and metric
out/comparison.html    a page for readers
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tacit.experiment.comparison import Comparison
from tacit.experiment.comparison_grid import Grid, target_word
from tacit.experiment.comparison_report import comparison_of
from tacit.files import write_atomically, write_json
from tacit.reporting import tables
from tacit.reporting.html import render
from tacit.reporting.pairs import Paired
from tacit.reporting.report_data import Report
from tacit.reporting.verdict import sentences

_BESIDE = {  # columns of the line `against`: by how much this row is better
    "against": "against",
    **{f"difference_{name}": name for name in ("mean", "low", "high", "p_value")},
}


@dataclass(frozen=True, eq=False)
class FinishedComparison:
    """All lines, each beside the line `against`, and what to use."""

    comparison: Comparison
    against: str
    report: Report

    @classmethod
    def of(
        cls, found: Comparison, grid: Grid, *, against: str | None = None
    ) -> FinishedComparison:
        """The verdict of what was compared; by default against the first line."""
        line = found.lines[0] if against is None else found.line(against)
        command = _command(grid, line.label)
        report = comparison_of(found, against=line.label, command=command)
        return cls(found, line.label, report)

    @property
    def pairs(self) -> list[Paired]:
        """Every other line and the one that they are compared with, for each metric."""
        return [pair for pair in self.report.differences if pair.has(self.against)]

    @property
    def words(self) -> list[str]:
        """The verdict in plain words, the advice first."""
        assert self.report.verdict is not None, "every comparison has one"
        return sentences(self.report.verdict)

    def document(self) -> dict[str, Any]:
        """Everything as plain data, as `tacit compare --json` prints it."""
        found, verdict = self.comparison, self.report.verdict
        assert verdict is not None, "every comparison has one"
        return {
            "simulation": True,
            "words": self.words,
            "verdict": asdict(verdict),
            "source": found.source,
            "protocol": found.lines[0].evaluations[0].protocol,
            "seeds": list(found.seeds),
            "draws": found.draws,
            "against": self.against,
            "cells": found.cells(),
            "budgets": found.budgets(),
            "differences": [asdict(pair) for pair in self.report.differences],
            "costs": found.costs(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Every line and metric, by how much it is better than `against`, and costs."""
        costs = {one["label"]: one for one in self.comparison.costs()}
        better: dict[tuple[str, str], Mapping[str, Any]] = {}
        for pair in self.pairs:
            other = pair.against if pair.method == self.against else pair.method
            better[other, pair.metric] = asdict(pair.seen_from(other))
        rows = []
        for cell in self.comparison.cells():
            found = better.get((cell["label"], cell["metric"]), {})
            beside = {name: found.get(key) for name, key in _BESIDE.items()}
            rows.append({**cell, **beside, **costs[cell["label"]]})
        return rows

    def write(self, out: Path, *, csv: Sequence[Path] = ()) -> None:
        """Write the three files into `out`, and the table to other places as well."""
        write_json(out / "comparison.json", self.document())
        text = tables.to_csv(tables.cells(self.rows()))
        for path in (out / "comparison.csv", *csv):
            write_atomically(path, text.encode())
        write_atomically(out / "comparison.html", render(self.report).encode())


def _command(grid: Grid, against: str) -> str:
    """The command line that makes the same comparison."""
    words = ["tacit", "compare", *(path.name for path in grid.experiments)]
    if grid.epsilons:
        words += ["--epsilons", ",".join(map(target_word, grid.epsilons))]
    words += ["--seeds", str(grid.seeds), "--draws", str(grid.draws)]
    if grid.baselines is not None:
        words += ["--baselines", ",".join(grid.baselines) or "none"]
    if grid.budget is not None:
        words += ["--budget", str(grid.budget)]
    words += [word for change in grid.changes for word in ("--set", change)]
    return shlex.join([*words, "--against", against])
