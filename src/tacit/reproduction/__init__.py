"""Published tables beside ours: literally as published, and as it can be proven.

One module a paper. What belongs here: the published numbers, what we get in `paper` and
in `sound` mode, and the reason where they differ. What does not: the algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Literal

from tacit import check
from tacit.errors import BadValue
from tacit.reproduction.tables import Reproduction

Scale = Literal["quick", "full"]
Tables = Mapping[str, Callable[[Scale], Reproduction]]

_PAPERS: Mapping[str, str] = {
    "privrec": "tacit.reproduction.privrec",
    "fmf-ldp": "tacit.reproduction.fmf_ldp",
    "fedvae": "tacit.reproduction.fedvae",
}


def papers() -> tuple[str, ...]:
    """The papers that can be reproduced in this version."""
    return tuple(_PAPERS)


def reproduce(
    paper: str, *, table: int | str | None = None, scale: Scale = "quick"
) -> Reproduction:
    """A paper's tables and figures, or one of them by its number in the paper.

    `quick` takes minutes, `full` may take hours.
    """
    if paper not in _PAPERS:
        raise BadValue(f"paper {check.unknown(paper, _PAPERS)}")
    check.one_of(("quick", "full"), scale=scale)
    tables: Tables = import_module(_PAPERS[paper]).TABLES
    if table is None:
        return Reproduction.joined([make(scale) for make in tables.values()])
    if str(table) not in tables:
        known = ", ".join(tables)
        raise BadValue(f"table {table} of {paper} is not here yet; known: {known}")
    return tables[str(table)](scale)
