"""`tacit compare`: methods, targets and baselines on the same users, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import console
from tacit.cli.options import Changes, Json, RetryDiverged
from tacit.errors import BadValue
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.experiment.finished_comparison import FinishedComparison


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
            help="The target epsilons to train each method for, one for all users; a "
            "number turns privacy on where a file has none, inf trains without it, own "
            "is the target of the file or its targets for groups. By default the files "
            "are taken as they are.",
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
            help="The baselines to fit instead of those that the files name and of "
            "private_popularity, a noisy list at each epsilon; 'none' fits none.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="The number of settings to try for each baseline on the validation "
            "users; 0 takes its defaults. By default 12 for those that are fitted in "
            "seconds and that no file sets.",
            show_default=False,
        ),
    ] = None,
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
    retry_diverged: RetryDiverged = False,
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
    from tacit.experiment.finished_comparison import FinishedComparison

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
            found = run(grid, out, watch=bar, retry_diverged=retry_diverged)
    except KeyboardInterrupt:
        console.note("stopped; nothing is lost. The same command continues.")
        raise  # for the exit code 130
    finished = FinishedComparison.of(found, grid, against=against)
    finished.write(out, csv=[] if csv is None else [csv])
    if json:
        console.print_json(finished.document())
        return
    _print(finished, out)


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


def _print(finished: FinishedComparison, out: Path) -> None:
    from tacit.experiment.comparison_report import points_of
    from tacit.reporting import tables
    from tacit.reporting.interval_plot import interval_plot
    from tacit.reporting.plain_words import purpose
    from tacit.reporting.terminal import wrapped

    report, found = finished.report, finished.comparison
    assert report.verdict is not None, "every comparison has one"
    # The page and the JSON have every metric; a terminal gets the first one only.
    metric, answer = report.verdict.metric, console.out()
    told = purpose(is_release=False, could_be_released=found.could_be_released)
    answer.print(told, markup=False, style="bold")
    answer.print()
    answer.print("What to use", style="bold")
    for sentence in finished.words:
        lines = wrapped(
            shown(sentence, longest=None), console.width(), first="- ", later="  "
        )
        console.tell(lines)
    answer.print()
    answer.print(tables.to_rich(interval_plot(points_of(found), metric)))
    if pairs := [pair for pair in finished.pairs if pair.metric == metric]:
        answer.print(tables.to_rich(tables.differences(pairs)))
    if budgets := found.budgets():
        some = [one for one in budgets if one["metric"] == metric]
        answer.print(tables.to_rich(tables.by_budget(some, metric)))
    answer.print(tables.to_rich(tables.comparison(report.comparison)))
    answer.print(tables.to_rich(tables.costs(report.costs)))
    answer.print(f"report: {shown(str(out / 'comparison.html'))}")
