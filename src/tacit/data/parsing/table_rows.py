"""Rows of any table in batches of columns: text, Parquet or Arrow, told by its bytes.

A matrix is a table whose columns are items: it is read as one event for each cell that
is neither blank nor zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tacit.data.parsing import arrow_rows, csv_rows
from tacit.data.parsing.bad_lines import BadLines
from tacit.data.parsing.csv_rows import Batch, Layout, Progress

Keep = Callable[[str], bool]  # whether a user is one of those to be read

ITEM, VALUE = "(item)", "(value)"  # what a matrix is read as, beside the user


def batches(
    path: Path,
    wanted: Sequence[str],
    layout: Layout | None = None,
    *,
    bad: BadLines | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """The wanted columns, in batches; `layout` is how a text is written."""
    if _is_arrow(path):
        return arrow_rows.batches(path, wanted, bad=bad, progress=progress)
    return csv_rows.batches(path, wanted, layout, bad=bad, progress=progress)


def column_names(path: Path, layout: Layout | None = None) -> list[str]:
    """The names of all columns, in the order of the file."""
    if _is_arrow(path):
        return arrow_rows.column_names(path)
    return csv_rows.column_names(path, layout)


def cells(
    path: Path,
    user: str,
    layout: Layout | None = None,
    *,
    bad: BadLines | None = None,
    progress: Progress | None = None,
) -> Iterator[Batch]:
    """The cells of a matrix as events: the user's column, an item and a value each."""
    names = column_names(path, layout)
    wanted = [user, *(name for name in names if name != user)]
    for batch in batches(path, wanted, layout, bad=bad, progress=progress):
        yield _unrolled(batch, user)


def _unrolled(batch: Batch, user: str) -> Batch:
    users = batch.columns[user]
    blank = {row: f"column {user!r} is blank" for row, u in enumerate(users) if not u}
    if blank:  # once for a line, and not for each of its cells
        return _unrolled(batch.without(blank), user)
    items = {name: cells for name, cells in batch.columns.items() if name != user}
    found = [
        (row, name, cells[row])
        for row in range(len(users))
        for name, cells in items.items()
        if not _is_nothing(cells[row])
    ]
    rows = [row for row, _, _ in found]
    columns = {
        user: [users[row] for row in rows],
        ITEM: [name for _, name, _ in found],
        VALUE: [cell for _, _, cell in found],
    }
    return replace(batch, kept=[batch.kept[row] for row in rows], columns=columns)


def _is_nothing(cell: str) -> bool:
    """Whether a cell is blank or zero, however that is written."""
    if cell in ("", "0"):
        return True
    try:
        return float(cell) == 0
    except ValueError:
        return not cell.strip()  # else it is refused where values are converted


def _is_arrow(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in (arrow_rows.PARQUET, arrow_rows.ARROW)


def only(batch: Batch, user: str, keep: Keep) -> Batch:
    """The lines of users to keep; an id that cannot be used stays, to be refused."""
    known: dict[str, bool] = {}
    rows = []
    for row, text in enumerate(batch.columns[user]):
        if text not in known:
            known[text] = not text.strip() or keep(text)
        if known[text]:
            rows.append(row)
    if len(rows) == len(batch.kept):
        return batch
    kept = [batch.kept[row] for row in rows]
    columns = {n: [c[row] for row in rows] for n, c in batch.columns.items()}
    return replace(batch, kept=kept, columns=columns)
