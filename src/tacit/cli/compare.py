"""`tacit compare`: methods, targets and baselines on the same users, in one table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Changes, Json
from tacit.errors import BadValue
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.evaluation.significance import Difference
    from tacit.experiment.comparison import Comparison
    from tacit.experiment.comparison_grid import Grid
    from tacit.reporting.report_data import Report


def compare(
    experiments: Annotated[
        list[Path],
        typer.Argument(
            metavar="EXPERIMENT...",
            help="TOML files with the same data and metrics, one per method.",
            show_default=False,
        ),
    ],
    epsilons: Annotated[
        str,
        typer.Option(
            metavar="1,2,4,inf",
            help="The target epsilons to train each method for, one for all users; inf "
            "trains without privacy, own is the target of the file or its targets for "
            "groups. By default the files are taken as they are.",
            show_default=False,
        ),
    ] = "",
    seeds: Annotated[
        int, typer.Option(min=1, help="The number of splits of the data, one per seed.")
    ] = 3,
    draws: Annotated[
        int, typer.Option(min=1, help="Training runs per split, each with fresh noise.")
    ] = 1,
    baselines: Annotated[
        str | None,
        typer.Option(
            metavar="popularity,ease",
            help="The baselines to fit instead of those that the files name; 'none' "
            "fits none.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            min=0,
            help="The number of settings to try for each baseline on the validation "
            "users; 0 takes its defaults.",
        ),
    ] = 0,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="LINE",
            help="The line of the table that the others are compared with in pairs; by "
            "default the first.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for runs and tables.")
    ] = Path("comparison"),
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the results as a table to this file.",
            show_default=False,
        ),
    ] = None,
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Train methods for several epsilons and seeds, and say what to use.

    A verdict in plain words comes first, then the figures that it rests on. They are
    written as comparison.json, comparison.csv and comparison.html into --out, where
    each run has a directory of its own. If the command is interrupted, the same command
    continues, also with other --baselines: what is finished is not made again.

    Example: tacit compare gram.toml fedvae.toml --epsilons 1,4,inf --seeds 3
    """
    from tacit.experiment.comparison import compare as run
    from tacit.experiment.comparison_grid import Grid
    from tacit.experiment.comparison_report import comparison_of

    if out.exists() and not out.is_dir():
        raise BadValue(
            f"--out {out} is a file; runs need a folder: choose another place"
        )
    grid = Grid(
        experiments=tuple(experiments),
        epsilons=_epsilons(epsilons),
        seeds=seeds,
        draws=draws,
        changes=tuple(changes),
        baselines=_names(baselines),
        budget=budget,
    )
    for sentence in grid.notes():
        console.note(f"note: {sentence}")
    try:
        with console.Bar("compare") as bar:
            found = run(grid, out, watch=bar)
    except KeyboardInterrupt:
        console.note("stopped; nothing is lost. The same command continues.")
        raise  # for the exit code 130
    reference = found.lines[0].label if against is None else found.line(against).label
    differences = found.differences(reference)
    command = _command(grid, reference)
    report = comparison_of(found, differences, against=reference, command=command)
    document = _document(found, differences, reference, report)
    _write(document, report, [out / "comparison.csv", *([csv] if csv else [])], out)
    if json:
        console.print_json(document)
        return
    _print(report, found, out)


def _epsilons(text: str) -> tuple[float | None, ...]:
    from tacit.experiment.comparison_grid import OWN

    named = [part.strip() for part in text.split(",") if part.strip()]
    try:
        # `float` reads inf as well, which means no privacy.
        return tuple(None if part == OWN else float(part) for part in named)
    except ValueError:
        raise BadValue(
            f"--epsilons {text!r} must be numbers with commas between, such as "
            f"1,2,inf, or the word {OWN!r} for what the files have"
        ) from None


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    named = tuple(part.strip() for part in text.split(",") if part.strip())
    # (): no baseline at all; None, above: those of the files.
    return () if named == ("none",) else named


def _document(
    found: Comparison,
    differences: dict[str, dict[str, Difference]],
    reference: str,
    report: Report,
) -> dict[str, Any]:
    from dataclasses import asdict

    from tacit.reporting.verdict import sentences

    assert report.verdict is not None, "every comparison has one"
    listed = [
        {
            "label": label,
            "metric": metric,
            "mean": d.mean,
            "low": d.low,
            "high": d.high,
            "p_value": d.p_value,
            "n_users": d.n,
        }
        for label, by_metric in differences.items()
        for metric, d in by_metric.items()
    ]
    return {
        "simulation": True,
        "words": sentences(report.verdict),
        "verdict": asdict(report.verdict),
        "source": found.source,
        "protocol": found.lines[0].evaluations[0].protocol,
        "seeds": list(found.seeds),
        "draws": found.draws,
        "against": reference,
        "cells": found.cells(),
        "budgets": found.budgets(),
        "differences": listed,
        "costs": found.costs(),
    }


def _command(grid: Grid, against: str) -> str:
    """The command line that makes the same comparison."""
    from tacit.experiment.comparison_grid import target_word

    words = ["tacit", "compare", *(path.name for path in grid.experiments)]
    if grid.epsilons:
        words += ["--epsilons", ",".join(map(target_word, grid.epsilons))]
    words += ["--seeds", str(grid.seeds), "--draws", str(grid.draws)]
    if grid.baselines is not None:
        words += ["--baselines", ",".join(grid.baselines) or "none"]
    if grid.budget:
        words += ["--budget", str(grid.budget)]
    words += [word for change in grid.changes for word in ("--set", change)]
    return shlex.join([*words, "--against", against])


def _write(
    document: dict[str, Any], report: Report, tables_at: list[Path], out: Path
) -> None:
    from tacit.files import write_atomically, write_json
    from tacit.reporting import tables
    from tacit.reporting.html import render

    write_json(out / "comparison.json", document)
    text = tables.to_csv(tables.cells(_rows(document)))
    for path in tables_at:
        write_atomically(path, text.encode())
    write_atomically(out / "comparison.html", render(report).encode())


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells with the difference to the reference and the costs of their line."""
    costs = {one["label"]: one for one in document["costs"]}
    pairs = {(one["label"], one["metric"]): one for one in document["differences"]}
    figures = ("mean", "low", "high", "p_value")
    rows = []
    for cell in document["cells"]:
        pair = pairs.get((cell["label"], cell["metric"]), {})
        differences = {f"difference_{name}": pair.get(name) for name in figures}
        rows.append({**cell, **differences, **costs[cell["label"]]})
    return rows


def _print(report: Report, found: Comparison, out: Path) -> None:
    from tacit.experiment.comparison_report import points_of
    from tacit.reporting import tables
    from tacit.reporting.interval_plot import interval_plot
    from tacit.reporting.plain_words import purpose
    from tacit.reporting.terminal import wrapped
    from tacit.reporting.verdict import sentences

    assert report.verdict is not None, "every comparison has one"
    # The page and the JSON have every metric; a terminal gets the first one only.
    metric, answer = report.verdict.metric, console.out()
    answer.print(purpose(is_release=False), style="bold")
    answer.print()
    answer.print("What to use", style="bold")
    for sentence in sentences(report.verdict):
        lines = wrapped(
            shown(sentence, longest=None), console.width(), first="- ", later="  "
        )
        console.tell(lines)
    answer.print()
    answer.print(tables.to_rich(interval_plot(points_of(found), metric)))
    if report.differences:
        terms = (metric, report.differences[0].against)  # the page has others, too
        pairs = [p for p in report.differences if (p.metric, p.against) == terms]
        answer.print(tables.to_rich(tables.differences(pairs)))
    if budgets := found.budgets():
        some = [one for one in budgets if one["metric"] == metric]
        answer.print(tables.to_rich(tables.by_budget(some, metric)))
    answer.print(tables.to_rich(tables.comparison(report.comparison)))
    answer.print(tables.to_rich(tables.costs(report.costs)))
    answer.print(f"report: {shown(str(out / 'comparison.html'))}")
