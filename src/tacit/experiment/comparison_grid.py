"""What a comparison will run: experiments × targets × seeds × draws."""

from __future__ import annotations

import copy
import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tacit import check
from tacit.errors import BadValue
from tacit.experiment.impression_settings import missing_texts
from tacit.experiment.registry import baseline_names
from tacit.experiment.settings import (
    Experiment,
    PrivacySettings,
    check_experiment,
    read_experiment,
    read_table,
)

_MOST = 80  # characters of a cleaned name
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{,99}")
_TABLES = ("comparison.", "baselines")  # what else stands in the same folder
_BUDGETS = ("budgets", "scale")  # settings by which groups have budgets of their own
OWN = "own"  # the word for the target that a file has
_DRAW_APART = 100_000  # between the run seeds of one split's draws: they never meet


@dataclass(frozen=True)
class Grid:
    """What is compared: each experiment at each target, over seeds.

    A seed divides the data; the draws of a seed differ in everything else. A target of
    None is the experiment's own, and without `epsilons` there is no other. A number is
    the target of everyone, whatever budgets the experiment has for its groups; infinity
    is the method with mechanism = "none".
    """

    experiments: tuple[Path, ...]
    epsilons: tuple[float | None, ...] = ()
    seeds: int = 3
    draws: int = 1
    changes: tuple[str, ...] = ()
    baselines: tuple[str, ...] | None = None  # None: those the experiments name
    budget: int = 0  # settings of a baseline tried on validation users; 0: its own

    def __post_init__(self) -> None:
        check.at_least(1, seeds=self.seeds, draws=self.draws)
        check.at_least(0, budget=self.budget)
        for epsilon in self.epsilons:
            if epsilon is not None and (not math.isinf(epsilon) or epsilon < 0):
                check.positive(epsilon=epsilon)
        if len({*self.epsilons}) < len(self.epsilons):
            listed = ",".join(target_word(one) for one in self.epsilons)
            raise BadValue(f"epsilons {listed} name a target twice; name each once")
        if not self.experiments:
            raise BadValue("no experiment to compare; give at least one file")

    def contests(self) -> list[Contest]:
        """Every planned line, checked; only the experiment files are read."""
        for path in self.experiments:
            read_experiment(path, self.changes)  # refuses a file that is wrong as it is
        tables = {path: read_table(path, self.changes) for path in self.experiments}
        contests = list(_contests(self, tables))
        _refuse_other_users(contests)
        return contests

    def beside(self) -> list[str]:
        """The baselines to fit, each once."""
        if self.baselines is not None:
            for name in self.baselines:
                check.one_of(baseline_names(), baseline=name)
            first = read_experiment(self.experiments[0], self.changes)
            lacking = missing_texts(first.data, first.evaluate, self.baselines)
            if lacking:  # before anything is trained
                raise BadValue("; ".join(lacking))
            return list(self.baselines)
        read = (read_experiment(path, self.changes) for path in self.experiments)
        named = (experiment.evaluate.baselines for experiment in read)
        return list(dict.fromkeys(name for names in named for name in names))


@dataclass(frozen=True)
class Contest:
    """A planned line: for each seed, one experiment per draw.

    `is_for_all`: the file has budgets for groups, and the target takes their place.
    """

    name: str
    target: float | None
    runs: tuple[tuple[Experiment, ...], ...]
    is_for_all: bool = False

    @property
    def label(self) -> str:
        """The name of the line in a table."""
        if self.target is None:
            return self.name
        everyone = "everyone at " if self.is_for_all and self.target < math.inf else ""
        return f"{self.name}, {everyone}{target_name(self.target)}"

    @property
    def folder(self) -> str:
        """The name of the folder for its runs, which never leads out of `--out`."""
        if self.target is None:
            return folder_name(self.name)
        return f"{folder_name(self.name)}-{target_name(self.target).replace(' ', '-')}"


def folder_name(text: str) -> str:
    """A text as the name of a folder beside the tables of a comparison.

    A plain name stays as it is. Any other one loses what is not plain and gets eight
    digits of itself, so that two texts never share a folder.
    """
    is_plain = _PLAIN.fullmatch(text) and not text.startswith(_TABLES)
    if is_plain:
        return text
    cleaned = re.sub(r"[^A-Za-z0-9_+-]+", "-", text).strip("-")[:_MOST]
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=4)
    return f"{cleaned or 'experiment'}-{digest.hexdigest()}"


def _contests(grid: Grid, tables: Mapping[Path, dict[str, Any]]) -> Iterator[Contest]:
    names = _names(tables)
    for path, table in tables.items():
        for target in grid.epsilons or (None,):
            aimed = _aimed(table, target)
            first = first_seed(aimed)
            runs = tuple(
                tuple(seeded(aimed, seed, draw, path) for draw in range(grid.draws))
                for seed in range(first, first + grid.seeds)
            )
            yield Contest(names[path], target, runs, _has_budgets(table))


def _names(tables: Mapping[Path, dict[str, Any]]) -> dict[Path, str]:
    """The method's name where it tells the experiments apart, else the file's."""
    methods = [str(table.get("method", {}).get("name")) for table in tables.values()]
    names = {
        path: method if methods.count(method) == 1 else path.stem
        for path, method in zip(tables, methods, strict=True)
    }
    if len(set(names.values())) < len(names):
        raise BadValue("two experiments have the same method and file name; rename one")
    return names


def _aimed(table: dict[str, Any], target: float | None) -> dict[str, Any]:
    """The same experiment with another target, which is one for all groups.

    Who is in which public group stays, so that the accuracy of each can be told.
    """
    aimed = copy.deepcopy(table)
    if target is None:
        return aimed
    for name in _BUDGETS:  # with a target for each group; else some would stay below
        aimed.setdefault("privacy", {}).pop(name, None)
    if math.isinf(target):
        kept = {f.name for f in fields(PrivacySettings)} - {"target_epsilon"}
        privacy = {k: v for k, v in aimed["privacy"].items() if k in kept}
        aimed["privacy"] = privacy | {"mechanism": "none"}
    else:
        aimed["privacy"]["target_epsilon"] = target
    return aimed


def _has_budgets(table: dict[str, Any]) -> bool:
    """Whether groups of the experiment have budgets of their own."""
    privacy = table.get("privacy", {})
    by_target = isinstance(privacy.get("target_epsilon"), Mapping)
    return by_target or any(name in privacy for name in _BUDGETS)


def first_seed(table: dict[str, Any]) -> int:
    """The seed that an unchecked table divides its data with."""
    seed = table["data"].get("seed", table.get("run", {}).get("seed", 0))
    return int(seed)


def seeded(table: dict[str, Any], seed: int, draw: int, path: Path) -> Experiment:
    """One run; baselines are fitted once for all lines, not by every run."""
    seeded = copy.deepcopy(table)
    seeded["data"]["seed"] = seed
    seeded.setdefault("run", {})["seed"] = seed + _DRAW_APART * draw
    seeded.setdefault("evaluate", {})["baselines"] = []
    return check_experiment(seeded, str(path), relative_to=path.parent)


def _refuse_other_users(contests: list[Contest]) -> None:
    """Refuse experiments that hold out other users or measure something else."""
    first = contests[0].runs[0][0]
    for contest in contests[1:]:
        other = contest.runs[0][0]
        ours, theirs = measured(first), measured(other)
        differ = [k for k in {**ours, **theirs} if ours.get(k) != theirs.get(k)]
        if differ:
            raise BadValue(
                f"{contests[0].name} and {contest.name} differ in "
                f"{', '.join(differ)}; only what is measured alike on the same users "
                "can be compared"
            )


def measured(experiment: Experiment) -> dict[str, Any]:
    """All that decides who is held out and what is measured."""
    settings = experiment.resolved()
    data = {k: v for k, v in settings["data"].items() if k not in ("archive", "seed")}
    others = ("every", "baselines", "untrained")
    evaluate = {k: v for k, v in settings["evaluate"].items() if k not in others}
    return {f"data.{k}": v for k, v in data.items()} | {
        f"evaluate.{k}": v for k, v in evaluate.items()
    }


def target_word(target: float | None) -> str:
    """A target as `--epsilons` has it."""
    return OWN if target is None else f"{target:g}"


def target_name(target: float) -> str:
    """A target epsilon in words, for labels and folders."""
    return "no privacy" if math.isinf(target) else f"epsilon {target:g}"
