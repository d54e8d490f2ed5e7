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
from tacit.experiment.comparison_grid import Grid, folder_name
from tacit.experiment.finished_comparison import FinishedComparison
from tacit.experiment.training import Watch
from tacit.files import write_atomically
from tacit.records import Records
from tacit.reporting import charts, elements, tables
from tacit.reporting.pairs import Paired
from tacit.system_errors import explained


@dataclass(frozen=True, eq=False)
class Compared:
    """Methods and baselines at several epsilons, on the same held-out users.

    Every run is a run directory in `path`, beside comparison.json, comparison.csv and
    comparison.html. A comparison that was made without `out` lives in a temporary
    folder, which goes when the object does; `save` keeps it.
    """

    folder: Folder
    finished: FinishedComparison

    @property
    def path(self) -> Path:
        """The directory with the runs, their experiments and the tables."""
        return self.folder.path

    @property
    def verdict(self) -> str:
        """What to use at which epsilon, in plain words; ties are said as ties."""
        return "\n".join(self.finished.words)

    def rows(self) -> Records[dict[str, Any]]:
        """One row per line and metric: epsilon, mean, errors, difference and costs.

        A `difference` is by how much the row's line is better than the one `against`.
        """
        return Records(self.finished.rows())

    def differences(self) -> Records[Paired]:
        """Pairs of lines, the better first, with intervals that hold together."""
        return Records(self.finished.report.differences)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, as `tacit compare --json` prints it."""
        return self.finished.document()

    def save(self, path: str | Path) -> Compared:
        """Copy the runs and tables to a new directory, which every command reads."""
        with explained():
            return Compared(self.folder.copied_to(path), self.finished)

    def __str__(self) -> str:
        return f"{self.verdict}\n\n{tables.to_plain(self._table())}"

    def __repr__(self) -> str:
        return f"Compared({str(self.path)!r})"

    def _repr_html_(self) -> str:
        verdict = elements.listing(self.finished.words)
        return verdict + self._plot() + elements.table(self._table(), heads=1)

    def _table(self) -> tables.Table:
        return tables.comparison(self.finished.report.comparison)

    def _plot(self) -> str:
        drawn = self.finished.report.tradeoff
        if drawn is None:
            return ""
        caption = f"{drawn.metric} at each epsilon, with one standard error"
        return elements.figure(charts.tradeoff(drawn), caption)


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
    budget: int | None = None,
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
            users; 0 takes its defaults. By default 12 for those that are fitted in
            seconds and that no experiment sets.
        against: The line that the others are compared with, by default the first.
        settings: Sections of an experiment on top of these, such as
            `{"run": {"rounds": 5}}`.
        out: The folder for the runs. By default it is a temporary one.
        watch: What is told of the progress, such as a progress bar.

    Returns:
        The comparison: print it, or look at `verdict`, `rows` and `differences`.

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
        finished = FinishedComparison.of(found, grid, against=against)
        finished.write(folder.path)
    return Compared(folder, finished)


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
