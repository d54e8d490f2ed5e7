"""`tacit release`: the same rounds as `tacit train`, for a model to be published."""

from __future__ import annotations

from pathlib import Path

from tacit.cli.options import (
    Changes,
    ExperimentFile,
    Json,
    OutRun,
    Refreshed,
    Resume,
)
from tacit.cli.train import run


def release(
    experiment: ExperimentFile,
    out: OutRun = Path("release"),
    resume: Resume = False,
    earlier: Refreshed = None,
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Train a model that may be published: the promises hold for real users.

    Randomness comes from the operating system and is forgotten round by round, sums and
    noise are whole numbers, and everyone trains. Nothing is measured on them but a hit
    rate under the same budget, if [evaluate] release asks for it. What is public must
    be declared: the items in a table of their own ([data.table.items]) and the number
    of users (data.population). The experiment's seed is not used.

    Example: tacit release exp.toml --out release
    """
    # Last, because a later change wins: no --set can make this a simulation.
    purpose = [*changes, "run.purpose=release"]
    run(
        experiment,
        out,
        purpose,
        resume=resume,
        earlier=earlier,
        json=json,
        command="release",
    )
