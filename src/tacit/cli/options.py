"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

# What an option of a query is that nobody has set, whatever its kind.
UNSET = (None, False, 0, "sound")
Refreshed = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="RUN",
        help="A finished run to go on from, like run.refreshes in the experiment.",
        show_default=False,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on stdout and nothing else."),
]
ExperimentFile = Annotated[
    Path,
    typer.Argument(
        metavar="EXPERIMENT",
        help="A TOML file with sections data, method, privacy, run, evaluate.",
        show_default=False,
    ),
]
RetryDiverged = Annotated[
    bool,
    typer.Option(
        "--retry-diverged",
        help="Train anew what diverged before. It is written down as that otherwise, "
        "and not tried again: the same seed gives the same run.",
    ),
]
Changes = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Change a setting, such as run.rounds=5; can be given several times.",
        show_default=False,
    ),
]
OutRun = Annotated[
    Path, typer.Option("--out", help="The new run directory.", metavar="RUN")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted run, bit for bit.")
]
RunPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The directory of a run, as `tacit train` makes it.",
        show_default=False,
    ),
]

# Of a query to a server that ranks: see docs/serving.md.
Delta = Annotated[
    float, typer.Option(help="For dpa and vdp: above 0 the noise is Gaussian.")
]
Interests = Annotated[
    int | None,
    typer.Option(
        help="For krr and dpa: the number of interests.", show_default="by epsilon"
    ),
]
PaddingShare = Annotated[
    float, typer.Option(help="For dpa: the share of the history to replace.")
]
Noise = Annotated[
    Literal["sound", "paper"],
    typer.Option(
        help="For dpa and vdp: what the epsilon needs, or the noise that PrivateRec's "
        "paper prints for a claimed epsilon, beside what is proven of it."
    ),
]
ListFor = Annotated[
    Literal["any", "session", "visit"] | None,
    typer.Option(
        "--for",
        help="What the user is about to do: go on with this session, or come back for "
        "another visit; any: unknown. By default any, or serve.list_for of the run.",
        show_default=False,
    ),
]
Theta = Annotated[
    float | None,
    typer.Option(
        help="For --noise paper: the paper's θ.", show_default="1 for dpa, .001 for vdp"
    ),
]
Axes = Annotated[
    int | None,
    typer.Option(
        help="For vdp: project the user vector to so many axes.", show_default="all"
    ),
]


def refreshing(changes: list[str], earlier: Path | None) -> list[str]:
    """The changes, with the run that `--from` names among them."""
    if earlier is None:
        return changes
    # Absolute: a path in an experiment is read relative to the experiment's file.
    return [*changes, f"run.refreshes={earlier.resolve()}"]
