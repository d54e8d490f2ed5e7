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
from tacit.experiment.assemble import load_dataset
from tacit.experiment.impression_settings import missing_texts
from tacit.experiment.needs import note_on_rounds
from tacit.experiment.privacy_settings import PrivacySettings
from tacit.experiment.registry import baseline_names, method_class
from tacit.experiment.settings import (
    Experiment,
    check_experiment,
    read_experiment,
    read_table,
)
from tacit.transport.channels import CHANNELS, channel

_MOST = 80  # characters of a cleaned name
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{,99}")
_TABLES = ("comparison.", "baselines")  # what else stands in the same folder
_BUDGETS = ("budgets", "scale")  # settings by which groups have budgets of their own
_SWITCHED_ON = ("central", "local")  # what a target turns on, the first one offered
_DELTA = 1e-6  # at most, where a file without privacy has none
_POPULARITY = "federated_popularity"  # the method behind PRIVATE_POPULARITY
PRIVATE_POPULARITY = "private_popularity"  # a baseline that keeps every target
OWN = "own"  # the word for the target that a file has
_DRAW_APART = 100_000  # between the run seeds of one split's draws: they never meet


@dataclass(frozen=True)
class Grid:
    """What is compared: each experiment at each target, over seeds.

    A seed divides the data; the draws of a seed differ in everything else. A target of
    None is the experiment's own, and without `epsilons` there is no other. A number is
    the target of everyone, whatever budgets the experiment has for its groups, and
    turns a mechanism on where the file has none; infinity is the method with
    mechanism = "none". A noisy popularity list stands beside each target, unless
    `baselines` are named without it.
    """

    experiments: tuple[Path, ...]
    epsilons: tuple[float | None, ...] = ()
    seeds: int = 3
    draws: int = 1
    changes: tuple[str, ...] = ()
    baselines: tuple[str, ...] | None = None  # None: those the experiments name
    # Settings of a baseline tried on validation users; 0: its own; None: as a run does.
    budget: int | None = None

    def __post_init__(self) -> None:
        check.at_least(1, seeds=self.seeds, draws=self.draws)
        if self.budget is not None:
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
        contests = [
            *_contests(self, tables),
            *_consenting_alone(self, tables),
            *self._noisy_lists(tables),
        ]
        _refuse_other_users(contests)
        return contests

    def notes(self) -> list[str]:
        """What a reader should know of rounds, and of targets for files without any."""
        read = (read_experiment(path, self.changes) for path in self.experiments)
        return [*filter(None, map(note_on_rounds, read)), *self._switched_on()]

    def _switched_on(self) -> list[str]:
        """The mechanism of each file that has none, where there are targets."""
        if not any(t is not None and math.isfinite(t) for t in self.epsilons):
            return []
        tables = (read_table(path, self.changes) for path in self.experiments)
        return [
            f"{path.name} has no privacy; for each epsilon its mechanism is "
            f"'{_mechanism_of(table)}'"
            for path, table in zip(self.experiments, tables, strict=True)
            if _is_unprotected(table)
        ]

    def _noisy_lists(self, tables: Mapping[Path, dict[str, Any]]) -> Iterator[Contest]:
        """A noisy popularity list at each target, if it is not there already."""
        is_wanted = self.baselines is None or PRIVATE_POPULARITY in self.baselines
        methods = [table.get("method", {}).get("name") for table in tables.values()]
        if not is_wanted or _POPULARITY in methods:
            return
        path, table = next(iter(tables.items()))
        for target in self.epsilons or (None,):
            aimed = aimed_at(target, table, path)
            if not _can_be_noisy(aimed.get("privacy", {})):
                continue
            runs = _seeded(_noisy_list(aimed), path, self)
            yield Contest(
                PRIVATE_POPULARITY, target, runs, _has_budgets(table), is_baseline=True
            )

    def beside(self) -> list[str]:
        """The baselines to fit, each once."""
        if self.baselines is not None:
            known = [*baseline_names(), PRIVATE_POPULARITY]
            for name in self.baselines:
                check.one_of(known, baseline=name)
            fitted = tuple(n for n in self.baselines if n != PRIVATE_POPULARITY)
            first = read_experiment(self.experiments[0], self.changes)
            lacking = missing_texts(first.data, first.evaluate, fitted)
            if lacking:  # before anything is trained
                raise BadValue("; ".join(lacking))
            return list(dict.fromkeys(fitted))
        read = (read_experiment(path, self.changes) for path in self.experiments)
        named = (experiment.evaluate.baselines for experiment in read)
        return list(dict.fromkeys(name for names in named for name in names))


@dataclass(frozen=True)
class Contest:
    """A planned line: for each seed, one experiment per draw.

    `is_for_all`: the file has budgets for groups, and the target takes their place.
    `is_baseline`: it stands beside what was asked for, and is no file's method.
    """

    name: str
    target: float | None
    runs: tuple[tuple[Experiment, ...], ...]
    is_for_all: bool = False
    is_baseline: bool = False

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
            runs = _seeded(aimed_at(target, table, path), path, grid)
            yield Contest(names[path], target, runs, _has_budgets(table))


def _consenting_alone(
    grid: Grid, tables: Mapping[Path, dict[str, Any]]
) -> Iterator[Contest]:
    """Each method learnt of consenting groups alone, with nothing asked of others.

    It stands beside the file as it is: whether the others add to what few give.
    """
    names = _names(tables)
    for path, table in tables.items():
        targets = table.get("privacy", {}).get("target_epsilon")
        named = targets if isinstance(targets, Mapping) else {}
        consenting = [group for group, target in named.items() if target == "none"]
        if not consenting or (grid.epsilons and None not in grid.epsilons):
            continue
        alone = aimed_at(math.inf, table, path)
        alone["privacy"]["asks"] = consenting
        label = f"{names[path]}, {' and '.join(consenting)} alone"
        yield Contest(label, None, _seeded(alone, path, grid))


def _seeded(
    table: dict[str, Any], path: Path, grid: Grid
) -> tuple[tuple[Experiment, ...], ...]:
    """For each seed, one experiment per draw."""
    first = first_seed(table)
    return tuple(
        tuple(seeded(table, seed, draw, path) for draw in range(grid.draws))
        for seed in range(first, first + grid.seeds)
    )


def _names(tables: Mapping[Path, dict[str, Any]]) -> dict[Path, str]:
    """The method's name where it tells the experiments apart, else the file's."""
    methods = [str(table.get("method", {}).get("name")) for table in tables.values()]
    names = {
        path: method if methods.count(method) == 1 else path.stem
        for path, method in zip(tables, methods, strict=True)
    }
    if PRIVATE_POPULARITY in names.values():
        raise BadValue(
            f"an experiment cannot be called {PRIVATE_POPULARITY}, which is a "
            "baseline; rename its file"
        )
    if len(set(names.values())) < len(names):
        raise BadValue("two experiments have the same method and file name; rename one")
    return names


def aimed_at(target: float | None, table: dict[str, Any], path: Path) -> dict[str, Any]:
    """The same experiment with another target, which is one for all groups.

    Who is in which public group stays, so that the accuracy of each can be told. A file
    without privacy gets a mechanism: a target means nothing without one.
    """
    aimed = copy.deepcopy(table)
    if target is None:
        return aimed
    privacy = aimed.setdefault("privacy", {})
    for name in _BUDGETS:  # with a target for each group; else some would stay below
        privacy.pop(name, None)
    if math.isinf(target):
        targets = {"target_epsilon", "target_view"}
        kept = {f.name for f in fields(PrivacySettings)} - targets
        privacy = {k: v for k, v in privacy.items() if k in kept}
        # Several operators, or clients, never add up without noise of their own.
        ways = {name: channel(name) for name in CHANNELS}
        apart = [n for n, way in ways.items() if way.noise_shares > 1 or way.masks]
        if privacy.get("channel") in apart:
            privacy["channel"] = "secure_sum"
        aimed["privacy"] = privacy | {"mechanism": "none"}
        return aimed
    if _is_unprotected(table):
        privacy |= _switched_on(table, path)
    privacy["target_epsilon"] = target
    return aimed


def _is_unprotected(table: Mapping[str, Any]) -> bool:
    return table.get("privacy", {}).get("mechanism", "none") == "none"


def _mechanism_of(table: Mapping[str, Any]) -> str:
    """The mechanism that a target turns on; refuses methods that offer none."""
    name = table["method"]["name"]
    offered = method_class(name).mechanisms
    found = next((one for one in _SWITCHED_ON if one in offered), None)
    if found is None:
        raise BadValue(
            f"{name} offers no mechanism that keeps an epsilon, only "
            f"{', '.join(offered)}: compare it with --epsilons inf, or leave it out"
        )
    return found


def _switched_on(table: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The settings that a mechanism needs beside its target."""
    mechanism, given = _mechanism_of(table), table.get("privacy", {})
    if mechanism != "central":
        return {"mechanism": mechanism}
    # The sum is trusted; reports that the server saw one by one would show everything.
    settings = {"mechanism": mechanism, "channel": "secure_sum"}
    return settings | {"delta": given.get("delta", _delta(table, path))}


def _delta(table: Mapping[str, Any], path: Path) -> float:
    """A delta far below one in all users, who are counted for it."""
    experiment = check_experiment(table, str(path), relative_to=path.parent)
    declared = experiment.data.declared_users
    users = declared or load_dataset(experiment).interactions.n_users
    return min(_DELTA, 1 / (100 * users))


def _can_be_noisy(privacy: Mapping[str, Any]) -> bool:
    """Whether a noisy list can keep these targets: there are some, and a mechanism."""
    mechanism = str(privacy.get("mechanism", "none"))
    is_offered = mechanism == "central" or mechanism.startswith("local")
    has_rates = privacy.get("budgets") == "sample"  # of a method's own phases
    return is_offered and not has_rates and privacy.get("target_epsilon") is not None


def _noisy_list(table: Mapping[str, Any]) -> dict[str, Any]:
    """The same data, target and users, ranked by one noisy count of the items."""
    noisy = copy.deepcopy({**table})
    shared = {f.name for f in fields(PrivacySettings)}
    privacy = {key: value for key, value in noisy["privacy"].items() if key in shared}
    offered = method_class(_POPULARITY).mechanisms
    if privacy["mechanism"] not in offered:
        privacy["mechanism"] = "local"  # of which it was a variant
    run = {key: v for key, v in noisy.get("run", {}).items() if key == "seed"}
    others = ("untrained", "release")
    evaluate = {k: v for k, v in noisy.get("evaluate", {}).items() if k not in others}
    return {
        "data": noisy["data"],
        "method": {"name": _POPULARITY},
        "privacy": privacy,
        "run": run,
        "evaluate": evaluate,
    }


def _has_budgets(table: dict[str, Any]) -> bool:
    """Whether groups of the experiment have budgets of their own."""
    privacy = table.get("privacy", {})
    by_target = isinstance(privacy.get("target_epsilon"), Mapping)
    return by_target or bool(privacy.get("scale")) or privacy.get("budgets") == "sample"


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
