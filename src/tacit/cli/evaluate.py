"""`tacit evaluate`: a run's metrics, and how sure the differences are."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tacit.cli import console
from tacit.cli.options import Json, RunPath
from tacit.errors import Refused


def evaluate(
    run: RunPath,
    users: Annotated[
        Literal["test", "validation"],
        typer.Option(help="The held-out users to rank for."),
    ] = "test",
    json: Json = False,
) -> None:
    """Rank again for the held-out users of a run and compare with its baselines.

    Differences come with a paired bootstrap over users. Choose settings on the
    validation users; the test users are for the last look only.
    """
    from tacit.evaluation.significance import paired_bootstrap
    from tacit.experiment.assemble import assemble, root_key
    from tacit.experiment.build_report import contenders
    from tacit.experiment.saved_run import SavedRun
    from tacit.experiment.training import evaluate_all, last_state
    from tacit.reporting.plain_words import purpose
    from tacit.reporting.tables import comparison, to_rich

    saved = SavedRun.at(run)
    result = saved.result
    if saved.experiment.is_release:
        raise Refused(
            f"a release holds nobody out, so there is nobody to rank for at {run}; "
            "simulate the same experiment with `tacit train`"
        )
    # The split follows from the seed: the same users are held out as in the run.
    with console.Bar("evaluate") as bar:
        assembled = assemble(saved.experiment, reading=bar.read)
        state = last_state(assembled, saved.directory)
        split = assembled.split
        heldout = split.test if users == "test" else split.validation
        judged = evaluate_all(assembled, state, heldout, watch=bar)
    name = saved.experiment.method_name
    key = root_key(saved.experiment).at("bootstrap")  # the same interval every time
    differences = {
        other: paired_bootstrap(judged[name], evaluation, key=key.at(other))
        for other, evaluation in judged.items()
        if other != name
    }
    if json:
        counted = ("clients_per_second", "bytes_up", "bytes_down")
        simulated = result["simulation_only"]
        documents = {n: e.to_json() for n, e in judged.items()}
        console.print_json(
            {
                "users": users,
                "metrics": documents[name]["metrics"],
                "groups": documents[name]["groups"],
                "methods": {n: d["metrics"] for n, d in documents.items()},
                "differences": differences,
                "epsilons": result["epsilons"],
                "seconds": result["seconds"],
                "simulation_only": {key: simulated[key] for key in counted},
            }
        )
        return
    out = console.out()
    out.print(purpose(is_release=False), markup=False, style="bold")
    documents = {n: e.to_json() for n, e in judged.items()}
    out.print(to_rich(comparison(contenders(documents, name))))
    for other, by_metric in differences.items():
        for metric, d in by_metric.items():
            out.print(
                f"{name} minus {other}, {metric}: {d.mean:+.4f} "
                f"[{d.low:+.4f}, {d.high:+.4f}], p = {d.p_value:.3g}",
                markup=False,
            )
