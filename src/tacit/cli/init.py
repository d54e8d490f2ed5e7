"""`tacit init`: a commented experiment for a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Json
from tacit.errors import BadValue
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.data.dataset import Dataset
    from tacit.data.parsing.csv_rows import Layout
    from tacit.data.sources.table import EventsTable
    from tacit.experiment.proposal import Proposal

EVENTS, FORMAT, MORE = "Events", "How the file is written", "Public tables"


def init(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="The table of events: CSV, also in a gzip or zip, Parquet or Arrow.",
            show_default=False,
        ),
    ],
    user: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column with the user's id; without it the columns are listed.",
            show_default=False,
            rich_help_panel=EVENTS,
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column with the item's id.",
            show_default=False,
            rich_help_panel=EVENTS,
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column with the time.",
            show_default=False,
            rich_help_panel=EVENTS,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column that says how much, such as stars.",
            show_default=False,
            rich_help_panel=EVENTS,
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column with the item's title.",
            show_default=False,
            rich_help_panel=EVENTS,
        ),
    ] = None,
    min_value: Annotated[
        float | None,
        typer.Option(
            help="The least value of a line that counts as liking.",
            show_default=False,
            rich_help_panel=EVENTS,
        ),
    ] = None,
    impression: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="What lines of one slate share: each is an item shown, not taken; "
            "--value is above zero where it was clicked.",
            show_default=False,
            rich_help_panel=EVENTS,
        ),
    ] = None,
    matrix: Annotated[
        bool,
        typer.Option(
            "--matrix",
            help="Every column but --user is an item, and each cell says how much.",
            rich_help_panel=EVENTS,
        ),
    ] = False,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            help="What separates columns, such as '::'; found among , ; tab |.",
            show_default=False,
            rich_help_panel=FORMAT,
        ),
    ] = None,
    header: Annotated[
        bool,
        typer.Option(
            help="Without a header columns are called by number: --user 1 --item 2.",
            rich_help_panel=FORMAT,
        ),
    ] = True,
    encoding: Annotated[
        str,
        typer.Option(
            help="Such as cp1252 for a table from Western Windows.",
            rich_help_panel=FORMAT,
        ),
    ] = "utf-8",
    escape: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            help="What stands before a quotation mark inside a field, such as '\\'.",
            show_default=False,
            rich_help_panel=FORMAT,
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad",
            help="Leave out lines that cannot be used, count them and show the first.",
            rich_help_panel=FORMAT,
        ),
    ] = False,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table of all items, with the columns --item and --title.",
            show_default=False,
            rich_help_panel=MORE,
        ),
    ] = None,
    items_id: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The item's id in --items, if that column has another name there.",
            show_default=False,
            rich_help_panel=MORE,
        ),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table of users, with the columns --user and --group.",
            show_default=False,
            rich_help_panel=MORE,
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL",
            help="A column of --users that may name public groups; can be repeated.",
            show_default=False,
            rich_help_panel=MORE,
        ),
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of users who may take part, which becomes public.",
            show_default=False,
            rich_help_panel=MORE,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The experiment file to write.")
    ] = Path("exp.toml"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it exists already.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a commented experiment for your own table, after reading it once.

    A model may be published (`tacit release`) only if --items and --population say what
    is public; without them the experiment is good for simulations.

    Example: tacit init ratings.csv --user user_id --item movie_id
    """
    from tacit.data.parsing.csv_rows import Layout
    from tacit.data.sources.listed_tables import ItemsTable, UsersTable
    from tacit.data.sources.table import EventsTable
    from tacit.experiment.proposal import Proposal

    if out.exists() and not force:
        raise BadValue(f"{out} is there already; choose another --out, or use --force")
    if min_value is not None and value is None and not matrix:
        raise BadValue(
            f"--min-value {min_value:g} needs --value, the column that it is compared "
            "with; name it, or leave --min-value out"
        )
    if items_id and items is None:
        raise BadValue("--items-id names a column of --items; name that table, too")
    if group and users is None:
        raise BadValue("--group names a column of --users; name that table, too")
    layout: dict[str, Any] = {
        "delimiter": delimiter,
        "header": header,
        "encoding": encoding,
        "escape": escape,
    }
    if not user or not (item or matrix):
        raise _missing_names(file, user, Layout(**layout))
    key, groups = items_id or item or "item", tuple(group or ())
    listed = None if items is None else ItemsTable(items, key, title, **layout)
    known = None if users is None else UsersTable(users, user, groups, **layout)
    table = EventsTable(
        file,
        user,
        item or "",
        time=time,
        value=value,
        # With a table of items, titles come from it and not from the events.
        title=title if listed is None else None,
        impression=impression,
        skip_bad=skip_bad,
        matrix=matrix,
        items=listed,
        users=known,
        **layout,
    )
    _write(Proposal(table, _loaded(table), min_value, population), out, json=json)


def _missing_names(file: Path, user: str | None, layout: Layout) -> BadValue:
    """The error for a table whose columns are not named, with those it has."""
    from tacit.data.parsing.quote import listed
    from tacit.data.parsing.table_rows import column_names
    from tacit.data.sources.listed_tables import must_exist

    must_exist(file)
    columns = f"the columns are {listed(column_names(file, layout))}"
    if not user:
        return BadValue(
            f"--user is missing; name the column with the user's id, and with --item "
            f"the item's; {columns}"
        )
    return BadValue(
        "--item is missing; name the column with the item's id, or use --matrix if "
        f"every column is an item; {columns}"
    )


def _loaded(table: EventsTable) -> Dataset:
    with console.Bar("init") as bar:
        return table.load(progress=bar.read)


def _write(proposal: Proposal, out: Path, *, json: bool) -> None:
    from tacit.experiment.proposal import as_argument
    from tacit.experiment.settings import read_experiment
    from tacit.files import write_atomically

    proposal.refuse_few()
    log, notes = proposal.kept.interactions, proposal.notes()  # may refuse: first
    write_atomically(out, proposal.toml(out).encode())
    read_experiment(out)  # what was written must be accepted
    left_out = proposal.dataset.left_out
    bad = [] if left_out is None else left_out.bad_ones()
    if json:
        counts = {"users": log.n_users, "items": log.n_items, "interactions": len(log)}
        told = {"notes": notes, "bad_lines": bad}
        console.print_json({"experiment": out, **counts, **told})
        return
    name = shown(str(out))
    for line in bad:
        console.note(f"left out: {shown(line)}")
    for sentence in notes:
        console.note(f"note: {shown(sentence)}")
    console.out().print(
        f"{name}: {proposal.found()}\n"
        f"next: tacit train {as_argument(str(out))} --out run",
    )
