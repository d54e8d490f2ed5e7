"""A cell: an experiment file with changes, trained once for every seed.

    cell = Cell(Path("figure4.toml"), seeds=3)
    cell.but("privacy.votes=250")      the same file with another setting
    cell.beside("popularity")          a baseline on the same held-out users

Cells run through the same `train` as `tacit train` does, each seed into a run directory
of its own; `tacit report` draws the page of one. What is finished there is read, what
was begun is continued, and a directory that another experiment began is refused. A run
pins its experiment and its data, not the code: one of another version is named, and
whoever changed a method in between starts with an empty `out`. A run that diverged is
written down (`diverged.json`) and not tried again; its figures are NaN.

    out/runs/<file and changes>/seed-0/        a whole run
    out/baselines/<data and measures>/<name>/seed-0.json
    out/measured/<name>.json                   what is measured without an experiment
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit import check
from tacit.data import sources
from tacit.data.shards import Shards
from tacit.documents import read_document, write_document
from tacit.errors import BadValue, Diverged, MissingData
from tacit.experiment.assemble import assemble
from tacit.experiment.comparison import Progress, evaluated_baseline, finished_run
from tacit.experiment.comparison_grid import first_seed, folder_name, measured, seeded
from tacit.experiment.evaluate import evaluate_among_all, evaluate_scores
from tacit.experiment.registry import baseline_class, method_class
from tacit.experiment.saved_run import SavedRun
from tacit.experiment.settings import Experiment, read_experiment, read_table
from tacit.experiment.training import AMONG_ALL, Watch
from tacit.method import Scores
from tacit.release import Unit, View
from tacit.reproduction.tables import Line
from tacit.results import Evaluation, Metric, Pooled, pool
from tacit.runtime.run import ONLY, RunDirectory
from tacit.version import __version__


@dataclass(frozen=True)
class Cell:
    """An experiment file × changes × seeds; the seeds count up from the file's own.

    A change is what `--set` takes, such as `run.rounds=5`. With `baseline` that ranker
    is fitted on the experiment's data instead of training the method.
    """

    experiment: Path
    changes: tuple[str, ...] = ()
    seeds: int = 1
    baseline: str | None = None

    def __post_init__(self) -> None:
        check.at_least(1, seeds=self.seeds)

    def but(self, *changes: str) -> Cell:
        """The same cell with more changes; the last one of a setting holds."""
        named = {change.partition("=")[0].strip(): change for change in self.changes}
        named |= {change.partition("=")[0].strip(): change for change in changes}
        return replace(self, changes=tuple(named.values()))

    def beside(self, baseline: str) -> Cell:
        """A baseline on the users and items of this cell."""
        return replace(self, baseline=baseline)

    def experiments(self) -> tuple[Experiment, ...]:
        """The checked experiment of every seed; reads the file and no data."""
        table = read_table(self.experiment, self.changes)
        first = first_seed(table)
        seeds = range(first, first + self.seeds)
        return tuple(seeded(table, seed, 0, self.experiment) for seed in seeds)

    @property
    def folder(self) -> str:
        """The name of the folder of its runs; seeds share it."""
        file = f"{self.experiment.parent.name}.{self.experiment.stem}"
        return folder_name(" ".join([file, *self.changes]))

    @property
    def command(self) -> str:
        """What to type for its first seed alone."""
        changes = "".join(f" --set '{change}'" for change in self.changes)
        return f"tacit train {self.experiment}{changes} --out run"

    def extras(self) -> Mapping[str, str]:
        """The optional modules that it cannot be trained without: module to extra."""
        if self.baseline is not None:
            wanted: Any = baseline_class(self.baseline)
        else:
            experiment = read_experiment(self.experiment, self.changes)
            wanted = method_class(experiment.method_name)
        return dict(getattr(wanted, "EXTRAS", {}))


@dataclass(frozen=True, eq=False)
class Found:
    """What a cell yielded; one entry per seed. A baseline has no runs.

    A seed that diverged has the users and metrics of the others, NaN for each, so that
    every mean and claim of it says so. It has no run.
    """

    evaluations: tuple[Evaluation, ...]
    among_all: tuple[Evaluation, ...]  # by evaluate.full_metrics, if it has any
    runs: tuple[SavedRun, ...] = ()

    @property
    def n_seeds(self) -> int:
        """How many seeds were asked for."""
        return len(self.evaluations)

    def run(self, seed: int) -> SavedRun:
        """The run of the seed of this place, if none of the cell diverged."""
        if len(self.runs) < self.n_seeds:
            raise Diverged("a run that a figure is drawn from")
        return self.runs[seed]

    def pooled(self, metric: str) -> Pooled:
        """A metric's mean over the seeds and both of its standard errors."""
        return _metric(pool(self.evaluations), metric)

    def mean(self, metric: str) -> float:
        """A metric's mean over users and seeds."""
        return self.pooled(metric).mean

    def se(self, metric: str) -> float | None:
        """Its standard error: over seeds if there are several, else over users."""
        return self.pooled(metric).se

    def mean_among_all(self, metric: str) -> float:
        """The mean of one of the experiment's `full_metrics`."""
        if not self.among_all:
            raise BadValue(f"{metric} among all items: set evaluate.full_metrics")
        return _metric(pool(self.among_all), metric).mean

    def spent(self, view: View, *, unit: Unit = Unit.USER) -> float | None:
        """The largest epsilon that a seed's account has for a whole run, if any."""
        lines = (line for run in self.runs for line in run.result["epsilons"])
        asked = [line for line in lines if (line["unit"], line["view"]) == (unit, view)]
        known = [line["epsilon"] for line in asked if line["epsilon"] is not None]
        return max(known) if asked and len(known) == len(asked) else None

    def size(self) -> tuple[int, int]:
        """How many users trained, and over how many items, in the first seed."""
        inputs = read_document(self.runs[0].directory.inputs)
        return inputs["people"], inputs["items"]

    def cost_of_report(self) -> dict[str, float]:
        """What a client sends and fetches for one report, and its time, on average.

        The time is that of the whole simulated round, server included.
        """
        counted = [run.result[ONLY] for run in self.runs]
        reports = sum(one["took_part"] for one in counted)
        seconds = sum(run.result["seconds"] for run in self.runs)
        return {
            "bytes up": sum(one["bytes_up"] for one in counted) / reports,
            "bytes down": sum(one["bytes_down"] for one in counted) / reports,
            "ms": 1000 * seconds / reports,
        }

    def curve(self, metric: str) -> Line:
        """The metric of the validation users after every round that looked at them."""
        looked = [_looked(self.run(seed), metric) for seed in range(self.n_seeds)]
        rounds = tuple(looked[0])
        each = [[one[r] for one in looked] for r in rounds]
        means = tuple(float(np.mean([m.mean for m in seeds])) for seeds in each)
        return Line(tuple(map(float, rounds)), means, tuple(map(_error, each)))


class Results:
    """The cells of a study, each trained when it is asked for first.

    Only what was declared can be asked for: the declared cells are counted for the
    progress, and their extras are looked for before the first step.
    """

    def __init__(
        self,
        out: Path,
        cells: Collection[Cell],
        watch: Watch,
        *,
        retry_diverged: bool = False,
    ) -> None:
        self.out, self.cells = out, dict.fromkeys(cells)
        n_runs = sum(cell.seeds for cell in self.cells)
        self.progress = Progress(watch, n_runs, retry_diverged=retry_diverged)
        self.diverged: list[str] = []  # a sentence for each run that did
        self._found: dict[Cell, Found] = {}

    def __getitem__(self, cell: Cell) -> Found:
        if cell not in self.cells:
            raise BadValue(f"{cell} is asked for and was not declared; add it to cells")
        if cell not in self._found:
            make = self._trained if cell.baseline is None else self._fitted
            self._found[cell] = make(cell)
        return self._found[cell]

    def missing(self, cell: Cell) -> list[Experiment]:
        """The seeds of a cell that are neither finished nor known to diverge."""
        experiments = cell.experiments()
        if cell.baseline is not None:
            folder = self._baseline_folder(cell, experiments[0])
            files = [folder / f"seed-{one.split_seed}.json" for one in experiments]
            pairs = zip(experiments, files, strict=True)
            return [one for one, file in pairs if not file.exists()]
        return [one for one in experiments if not self._is_settled(cell, one)]

    def _is_settled(self, cell: Cell, experiment: Experiment) -> bool:
        run = RunDirectory(self._place(cell, experiment))
        is_diverged = run.diverged.exists() and not self.progress.retry_diverged
        return run.result.exists() or is_diverged

    def measured(
        self, name: str, inputs: Mapping[str, Any], make: Callable[[], Any]
    ) -> Any:
        """What `make` gives, as plain JSON, made once for these inputs.

        For what is no experiment: `inputs` must name all that the answer depends on.
        """
        text = json.dumps({"name": name, **inputs}, sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        path = self.out / "measured" / f"{folder_name(name)}-{digest}.json"
        if not path.exists():
            self.progress.begins(name)
            kept = {"inputs": {**inputs}, "found": make()}
            write_document(path, kept, is_private=True)
        return read_document(path)["found"]

    def _trained(self, cell: Cell) -> Found:
        experiments = cell.experiments()
        runs = [self._run(one, self._place(cell, one)) for one in experiments]
        finished = tuple(run for run in runs if run is not None)
        self._name_other_versions(finished)
        own, among_all = (
            tuple(
                _evaluation(run, kind) if run is not None else _no_figures(one, kind)
                for run, one in zip(runs, experiments, strict=True)
            )
            for kind in ("evaluations", AMONG_ALL)
        )
        return Found(_present(own), _present(among_all), finished)

    def _place(self, cell: Cell, experiment: Experiment) -> Path:
        """The directory of the run of a seed."""
        return self.out / "runs" / cell.folder / f"seed-{experiment.split_seed}"

    def _run(self, experiment: Experiment, path: Path) -> SavedRun | None:
        """The finished run of a seed; None if it diverged."""
        try:
            return finished_run(experiment, path, self.progress, page=False)
        except Diverged as error:
            self.diverged.append(f"{path.parent.name}, {error}")
            self.progress.watch.say(self.diverged[-1])
            return None

    def _name_other_versions(self, runs: tuple[SavedRun, ...]) -> None:
        """Say which runs another version of the package began."""
        for run in runs:
            # The card is drawn once, before the first round, and keeps this entry.
            began = read_document(run.directory.privacy_card).get("tacit")
            if began != __version__:
                self.progress.watch.say(
                    f"{run.directory.path} was begun by Tacit {began}, this is "
                    f"{__version__}; to train it anew, remove that folder"
                )

    def _fitted(self, cell: Cell) -> Found:
        """Fitted once for all cells that are measured alike on the same data."""
        assert cell.baseline is not None
        experiments = cell.experiments()
        folder = self._baseline_folder(cell, experiments[0])
        judged = [
            # As the paper set them: a study searches nothing.
            evaluated_baseline(cell.baseline, one, folder, self.progress, budget=0)
            for one in experiments
        ]
        among_all = _present(tuple(one.among_all for one in judged))
        return Found(tuple(one.own for one in judged), among_all)

    def _baseline_folder(self, cell: Cell, experiment: Experiment) -> Path:
        assert cell.baseline is not None
        text = json.dumps(measured(experiment), sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        source = folder_name(experiment.data.source)
        return self.out / "baselines" / f"{source}-{digest}" / cell.baseline


def has_data(source: str) -> bool:
    """Whether the archive of a data set can be found on this machine."""
    try:
        sources.load(source)
    except MissingData:
        return False
    return True


def _metric(found: Mapping[str, Pooled], metric: str) -> Pooled:
    if metric not in found:
        raise BadValue(f"metric {check.unknown(metric, found)}")
    return found[metric]


def _evaluation(run: SavedRun, kind: str) -> Evaluation | None:
    result = run.result
    judged = result[ONLY].get(kind, {}).get(result["method"])
    return None if judged is None else Evaluation.from_json(judged)


def _no_figures(experiment: Experiment, kind: str) -> Evaluation | None:
    """NaN for every metric of the users that a run would have been judged on."""
    assembled = assemble(experiment)
    judge = evaluate_among_all if kind == AMONG_ALL else evaluate_scores
    of_nobody = judge(assembled, _alike, assembled.split.test)
    if of_nobody is None:
        return None
    values = {n: np.full_like(v, np.nan) for n, v in of_nobody.values.items()}
    totals = dict.fromkeys(of_nobody.totals, float("nan"))
    return replace(of_nobody, values=values, totals=totals)


def _alike(history: Shards) -> Scores:
    """The same score for every item."""
    return np.zeros((len(history), history.n_items), np.float32)


def _present(found: tuple[Evaluation | None, ...]) -> tuple[Evaluation, ...]:
    return tuple(one for one in found if one is not None)


def _looked(run: SavedRun, metric: str) -> dict[int, Metric]:
    """The validation users' metric by round, counted from 1."""
    lines = (line for line in run.directory.rounds_logged())
    return {
        line["round"] + 1: Metric(**line[ONLY]["validation"][metric])
        for line in lines
        if "validation" in line[ONLY]
    }


def _error(seeds: list[Metric]) -> float:
    """Over seeds if there are several, else over users."""
    if len(seeds) == 1:
        return seeds[0].se or 0.0
    return float(np.std([one.mean for one in seeds], ddof=1) / np.sqrt(len(seeds)))
