"""From what a caller has to an experiment: a DataFrame, a file or a table of sections.

    tacit.train(frame, user="customer", item="product", epsilon=4)
    tacit.train("ratings.csv", user="customer", item="product")
    tacit.train("exp.toml")
    tacit.train({"data": {…}, "method": {…}})

A table of events becomes the experiment that `tacit init` would write for it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tacit import check
from tacit.data.sources.frame import read_frame
from tacit.data.sources.listed_tables import ItemsTable
from tacit.data.sources.table import EventsTable
from tacit.errors import BadValue
from tacit.experiment.comparison_grid import aimed_at
from tacit.experiment.proposal import Proposal
from tacit.experiment.settings import Experiment, check_experiment, read_table
from tacit.experiment.starting_points import with_method

Settings = Mapping[str, Mapping[str, Any]]  # sections of an experiment
MethodChoice = str | Mapping[str, Any]  # a name, or a table with it

USER, ITEM = "user", "item"  # the columns of a table, where nobody names others
_FILES = ("data.table", "data.table.items", "data.table.users")  # sections with a path


@dataclass(frozen=True)
class Columns:
    """Which columns of a table mean what; None where the caller did not say."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    value: str | None = None
    title: str | None = None
    min_value: float | None = None
    items: object | None = None  # a table of all items, as a frame or a path

    def given(self) -> list[str]:
        """The names of what the caller said."""
        return [f.name for f in fields(self) if getattr(self, f.name) is not None]


@dataclass(frozen=True)
class Given:
    """An experiment as a table of sections, not checked yet; its paths are whole."""

    table: dict[str, Any]
    where: str  # what errors call it

    def experiment(self) -> Experiment:
        """The experiment, checked whole: all its problems in one error."""
        return check_experiment(self.table, self.where)

    def changed(
        self,
        *,
        method: MethodChoice | None = None,
        epsilon: float | None = None,
        settings: Settings | None = None,
    ) -> Given:
        """The same with another method and target, and sections on top of its own."""
        table = self.table
        if method is not None:
            table = with_method(table, method)
        if epsilon is not None:
            table = aimed_at(_checked(epsilon), table, Path(self.where))
        return Given(_merged(table, settings or {}), self.where)


def given_data(data: object, columns: Columns) -> Given:
    """The experiment that the caller gave, or the one that suits the caller's table."""
    if isinstance(data, str | Path):
        path = Path(data)
        if path.suffix == ".toml":
            return _of_file(path, columns)
        return _proposed(_file_table(path, columns), columns)
    if isinstance(data, Mapping) and _has_sections(data):
        _refuse_columns(columns)
        return Given(copy.deepcopy(dict(data)), "experiment")
    if isinstance(data, EventsTable):
        _refuse_columns(replace(columns, min_value=None))
        return _proposed(data, columns)
    return _proposed(_frame_table(data, columns), columns)


def _of_file(path: Path, columns: Columns) -> Given:
    _refuse_columns(columns)
    table = read_table(path)
    check_experiment(table, str(path), relative_to=path.parent)  # with its own paths
    return Given(_with_whole_paths(table, path.parent), str(path))


def _has_sections(data: Mapping[str, Any]) -> bool:
    """Whether this is an experiment, and not a mapping of columns."""
    return any(isinstance(part, Mapping) for part in data.values())


def _refuse_columns(columns: Columns) -> None:
    if given := columns.given():
        name = given[0]
        raise BadValue(
            f"{name}={getattr(columns, name)!r} belongs to a table, and data is an "
            "experiment, which says so in [data]; leave it out"
        )


def _frame_table(data: object, columns: Columns) -> EventsTable:
    is_frame = not _is_matrix(data)
    return read_frame(
        data,
        user=columns.user or (USER if is_frame else None),
        item=columns.item or (ITEM if is_frame else None),
        time=columns.time,
        value=columns.value,
        title=columns.title,
        items=columns.items,
    )


def _is_matrix(data: object) -> bool:
    return hasattr(data, "shape") and not hasattr(data, "columns")


def _file_table(path: Path, columns: Columns) -> EventsTable:
    user, item = columns.user or USER, columns.item or ITEM
    listed, title = columns.items, columns.title
    if listed is not None and not isinstance(listed, str | Path):
        raise BadValue(
            f"items is of type {type(listed).__name__}, and the events are a file; "
            "give the path of a file for both, or a frame for both"
        )
    items = None if listed is None else ItemsTable(Path(listed), item, title)
    return EventsTable(
        path.resolve(),
        user,
        item,
        time=columns.time,
        value=columns.value,
        title=title if items is None else None,
        items=items,
    )


def _proposed(table: EventsTable, columns: Columns) -> Given:
    proposal = Proposal(table, table.load(), columns.min_value)
    return Given(proposal.settings(), table.path.name)


def _checked(epsilon: float) -> float:
    """The target; infinity is training without privacy."""
    if epsilon != math.inf:
        check.positive(
            epsilon=epsilon, remedy="use epsilon=math.inf to train without privacy"
        )
    return float(epsilon)


def _merged(table: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    changed = copy.deepcopy(dict(table))
    for section, own in settings.items():
        if not isinstance(own, Mapping):
            raise BadValue(
                f"settings[{section!r}]={own!r} must be a table, such as "
                "settings={'run': {'rounds': 5}}"
            )
        changed[section] = {**changed.get(section, {}), **own}
    return changed


def _with_whole_paths(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same experiment, read from anywhere: its paths were relative to its file."""
    changed = copy.deepcopy(dict(table))
    for section in _FILES:
        own: Any = changed
        for name in section.split("."):
            own = own.get(name, {})
        if "path" in own:
            own["path"] = str((folder / own["path"]).resolve())
    words = changed["data"].get("metadata_vectors") or {}
    for own, key in ((words, "words"), (changed.get("run", {}), "refreshes")):
        if key in own:
            own[key] = str((folder / own[key]).resolve())
    return changed
