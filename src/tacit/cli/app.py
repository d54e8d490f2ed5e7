"""The commands and what they have in common: version, errors, exit codes.

Each command imports what it needs when it runs, so `tacit --help` starts at once.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import Annotated

import click
import typer

from tacit.child_processes import end_with_parent
from tacit.cli import (
    audit,
    client,
    compare,
    console,
    data,
    demo,
    evaluate,
    export,
    failures,
    flower,
    help_texts,
    init,
    ledger,
    plan,
    recommend,
    release,
    report,
    reproduce,
    rounds,
    serve,
    train,
    up,
)
from tacit.text import lines
from tacit.version import __version__

app = typer.Typer(
    name="tacit",
    help="""A recommender that learns from everyone and knows no one.

    New here?  [bold]tacit demo[/] shows the whole story on an embedded data set.

    Your own table?  [bold]tacit init FILE --user COL --item COL[/] writes an
    experiment, [bold]tacit train exp.toml --out run[/] simulates it and shows what it
    is worth, [bold]tacit release exp.toml --out release[/] makes a model to publish.
    """,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a bug shows Python's own traceback
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
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """The options of the program itself."""


app.command("demo")(demo.demo)
app.command("init")(init.init)
app.add_typer(data.app, name="data")
app.command("plan")(plan.plan)
app.command("train")(train.train)
app.command("release")(release.release)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("recommend")(recommend.recommend)
app.command("up")(up.up)
app.add_typer(serve.app, name="serve")
app.add_typer(rounds.app, name="round")
app.add_typer(flower.app, name="flower")
app.command("report")(report.report)
app.command("export")(export.export)
app.command("reproduce")(reproduce.reproduce)
app.command("audit")(audit.audit)
app.add_typer(client.app, name="client")
app.add_typer(ledger.app, name="ledger")
help_texts.tidy(app)


def main() -> None:
    """Run the command line: 0 on success, 2 for bad input, 130 when interrupted."""
    end_with_parent()
    _tell_notices()
    try:
        code = _called()
        sys.stdout.flush()  # a disk that is full says so here, not after the end
    except Exception as error:
        code = _explained(error)
    except KeyboardInterrupt as error:
        code = _explained(error)
    sys.exit(code)


def _called() -> int:
    """The exit code of the command that was asked for."""
    try:
        # Else Click prints errors and exits by itself, without JSON and our exit codes.
        found = app(standalone_mode=False)
    except SystemExit:
        if "PacifyFlushWrapper" in type(sys.stdout).__name__:  # Typer's broken pipe
            raise BrokenPipeError from None
        raise
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        told = help_texts.with_one_suggestion(error)
        _show_usage(told)
        _answer("BadUsage", told.format_message())
        return error.exit_code
    # Typer makes an exit code of a Ctrl-C inside a command.
    if found == failures.INTERRUPTED:
        raise KeyboardInterrupt
    return found if isinstance(found, int) else 0


def _explained(error: BaseException) -> int:
    """Print what went wrong and give the exit code; a bug is raised again."""
    failure = failures.failure_of(error)
    if failure is None:
        raise error
    # Writing the answer may be what failed in the first place.
    with suppress(OSError):
        if failure.message:
            _answer(failure.kind, failure.message)
            sys.stdout.flush()
    if isinstance(error, OSError):
        failures.silence()  # it may have been our own output that failed
    if failure.code == failures.INTERRUPTED:
        console.note(failure.message)
    elif failure.message:
        console.err().print(lines(f"error: {failure.message}"), style="red")
    return failure.code


def _answer(kind: str, message: str) -> None:
    """Print an error as one JSON document, if `--json` was given."""
    # Read from the arguments: the error may have come before they were parsed.
    if "--json" in sys.argv:
        console.print_json({"error": {"kind": kind, "message": message}})


def _show_usage(error: click.ClickException) -> None:
    from typer.rich_utils import rich_format_error

    rich_format_error(error)


def _tell_notices() -> None:
    """Print what the package logs for readers as lines on stderr."""
    log = logging.getLogger("tacit.files")
    # Once per process, however often `main` runs in it.
    if not log.handlers:
        log.addHandler(_Notices())
        log.propagate = False


class _Notices(logging.Handler):
    """Prints every message that it gets once."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self.printed:
            self.printed.add(message)
            console.note(f"note: {message}")
