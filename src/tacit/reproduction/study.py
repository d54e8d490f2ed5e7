"""A study: the tables and figures of one paper, and the cells that each needs.

`reproductions/<paper>/study.py` has a function `study(scale)` that gives a `Study`. The
folder is outside the installed package: it is found in the current folder, beside the
source checkout, or where `--studies` says.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tacit import check
from tacit.errors import BadValue, Diverged, MissingExtra
from tacit.experiment.assemble import data_read_once
from tacit.experiment.training import Nobody, Watch
from tacit.reproduction.cells import Cell, Results
from tacit.reproduction.estimates import Estimate, estimate
from tacit.reproduction.tables import Reproduction

Scale = Literal["smoke", "quick", "full"]
SCALES: tuple[Scale, ...] = ("smoke", "quick", "full")
FOLDER = "reproductions"


@dataclass(frozen=True)
class Table:
    """A table, a figure or a section: what it needs trained, and how it is drawn up.

    `extras` names the optional modules that `make` itself needs, beside those of the
    cells: module to extra.
    """

    make: Callable[[Results], Reproduction]
    cells: tuple[Cell, ...] = ()
    extras: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[Table]) -> Table:
        """The same table on several data sets, as one."""

        def make(results: Results) -> Reproduction:
            return Reproduction.joined([_made(part, results) for part in parts])

        extras = {module: e for part in parts for module, e in part.extras.items()}
        return cls(make, tuple(c for part in parts for c in part.cells), extras)

    def needed(self) -> dict[str, str]:
        """The optional modules of all its cells and its own: module to extra."""
        needed = dict(self.extras)
        for cell in dict.fromkeys(self.cells):
            needed |= cell.extras()
        return needed


def _made(table: Table, results: Results) -> Reproduction:
    """The table; nothing of it if it needs the model of a training that diverged."""
    try:
        return table.make(results)
    except Diverged as error:
        results.diverged.append(f"a table is left out: {error}")
        return Reproduction((), ())


@dataclass(frozen=True)
class Study:
    """The tables of a paper by their number, such as "4" or "5.3"."""

    paper: str
    tables: Mapping[str, Table]

    def reproduced(
        self,
        out: Path,
        *,
        table: str | None = None,
        watch: Watch | None = None,
        retry_diverged: bool = False,
    ) -> Reproduction:
        """All tables, or one of them; runs are kept in `out`.

        Every experiment is checked and every extra looked for before the first step.
        """
        whole = self._whole(table)
        results = Results(
            out, whole.cells, watch or Nobody(), retry_diverged=retry_diverged
        )
        with data_read_once():
            return replace(whole.make(results), diverged=tuple(results.diverged))

    def estimated(
        self,
        out: Path,
        *,
        table: str | None = None,
        watch: Watch | None = None,
        retry_diverged: bool = False,
    ) -> Estimate:
        """How long `reproduced` would take; trains a few rounds to find out."""
        whole = self._whole(table)
        results = Results(
            out, whole.cells, watch or Nobody(), retry_diverged=retry_diverged
        )
        with data_read_once():
            return estimate(results)

    def _whole(self, table: str | None) -> Table:
        """All tables as one, or the one that is asked for; its extras are there."""
        if table is not None and table not in self.tables:
            known = ", ".join(self.tables)
            raise BadValue(
                f"table {table} of {self.paper} is not here yet; known: {known}"
            )
        asked = [*self.tables.values()] if table is None else [self.tables[table]]
        whole = Table.joined(asked)
        check_extras(whole.needed())
        return whole


def check_extras(needed: Mapping[str, str]) -> None:
    """Refuse before the first step if a module that a later step needs is missing."""
    missing = {m: e for m, e in needed.items() if importlib.util.find_spec(m) is None}
    if missing:
        extras = ",".join(sorted(set(missing.values())))
        raise MissingExtra(" and ".join(missing), extras)


def load_study(paper: str, folder: Path, scale: Scale) -> Study:
    """The study of a paper, by its name with - or _."""
    check.one_of(SCALES, scale=scale)
    known = papers(folder)
    if paper.replace("-", "_") not in known:
        shown = [name.replace("_", "-") for name in known]
        raise BadValue(f"paper {check.unknown(paper, shown)}")
    home = folder / paper.replace("-", "_")
    name = f"tacit_study_{home.name}"
    # The folder is the module's own, so that study.py may import what stands beside it.
    spec = importlib.util.spec_from_file_location(
        name, home / "study.py", submodule_search_locations=[str(home)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    study: Study = module.study(scale)
    return study


def papers(folder: Path) -> list[str]:
    """The papers that have a study in this folder."""
    return sorted(path.parent.name for path in folder.glob("*/study.py"))


def find_studies(folder: Path | None = None) -> Path:
    """The folder of studies: the one given, else here, else beside the sources."""
    beside = [parent / FOLDER for parent in Path(__file__).resolve().parents[2:4]]
    places = [Path(FOLDER), *beside] if folder is None else [folder]
    for place in places:
        if place.is_dir() and papers(place):
            return place.resolve()
    looked = ", ".join(str(place) for place in places)
    raise BadValue(
        f"no study of a paper in {looked}; studies are not part of the installed "
        "package: get the source checkout and give its folder with --studies "
        f"CHECKOUT/{FOLDER}"
    )
