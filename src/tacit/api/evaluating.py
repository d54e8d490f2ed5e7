"""`tacit.evaluate`: a run's metrics, and how sure the differences are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.api.training import Run
from tacit.experiment.build_report import contenders
from tacit.experiment.evaluated_run import EvaluatedRun, Users, evaluate_run
from tacit.method import ListFor
from tacit.records import Records
from tacit.reporting import elements, tables
from tacit.reporting.pairs import Paired
from tacit.system_errors import explained


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The metrics of a run and its baselines, and their paired differences."""

    evaluated: EvaluatedRun

    @property
    def metrics(self) -> dict[str, float]:
        """The mean of each metric of the method over the held-out users."""
        own = self.evaluated.evaluations[self.evaluated.method].metrics()
        return {name: metric.mean for name, metric in own.items()}

    def rows(self) -> Records[dict[str, Any]]:
        """One row per method and metric: the mean, its standard error, the users."""
        return Records(
            {"method": name, "metric": metric, **found.to_json()}
            for name, evaluation in self.evaluated.evaluations.items()
            for metric, found in evaluation.metrics().items()
        )

    def differences(self) -> Records[Paired]:
        """The method and each baseline, the better first, with 95 % intervals."""
        return Records(self.evaluated.differences)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, as `tacit evaluate --json` prints it."""
        return self.evaluated.document()

    def __str__(self) -> str:
        return tables.to_plain(self._table())

    def _repr_html_(self) -> str:
        table = elements.table(self._table(), heads=1, marked=(0,))
        return table + self.differences()._repr_html_()

    def _table(self) -> tables.Table:
        found = {n: e.to_json() for n, e in self.evaluated.evaluations.items()}
        return tables.comparison(contenders(found, self.evaluated.method))


def evaluate(
    run: str | Path | Run, *, users: Users = "test", list_for: ListFor | None = None
) -> Evaluated:
    """Rank again for the held-out users of a run and compare with its baselines.

    Choose settings on the validation users; the test users are for the last look only.

    Args:
        run: A run, or its directory.
        users: The held-out users to rank for: `"test"` or `"validation"`.
        list_for: What lists are for: `"any"`, `"session"` or `"visit"`; by default as
            the run's experiment says.

    Returns:
        The evaluation: print it, or look at `metrics`, `rows` and `differences`.

    Raises:
        TacitError: There is no finished run, it is a release, which holds nobody out,
            or its events have no times to say what came last.

    """
    path = run.path if isinstance(run, Run) else Path(run)
    with explained():
        return Evaluated(evaluate_run(path, users=users, list_for=list_for))
