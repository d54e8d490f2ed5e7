"""`tacit init`: a commented experiment for a table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import console
from tacit.cli.options import Json
from tacit.errors import BadValue

Column = Annotated[str | None, typer.Option(metavar="COL", show_default=False)]

TEMPLATE = """\
# An experiment: what to learn from, how, and how to judge it.
# See what it would reveal:   tacit plan {out}
# Train it:                   tacit train {out} --out run
# Recommend to a person:      tacit recommend run --user {person}

[data]
source = "csv"
{min_value}min_interactions = 2    # people with fewer distinct items are left out
split = "new-users"     # judged on people that training never saw
validation = 0.1        # share of the people (or how many, from 1 on) to choose by
test = 0.1              # … and to report on
target_share = 0.2      # of a held-out person's items, the part to be found

[data.csv]              # {rows:,} lines, {users:,} people, {items:,} items
{columns}
[method]
name = "gram"           # counts items, then relates them; ranks on the device
{privacy}
[run]
seed = 0                # seeds are for simulation
rounds = 2              # one to count, one to relate
sampler = {{ name = "everyone" }}

[evaluate]
metrics = ["ndcg@100", "recall@20", "recall@50"]
baselines = ["random", "popularity", "ease"]
"""


def init(
    csv: Annotated[
        Path, typer.Option(help="A table with a header line.", show_default=False)
    ],
    user: Annotated[str, typer.Option(metavar="COL", help="Who.", show_default=False)],
    item: Annotated[str, typer.Option(metavar="COL", help="What.", show_default=False)],
    time: Annotated[
        str | None, typer.Option(metavar="COL", help="When.", show_default=False)
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="How much, such as stars.", show_default=False
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(metavar="COL", help="The item's name.", show_default=False),
    ] = None,
    min_value: Annotated[
        float | None,
        typer.Option(help="Keep lines of at least this value.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the experiment.")
    ] = Path("exp.toml"),
    force: Annotated[bool, typer.Option(help="Replace a file that is there.")] = False,
    json: Json = False,
) -> None:
    """Write a commented experiment for your own table, after reading it once."""
    from tacit.data.sources.csv import CsvTable
    from tacit.experiment.settings import read_experiment

    if out.exists() and not force:
        raise BadValue(f"{out} is there already; choose another --out, or use --force")
    table = CsvTable(csv, user, item, time=time, value=value, title=title)
    dataset = table.load()
    log = dataset.interactions
    text = TEMPLATE.format(
        out=out,
        person=dataset.profiles.ids[0],
        min_value=_min_value(value, min_value),
        rows=len(log),
        users=log.n_users,
        items=log.n_items,
        columns=_columns(table, out),
        privacy=_privacy(log.n_users),
    )
    out.write_text(text, encoding="utf-8")
    read_experiment(out)  # what was written must be accepted
    if json:
        counts = {"users": log.n_users, "items": log.n_items, "interactions": len(log)}
        console.print_json({"experiment": out, **counts})
        return
    console.out().print(
        f"{out}: {len(log):,} lines, {log.n_users:,} people, {log.n_items:,} items\n"
        f"next: tacit train {out} --out run",
        markup=False,
    )


PRIVATE = """\

[privacy]
mechanism = "central"   # noise on two sums; "none" and "local" are the other forms
channel = "secure_sum"  # the server sees noisy sums only; assumes a trusted aggregator
target_epsilon = 4.0    # noise is calibrated to it; smaller is more private
delta = {delta:g}
"""
OPEN = """\

[privacy]
mechanism = "none"      # {users:,} people are too few: noise that protects one of them
                        # would hide what they have in common. With some thousands,
                        # use "central" with channel = "secure_sum", target_epsilon =
                        # 4.0 and delta = 1e-6; `tacit plan` says what to expect.
"""
_ENOUGH = 500  # people; below, epsilon 4 leaves popularity at best


def _privacy(users: int) -> str:
    if users < _ENOUGH:
        return OPEN.format(users=users)
    return PRIVATE.format(delta=min(1e-6, 1 / (100 * users)))


def _columns(table: object, out: Path) -> str:
    import os

    import tomli_w

    from tacit.data.sources.csv import CsvTable

    assert isinstance(table, CsvTable)
    path = os.path.relpath(table.path.resolve(), out.resolve().parent)
    named = {
        "user": table.user,
        "item": table.item,
        "time": table.time,
        "value": table.value,
        "title": table.title,
    }
    return tomli_w.dumps({"path": path, **{k: v for k, v in named.items() if v}})


def _min_value(value: str | None, least: float | None) -> str:
    if least is not None:
        return (
            f"min_value = {least:g}           # lines below are not a sign of liking\n"
        )
    if value is not None:
        return "# min_value = 4           # keep only lines of at least this value\n"
    return ""
