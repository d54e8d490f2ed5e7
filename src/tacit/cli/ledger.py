"""`tacit ledger`: what a client has reported, and what it may still report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import caps, console
from tacit.cli.options import Json
from tacit.errors import BadValue
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.reporting.ledger import Told

MOST_SHOWN = 20  # releases on a terminal; the page and --json have them all

app = typer.Typer(
    help="Show, cap, accept or forget what a client has reported about its owner.",
    no_args_is_help=True,
)

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The ledger file of a client.", show_default=False
    ),
]
AnyFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The ledger file of a client, or the ledger.json of a run.",
        show_default=False,
    ),
]


@app.command()
def show(
    file: AnyFile,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write a page for the owner.", metavar="OUT"),
    ] = None,
    json: Json = False,
) -> None:
    """Show every release of a client, or a run's, and what all of them amount to."""
    if _is_of_a_run(file):
        _show_run(file, html, json=json)
        return
    told = _told(file)
    if html is not None:
        from tacit.files import write_atomically
        from tacit.reporting.ledger import render

        write_atomically(html, render(told).encode(), is_private=True)
    if json:
        console.print_json(_document(told) | ({"html": html} if html else {}))
    else:
        _print(told, html)


@app.command()
def cap(
    file: File,
    epsilon: caps.Epsilon = None,
    delta: caps.Delta = 1e-6,
    unit: caps.ProtectedUnit = "user",
    view: caps.Looker = "server",
    remove: caps.Remove = False,
    new: Annotated[
        bool,
        typer.Option(
            "--new", help="Make FILE: a ledger with a cap before its first run."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show or set the most that a client may reveal; it refuses what would pass that.

    FILE is a ledger that exists, or with --new one that does not. `tacit client cap`
    finds the ledger of a client that has joined.

    Example: tacit ledger cap ledger.db --epsilon 2
    """
    from tacit.ledger.durable import ClientLedger

    if new and file.exists():
        raise BadValue(f"{file} exists; leave --new out to change its caps")
    with ClientLedger(file, create=new) as ledger:
        caps.change(
            *(ledger, epsilon), delta=delta, unit=unit, view=view, remove=remove
        )
        found = ledger.caps()
    if json:
        console.print_json({"caps": found})
    else:
        caps.show(found)


@app.command()
def accept(
    file: File,
    as_written: Annotated[
        bool,
        typer.Option(
            "--as-written",
            help="Count what is written and nothing else: I vouch for it.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation.")
    ] = False,
    json: Json = False,
) -> None:
    """Go on from a ledger in doubt: a copy, a damaged one, one of an older format.

    Its runs are closed and never answered again. Each counts as if the client had taken
    part as often as was agreed, because what was sent after a copy was made is unknown.
    """
    from tacit.ledger.decisions import accept

    if not yes:
        question = f"Close all runs of {file} and go on from what it says?"
        # On stderr: with --json, stdout has the document and nothing else.
        if not typer.confirm(question, err=True):
            console.note("nothing was changed")
            raise typer.Exit(1)
    found = accept(file, as_written=as_written)
    if json:
        console.print_json(found)
        return
    how = "as written" if found.is_as_written else "in full"
    console.out().print(
        f"accepted, though {found.doubt}; {len(found.closed)} runs are closed and "
        f"counted {how}",
        markup=False,
    )


@app.command()
def forget(
    file: File,
    keep_ledger: Annotated[
        bool,
        typer.Option("--keep-ledger", help="Keep the list of what was sent."),
    ] = False,
    json: Json = False,
) -> None:
    """Erase private state and reports; without --keep-ledger file and anchor as well.

    Reports that were sent cannot be called back; those that were not never leave.
    """
    from tacit.ledger.decisions import erase

    unsent = erase(file, keep_ledger=keep_ledger)
    if json:
        console.print_json({"kept_ledger": keep_ledger, "never_sent": unsent})
        return
    left = "the ledger is kept" if keep_ledger else "the ledger too"
    console.out().print(
        f"erased: private state and reports ({unsent} never sent); {left}"
    )


def _is_of_a_run(file: Path) -> bool:
    """Whether this is the JSON of a run and not the database of a client."""
    if file.is_dir():
        file = file / "ledger.json"
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(1) == b"{"


def _show_run(file: Path, html: Path | None, *, json: bool) -> None:
    """What a run can have told of any client that took part in it."""
    from tacit.experiment.run_ledger import RunLedger
    from tacit.reporting.guarantees import in_short
    from tacit.reporting.terminal import wrapped

    if html is not None:
        raise BadValue(
            f"--html is for the ledger of a client; {file} is a run's, whose page is "
            "privacy-card.html in the same folder"
        )
    found = RunLedger.at(file / "ledger.json" if file.is_dir() else file)
    if json:
        console.print_json(found.document)
        return
    width = console.width()
    for sentence in found.sentences():
        console.tell(wrapped(shown(sentence, longest=None), width))
    console.out().print("\nwhat all of it amounts to", style="bold")
    console.tell(in_short(found.spent, width))
    if found.spent_with_earlier:
        console.out().print("\nwith the earlier runs", style="bold")
        console.tell(in_short(found.spent_with_earlier, width))


def _told(file: Path) -> Told:
    from tacit.ledger.durable import ClientLedger
    from tacit.reporting.ledger import Told
    from tacit.runtime.ledger import statements

    # A mistyped path must not become a new and empty ledger.
    with ClientLedger(file, create=False) as ledger:
        return Told(
            tuple(ledger.entries()),
            statements(ledger),
            tuple(ledger.caps()),
            tuple(ledger.explained_refusals()),
            ledger.waiting(),
            ledger.doubt,
            file.name,
        )


def _document(told: Told) -> dict[str, Any]:
    from tacit.accounting.serialization import release_to_json
    from tacit.reporting.plain_words import in_words

    return {
        "chain": {"is_verified": told.doubt is None, "doubt": told.doubt},
        "releases": [
            {
                "at": entry.at,
                "run": entry.run,
                "round": entry.round,
                "what": entry.what,
                "seen_by": entry.release.seen_by,
                "cells": release_to_json(entry.release)["cells"],
                "sent": entry.sent,
            }
            for entry in told.entries
        ],
        "totals": told.totals,
        "words": in_words(told.totals),
        "caps": told.caps,
        "refusals": [
            {"run": run, "reason": reason, "times": times, "last": last}
            for run, reason, times, last in told.refusals
        ],
        "waiting": told.waiting,
    }


def _print(told: Told, html: Path | None) -> None:
    from tacit.reporting.guarantees import in_short
    from tacit.reporting.ledger import (
        caps_table,
        entries_table,
        in_doubt,
        refusals_table,
    )
    from tacit.reporting.tables import to_rich

    out = console.out()
    if told.doubt is not None:
        out.print(in_doubt(told.doubt), style="red", markup=False)
    hidden = len(told.entries) - MOST_SHOWN
    if hidden > 0:
        out.print(f"{hidden:,} older releases are not shown; see --json or --html")
    out.print(to_rich(entries_table(told.entries[-MOST_SHOWN:])))
    out.print("All of them together", style="bold")
    if told.entries or told.doubt:
        console.tell([*in_short(told.totals, console.width()), ""])
    else:
        out.print("nothing has left this device\n")
    if told.caps:
        out.print(to_rich(caps_table(told.caps, told.totals)))
    if told.refusals:
        out.print(to_rich(refusals_table(told)))
    if html is not None:
        out.print(f"page: {shown(str(html))}")
