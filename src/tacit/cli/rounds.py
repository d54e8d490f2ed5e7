"""`tacit round`: what a coordinator otherwise does by the clock, by hand."""

from __future__ import annotations

from pathlib import Path

import typer

from tacit.cli import console
from tacit.cli.federation import Config, asked, status_lines
from tacit.cli.options import Json

app = typer.Typer(
    help="Open, close or publish the round of a running coordinator, or end its run.",
    no_args_is_help=True,
)


@app.command("open")
def open_(config: Config, json: Json = False) -> None:
    """Open the next round, of a coordinator with schedule.by_hand = true."""
    _want("open", config, json=json)


@app.command()
def close(config: Config, json: Json = False) -> None:
    """Close the open round before its window is over."""
    _want("close", config, json=json)


@app.command()
def publish(config: Config, json: Json = False) -> None:
    """Publish the model after the last round, with schedule.by_hand = true."""
    _want("publish", config, json=json)


@app.command()
def retire(config: Config, json: Json = False) -> None:
    """End the run for good: an open round is void, and the old model stays.

    What was published before stays published, and what clients spent stays spent.
    """
    _want("retire", config, json=json)


def _want(what: str, config: Path, *, json: bool) -> None:
    asked(config, "POST", f"/v1/{what}")
    found = asked(config, "GET", "/v1/status")
    if json:
        console.print_json(found)
        return
    console.out().print(f"{what}: the coordinator was told")
    console.tell(status_lines(found))
