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
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Train methods for several epsilons and seeds, and show one table of results.

    The table has standard errors, and is written as comparison.json, comparison.csv and
    comparison.html. Each run is a run directory of its own under --out. If the command
    is interrupted, the same command continues: finished runs are not trained again.

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
    try:
        with console.Bar("compare") as bar:
            found = run(grid, out, watch=bar)
    except KeyboardInterrupt:
        console.note("stopped; nothing is lost. The same command continues.")
        raise  # for the exit code 130
    reference = found.lines[0].label if against is None else found.line(against).label
    differences = found.differences(reference)
    document = _document(found, differences, reference)
    command = _command(grid, reference)
    report = comparison_of(found, differences, against=reference, command=command)
    _write(document, report, out)
    if json:
        console.print_json(document)
        return
    _print(report, out, found.budgets())


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
) -> dict[str, Any]:
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
        "source": found.source,
        "protocol": found.lines[0].evaluations[0].protocol,
        "seeds": list(found.seeds),
        "draws": found.draws,
        "against": reference,
        "cells": found.cells(),
        "budgets": found.budgets(),
        "differences": listed,
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


def _write(document: dict[str, Any], report: Report, out: Path) -> None:
    from tacit.files import write_atomically, write_json
    from tacit.reporting import tables
    from tacit.reporting.html import render

    write_json(out / "comparison.json", document)
    text = tables.to_csv(tables.cells(document["cells"]))
    write_atomically(out / "comparison.csv", text.encode())
    write_atomically(out / "comparison.html", render(report).encode())


def _print(report: Report, out: Path, budgets: list[dict[str, Any]]) -> None:
    from tacit.reporting import tables
    from tacit.reporting.plain_words import purpose

    # The page and the JSON have every metric; a terminal gets the first one only.
    asked = report.differences[0] if report.differences else None
    answer = console.out()
    answer.print(purpose(is_release=False), style="bold")
    answer.print(tables.to_rich(tables.comparison(report.comparison)))
    if asked is not None:
        terms = (asked.metric, asked.against)
        pairs = [p for p in report.differences if (p.metric, p.against) == terms]
        answer.print(tables.to_rich(tables.differences(pairs)))
    if budgets:
        metric = budgets[0]["metric"]
        some = [one for one in budgets if one["metric"] == metric]
        answer.print(tables.to_rich(tables.by_budget(some, metric)))
    answer.print(f"report: {shown(str(out / 'comparison.html'))}")
