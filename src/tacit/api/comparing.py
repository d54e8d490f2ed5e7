"""`tacit.compare`: methods, targets and baselines on the same users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from tacit.api.folders import Folder
from tacit.api.given_data import Columns, Given, MethodChoice, Settings, given_data
from tacit.errors import BadValue
from tacit.experiment import comparison as engine
from tacit.experiment.comparison import Comparison
from tacit.experiment.comparison_grid import Grid, folder_name
from tacit.experiment.comparison_report import comparison_of
from tacit.experiment.training import Watch
from tacit.files import write_atomically
from tacit.records import Records
from tacit.reporting import elements, plots, tables
from tacit.reporting.report_data import Paired, Report
from tacit.system_errors import explained


@dataclass(frozen=True, eq=False)
class Compared:
    """Methods and baselines at several epsilons, on the same held-out users.

    Every run is a run directory in `path`. A comparison that was made without `out`
    lives in a temporary folder, which goes when the object does; `save` keeps it.
    """

    folder: Folder
    comparison: Comparison
    report: Report

    @property
    def path(self) -> Path:
        """The directory with the runs and their experiments."""
        return self.folder.path

    def rows(self) -> Records[dict[str, Any]]:
        """One row per line and metric: epsilon, mean and standard errors."""
        return Records(self.comparison.cells())

    def differences(self) -> Records[Paired]:
        """Every line minus one other, with 95 % intervals over users."""
        return Records(self.report.differences)

    def save(self, path: str | Path) -> Compared:
        """Copy the runs to a new directory, which every command reads."""
        with explained():
            return Compared(self.folder.copied_to(path), self.comparison, self.report)

    def __str__(self) -> str:
        return tables.to_plain(tables.comparison(self.report.comparison))

    def _repr_html_(self) -> str:
        table = elements.table(tables.comparison(self.report.comparison), heads=1)
        return table + self._plot()

    def _plot(self) -> str:
        if self.report.tradeoff is None:
            return ""
        caption = f"{self.report.tradeoff.metric} at each epsilon"
        return elements.figure(plots.tradeoff(self.report.tradeoff), caption)


def compare(
    data: object,
    *,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    value: str | None = None,
    title: str | None = None,
    min_value: float | None = None,
    items: object | None = None,
    methods: Sequence[MethodChoice] | None = None,
    epsilons: Sequence[float | None] = (),
    seeds: int = 3,
    draws: int = 1,
    baselines: Sequence[str] | None = None,
    budget: int = 0,
    against: str | None = None,
    settings: Settings | None = None,
    out: str | Path | None = None,
    watch: Watch | None = None,
) -> Compared:
    """Train methods for several epsilons and seeds, and compare all of them.

    Everything is ranked for the same held-out users. Interrupted, the same call with
    the same `out` continues: finished runs are not trained again.

    Args:
        data: A table of events or an experiment, as in [`tacit.train`][tacit.train];
            or a list of experiments with the same data and metrics.
        user: The column with the user's id, by default `"user"`.
        item: The column with the item's id, by default `"item"`.
        time: The column with the time of an event, if there is one.
        value: The column that says how much, such as stars.
        title: The column with the item's title; in `items`, if that is given.
        min_value: The least value of an event that counts as liking.
        items: A table of all items, which makes the catalog public.
        methods: Names of methods, or tables with a name and hyper-parameters. By
            default that of the experiment.
        epsilons: The target epsilons to train each method for; `math.inf` trains
            without privacy, None is the experiment's own target.
        seeds: The number of splits of the data, one per seed.
        draws: Training runs per split, each with fresh noise.
        baselines: The baselines to fit instead of those of the experiment.
        budget: The number of settings to try for each baseline on the validation
            users; 0 takes its defaults.
        against: The line that the others are compared with, by default the first.
        settings: Sections of an experiment on top of these, such as
            `{"run": {"rounds": 5}}`.
        out: The folder for the runs. By default it is a temporary one.
        watch: What is told of the progress, such as a progress bar.

    Returns:
        The comparison: print it, or look at `rows` and `differences`.

    Raises:
        TacitError: What was given cannot be compared; the message says what to do.

    """
    with explained():
        folder = Folder.of(out, "comparison")
        columns = Columns(user, item, time, value, title, min_value, items)
        given = [one.changed(settings=settings) for one in _experiments(data, columns)]
        if methods is not None:
            given = [one.changed(method=m) for one in given for m in _methods(methods)]
        grid = Grid(
            experiments=_written(given, folder.path),
            epsilons=tuple(epsilons),
            seeds=seeds,
            draws=draws,
            baselines=None if baselines is None else tuple(baselines),
            budget=budget,
        )
        found = engine.compare(grid, folder.path, watch=watch)
    reference = found.lines[0].label if against is None else found.line(against).label
    report = comparison_of(
        found, found.differences(reference), against=reference, command="tacit.compare"
    )
    return Compared(folder, found, report)


def _experiments(data: object, columns: Columns) -> list[Given]:
    """One experiment, or several with the same data."""
    if isinstance(data, list | tuple):
        if not data:
            raise BadValue("data=[] has no experiment; give at least one")
        return [given_data(one, columns) for one in data]
    return [given_data(data, columns)]


def _methods(methods: Sequence[MethodChoice]) -> Sequence[MethodChoice]:
    if isinstance(methods, str) or not methods:
        raise BadValue(
            f"methods={methods!r} must be a list with at least one name, such as "
            "['gram', 'federated_popularity']"
        )
    return methods


def _written(given: Sequence[Given], folder: Path) -> tuple[Path, ...]:
    """The experiments as files: `tacit compare` makes the same of them."""
    paths = []
    for number, one in enumerate(given):
        one.experiment()  # refuses what is wrong before a file is written
        name = folder_name(str(one.table["method"]["name"]))
        path = folder / "experiments" / f"{name}.toml"
        if path in paths:
            path = path.with_stem(f"{name}-{number}")
        write_atomically(path, tomli_w.dumps(one.table).encode())
        paths.append(path)
    return tuple(paths)
