"""`tacit export`: a trained model for devices without Python, as ONNX and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import console
from tacit.cli.options import Json, ListFor, RunPath

if TYPE_CHECKING:
    from tacit.experiment.exporting import Exported
    from tacit.serving.onnx_file import Precision


def export(
    run: RunPath,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The new directory for the files; by default `export` in the run.",
            show_default=False,
        ),
    ] = None,
    double: Annotated[
        bool,
        typer.Option(
            "--double",
            help="Write the model in float64; the file is twice as large.",
        ),
    ] = False,
    list_for: ListFor = None,
    json: Json = False,
) -> None:
    """Write a finished run's model as model.onnx and model.json.

    The ONNX file computes a score for every item from a history, on any device with an
    ONNX runtime. The JSON file lists the items and the privacy statements.
    """
    from tacit.experiment.exporting import export as write

    precision: Precision = "float64" if double else "float32"
    made = write(run, out, precision=precision, list_for=list_for)
    if json:
        _print_json(made)
    else:
        _print(made)


def _print_json(made: Exported) -> None:
    """The document without its list of items, which may be long."""
    items = made.document["items"]
    shown = {k: v for k, v in made.document.items() if k != "items"}
    paths = {"model": made.model, "facts": made.facts}
    console.print_json({**shown, **paths, "n_items": len(items)})


def _print(made: Exported) -> None:
    from tacit.experiment.build_report import statement_of
    from tacit.reporting.plain_words import in_words

    out, facts = console.out(), made.document["onnx"]
    out.print(
        f"{made.model}: {facts['bytes']:,} bytes, {facts['input']['type']}, "
        f"{facts['input']['name']} to {facts['output']['name']}\n"
        f"{made.facts}: {len(made.document['items']):,} items, what goes in and comes "
        "out, privacy statements",
        markup=False,
    )
    own = [statement_of(line) for line in made.document["epsilons"]]
    for sentence in in_words(own):
        out.print(f"- {sentence}", markup=False)
    both = [statement_of(line) for line in made.document["epsilons_with_earlier"]]
    for sentence in in_words(both):
        out.print(f"- With the earlier runs: {sentence}", markup=False)
