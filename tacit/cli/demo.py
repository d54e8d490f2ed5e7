"""`tacit demo`: the whole story on an embedded data set."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Json
from tacit.errors import BadRun

EXPERIMENT: dict[str, Any] = {
    "data": {"source": "synthetic", "validation": 150, "test": 300},
    "method": {"name": "federated_popularity"},
    "run": {"rounds": 10, "sampler": {"name": "once"}},
    "evaluate": {
        "metrics": ["ndcg@100", "recall@20", "recall@50"],
        "baselines": ["random", "popularity", "ease"],
    },
}


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the run is written, anew.")
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """Plan, train, compare, recommend and write a page, in well under a minute.

    A world of invented people and titles; every number says `simulation`.
    """
    from tacit.cli.train import write_report
    from tacit.experiment.saved import SavedRun
    from tacit.experiment.settings import check_experiment
    from tacit.experiment.showing import person_of
    from tacit.experiment.training import train

    experiment = check_experiment(EXPERIMENT)
    _make_room(out)
    with console.Bar("train") as bar:
        outcome = train(experiment, out, watch=bar)
    heldout = outcome.assembled.split.test
    person = outcome.assembled.split.profiles.ids[int(heldout.users[0])]
    shown = person_of(SavedRun.at(out), person)
    page = write_report(out, user=person)
    if json:
        console.print_json(_document(outcome, person, shown, page))
        return
    _print(outcome, shown, page)


def _make_room(out: Path) -> None:
    """Clear an earlier demo; refuse to touch anything else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / "experiment.toml").exists():
        raise BadRun(f"{out} is not a demo of ours; choose another --out")
    shutil.rmtree(out)


def _print(outcome: Any, shown: Any, page: Path) -> None:
    from tacit.experiment.showing import contenders
    from tacit.experiment.training import plan_account
    from tacit.reporting import tables

    out, assembled = console.out(), outcome.assembled
    log = assembled.dataset.interactions
    out.print(
        f"\nA world of {log.n_users:,} people, {log.n_items:,} titles and "
        f"{len(log):,} ratings. {assembled.plan.population:,} devices trained; "
        f"{len(assembled.split.test.users):,} people were never seen.\n"
    )
    totals = plan_account(assembled).totals
    out.print(tables.to_rich(tables.privacy(totals)))
    judged = outcome.document["simulation_only"]["evaluations"]
    table = tables.comparison(contenders(judged, outcome.document["method"]))
    out.print(tables.to_rich(table))
    out.print(tables.to_rich(tables.recommendations(shown)))
    out.print("Random, popularity and EASE saw every history on one machine.")
    out.print("Federated popularity saw votes only, and does not yet protect them.")
    out.print(f"\nreport: {page}", markup=False)


def _document(outcome: Any, person: str, shown: Any, page: Path) -> dict[str, Any]:
    document = outcome.document
    evaluations = document["simulation_only"]["evaluations"]
    return {
        **{k: v for k, v in document.items() if k != "simulation_only"},
        "comparison": {name: e["metrics"] for name, e in evaluations.items()},
        "user": person,
        "items": [{"title": t, "score": s} for t, s in shown.recommended],
        "report": page,
    }
