"""Events that a Python program has in memory, as a table like one in a file.

A pandas or polars DataFrame, an Arrow table, or whatever else speaks Arrow's PyCapsule
interface or the dataframe interchange; a mapping of columns; a scipy sparse matrix or a
numpy matrix of users × items. The columns that are asked for are written to the cache
as an Arrow file, so that a run can be resumed and recommend to its users later. From
there on it is a table as any other: the same filters, the same errors. Needs pyarrow
(extra `tables`); neither pandas nor polars is imported.
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tacit.data import cache as cached
from tacit.data.parsing.arrow_rows import arrow
from tacit.data.parsing.csv_rows import Progress, missing_columns, refuse_twins
from tacit.data.parsing.quote import quoted
from tacit.data.sources.listed_tables import ItemsTable, UsersTable
from tacit.data.sources.table import EventsTable
from tacit.errors import BadData, BadValue
from tacit.files import draft

if TYPE_CHECKING:
    import pyarrow as pa

USER, ITEM, VALUE = "user", "item", "value"  # the columns that a matrix becomes

_ROWS = 1 << 16  # of a batch in the file
_TAKEN = (
    "a pandas or polars DataFrame, an Arrow table, a mapping of columns, or a scipy "
    "or numpy matrix of users × items"
)


def read_frame(
    events: object,
    *,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    value: str | None = None,
    title: str | None = None,
    item_columns: Sequence[str] = (),
    impression: str | None = None,
    matrix: bool = False,
    skip_bad: bool = False,
    user_ids: Sequence[object] | None = None,
    item_ids: Sequence[object] | None = None,
    items: object | None = None,
    items_id: str | None = None,
    users: object | None = None,
    users_id: str | None = None,
    groups: Sequence[str] = (),
    name: str = "frame",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> EventsTable:
    """The table of these events, checked and parsed: `load` gives the data set.

    `user`, `item` and the other names are columns of `events`, as in `[data.table]`. Of
    a scipy or numpy matrix there are no columns to name: a row is a user, a column an
    item, an entry that is not zero an event with that value. `user_ids` and `item_ids`
    are what rows and columns are called, by default their numbers from 0 on. With a
    frame of `items`, `title` and `item_columns` are columns of it, and `items_id` is
    its column of ids where that is not called `item`. `groups` are columns of a frame
    of `users`, with `users_id` likewise.
    """
    if not name or Path(name).name != name:
        raise BadValue(f"name={name!r} must be a word that a file can have as its name")
    told = {"user": user, "item": item, "time": time, "value": value}
    shelf = _Shelf(cached.frames(cached.folder(cache)), name)
    if _is_matrix(events):
        _refuse_columns({**told, "impression": impression, "matrix": matrix or None})
        events = _unrolled(events, user_ids, item_ids)
        user, item, value = USER, ITEM, VALUE
    elif user_ids is not None or item_ids is not None:
        raise BadValue(
            "user_ids and item_ids name the rows and columns of a scipy or numpy "
            "matrix; of a frame name the columns user and item"
        )
    if user is None or (item is None and not matrix):
        raise BadValue(
            "user and item are missing; name the columns with their ids, or set "
            "matrix=True if every column but the user's is an item"
        )
    listed = known = None
    if items is not None:
        key = items_id or item or ITEM
        columns = [key, *_named(title), *item_columns]
        path = shelf.put("items", items, columns)
        listed = ItemsTable(path, key, title, tuple(item_columns))
        title, item_columns = None, ()
    if users is not None:
        key = users_id or user
        path = shelf.put("users", users, [key, *groups])
        known = UsersTable(path, key, tuple(groups))
    elif groups:
        raise BadValue(f"groups={[*groups]} are columns of users; give that frame, too")
    wanted = [user, *_named(item, time, value, title, impression), *item_columns]
    table = EventsTable(
        shelf.put("events", events, None if matrix else wanted),
        user,
        item or "",
        time=time,
        value=value,
        title=title,
        item_columns=tuple(item_columns),
        impression=impression,
        skip_bad=skip_bad,
        matrix=matrix,
        items=listed,
        users=known,
    )
    with shelf.explained():
        table.load(cache=cache, progress=progress)  # refuses now what would be later
    return table


@dataclass
class _Shelf:
    """Where frames of one call are kept, and what their paths are called in errors."""

    folder: Path
    name: str
    labels: dict[str, str] = field(default_factory=dict)

    def put(self, label: str, frame: object, columns: Sequence[str] | None) -> Path:
        """The path of a file with these columns of the frame; None means all."""
        table = _table(label, frame)
        if columns is not None:
            if not set(columns) <= {*table.column_names}:
                raise BadData(label, None, missing_columns(columns, table.column_names))
            refuse_twins(Path(label), table.column_names, columns)
            table = table.select([*dict.fromkeys(columns)])
        # A data set is called like its file.
        path = self.folder / self._digest(table) / f"{self.name}.arrow"
        if not path.exists():
            with draft(path, is_private=True) as file:
                _write(table, file)
        self.labels[str(path)] = label
        return path

    def _digest(self, table: pa.Table) -> str:
        # With a key that stays beside the data: a digest without one, in the file of an
        # experiment, would let others try out what the data may be.
        digest = hashlib.blake2b(digest_size=16, key=self._key())
        _write(table, _Hashed(digest))
        return digest.hexdigest()

    def _key(self) -> bytes:
        path = self.folder / "key"
        if not path.exists():
            with draft(path, is_private=True) as file:
                file.write(secrets.token_bytes(32))
        return path.read_bytes()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Call rows by their frame and number, and not by the file that holds them."""
        try:
            yield
        except BadData as error:
            label = self.labels.get(error.file)
            if label is None:
                raise
            row = "" if error.line is None else f"row {error.line - 1} (from 0): "
            raise BadData(label, None, row + error.problem) from None


class _Hashed(io.RawIOBase):
    """A file that keeps nothing of what is written but its digest."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._digest.update(content)
        return len(content)


def _write(table: pa.Table, file: Any) -> None:
    with arrow().ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=_ROWS)


def _table(label: str, frame: object) -> pa.Table:
    """The frame as an Arrow table in one piece, without whatever else it carries."""
    pa = arrow()
    try:
        if isinstance(frame, Mapping) or hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        elif hasattr(frame, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(frame)
        else:
            kind = type(frame).__name__
            raise BadValue(f"{label} is of type {kind}; needed is {_TAKEN}")
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, BadValue):
            raise
        problem = f"cannot become an Arrow table ({quoted(str(error))}); give each "
        raise BadData(label, None, f"{problem}column one type") from error
    # Chunks depend on how a frame came to be: the same rows must be the same file.
    return table.replace_schema_metadata(None).combine_chunks()


def _is_matrix(events: object) -> bool:
    return sp.issparse(events) or isinstance(events, np.ndarray)


def _refuse_columns(named: Mapping[str, object]) -> None:
    given = [name for name, value in named.items() if value is not None]
    if given:
        raise BadValue(
            f"{given[0]}={named[given[0]]!r} names a column, and a matrix of users × "
            "items has none; leave it out"
        )


def _unrolled(
    events: Any,
    user_ids: Sequence[object] | None,
    item_ids: Sequence[object] | None,
) -> dict[str, Any]:
    """The entries of a matrix that are not zero, as columns."""
    if len(events.shape) != 2 or events.dtype.kind not in "biuf":
        raise BadValue(
            f"events is a matrix of {events.dtype} with shape {events.shape}; needed "
            "are numbers, with one row per user and one column per item"
        )
    entries = sp.csr_array(events, copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    found = entries.tocoo()
    n_users, n_items = events.shape
    return {
        USER: _ids("user_ids", user_ids, n_users)[found.row],
        ITEM: _ids("item_ids", item_ids, n_items)[found.col],
        VALUE: found.data.astype(np.float64),
    }


def _ids(
    name: str, given: Sequence[object] | None, n: int
) -> np.ndarray[Any, np.dtype[Any]]:
    if given is None:
        return np.arange(n)
    texts = np.array([str(one) for one in given], object)
    if len(texts) != n or len({*texts}) != n:
        raise BadValue(
            f"{name} has {len(texts)} ids, {len({*texts})} of them different; the "
            f"matrix needs {n} different ones"
        )
    return texts


def _named(*columns: str | None) -> list[str]:
    return [column for column in columns if column]
