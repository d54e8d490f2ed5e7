"""A finished run as a `Report`: the numbers that exist, put where they belong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tacit.evaluation.significance import Difference
from tacit.experiment.comparing import Comparison, Line
from tacit.experiment.saved import SavedRun, holding_of, load
from tacit.reporting.report import (
    Contender,
    Curve,
    Estimate,
    Paired,
    Person,
    Report,
    Tradeoff,
)
from tacit.statement import Statement

Json = Mapping[str, Any]


def report_of(
    run: SavedRun, *, user: str | None = None, beside: Mapping[str, Json] | None = None
) -> Report:
    """What `tacit report` shows; with `user`, that person's list as well.

    `beside` has evaluations of other runs on the same people.
    """
    result, experiment = run.result, run.experiment
    name = experiment.method_name
    judged = {**result["simulation_only"]["evaluations"], **(beside or {})}
    card = json.loads(run.directory.privacy_card.read_text(encoding="utf-8"))
    return Report(
        title=f"{name} on {experiment.data.source}",
        command=f"tacit train {run.directory.experiment.name}",
        simulation=bool(result["simulation"]),
        facts=_facts(run, result),
        statements=tuple(statement_of(line) for line in card["totals"]),
        comparison=contenders(judged, name),
        curve=_curve(run),
        groups=_groups(judged),
        person=None if user is None else person_of(run, user),
    )


def comparison_of(
    found: Comparison,
    differences: Mapping[str, Mapping[str, Difference]],
    *,
    against: str,
    command: str,
) -> Report:
    """What `tacit compare` shows; `differences` are those to the line `against`."""
    people = len(found.lines[0].evaluations[0].users)
    return Report(
        title=f"Comparison on {found.source}",
        command=command,
        simulation=True,
        facts=(
            ("data", found.source),
            ("protocol", found.lines[0].evaluations[0].protocol),
            ("seeds", ", ".join(map(str, found.seeds))),
            ("noise draws a seed", str(found.draws)),
            ("test people a seed", f"{people:,}"),
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


def person_of(run: SavedRun, user: str, *, k: int = 10) -> Person:
    """A simulated person's history and list, as their device would show them."""
    recommender = load(run.directory.path)
    held, catalog = holding_of(recommender, run.experiment, user), recommender.catalog
    titles = tuple(catalog.titles[i] for i in catalog.indices(held.ids(catalog)))
    best = recommender.recommend(held, k=k)
    return Person(user, titles, tuple((line.title, line.score) for line in best))


def contenders(judged: Mapping[str, Json], own: str) -> tuple[Contender, ...]:
    """A comparison from evaluations as they stand in `result.json`."""
    return tuple(_contender(n, e, is_own=n == own) for n, e in judged.items())


def statement_of(line: Json) -> Statement:
    """A line of the account from its JSON."""
    return Statement.from_json(line)


def _contender(name: str, judged: Json, *, is_own: bool) -> Contender:
    return Contender(name, _estimates(judged["metrics"]), is_this_run=is_own)


def _estimates(metrics: Mapping[str, Json]) -> dict[str, Estimate]:
    return {name: Estimate(m["mean"], m["se"]) for name, m in metrics.items()}


def _curve(run: SavedRun) -> Curve | None:
    """The first metric on the validation people, round by round."""
    metric = run.experiment.evaluate.metrics[0]
    lines = [
        (line["round"] + 1, line["simulation_only"]["validation"][metric])
        for line in run.directory.rounds_logged()
        if "validation" in line["simulation_only"]
    ]
    if not lines:
        return None
    values = tuple(Estimate(m["mean"], m["se"]) for _, m in lines)
    return Curve(f"{metric} on validation people", tuple(r for r, _ in lines), values)


def _groups(judged: Mapping[str, Json]) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Group label -> metric -> method -> estimate."""
    first = next(iter(judged.values()))
    return {
        label: {
            metric: {
                name: Estimate(
                    e["groups"][label][metric]["mean"], e["groups"][label][metric]["se"]
                )
                for name, e in judged.items()
            }
            for metric in metrics
        }
        for label, metrics in first["groups"].items()
    }


def _facts(run: SavedRun, result: Json) -> tuple[tuple[str, str], ...]:
    experiment, rounds = run.experiment, run.directory.rounds_logged()
    model = json.loads(run.directory.model_facts.read_text(encoding="utf-8"))
    asked = sum(line["simulation_only"]["asked"] for line in rounds)
    speed = result["clients_per_second"]
    return (
        ("data", experiment.data.source),
        ("items", f"{model['items']:,}"),
        ("split", experiment.data.split),
        ("seed", str(experiment.run.seed)),
        ("rounds", str(len(rounds))),
        ("devices asked, all rounds", f"{asked:,}"),
        ("devices a second", "–" if speed is None else f"{speed:,.0f}"),
        ("sent by devices", _bytes(result["bytes_up"])),
        ("sent to devices", _bytes(result["bytes_down"])),
    )


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            break
        n /= 1000
    return f"{n:,.0f} {unit}" if unit == "bytes" else f"{n:,.1f} {unit}"
