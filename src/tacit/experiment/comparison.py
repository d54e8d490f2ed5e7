"""Methods × targets × seeds on the same held-out users, resumable line by line.

    out/<method>[-epsilon-2]/seed-0[-draw-1]/   a whole run each, as of `tacit train`
    out/baselines/<name>/seed-0.json            a baseline's metrics per user

Finished runs are not trained again, and those of another comparison are refused. A run
that diverged is written down as that and not tried again unless asked; its line has no
figures, and the others are compared.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from tacit import check
from tacit.documents import read_document, write_document
from tacit.errors import BadRun, BadValue, Diverged
from tacit.experiment.assemble import COULD_BE_RELEASED, assemble, load_dataset
from tacit.experiment.comparison_cost import Cost, cost_of_run, measure
from tacit.experiment.comparison_grid import Contest, Grid, measured
from tacit.experiment.evaluate import (
    UNTRAINED,
    baseline_scorer,
    evaluate_among_all,
    evaluate_scores,
)
from tacit.experiment.needs import (
    refuse_few_rounds,
    refuse_missing_extras,
    refuse_too_large,
)
from tacit.experiment.pairs import pair_of
from tacit.experiment.saved_run import SavedRun
from tacit.experiment.settings import Experiment
from tacit.experiment.training import Nobody, Watch, train
from tacit.release import EVERYONE, Standing, Unit, View
from tacit.reporting.pairs import Paired
from tacit.results import Evaluation, Groups, Metric, Pooled, pool
from tacit.runtime.run import RunDirectory


@dataclass(frozen=True, eq=False)
class Line:
    """A method at a target, or a baseline: one evaluation per seed.

    `target` is None where none was asked for. `provable` is the largest epsilon of any
    seed, for a user's whole history and what is published; None if there is none.
    `by_group` has the same for each public group, if there are any: None for one to
    which nothing is promised. `asks`: the only groups that train, if not all do.
    """

    name: str
    label: str
    target: float | None
    provable: float | None
    evaluations: tuple[Evaluation, ...]
    is_baseline: bool = False
    by_group: Mapping[str, float | None] = field(default_factory=dict)
    asks: tuple[str, ...] | None = None
    cost: Cost = field(default_factory=Cost)
    is_noisy: bool = False  # whether a mechanism was on, proven or not
    could_be_released: bool = True  # else no release could follow
    standing: Standing = Standing.PROVEN  # of the provable epsilon, if it has one

    @property
    def is_open(self) -> bool:
        """Whether it is a method without any mechanism."""
        return not self.is_baseline and not self.is_noisy

    @property
    def is_unproven(self) -> bool:
        """Whether a mechanism was on of which nothing is proven to anybody."""
        return self.is_noisy and self.provable is None and not self.is_mixed

    @property
    def is_mixed(self) -> bool:
        """Whether something is proven to some groups and not to all."""
        figures = self.by_group.values()
        return None in figures and any(one is not None for one in figures)

    @property
    def chosen(self) -> str | None:
        """The settings that were chosen on validation users in each seed, if any."""
        told = [str(one.chosen) for one in self.evaluations if one.chosen is not None]
        if not told:
            return None
        seconds = self.cost.seconds
        cost = "" if seconds is None else f"; {seconds:.1f} s with the search"
        return "; ".join(told) + cost

    @property
    def epsilon(self) -> float | None:
        """The target epsilon, or where there is none the provable one."""
        aimed = self.target is not None and math.isfinite(self.target)
        return self.target if aimed else self.provable

    def of_group(self, group: str) -> dict[str, Metric]:
        """Every metric of the held-out users of a public group, of all seeds."""
        parts = [
            one.only(one.budgets.member_of == one.budgets.labels.index(group))
            for one in self.evaluations
            if one.budgets is not None and _has_members(one.budgets, group)
        ]
        return Evaluation.joined(parts).metrics() if parts else {}

    def pooled(self) -> dict[str, Pooled]:
        """The mean of every metric over seeds, with its standard error."""
        return pool(self.evaluations)


@dataclass(frozen=True, eq=False)
class Comparison:
    """All lines, on the same users."""

    lines: tuple[Line, ...]
    seeds: tuple[int, ...]
    draws: int
    source: str
    diverged: Mapping[str, str] = field(default_factory=dict)  # label -> how, and where

    @property
    def could_be_released(self) -> bool:
        """Whether a release could follow: all lines have the same items."""
        return all(line.could_be_released for line in self.lines)

    def line(self, label: str) -> Line:
        """The line of this label."""
        known = {line.label: line for line in self.lines}
        if label in self.diverged:
            raise BadValue(f"line '{label}' has no figures: {self.diverged[label]}")
        if label not in known:
            raise BadValue(f"line {check.unknown(label, known)}")
        return known[label]

    @property
    def n_pairs(self) -> int:
        """All pairs, because which ones are looked at depends on the figures."""
        return max(1, math.comb(len(self.lines), 2))

    @cached_property
    def pairs(self) -> dict[frozenset[str], tuple[Paired, ...]]:
        """Every two lines for each metric, the one with the larger mean first.

        The intervals of all of them hold together with 95 %, for each metric.
        """
        each = {line.label: line.evaluations for line in self.lines}
        return {
            frozenset(pair): pair_of(*pair, each, n_pairs=self.n_pairs)
            for pair in combinations(each, 2)
        }

    def pair(self, one: str, other: str) -> tuple[Paired, ...]:
        """Two lines for each metric."""
        return self.pairs[frozenset((self.line(one).label, self.line(other).label))]

    def pairs_with(self, label: str) -> tuple[Paired, ...]:
        """The line of this label beside every other one."""
        others = [line.label for line in self.lines if line.label != label]
        return tuple(pair for other in others for pair in self.pair(label, other))

    def budgets(self) -> list[dict[str, Any]]:
        """One entry per line, public group and metric, where there are groups."""
        return [
            {
                "label": line.label,
                "group": group,
                "epsilon": epsilon,
                "is_asked": line.asks is None or group in line.asks,
                "metric": metric,
                **found.to_json(),
            }
            for line in self.lines
            for group, epsilon in line.by_group.items()
            for metric, found in line.of_group(group).items()
        ]

    def costs(self) -> list[dict[str, Any]]:
        """One entry per line: bytes and seconds of a client, seconds and memory."""
        return [{"label": line.label, **asdict(line.cost)} for line in self.lines]

    def cells(self) -> list[dict[str, Any]]:
        """One entry per line and metric."""
        return [
            {
                "method": line.name,
                "label": line.label,
                "epsilon": line.epsilon,
                "provable_epsilon": line.provable,
                "is_baseline": line.is_baseline,
                "metric": metric,
                **pooled.to_json(),
            }
            for line in self.lines
            for metric, pooled in line.pooled().items()
        ]


def compare(
    grid: Grid, out: Path, *, watch: Watch | None = None, retry_diverged: bool = False
) -> Comparison:
    """Train what is missing, fit the baselines, and compare all of them.

    What any of them needs and this machine lacks is said before the first is trained.
    With `retry_diverged`, runs that diverged before are trained anew.
    """
    contests, baselines = grid.contests(), grid.beside()
    # Any contest would do: all have the same data, and baselines know no noise.
    experiments = [draws[0] for draws in contests[0].runs]
    _refuse_impossible(contests, baselines, experiments, out)
    runs = grid.seeds * (grid.draws * len(contests) + len(baselines))
    progress = Progress(watch or Nobody(), runs, retry_diverged=retry_diverged)
    lines: list[Line] = []
    diverged: dict[str, str] = {}
    for contest in contests:
        try:
            lines += _played(contest, out, progress)
        except Diverged as error:
            diverged[contest.label] = str(error)
    for name in baselines:
        try:
            lines.append(_judged(name, experiments, out, progress, budget=grid.budget))
        except Diverged as error:
            diverged[name] = str(error)
    seeds = tuple(experiment.split_seed for experiment in experiments)
    if not lines:
        raise BadRun(f"nothing is left to compare: {'; '.join(diverged.values())}")
    source = experiments[0].data.name
    return Comparison(tuple(lines), seeds, grid.draws, source, diverged)


# --- Details -------------------------------------------------------------------------


def _refuse_impossible(
    contests: Sequence[Contest],
    baselines: Sequence[str],
    experiments: Sequence[Experiment],
    out: Path,
) -> None:
    """Refuse what cannot be trained or fitted here; what is finished needs nothing."""
    for contest in contests:
        experiment = contest.runs[0][0]
        if not RunDirectory(_place(out, contest, experiment)).experiment.exists():
            refuse_few_rounds(experiment)
    methods = {contest.runs[0][0].method_name for contest in contests}
    left = [
        name
        for name in baselines
        if not all(_baseline_file(out, name, one).exists() for one in experiments)
    ]
    refuse_missing_extras(methods, left)
    if not left:
        return
    data = load_dataset(experiments[0])
    refuse_too_large(
        left,
        experiments[0].evaluate,
        n_users=len(data.profiles),
        n_items=len(data.catalog),
        option=lambda names: f"--baselines {','.join(names) or 'none'}",
    )


def _has_members(groups: Groups, label: str) -> bool:
    if label not in groups.labels:
        return False
    return bool((groups.member_of == groups.labels.index(label)).any())


class Progress:
    """Counts finished runs for whoever looks on."""

    def __init__(
        self, watch: Watch, total: int, *, retry_diverged: bool = False
    ) -> None:
        self.watch, self.total, self.done = watch, total, 0
        self.retry_diverged = retry_diverged

    def begins(self, what: str) -> None:
        """A run that was not there is trained now."""
        self.watch.say(what)

    def finished(self) -> None:
        """A run is there, whether it was before or not."""
        self.done += 1
        self.watch.round(self.done, self.total, {})


class _OnlyTexts(Nobody):
    """A watch on one run that passes on what all runs share: texts become vectors."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def texts(self, done: int, total: int) -> None:
        self.watch.texts(done, total)


def _played(contest: Contest, out: Path, progress: Progress) -> list[Line]:
    """The line of a contest, and that of its untrained start if it was ranked for."""
    runs = _runs(contest, out, progress)
    documents = [[run.result for run in of_seed] for of_seed in runs]
    costs = [
        cost_of_run(run.directory, document)
        for of_seed, found in zip(runs, documents, strict=True)
        for run, document in zip(of_seed, found, strict=True)
    ]
    every = [document for of_seed in documents for document in of_seed]
    spent = [_provable(document) for document in every]
    known = [epsilon for epsilon in spent if epsilon is not None]
    # The worst of the runs; one without a proof leaves the line without.
    provable = max(known) if len(known) == len(spent) else None
    evaluations = tuple(
        _averaged([_evaluation(d) for d in of_seed]) for of_seed in documents
    )
    own = Line(
        contest.name,
        contest.label,
        contest.target,
        provable,
        evaluations,
        is_baseline=contest.is_baseline,
        by_group=_by_group(every, evaluations, provable),
        asks=contest.runs[0][0].privacy.asks,
        cost=Cost.of_runs(costs),
        is_noisy=contest.runs[0][0].privacy.mechanism != "none",
        standing=Standing.lowest(
            Standing(line["standing"]) for one in every for line in _published(one)
        ),
        could_be_released=all(one.get(COULD_BE_RELEASED, True) for one in every),
    )
    if not all(UNTRAINED in _evaluated(document) for document in every):
        return [own]
    begun = tuple(
        _averaged([_evaluation(d, UNTRAINED) for d in of_seed]) for of_seed in documents
    )
    label = f"{contest.label}, {UNTRAINED}"
    return [own, Line(contest.name, label, None, None, begun, is_baseline=True)]


def _runs(contest: Contest, out: Path, progress: Progress) -> list[list[SavedRun]]:
    """The finished runs of each seed; the first one that is missing is warmed up."""
    runs, is_warm = [], False
    for draws in contest.runs:
        runs.append(list[SavedRun]())
        for draw, experiment in enumerate(draws):
            place = _place(out, contest, experiment, draw)
            is_missing = not RunDirectory(place).result.exists()
            warm = is_missing and not is_warm
            runs[-1].append(finished_run(experiment, place, progress, warm=warm))
            is_warm = is_warm or is_missing
    return runs


def _by_group(
    documents: Sequence[Mapping[str, Any]],
    evaluations: Sequence[Evaluation],
    provable: float | None,
) -> dict[str, float | None]:
    """The largest epsilon of any run for each public group; empty without groups.

    Where one target is for all, each group has what everyone has.
    """
    labels = evaluations[0].budgets.labels if evaluations[0].budgets else ()
    found: dict[str, float | None] = dict.fromkeys(labels, provable)
    lines = [line for document in documents for line in _published(document)]
    if {line["group"] for line in lines} == {EVERYONE}:
        return found
    for group in {line["group"] for line in lines}:
        own = [one for one in lines if one["group"] == group]
        has_all = all(Standing(one["standing"]).has_epsilon for one in own)
        found[group] = max(one["epsilon"] for one in own) if has_all else None
    return found


def _place(out: Path, contest: Contest, experiment: Experiment, draw: int = 0) -> Path:
    """The directory of a run: read if it is finished, else trained or resumed."""
    # The first draw has no suffix: more draws later find it in its place.
    name = f"seed-{experiment.split_seed}" + (f"-draw-{draw}" if draw else "")
    return out / contest.folder / name


def finished_run(
    experiment: Experiment,
    path: Path,
    progress: Progress,
    *,
    page: bool = True,
    warm: bool = False,
) -> SavedRun:
    """The run at `path`, trained if it is not there and continued if it began.

    Raises `Diverged` if it did and writes that down: the same seed gives the same run.
    """
    _refuse_links(path.parent, path)
    directory = RunDirectory(path)
    if directory.diverged.exists():
        _refuse_another_experiment(directory, experiment)
        if not progress.retry_diverged:
            progress.finished()
            raise _diverged(directory)
        shutil.rmtree(path)
    if not _is_finished(directory, experiment):
        progress.begins(f"{path.parent.name}, {path.name.replace('-', ' ')}")
        has_begun = directory.experiment.exists()
        watch = _OnlyTexts(progress.watch)
        try:
            train(experiment, path, resume=has_begun, watch=watch, page=page, warm=warm)
        except Diverged as error:
            facts = {"settings": experiment.resolved(), **error.to_json()}
            write_document(directory.diverged, facts, is_private=True)
            progress.finished()
            raise _diverged(directory) from error
    progress.finished()
    return SavedRun(directory)


def _diverged(directory: RunDirectory) -> Diverged:
    """How the run diverged, as it was written down, with the place of its files."""
    kept = read_document(directory.diverged)
    problem = f"{directory.path.name}, {kept['problem']}"
    return Diverged(problem, kept["round"], kept["lower"])


def _refuse_another_experiment(directory: RunDirectory, experiment: Experiment) -> None:
    if not SavedRun(directory).experiment.is_same_as(experiment):
        raise BadRun(
            f"{directory.path} was begun by another experiment, which diverged; remove "
            "that folder, or choose another --out"
        )


def _refuse_links(*folders: Path) -> None:
    """Refuse links, so that nothing is written outside `--out`."""
    for folder in folders:
        if folder.is_symlink():
            raise BadRun(
                f"{folder} is a link to another place, where nothing is written; "
                "remove it, or choose another --out"
            )


def _is_finished(directory: RunDirectory, experiment: Experiment) -> bool:
    if not directory.result.exists():
        return False
    # Another experiment is not finished here; `train` then refuses the directory.
    return SavedRun(directory).experiment.is_same_as(experiment)


def _provable(document: Mapping[str, Any]) -> float | None:
    """The proven epsilon of a whole history in the release view, if there is one."""
    lines = _published(document)
    if not lines or any(not Standing(line["standing"]).has_epsilon for line in lines):
        return None
    # Groups may have budgets of their own; the largest holds for everyone.
    return max(line["epsilon"] for line in lines)


def _published(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The lines about a whole history in the release view, one per group."""
    return [
        line
        for line in document["epsilons"]
        if line["unit"] == Unit.USER and line["view"] == View.RELEASE
    ]


def _evaluation(document: Mapping[str, Any], name: str | None = None) -> Evaluation:
    """The evaluation of this name; by default that of the method."""
    return Evaluation.from_json(_evaluated(document)[name or document["method"]])


def _evaluated(document: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = document["simulation_only"]["evaluations"]
    return found


def _averaged(draws: Sequence[Evaluation]) -> Evaluation:
    """The mean of each user's metrics over draws, which differ in their noise."""
    first = draws[0]
    values = {
        name: np.mean([draw.values[name] for draw in draws], axis=0)
        for name in first.values
    }
    totals = {
        name: float(np.mean([draw.totals[name] for draw in draws]))
        for name in first.totals
    }
    return replace(first, values=values, totals=totals)


def _judged(
    name: str,
    experiments: Sequence[Experiment],
    out: Path,
    progress: Progress,
    *,
    budget: int | None,
) -> Line:
    folder = out / "baselines" / name
    missing = [
        one for one in experiments if not _baseline_file(out, name, one).exists()
    ]
    found = [
        evaluated_baseline(
            name,
            experiment,
            folder,
            progress,
            budget=budget,
            warm=experiment in missing[:1],
        )
        for experiment in experiments
    ]
    evaluations = tuple(one.own for one in found)
    cost = Cost.of_runs([one.cost for one in found])
    return Line(name, name, None, None, evaluations, is_baseline=True, cost=cost)


def _baseline_file(out: Path, name: str, experiment: Experiment) -> Path:
    return out / "baselines" / name / f"seed-{experiment.split_seed}.json"


@dataclass(frozen=True, eq=False)
class EvaluatedBaseline:
    """A baseline by the experiment's protocol and, if asked for, among all items."""

    own: Evaluation
    among_all: Evaluation | None
    cost: Cost = field(default_factory=Cost)


def evaluated_baseline(
    name: str,
    experiment: Experiment,
    folder: Path,
    progress: Progress,
    *,
    budget: int | None = None,
    warm: bool = False,
) -> EvaluatedBaseline:
    """The baseline's numbers in this folder, fitted first if they are not there."""
    path = folder / f"seed-{experiment.split_seed}.json"
    _refuse_links(folder.parent, folder)
    fit = {"seed": experiment.split_seed, "budget": budget}
    digest = _digest({**measured(experiment), **fit})
    if not path.exists():
        progress.begins(f"{name}, seed {experiment.split_seed}")
        _fit_baseline(name, experiment, path, digest, budget=budget, warm=warm)
    kept = read_document(path)
    if kept.get("digest") != digest:
        raise BadRun(
            f"{path} was made by another comparison; choose another --out, or delete it"
        )
    progress.finished()
    read, among_all = Evaluation.from_json, kept.get("among_all")
    return EvaluatedBaseline(
        read(kept["evaluation"]),
        None if among_all is None else read(among_all),
        Cost(seconds=kept.get("seconds"), memory_bytes=kept.get("memory_bytes")),
    )


def _fit_baseline(
    name: str,
    experiment: Experiment,
    path: Path,
    digest: str,
    *,
    budget: int | None,
    warm: bool,
) -> None:
    """Write down what everyone held out gets from the baseline."""
    assembled = assemble(experiment)
    if warm:  # libraries and kernels are loaded before anything is measured
        baseline_scorer(assembled, name, budget=0)
    (score, chosen), measured = measure(
        lambda: baseline_scorer(assembled, name, budget=budget)
    )
    heldout = assembled.split.test
    own = replace(evaluate_scores(assembled, score, heldout), chosen=chosen)
    among_all = evaluate_among_all(assembled, score, heldout)
    kept = {"digest": digest, "evaluation": own.to_json()}  # of each user
    kept |= asdict(measured)
    if among_all is not None:
        kept["among_all"] = among_all.to_json()
    write_document(path, kept, is_private=True)


def _digest(settings: Mapping[str, Any]) -> str:
    text = json.dumps(settings, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()
