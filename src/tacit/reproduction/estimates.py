"""How long a study takes on this machine, before its first run.

Trainings of one experiment file on one data set are a group. The largest one that is
missing is trained for a few rounds in a folder that is thrown away; the others are
taken to need as long for a client in a round. Of the missing fits of one baseline the
smallest is made, with one epoch if it has epochs, and scaled by users, items and
epochs.

    seconds of a training   overhead + rounds × clients × (seconds a client and round)
    seconds of a fit        epochs × users × items × (seconds of one each)

What was timed is kept in `out/measured`, so the same command does not time it again.
Left out: looks at the validation users between rounds, and what a study measures
without an experiment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.errors import Diverged
from tacit.experiment.assemble import load_dataset
from tacit.experiment.comparison import Progress, evaluated_baseline
from tacit.experiment.registry import baseline_class
from tacit.experiment.settings import Experiment
from tacit.experiment.training import Nobody, train
from tacit.plans import Plan
from tacit.reproduction.cells import Cell, Results
from tacit.runtime.run import RunDirectory

ROUNDS = 3  # of a training that is timed; the first is not counted, if there are more


@dataclass(frozen=True)
class Estimate:
    """What a study still needs: its missing runs, and their seconds on this machine."""

    missing: int
    finished: int
    timed: int  # trainings and fits, of which all others are scaled
    seconds: float

    @property
    def method(self) -> str:
        """How the seconds were estimated, in a sentence."""
        return (
            f"{self.timed} of them were begun here, for {ROUNDS} rounds or one epoch; "
            "the others are scaled by rounds, clients, items and epochs. Looks at "
            "validation users and what needs no experiment are not counted"
        )

    @property
    def text(self) -> str:
        """The estimate for readers."""
        there = f"{self.finished:,} of {self.finished + self.missing:,} runs are there"
        if not self.missing:
            return f"{there}; nothing is left to train"
        return (
            f"{there}; the others take about {duration(self.seconds)} on this "
            f"machine. {self.method}"
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {**asdict(self), "method": self.method}


@dataclass(frozen=True)
class _Run:
    """A run that is missing, and how much it has to do."""

    cell: Cell
    experiment: Experiment
    users: int
    items: int

    @property
    def group(self) -> tuple[str, str, str]:
        """Runs of one group cost the same for each unit of their work."""
        file, source = str(self.cell.experiment), self.experiment.data.source
        return file, source, self.cell.baseline or ""

    @property
    def work(self) -> float:
        """Rounds × clients of a training; epochs × users × items of a fit."""
        if self.cell.baseline is not None:
            return self.epochs * self.users * self.items
        return self.experiment.run.rounds * self.clients

    @property
    def clients(self) -> float:
        """How many are asked in a round."""
        plan = Plan(self.users, rounds=self.experiment.run.rounds)
        return self.experiment.sampler.expected(plan)

    @property
    def epochs(self) -> int:
        """Of a baseline; 1 if it has none."""
        assert self.cell.baseline is not None
        settings = self.experiment.evaluate.baseline_settings
        default = getattr(baseline_class(self.cell.baseline), "epochs", 1)
        return int(settings.get(self.cell.baseline, {}).get("epochs", default))


def estimate(results: Results) -> Estimate:
    """Time one run of each group that is missing, and scale it to the others."""
    missing = sorted(_missing(results), key=lambda run: (run.group, run.work))
    seconds, timed = 0.0, 0
    for _, runs in groupby(missing, key=lambda run: run.group):
        group = [*runs]
        is_fit = group[0].cell.baseline is not None
        seconds += (_seconds_of_fits if is_fit else _seconds_of_trainings)(
            results, group
        )
        timed += 1
    finished = sum(cell.seeds for cell in results.cells) - len(missing)
    return Estimate(len(missing), finished, timed, seconds)


def duration(seconds: float) -> str:
    """Seconds in the two largest units that matter, such as 3 h 20 min."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{max(1, round(seconds))} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "days" if days > 1 else "day"), (hours, "h"), (minutes, "min")]
    largest = [f"{n} {unit}" for n, unit in parts if n][:2]
    return " ".join(largest)


def _missing(results: Results) -> Iterable[_Run]:
    sizes: dict[str, tuple[int, int]] = {}
    # Sorted by their data: only the last data set that was read is kept.
    missing = [
        (json.dumps(experiment.resolved()["data"], sort_keys=True), cell, experiment)
        for cell in results.cells
        for experiment in results.missing(cell)
    ]
    for data, cell, experiment in sorted(missing, key=lambda run: run[0]):
        if data not in sizes:
            sizes[data] = _size(experiment)
        yield _Run(cell, experiment, *sizes[data])


def _size(experiment: Experiment) -> tuple[int, int]:
    """Users and items after all filters; reads the data unless a subset says it."""
    subset = experiment.subset
    if subset is not None and subset.users and subset.items:
        return subset.users, subset.items
    dataset = load_dataset(experiment)
    return len(dataset.profiles), len(dataset.catalog)


def _seconds_of_trainings(results: Results, group: list[_Run]) -> float:
    largest = group[-1]
    rounds = min(ROUNDS, largest.experiment.run.rounds)
    run = replace(largest.experiment.run, rounds=rounds)
    short = replace(largest.experiment, run=run)
    timed = _timed(results, largest, short, lambda: _time_training(short))
    a_client = timed["round"] / largest.clients
    return sum(timed["overhead"] + a_client * one.work for one in group)


def _seconds_of_fits(results: Results, group: list[_Run]) -> float:
    smallest, name = group[0], group[0].cell.baseline
    assert name is not None
    short = smallest.experiment
    if smallest.epochs > 1:
        every = short.evaluate.baseline_settings
        own = {**every.get(name, {}), "epochs": 1}
        settings = replace(short.evaluate, baseline_settings={**every, name: own})
        short = replace(short, evaluate=settings)
    timed = _timed(results, smallest, short, lambda: _time_fit(name, short))
    unit = timed["fit"] / (smallest.users * smallest.items)
    return sum(unit * one.work for one in group)


def _timed(
    results: Results,
    run: _Run,
    short: Experiment,
    measure: Callable[[], Mapping[str, float]],
) -> Mapping[str, float]:
    """The seconds that were measured before, or are now."""
    what = run.cell.baseline or run.cell.experiment.stem
    inputs = {"experiment": short.resolved(), "baseline": run.cell.baseline}
    timed: Mapping[str, float] = results.measured(
        f"time of {what} on {short.data.source}", inputs, measure
    )
    return timed


def _time_training(experiment: Experiment) -> dict[str, float]:
    """Seconds of a round, and of all that is no round."""
    load_dataset(experiment)  # what a study does once is not part of a run
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        begun = time.perf_counter()
        # A run that diverges at once is no reason to end the study before it begins.
        with suppress(Diverged):
            train(experiment, path, watch=Nobody(), page=False)
        whole = time.perf_counter() - begun
        rounds = [line["seconds"] for line in RunDirectory(path).rounds_logged()]
    later = rounds[1:] or rounds or [0.0]  # the first one compiles and imports
    return {"round": sum(later) / len(later), "overhead": whole - sum(rounds)}


def _time_fit(name: str, experiment: Experiment) -> dict[str, float]:
    """Seconds of a fit and its evaluation."""
    load_dataset(experiment)
    with TemporaryDirectory() as folder:
        begun = time.perf_counter()
        evaluated_baseline(name, experiment, Path(folder), Progress(Nobody(), 1))
        return {"fit": time.perf_counter() - begun}
