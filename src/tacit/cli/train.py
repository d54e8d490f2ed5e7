"""`tacit train`: rounds with a live bar, into a run directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.cli import console
from tacit.cli.options import (
    Changes,
    ExperimentFile,
    Json,
    OutRun,
    Refreshed,
    Resume,
    refreshing,
)
from tacit.text import shown


def train(
    experiment: ExperimentFile,
    out: OutRun = Path("run"),
    resume: Resume = False,
    earlier: Refreshed = None,
    changes: Changes = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Simulate: train an experiment, evaluate it on the test users, write a report.

    Randomness comes from the experiment's seed, so the figures can be made again and
    protect nobody; `tacit release` makes a model for real users. Ctrl-C at any moment
    leaves a run that --resume continues.

    Example: tacit train exp.toml --out run --set run.rounds=5
    """
    run(experiment, out, changes, resume=resume, earlier=earlier, json=json)


def run(
    experiment: Path,
    out: Path,
    changes: Sequence[str],
    *,
    resume: bool,
    earlier: Path | None,
    json: bool,
    command: str = "train",
) -> None:
    """Train into a run directory and print the result."""
    from tacit.experiment.settings import read_experiment
    from tacit.experiment.training import in_short
    from tacit.experiment.training import train as trained

    settings = read_experiment(experiment, refreshing([*changes], earlier))
    # Without it, --resume would be refused as another experiment.
    again = "" if earlier is None else f" --from {earlier}"
    try:
        with console.Bar(command) as bar:
            outcome = trained(settings, out, resume=resume, watch=bar)
    except KeyboardInterrupt:
        console.note(
            f"stopped; nothing is lost. Continue with:\n"
            f"  tacit {command} {experiment} --out {out} --resume{again}"
        )
        raise
    if json:
        console.print_json({**in_short(outcome.document), "run": out})
        return
    _print(outcome.document, out)


def _print(document: Mapping[str, Any], path: Path) -> None:
    from tacit.experiment.build_report import chosen_in, contenders, statement_of
    from tacit.reporting.guarantees import in_short
    from tacit.reporting.plain_words import purpose, released
    from tacit.reporting.tables import comparison, to_rich
    from tacit.reporting.verdict import chosen_settings

    is_release = not document["simulation"]
    out = console.out()
    could_be_released = document.get("could_be_released", True)
    out.print(
        purpose(is_release=is_release, could_be_released=could_be_released),
        markup=False,
        style="bold",
    )
    if not is_release:
        judged = document["simulation_only"]["evaluations"]
        out.print(to_rich(comparison(contenders(judged, document["method"]))))
        for told in map(chosen_settings, chosen_in(judged).items()):
            out.print(told, markup=False)
    for metric in document.get("released_metrics", ()):
        out.print(released(metric), markup=False)
    width = console.width()
    console.tell(in_short(map(statement_of, document["epsilons"]), width))
    if both := document["epsilons_with_earlier"]:
        out.print("with the earlier runs", style="bold")
        console.tell(in_short(map(statement_of, both), width))
    if is_release:
        _say_what_to_publish(path)
    out.print(f"report: {shown(str(path / 'report.html'))}")


def _say_what_to_publish(path: Path) -> None:
    console.out().print(
        f"publish: {path / 'model.safetensors'}, {path / 'model.json'} and the "
        "privacy card; keep checkpoint/ and inputs.json, which follow from private "
        "data",
        markup=False,
    )
