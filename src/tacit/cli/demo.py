"""`tacit demo`: the whole story on an embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit import text
from tacit.cli import console
from tacit.cli.options import Json
from tacit.errors import BadRun

EPSILON, DELTA = 4.0, 1e-6  # delta is far below one over the users of the demo
EXPERIMENT: dict[str, Any] = {
    "data": {"source": "synthetic", "validation": 150, "test": 300},
    "method": {"name": "gram"},
    "privacy": {
        "mechanism": "central",
        "channel": "secure_sum",
        "target_epsilon": EPSILON,
        "delta": DELTA,
    },
    "run": {"rounds": 3},
    "evaluate": {
        "metrics": ["ndcg@100", "recall@20", "recall@50"],
        "baselines": ["random", "popularity", "ease"],
    },
}
# The same without protection. Baselines are not private, so they are fitted once.
OPEN: dict[str, Any] = {
    **EXPERIMENT,
    "method": {"name": "gram"},
    "privacy": {},
    "evaluate": {**EXPERIMENT["evaluate"], "baselines": []},
}


def demo(
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="The folder for the runs; an earlier demo is replaced."
        ),
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """Show the whole story: plan, train with and without privacy, compare, recommend.

    The data are a world of invented users and titles, so every number says
    `simulation`. A report is written as a page.
    """
    from tacit.experiment.build_report import user_of, write_report
    from tacit.experiment.settings import check_experiment
    from tacit.experiment.training import train

    _make_room(out)
    with console.Bar("train with privacy") as bar:
        outcome = train(check_experiment(EXPERIMENT), out, watch=bar)
    with console.Bar("train without") as bar:
        bare = train(check_experiment(OPEN), out / "without-privacy", watch=bar)
    beside = {"gram, no privacy": _evaluations(bare)["gram"]}
    heldout = outcome.assembled.split.test
    # A test user did not train, as a new user would not have.
    user = outcome.assembled.split.profiles.ids[int(heldout.users[0])]
    shown = user_of(outcome.run, user)
    page = write_report(outcome.run, user=user, beside=beside)
    judged = _evaluations(outcome) | beside
    if json:
        console.print_json(_document(outcome, judged, user, shown, page))
        return
    _print(outcome, judged, shown, page)


def _evaluations(outcome: Any) -> dict[str, Any]:
    found: dict[str, Any] = outcome.document["simulation_only"]["evaluations"]
    return found


def _make_room(out: Path) -> None:
    """Clear an earlier demo, also one that was killed; refuse to touch anything else.

    A run writes its lock first and its experiment when the data are prepared.
    """
    from tacit.files import remove_directory, sweep
    from tacit.runtime.run import RunDirectory

    if out.is_dir():
        sweep(out)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    run = RunDirectory(out)
    begun = {run.lock, run.inputs, run.selected_items}
    is_ours = out.is_dir() and (run.experiment.exists() or begun >= {*out.iterdir()})
    if not is_ours:
        raise BadRun(f"{out} is not a demo of ours; choose another --out")
    remove_directory(out)


def _print(outcome: Any, judged: dict[str, Any], shown: Any, page: Path) -> None:
    from tacit.experiment.build_report import contenders
    from tacit.experiment.training import plan_account
    from tacit.reporting import guarantees, plain_words, tables

    out, assembled = console.out(), outcome.assembled
    log = assembled.dataset.interactions
    out.print(plain_words.purpose(is_release=False), markup=False, style="bold")
    out.print(
        f"\nA world of {log.n_users:,} users, {log.n_items:,} titles and "
        f"{len(log):,} ratings. {assembled.plan.population:,} clients trained; "
        f"{len(assembled.split.test.users):,} users were never seen.\n"
    )
    totals = plan_account(assembled).totals
    console.tell(guarantees.in_short(totals, console.width()))
    out.print()
    own = outcome.document["method"]
    out.print(tables.to_rich(tables.comparison(contenders(judged, own))))
    out.print("Random, popularity and EASE saw every history on one machine.\n")
    out.print(tables.to_rich(tables.recommendations(shown)))
    out.print(f"report: {text.shown(str(page))}")


def _document(
    outcome: Any, judged: dict[str, Any], user: str, shown: Any, page: Path
) -> dict[str, Any]:
    from tacit.experiment.training import in_short

    return {
        **in_short(outcome.document),
        "comparison": {name: e["metrics"] for name, e in judged.items()},
        "user": user,
        "items": [{"title": t, "score": s} for t, s in shown.recommended],
        "report": page,
    }
