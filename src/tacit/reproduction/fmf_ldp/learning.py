"""Figure 3: HR@10 on validation items against the epoch."""

from __future__ import annotations

from tacit.reproduction import Scale
from tacit.reproduction.fmf_ldp.benches import Bench, for_each
from tacit.reproduction.fmf_ldp.comparing import budget
from tacit.reproduction.fmf_ldp.subsets import Subset
from tacit.reproduction.fmf_ldp.trials import Paper
from tacit.reproduction.tables import (
    Chart,
    Claim,
    Line,
    ReproducedTable,
    Reproduction,
    Row,
)
from tacit.results import Metric

_EPOCHS = 30
_EARLY = 10  # "after only 5-10 epochs"

Curve = dict[int, Metric]


def figure_3(scale: Scale) -> Reproduction:
    """On every bench of the scale."""
    return for_each(scale, _on)


def _on(bench: Bench) -> Reproduction:
    cells = [bench.cell(people, bench.items[0]) for people in bench.people[-2:]]
    curves = {
        (cell, Paper(votes, epochs=_EPOCHS)): _curve(bench, cell, votes)
        for cell in cells
        for votes in (50, 100)
    }
    rows = tuple(
        _row(cell, paper, epoch, metric)
        for (cell, paper), curve in curves.items()
        for epoch, metric in curve.items()
    )
    name = f"Figure 3, HR@10 on validation items ({bench.source})"
    lines = {f"{c}, k = {p.votes}": _line(curve) for (c, p), curve in curves.items()}
    chart = Chart(name, "epoch", "HR@10", lines)
    claims = (_claim(bench, list(curves.values())),)
    return Reproduction((ReproducedTable(name, rows),), claims, (chart,))


def _curve(bench: Bench, cell: Subset, votes: int) -> Curve:
    paper = Paper(votes, epochs=_EPOCHS)
    seen = paper.curve(cell, most=bench.most, every=bench.every)
    return {epoch: found.metrics()["hr@10"] for epoch, found in seen.items()}


def _row(cell: Subset, paper: Paper, epoch: int, metric: Metric) -> Row:
    spent = Paper(paper.votes, paper.epsilon, epochs=epoch)
    return Row(
        f"{cell}, k = {paper.votes}, epoch {epoch}",
        published=None,
        paper=metric.mean,
        sound=None,
        ok=True,
        budget=budget(spent, len(cell.split().users)),
        se=metric.se,
    )


def _line(curve: Curve) -> Line:
    metrics = curve.values()
    return Line(
        tuple(curve),
        tuple(metric.mean for metric in metrics),
        tuple(metric.se or 0.0 for metric in metrics),
    )


def _claim(bench: Bench, curves: list[Curve]) -> Claim:
    best = max(
        m.mean for curve in curves for epoch, m in curve.items() if epoch <= _EARLY
    )
    return Claim(
        f"{bench.source}: HR@10 > 0.5 after 5 to 10 epochs",
        best > 0.5,
        f"the best of {len(curves)} runs has {best:.3f} by then",
    )
