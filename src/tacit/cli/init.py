"""`tacit init`: a commented experiment for a table of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import console
from tacit.cli.options import Json
from tacit.errors import BadValue
from tacit.text import shown

if TYPE_CHECKING:
    from tacit.data.sources.csv import CsvTable

Column = Annotated[str | None, typer.Option(metavar="COL", show_default=False)]

TEMPLATE = """\
# An experiment: what to learn from, how to learn it, and how to evaluate it.
# See what it would reveal:   tacit plan {out}
# See what it is worth:       tacit train {out} --out run
# Recommend to a user:        tacit recommend run --user {user}
# Make a model to publish:    tacit release {out} --out release

[data]
source = "csv"
{population}{min_value}min_interactions = 2    # users with fewer items are left out
split = "new-users"     # evaluates on users that never trained; in a release all train
validation = 0.1        # fraction of the users (or how many, from 1 on) to tune on
test = 0.1              # … and to report on
target_share = 0.2      # fraction of a held-out user's items that must be found

[data.csv]              # {rows:,} lines, {users:,} users, {items:,} items
{columns}
[method]
name = "gram"           # counts items, then relates them; ranks on the device
{privacy}
[run]
seed = 0                # used by simulations only
rounds = 3              # to count items, relate them, and load more on tastes
sampler = {{ name = "everyone" }}

[evaluate]
metrics = ["ndcg@100", "recall@20", "recall@50"]
baselines = {baselines}
"""
_DENSE_ITEMS = 10_000  # EASE has items² numbers: 400 MB and half a minute at so many


def init(
    csv: Annotated[
        Path,
        typer.Option(
            help="The table of events with a header line.", show_default=False
        ),
    ],
    user: Annotated[
        str,
        typer.Option(
            metavar="COL", help="The column with the user's id.", show_default=False
        ),
    ],
    item: Annotated[
        str,
        typer.Option(
            metavar="COL", help="The column with the item's id.", show_default=False
        ),
    ],
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="The column with the time.", show_default=False
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column that says how much, such as stars.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="The column with the item's title.", show_default=False
        ),
    ] = None,
    min_value: Annotated[
        float | None,
        typer.Option(
            help="The least value of a line that counts as liking.", show_default=False
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A public table of all items, with the columns --item and --title.",
            show_default=False,
        ),
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of users who may take part, which becomes public.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The experiment file to write.")
    ] = Path("exp.toml"),
    force: Annotated[
        bool, typer.Option(help="Replace the file if it exists already.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a commented experiment for your own table, after reading it once.

    A model may be published (`tacit release`) only if --items and --population say what
    is public; without them the experiment is good for simulations.

    Example: tacit init --csv ratings.csv --user user_id --item movie_id
    """
    from tacit.data.sources.csv import CsvTable, ItemsTable
    from tacit.experiment.settings import read_experiment
    from tacit.files import write_atomically

    if out.exists() and not force:
        raise BadValue(f"{out} is there already; choose another --out, or use --force")
    listed = None if items is None else ItemsTable(items, item, title)
    # With a table of items, titles come from it and not from the events.
    own = title if listed is None else None
    table = CsvTable(csv, user, item, time=time, value=value, title=own, items=listed)
    dataset = table.load()
    log = dataset.interactions
    text = TEMPLATE.format(
        out=shown(str(out)),
        user=shown(dataset.profiles.ids[0]),  # one that exists: the line can be pasted
        population=_population(population),
        min_value=_min_value(value, min_value),
        rows=len(log),
        users=log.n_users,
        items=log.n_items,
        columns=_columns(table, out),
        # The plan goes by the declared number, whatever the table has.
        privacy=_privacy(population or log.n_users),
        baselines=_baselines(log.n_items),
    )
    write_atomically(out, text.encode())
    read_experiment(out)  # what was written must be accepted
    if json:
        counts = {"users": log.n_users, "items": log.n_items, "interactions": len(log)}
        console.print_json({"experiment": out, **counts})
        return
    name = shown(str(out))
    console.out().print(
        f"{name}: {len(log):,} lines, {log.n_users:,} users, {log.n_items:,} items\n"
        f"next: tacit train {name} --out run",
    )


PRIVATE = """\

[privacy]
mechanism = "central"   # noise on sums; "none" and "local" are the other forms
channel = "secure_sum"  # the server sees noisy sums only; assumes a trusted aggregator
target_epsilon = 4.0    # noise is calibrated to it; smaller is more private
delta = {delta:g}
"""
OPEN = """\

[privacy]
mechanism = "none"      # {users:,} users are too few: noise that protects one of them
                        # would hide what they have in common. With some thousands,
                        # use "central" with channel = "secure_sum", target_epsilon =
                        # 4.0 and delta = 1e-6; `tacit plan` says what to expect.
"""
_ENOUGH = 500  # users; with fewer, epsilon 4 leaves popularity at best


def _privacy(users: int) -> str:
    if users < _ENOUGH:
        return OPEN.format(users=users)
    # Far below one in all users: a mechanism that published one user with chance delta
    # would otherwise pass.
    return PRIVATE.format(delta=min(1e-6, 1 / (100 * users)))


def _baselines(items: int) -> str:
    if items <= _DENSE_ITEMS:
        return '["random", "popularity", "ease"]'
    why = "# EASE is dense: too large for so many items"
    return f'["random", "popularity", "item_knn"]  {why}'


def _population(declared: int | None) -> str:
    if declared is None:
        return (
            "# population = 10000      # users who may take part; a release needs it\n"
        )
    return f"population = {declared:<10} # users who may take part: public\n"


def _columns(table: CsvTable, out: Path) -> str:
    import tomli_w

    named = {
        "path": _beside(table.path, out),
        "user": table.user,
        "item": table.item,
        "time": table.time,
        "value": table.value,
        "title": table.title,
    }
    written = tomli_w.dumps({k: v for k, v in named.items() if v})
    listed = table.items
    if listed is None:
        return written + _NO_ITEMS
    own = {"path": _beside(listed.path, out), "item": listed.item}
    own |= {"title": listed.title} if listed.title else {}
    head = "\n[data.csv.items]        # the catalog: public\n"
    return written + head + tomli_w.dumps(own)


def _beside(path: Path, out: Path) -> str:
    # Paths in an experiment are read relative to its file.
    return os.path.relpath(path.resolve(), out.resolve().parent)


_NO_ITEMS = """\
# [data.csv.items]        # a release needs a table of all items, apart from the events
# path = "items.csv"
# item = "item"
"""


def _min_value(value: str | None, least: float | None) -> str:
    if least is not None:
        return (
            f"min_value = {least:g}           # lines of a lower value are left out\n"
        )
    if value is not None:
        return "# min_value = 4           # keep only lines of at least this value\n"
    return ""
