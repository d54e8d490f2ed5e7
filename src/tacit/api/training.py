"""`tacit.train`: a run, what it promises, and its recommender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.api.folders import Folder
from tacit.api.given_data import Columns, MethodChoice, Settings, given_data
from tacit.api.loading import load
from tacit.api.statement import PrivacyStatement
from tacit.experiment import training as engine
from tacit.experiment.assemble import COULD_BE_RELEASED
from tacit.experiment.build_report import Finished, contenders, write_report
from tacit.experiment.saved_run import SavedRun
from tacit.experiment.training import Watch
from tacit.records import Records
from tacit.reporting import elements, tables
from tacit.runtime.run import ONLY
from tacit.serving.recommender import Recommender
from tacit.statement import Statement
from tacit.system_errors import explained


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: what it promises, how well it ranks, and its recommender.

    A run that was trained without `out` lives in a temporary folder, which goes when
    the run does; `save` keeps it.
    """

    folder: Folder
    result: Mapping[str, Any]  # the content of result.json

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in this directory, as `train` or the command line left it."""
        with explained():
            found = SavedRun.at(Path(path))
            return cls(Folder(found.directory.path), found.result)

    @property
    def path(self) -> Path:
        """The directory with the files of the run."""
        return self.folder.path

    @property
    def method(self) -> str:
        """The name of the method that was trained."""
        return str(self.result["method"])

    @property
    def statement(self) -> PrivacyStatement:
        """Who sees what of a user, under which guarantee; print it to read it."""
        lines = tuple(Statement.from_json(line) for line in self.result["epsilons"])
        return PrivacyStatement(
            lines,
            is_release=not self.result["simulation"],
            could_be_released=self.result.get(COULD_BE_RELEASED, True),
        )

    @property
    def metrics(self) -> dict[str, float]:
        """The mean of each metric over the test users; empty for a release.

        `rows` has the standard errors, and the baselines beside the method.
        """
        own = self._evaluations.get(self.method, {"metrics": {}})
        return {name: metric["mean"] for name, metric in own["metrics"].items()}

    def rows(self) -> Records[dict[str, Any]]:
        """One row per method and metric: the mean, its standard error, and the users.

        The method is trained; the baselines saw every history in one place.
        """
        return Records(
            {"method": name, "metric": metric, **found}
            for name, judged in self._evaluations.items()
            for metric, found in judged["metrics"].items()
        )

    @cached_property
    def recommender(self) -> Recommender:
        """The trained model, ready to recommend on this device; nothing is sent."""
        return load(self.path)

    def save(self, path: str | Path) -> Run:
        """Copy the run to a new directory, which every command reads."""
        with explained():
            return Run(self.folder.copied_to(path), self.result)

    def report(self, *, user: str | None = None) -> Path:
        """Write report.html into the run; with `user`, that user's list as well."""
        with explained():
            return write_report(Finished.saved(SavedRun.at(self.path)), user=user)

    @property
    def _evaluations(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.result.get(ONLY, {}).get("evaluations", {})
        return found

    def __str__(self) -> str:
        table = self._table()
        shown = [] if table is None else [tables.to_plain(table)]
        return "\n".join([*shown, str(self.statement)])

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def _repr_html_(self) -> str:
        table = self._table()
        shown = "" if table is None else elements.table(table, heads=1, marked=(0,))
        return shown + self.statement._repr_html_()

    def _table(self) -> tables.Table | None:
        if not self._evaluations:
            return None
        return tables.comparison(contenders(self._evaluations, self.method))


def train(
    data: object,
    *,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    value: str | None = None,
    title: str | None = None,
    min_value: float | None = None,
    items: object | None = None,
    method: MethodChoice | None = None,
    epsilon: float | None = None,
    settings: Settings | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Run:
    """Simulate a training: rounds, evaluation on users who were held out, and a run.

    A table of events is trained as `tacit init` would propose for its size. The figures
    follow from a seed, so that they can be made again; for a model that real users may
    see, give an experiment with `settings={"run": {"purpose": "release"}}`.

    Args:
        data: A pandas or polars DataFrame, an Arrow table, a mapping of columns, or a
            scipy or numpy matrix of users × items; the path of a table (CSV, Parquet,
            Arrow); or an experiment: the path of a TOML file, or a mapping of its
            sections.
        user: The column with the user's id, by default `"user"`.
        item: The column with the item's id, by default `"item"`.
        time: The column with the time of an event, if there is one.
        value: The column that says how much, such as stars.
        title: The column with the item's title; in `items`, if that is given.
        min_value: The least value of an event that counts as liking.
        items: A table of all items, which makes the catalog public.
        method: The method's name, or a table with its name and hyper-parameters.
        epsilon: The target; `math.inf` trains without privacy. By default it is that
            of the experiment; for a table of events it is 4 from 500 users on.
        settings: Sections of an experiment on top of these, such as
            `{"run": {"rounds": 5}}`.
        out: The new run directory. By default it is a temporary one; see `Run.save`.
        resume: Continue an interrupted run in `out`, bit for bit.
        watch: What is told of the progress, such as a progress bar.

    Returns:
        The run: print it, or look at `statement`, `metrics` and `recommender`.

    Raises:
        TacitError: What was given cannot be trained; the message says what to do.

    """
    with explained():
        folder = Folder.of(out, "run")
        columns = Columns(user, item, time, value, title, min_value, items)
        given = given_data(data, columns)
        given = given.changed(method=method, epsilon=epsilon, settings=settings)
        # Without a folder of the caller's nobody opens its page: `report` writes it.
        outcome = engine.train(
            given.experiment(),
            folder.path,
            resume=resume,
            watch=watch,
            page=out is not None,
        )
    return Run(folder, outcome.document)
