"""A comparison as a page: every line, the trade-off and the paired differences."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.evaluation.significance import Difference
from tacit.experiment.comparison import Comparison, Line
from tacit.reporting.report_data import Contender, Estimate, Paired, Report, Tradeoff


def comparison_of(
    found: Comparison,
    differences: Mapping[str, Mapping[str, Difference]],
    *,
    against: str,
    command: str,
) -> Report:
    """What `tacit compare` shows; `differences` are those to the line `against`."""
    first = found.lines[0].evaluations[0]  # all lines have the same users
    shown = (("test impressions per seed", f"{len(first):,}"),)
    return Report(
        title=f"Comparison on {found.source}",
        command=command,
        simulation=True,
        facts=(
            ("data", found.source),
            ("protocol", first.protocol),
            ("seeds", ", ".join(map(str, found.seeds))),
            ("noise draws per seed", str(found.draws)),
            ("test users per seed", f"{first.n_users:,}"),
            *(shown if first.per == "impression" else ()),
        ),
        comparison=tuple(_contestant(line) for line in found.lines),
        tradeoff=_tradeoff(found),
        differences=tuple(
            Paired(label, against, metric, d.mean, d.low, d.high, d.p_value)
            for label, by_metric in differences.items()
            for metric, d in by_metric.items()
        ),
    )


def _contestant(line: Line) -> Contender:
    return Contender(line.label, _pooled(line), is_this_run=not line.is_baseline)


def _pooled(line: Line) -> dict[str, Estimate]:
    documents = {name: p.to_json() for name, p in line.pooled().items()}
    return {name: Estimate(p["mean"], p["se"]) for name, p in documents.items()}


def _tradeoff(found: Comparison) -> Tradeoff | None:
    """The first metric over epsilon, if anything has one."""
    metric = next(iter(found.lines[0].pooled()))
    series: dict[str, list[tuple[float, Estimate]]] = {}
    references = {}
    for line in found.lines:
        value = _pooled(line)[metric]
        if line.provable is None:
            references[line.label] = value
        else:
            series.setdefault(line.name, []).append((line.epsilon or 0.0, value))
    if not series:
        return None
    lines = {name: tuple(points) for name, points in series.items()}
    return Tradeoff(metric, lines, references)
