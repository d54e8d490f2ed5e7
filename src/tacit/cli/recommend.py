"""`tacit recommend`: one user's list, ranked as on the user's device."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from tacit.cli import console
from tacit.cli.options import Json, RunPath
from tacit.errors import BadValue
from tacit.text import shown


def recommend(
    run: RunPath,
    user: Annotated[
        str | None,
        typer.Option(
            help="The id of a user of the simulated data set.", show_default=False
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            help="The item ids of somebody else's history, separated by commas.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", min=1, help="The number of items to recommend.")
    ] = 10,
    serve: Annotated[
        Literal["on_device"],
        typer.Option(help="Where the ranking runs; on the device, nothing is sent."),
    ] = "on_device",
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Also say which items of the history led to each one."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Recommend items to a user, by id or by history.

    It needs the model file and the history alone, and nothing is sent anywhere.

    Example: tacit recommend run --history 1,260,1196 -k 5
    """
    from tacit.experiment.saved_run import SavedRun, holding_of, load

    if (user is None) == (history is None):
        raise BadValue("give either --user ID or --history ID,ID,…")
    recommender = load(run)
    if user is not None:
        # Only here are the data read: the model file knows no user.
        holding = holding_of(recommender, SavedRun.at(run).experiment, user)
        held, best = holding.ids(recommender.catalog), recommender.recommend(holding, k)
    else:
        held = [item.strip() for item in (history or "").split(",") if item.strip()]
        best = recommender.recommend(held, k)
    because = {line.id: recommender.because(held, line.id) for line in best if why}
    if json:
        items = [
            {**asdict(line), **({"because": because[line.id]} if why else {})}
            for line in best
        ]
        console.print_json({"user": user, "serve": serve, "items": items})
        return
    who = "this history" if user is None else f"user {shown(user)}"
    out = console.out()
    out.print(f"For {who} ({len(held)} items in the history):", markup=False)
    for place, line in enumerate(best, start=1):
        title, name = shown(line.title), shown(line.id)
        out.print(f"{place:3}. {title}  ({name}, {line.score:.4f})")
        if why:
            reasons = "; ".join(shown(r.title) for r in because[line.id])
            out.print(f"     because of {reasons or 'what many have'}", markup=False)
