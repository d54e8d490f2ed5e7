"""`tacit evaluate`: a run's metrics, and how sure the differences are."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tacit.cli import console
from tacit.cli.options import Json, ListFor, RunPath


def evaluate(
    run: RunPath,
    users: Annotated[
        Literal["test", "validation"],
        typer.Option(help="The held-out users to rank for."),
    ] = "test",
    list_for: ListFor = None,
    json: Json = False,
) -> None:
    """Rank again for the held-out users of a run and compare with its baselines.

    Differences are paired over users, with intervals that hold together with 95 %.
    Choose settings on the validation users; the test users are for the last look only.
    """
    from tacit.experiment.build_report import chosen_in, contenders
    from tacit.experiment.evaluated_run import evaluate_run
    from tacit.reporting.pairs import sentence
    from tacit.reporting.plain_words import purpose
    from tacit.reporting.tables import comparison, to_rich
    from tacit.reporting.verdict import chosen_settings

    with console.Bar("evaluate") as bar:
        found = evaluate_run(run, users=users, list_for=list_for, watch=bar)
    if json:
        console.print_json(found.document())
        return
    name = found.method
    out = console.out()
    public = found.result.get("could_be_released", True)
    out.print(
        purpose(is_release=False, could_be_released=public), markup=False, style="bold"
    )
    documents = {n: e.to_json() for n, e in found.evaluations.items()}
    out.print(to_rich(comparison(contenders(documents, name))))
    for told in map(chosen_settings, chosen_in(documents).items()):
        out.print(told, markup=False)
    for pair in found.differences:
        out.print(f"{pair.metric}: {sentence(pair)}", markup=False)
