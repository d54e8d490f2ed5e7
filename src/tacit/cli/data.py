"""`tacit data`: the known data sets, their terms and their counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import console
from tacit.cli.options import Json
from tacit.text import shown

_LEFT = 31  # columns of what is counted

app = typer.Typer(
    help="List, describe and prepare the known data sets.", no_args_is_help=True
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A name from `tacit data list`, such as movielens-1m.",
        show_default=False,
    ),
]
Archive = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="PATH", help="The archive, or a folder that contains it."
    ),
]
Download = Annotated[
    bool,
    typer.Option(
        "--download", help="Download the archive from its home; read the terms first."
    ),
]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the known data sets with their titles and the addresses of their homes."""
    from tacit.data import sources
    from tacit.reporting.terminal import wrapped

    known = [sources.source(name) for name in sources.names()]
    if json:
        console.print_json({"sets": [_about(source) for source in known]})
        return
    left, width = max(len(source.name) for source in known) + 2, console.width()
    for source in known:
        name, blank = f"{source.name:<{left}}", " " * left
        console.tell(wrapped(source.title, width, first=name, later=blank))
        # An address has its own line, whole even where it is longer than the screen.
        console.out().print(f"{blank}{source.home}", style="dim", soft_wrap=True)
    console.note("terms and counts: tacit data describe NAME")


@app.command()
def describe(
    name: Name,
    archive: Archive = None,
    json: Json = False,
) -> None:
    """Count a data set's users, items and interactions."""
    from tacit.data import sources

    _show(sources.source(name), sources.load(name, where=archive), json=json)


@app.command()
def prepare(
    name: Name,
    archive: Archive = None,
    download: Download = False,
    json: Json = False,
) -> None:
    """Parse a data set into the cache, from an archive or, if asked, by download."""
    from tacit.data import sources

    source = sources.source(name)
    console.note(f"{source.title}: {source.home}\nterms: {source.terms}")
    with console.Bar("download") as bar:
        dataset = sources.load(
            name, where=archive, download=download, progress=bar.advance
        )
    _show(source, dataset, json=json)


def _show(source: Any, dataset: Any, *, json: bool) -> None:
    import numpy as np

    from tacit.reporting.terminal import wrapped

    log, impressions = dataset.interactions, dataset.impressions
    pairs = len(log.distinct())  # a user may have an item several times
    counts = {
        "users": log.n_users,
        "items": log.n_items,
        "interactions": len(log),
        **({} if impressions is None else _of_impressions(impressions)),
        "distinct_pairs": pairs,
        "density": pairs / (log.n_users * log.n_items),
        "interactions_a_user_median": float(np.median(log.per_user)),
        "has_times": log.times is not None,
        "item_features": sorted(dataset.catalog.features),
        "user_features": sorted(dataset.profiles.features),
        "event_features": sorted(log.contexts),
    }
    if json:
        console.print_json({**_about(source), **counts})
        return
    console.out().print(f"{source.title}  {source.home}", markup=False)
    width, blank = console.width(), " " * _LEFT
    for what, value in {**counts, "terms": source.terms}.items():
        start = f"  {what.replace('_', ' ')}".ljust(_LEFT)
        figure = shown(_readable(value), longest=None)
        console.tell(wrapped(figure, width, first=start, later=blank))


def _readable(value: object) -> str:
    """A count, a share, a list or a fact as a reader expects it.

    >>> [_readable(one) for one in (1200, 0.104838, True, ["genre", "year"], [])]
    ['1,200', '0.1048', 'yes', 'genre, year', 'none']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return str(value)


def _of_impressions(impressions: Any) -> dict[str, Any]:
    """How many there are, of which size, of which days and in which parts."""
    import numpy as np

    slates, parts = impressions.slates, impressions.parts
    found: dict[str, Any] = {
        "impressions": len(impressions),
        "shown_an_impression_mean": float(slates.shown.lengths.mean()),
        "clicked_an_impression_mean": float(impressions.n_clicked.mean()),
    }
    if slates.times is not None:  # what data.validation_from and test_from can be
        ends = (slates.times.min(), slates.times.max())
        first, last = (f"{np.datetime64(int(t), 's')}Z" for t in ends)
        found |= {"impressions_from": first, "impressions_to": last}
    if parts is not None:
        found["impression_parts"] = [*parts.labels]
    return found


def _about(source: Any) -> dict[str, Any]:
    names = ("name", "title", "home", "terms", "citation")
    return {name: getattr(source, name) for name in names}
