"""Known data sets, by name. From an archive, a table or a seed to a `Dataset`.

What belongs here: one module for each publisher or format, which knows its files and
nothing of networks. Finding and fetching is in `archives`, keeping in `cache`. Listing
names imports no parser.

>>> load("synthetic").interactions.n_items
400
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tacit import check
from tacit.data.archives import Progress
from tacit.data.dataset import Dataset
from tacit.data.sources.source import Source
from tacit.errors import BadValue

__all__ = ["Source", "load", "names", "source"]

# Dotted names: listing the data sets must not import a parser for each.
_MODULES = {
    "movielens-100k": "tacit.data.sources.movielens",
    "movielens-1m": "tacit.data.sources.movielens",
    "movielens-10m": "tacit.data.sources.movielens",
    "movielens-20m": "tacit.data.sources.movielens",
    "movielens-25m": "tacit.data.sources.movielens",
    "movielens-latest": "tacit.data.sources.movielens",
    "movielens-latest-small": "tacit.data.sources.movielens",
    "frappe": "tacit.data.sources.frappe",
    "citeulike-a": "tacit.data.sources.citeulike",
    "steam-200k": "tacit.data.sources.steam",
    "lastfm": "tacit.data.sources.lastfm",
    "filmtrust": "tacit.data.sources.filmtrust",
    "netflix-prize": "tacit.data.sources.netflix",
    "mind-small-sample": "tacit.data.sources.mind",
    "mind-small": "tacit.data.sources.mind",
    "mind-large": "tacit.data.sources.mind",
    "adressa": "tacit.data.sources.mind",
    "synthetic": "tacit.data.synthetic.world",
    "synthetic-1m": "tacit.data.synthetic.world",
    "synthetic-20m": "tacit.data.synthetic.world",
    "synthetic-fmf-ldp": "tacit.data.synthetic.frozen_worlds",
    "synthetic-fmf-ldp-small": "tacit.data.synthetic.frozen_worlds",
    "synthetic-news": "tacit.data.synthetic.news_world",
    "synthetic-news-50k": "tacit.data.synthetic.news_world",
}


def names() -> tuple[str, ...]:
    """Every name that `load` accepts."""
    return tuple(_MODULES)


def source(name: str) -> Source:
    """What is known of a data set: its terms, its home, how to open it."""
    if name not in _MODULES:
        raise BadValue(
            f"data set {check.unknown(name, _MODULES)}; for a table of your own use "
            "tacit.data.sources.table.EventsTable"
        )
    found: dict[str, Source] = import_module(_MODULES[name]).SOURCES
    return found[name]


def load(
    name: str,
    *,
    where: Path | None = None,
    cache: Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """A data set by name, parsed once and then read from the cache.

    `where` is an archive, an unpacked folder or a folder that holds either. `progress`
    is told of a download, which happens only with `download=True`.
    """
    return source(name).open(
        where=where, cache=cache, download=download, progress=progress
    )
