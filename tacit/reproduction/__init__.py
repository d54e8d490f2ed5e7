"""Published tables beside ours: literally as published, and as it can be proven.

One module a paper. What belongs here: the published numbers, what we get in `paper` and
in `sound` mode, and the reason where they differ. What does not: the algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from tacit import check
from tacit.errors import BadValue
from tacit.reproduction.tables import Reproduction

_PAPERS: Mapping[str, str] = {"privrec": "tacit.reproduction.privrec"}


def papers() -> tuple[str, ...]:
    """The papers that can be reproduced in this version."""
    return tuple(_PAPERS)


def reproduce(paper: str, *, table: int | None = None) -> Reproduction:
    """A paper's tables, or one of them by its number in the paper."""
    if paper not in _PAPERS:
        raise BadValue(f"paper {check.unknown(paper, _PAPERS)}")
    tables: Mapping[int, Callable[[], Reproduction]]
    tables = import_module(_PAPERS[paper]).TABLES
    if table is None:
        return Reproduction.joined([make() for make in tables.values()])
    if table not in tables:
        known = ", ".join(map(str, tables))
        raise BadValue(f"table {table} of {paper} is not here yet; known: {known}")
    return tables[table]()
