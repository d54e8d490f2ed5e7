"""The commands and what they have in common: version, errors, exit codes.

Each command imports what it needs when it runs, so `tacit --help` starts at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tacit.cli import (
    audit,
    compare,
    console,
    data,
    demo,
    evaluate,
    export,
    init,
    ledger,
    plan,
    recommend,
    release,
    report,
    reproduce,
    train,
)
from tacit.errors import TacitError
from tacit.text import lines
from tacit.version import __version__

INTERRUPTED = 130  # as shells count Ctrl-C

app = typer.Typer(
    name="tacit",
    help="""A recommender that learns from everyone and knows no one.

    New here?  [bold]tacit demo[/] shows the whole story on an embedded data set.

    Your own table?  [bold]tacit init --csv FILE --user COL --item COL[/], then
    [bold]tacit train exp.toml --out run[/] to see what it is worth, then
    [bold]tacit release exp.toml --out release[/] for a model to publish.
    """,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        console.out().print(f"tacit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Say the version."
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


app.command("demo")(demo.demo)
app.command("init")(init.init)
app.add_typer(data.app, name="data")
app.command("plan")(plan.plan)
app.command("train")(train.train)
app.command("release")(release.release)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("recommend")(recommend.recommend)
app.command("report")(report.report)
app.command("export")(export.export)
app.command("reproduce")(reproduce.reproduce)
app.command("audit")(audit.audit)
app.add_typer(ledger.app, name="ledger")


def main() -> None:
    """Run the command line: 0 on success, 2 for bad input, 130 when interrupted."""
    try:
        app(standalone_mode=True)
    except TacitError as error:
        _complain(str(error))
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        console.note("interrupted")
        raise SystemExit(INTERRUPTED) from None


def _complain(message: str) -> None:
    if "--json" in sys.argv:
        console.print_json({"error": message})
    console.err().print(lines(f"error: {message}"), style="red")
