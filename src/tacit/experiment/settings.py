"""The sections of an experiment file, and how a file becomes an `Experiment`.

[data]      which data set, what to keep of it, how to divide it
[method]    name = "…", and the method's hyper-parameters
[privacy]   mechanism = "…" and its fields, channel, delta, target, public groups
[run]       seed, rounds, who takes part in each
[evaluate]  metrics, protocol, baselines to compare with
[serve]     where lists are ranked, and what a query may cost (`serve_settings`)
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tacit import check
from tacit.data import sources
from tacit.data.contribution_bounds import ContributionBounds
from tacit.data.metadata_vectors import MetadataVectors
from tacit.data.sources.listed_tables import ItemsTable, UsersTable
from tacit.data.sources.table import EventsTable
from tacit.data.subset import Subset
from tacit.data.synthetic.news_world import NewsWorld
from tacit.data.synthetic.world import World
from tacit.errors import BadExperiment, BadValue, Refused
from tacit.evaluation.metrics import parse
from tacit.evaluation.paper_protocols import named
from tacit.evaluation.released_metric import Measured, ReleasedMetric
from tacit.experiment import impression_settings
from tacit.experiment.dataclass_fields import Problems
from tacit.experiment.privacy_settings import PrivacySettings
from tacit.experiment.registry import (
    baseline_class,
    baseline_names,
    method_class,
    method_names,
)
from tacit.experiment.serve_settings import ServeSettings
from tacit.experiment.starting_points import with_method_of
from tacit.mechanisms.item_selection import ItemSelection
from tacit.method import ListFor, Method
from tacit.privacy import UNPROTECTED
from tacit.sampling import (
    Everyone,
    FixedSize,
    Once,
    Poisson,
    PoissonByGroup,
    Sampler,
)

Table = Mapping[str, Any]


SplitName = Literal[
    "new-users",
    "adapt-half",
    "leave-one-out",
    "leave-latest-out",
    "leave-last-visit-out",
    "global-cut",
    "ratio",
    "none",
    "by-time",
    "by-part",
]
_NEXT = frozenset({"leave-latest-out", "global-cut"})
_NEXT_ITEM = ("ndcg@10", "recall@20")  # where there is one target each
_WORLDS: Mapping[str, type[World] | type[NewsWorld]] = {
    "synthetic": World,
    "synthetic-news": NewsWorld,
}


@dataclass(frozen=True)
class DataSettings:
    """Which data set to read, how to filter it, and how to divide it.

    `validation` and `test` are fractions of the users if below 1, else numbers of
    users; with split = "ratio" they are fractions of everyone's items. Impressions are
    divided by time or by published part (`impression_settings`). A paper's `protocol`
    decides how the data are filtered, divided and evaluated, as the paper did.
    `population` is the number of users in the plan, or the number in each public group:
    those who are not in the data are absent. By default it is counted.
    """

    source: str
    table: Mapping[str, Any] = field(default_factory=dict)  # of source = "table"
    world: Mapping[str, Any] = field(default_factory=dict)  # of an invented source
    archive: str | None = None  # where the archive lies, if not in the usual places
    protocol: str | None = None
    min_value: float | None = None
    min_interactions: int = 2
    min_users: int = 1  # who have an item; items are dropped before users are
    construction: Mapping[str, Any] | None = None  # bounds of contributions, DP-VAE's
    subset: Mapping[str, Any] | None = None  # of the users and items that are left
    split: SplitName = "new-users"
    validation: float = 0.1
    test: float = 0.1
    target_share: float = 0.2
    targets: Literal["random", "latest"] = "random"  # of split = "new-users"
    visit_gap: float | None = None  # days, of "leave-last-visit-out"; by default 1
    # of "by-time" and "global-cut": seconds since 1970, or ISO 8601, by default in UTC
    validation_from: int | str | None = None
    test_from: int | str | None = None
    validation_part: str | None = None  # of split = "by-part"
    test_part: str | None = None
    # all that somebody has; training: what trainers have; declared: all that are listed
    items: Literal["all", "training", "declared"] = "all"
    text_vectors: tuple[str, ...] = ()  # texts of items, such as title: title_vector
    metadata_vectors: Mapping[str, Any] | None = None  # of users, by a file of words
    population: int | Mapping[str, int] | None = None
    selection: Mapping[str, Any] | None = None  # of items, where none are declared
    seed: int | None = None  # of the split, if not the run's

    def __post_init__(self) -> None:
        check.one_of([*sources.names(), "table"], source=self.source)
        check.at_least(1, min_interactions=self.min_interactions)
        check.at_least(1, min_users=self.min_users)
        check.positive(validation=self.validation, test=self.test)
        check.fraction(target_share=self.target_share)
        if self.seed is not None:
            check.at_least(0, seed=self.seed)
        declared = self.population
        sizes = declared if isinstance(declared, Mapping) else {"": declared}
        for group, size in sizes.items():
            if size is not None:
                name = f"population.{group}" if group else "population"
                check.count(remedy="", **{name: size})
        if self.protocol is not None:
            named(self.protocol, self.source)
        if len({*self.text_vectors}) < len(self.text_vectors):
            raise BadValue(
                f"text_vectors={[*self.text_vectors]} must name each text once"
            )
        if self.text_vectors and self.selection is not None:
            raise BadValue(
                "text_vectors need texts that are public, and a selection of items "
                "releases nothing but ids; declare the items, or leave text_vectors out"
            )
        if self.split == "ratio" and self.validation + self.test >= 1:
            raise BadValue(
                f"validation={self.validation} and test={self.test} must be shares "
                "that leave something to train on with split = 'ratio'"
            )
        if self.targets == "latest" and self.split != "new-users":
            raise BadValue(
                "targets = 'latest' goes with split = 'new-users', not "
                f"'{self.split}'; leave it out"
            )
        if self.visit_gap is not None:
            check.positive(visit_gap=self.visit_gap)
            if self.split != "leave-last-visit-out":
                raise BadValue(
                    "visit_gap goes with split = 'leave-last-visit-out', not "
                    f"'{self.split}'; leave it out"
                )
        if self.world and self.source not in _WORLDS:
            raise BadValue(
                "a table [data.world] goes with source = 'synthetic' or "
                "'synthetic-news' only; the other worlds have their sizes"
            )
        if (self.source == "table") != bool(self.table):
            raise BadValue(
                "source = 'table' and a section [data.table] with path, user and item "
                "go together; one of them is missing"
            )

    @property
    def name(self) -> str:
        """What pages call the data: the table's file, or the source."""
        path = self.table.get("path")
        return self.source if path is None else Path(str(path)).name

    @property
    def holds_out_impressions(self) -> bool:
        """Whether impressions are held out, and not users or their items."""
        return self.split in impression_settings.SPLITS

    @property
    def holds_out_next(self) -> bool:
        """Whether what follows is to be found, be it at once or a year later."""
        return self.split in _NEXT or self.targets == "latest"

    @property
    def fewest_interactions(self) -> int:
        """How many distinct items somebody must have to stay."""
        # Clicks to be predicted must not decide who is there, so everybody stays.
        return 0 if self.holds_out_impressions else self.min_interactions

    @property
    def declared_users(self) -> int | None:
        """The declared number of users, all groups together; None if not declared."""
        sizes = self.population
        return sum(sizes.values()) if isinstance(sizes, Mapping) else sizes


@dataclass(frozen=True)
class RunSettings:
    """The number of rounds, who takes part in them, and the purpose of the run.

    A table without rounds has the usual ones of its method (`Method.usual_rounds`).
    A simulation draws from its seed, and whoever knows the seed can subtract the noise.
    A release draws from the operating system; its model may be published.
    """

    purpose: Literal["simulation", "release"] = "simulation"
    seed: int = 0  # of a simulation
    rounds: int = 1
    sampler: Mapping[str, Any] = field(default_factory=lambda: {"name": "everyone"})
    chunk: int | None = None
    checkpoint_every: int = 1
    refreshes: Path | None = None  # the directory of a finished run to add to

    def __post_init__(self) -> None:
        check.at_least(1, rounds=self.rounds, checkpoint_every=self.checkpoint_every)
        check.at_least(0, seed=self.seed)
        if self.chunk is not None:
            check.at_least(1, chunk=self.chunk)


@dataclass(frozen=True)
class EvaluateSettings:
    """The metrics, the protocol and the baselines of an evaluation.

    `full_metrics` are measured among all items as well, whatever the protocol is: they
    stand beside a paper's figures and can be compared with those of others.
    """

    metrics: tuple[str, ...] = ("ndcg@100", "recall@20", "recall@50")
    # by default "impressions" where impressions are held out
    protocol: Literal["full", "sampled", "each-alone", "impressions"] = "full"
    candidates: int = 99  # of the sampled protocol
    # whom to rank for who lacks fewer items than candidates: nobody may be left out
    # silently, so to skip them is to be asked for
    too_few_candidates: Literal["refuse", "skip"] = "refuse"
    max_users: int | None = None  # rank for the first so many held-out users only
    full_metrics: tuple[str, ...] = ()
    every: int = 1  # rounds between looks at the validation users
    baselines: tuple[str, ...] = ("popularity",)
    baseline_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    untrained: bool = False  # rank by the method's start as well, beside it
    release: Mapping[str, Any] | None = None  # a hit rate under the budget

    def __post_init__(self) -> None:
        check.at_least(1, every=self.every, candidates=self.candidates)
        if not self.metrics:
            raise BadValue("metrics=[] must name at least one, such as 'ndcg@10'")
        if self.max_users is not None:
            check.at_least(1, max_users=self.max_users)
        for metric in (*self.metrics, *self.full_metrics):
            parse(metric)
        for name in (*self.baselines, *self.baseline_settings):
            check.one_of(baseline_names(), baseline=name)


@dataclass(frozen=True)
class Experiment:
    """A checked experiment; building it reads no data."""

    data: DataSettings
    method_name: str
    method: Method
    privacy: PrivacySettings
    run: RunSettings
    evaluate: EvaluateSettings
    sampler: Sampler
    table: EventsTable | None
    world: World | NewsWorld | None
    selection: ItemSelection | None = None
    metric: ReleasedMetric | None = None  # measured on those who train, under noise
    subset: Subset | None = None
    construction: ContributionBounds | None = None
    metadata: MetadataVectors | None = None
    serve: ServeSettings = field(default_factory=ServeSettings)
    known_as: str | None = None  # the digest in the files of another version's run

    def resolved(self) -> dict[str, Any]:
        """Every setting, defaults included, as it would stand in a file."""
        data = plain_settings(self.data)
        if self.table is not None:
            data["table"] = plain_settings(self.table)
        if self.world is not None:
            data["world"] = plain_settings(self.world)
        if self.subset is not None:
            data["subset"] = plain_settings(self.subset)
        if self.construction is not None:
            data["construction"] = plain_settings(self.construction)
        if self.metadata is not None:
            data["metadata_vectors"] = plain_settings(self.metadata)
        evaluate = plain_settings(self.evaluate)
        if self.metric is not None:
            evaluate["release"] = plain_settings(self.metric)
        found = {
            "data": data,
            "method": method_settings(self.method_name, self.method),
            "privacy": plain_settings(self.privacy) | privacy_settings(self.method),
            "run": plain_settings(self.run),
            "evaluate": evaluate,
        }
        # By default there is nothing to set, and files of before have no such table.
        is_set = self.serve != ServeSettings(refresh_days=self.serve.refresh_days)
        return found | ({"serve": plain_settings(self.serve)} if is_set else {})

    def ranking_for(self, list_for: ListFor | None) -> Experiment:
        """The same with lists for something else; refuses a method that has none."""
        if list_for is None:
            return self
        serve = replace(self.serve, list_for=list_for)
        serve.check_method(self.method)
        return replace(self, serve=serve)

    @property
    def is_release(self) -> bool:
        """Whether its model may be published; else it is a simulation."""
        return self.run.purpose == "release"

    @property
    def split_seed(self) -> int:
        """The seed that decides who is held out: the data's own, else the run's."""
        return self.run.seed if self.data.seed is None else self.data.seed

    @property
    def digest(self) -> str:
        """The digest by which the files of a run know their experiment."""
        return self.known_as or digest_of(self.resolved())

    def is_same_as(self, other: Experiment) -> bool:
        """Whether both train the same model, whichever version wrote them down."""
        return digest_of(self.resolved()) == digest_of(other.resolved())


# Settings that change nothing of what is trained, by section.
_LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "data": ("archive",),
    "privacy": ("contact",),
    "run": ("checkpoint_every",),
    "evaluate": ("baselines", "baseline_settings", "untrained"),
}


def digest_of(settings: Table, *, with_baselines: bool = False) -> str:
    """A digest of every setting that could change what is trained.

    The paths of the archive and of word vectors, the interval of checkpoints, the
    contact, how lists are served and what is ranked beside the method are left out.
    Earlier versions counted the baselines (`with_baselines`). Of a table that a run has
    written down, the digest stays when later versions have more settings.
    """
    kept = {
        section: {key: v for key, v in table.items() if key not in left_out}
        for section, table in settings.items()
        if section != "serve"
        for left_out in [_LEFT_OUT.get(section, ())]
    }
    if with_baselines:
        kept["evaluate"] = settings["evaluate"]
    if vectors := kept["data"].get("metadata_vectors"):
        shared = {key: v for key, v in vectors.items() if key != "words"}
        kept["data"]["metadata_vectors"] = shared
    text = json.dumps(kept, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read_experiment(path: Path, changes: Sequence[str] = ()) -> Experiment:
    """The experiment in a TOML file, with changes such as `run.rounds=5`."""
    table = read_table(path, changes)
    return check_experiment(table, str(path), relative_to=path.parent)


# A few thousand brackets exhaust the stack of Python's parser before it finds an end.
_NOT_TOML = (tomllib.TOMLDecodeError, RecursionError)


def read_table(path: Path, changes: Sequence[str] = ()) -> dict[str, Any]:
    """A TOML file with changes applied, not checked yet.

    Where a change names another method, the file's rounds and hyper-parameters were
    not meant for it: it begins as this method should.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadExperiment(str(path), [_no_such_file(path)]) from None
    except (OSError, UnicodeDecodeError, *_NOT_TOML) as error:
        raise BadExperiment(str(path), [f"cannot be read as TOML: {error}"]) from error
    wanted: dict[str, Any] = {}
    for change in changes:
        _apply(change, wanted)
    table = with_method_of(wanted, table)
    for change in changes:
        _apply(change, table)
    return table


def _no_such_file(path: Path) -> str:
    beside = [one.name for one in path.parent.glob("*.toml")]
    near = check.nearest(path.name, beside)
    return "there is no such file" + (f"; did you mean '{near}'?" if near else "")


def check_experiment(
    table: Table, where: str = "experiment", *, relative_to: Path = Path()
) -> Experiment:
    """The experiment of a nested table; all its problems in one `BadExperiment`.

    Paths in the table are read relative to `relative_to`.
    """
    problems = Problems()
    sections = {"data", "method", "privacy", "run", "evaluate", "serve"}
    for name in table:
        if name not in sections:
            problems.found.append(f"section {check.unknown(name, sections)}")
    data = problems.read(DataSettings, table.get("data", {}), "data")
    if moved := moved_keys(table):
        raise BadExperiment(where, [*problems.found, *moved])
    privacy, own = _privacy(table.get("privacy", {}), problems)
    name, method = _method(table.get("method", {}), privacy, own, problems)
    run = problems.read(RunSettings, _with_rounds(table.get("run", {}), method), "run")
    evaluate = problems.read(EvaluateSettings, table.get("evaluate", {}), "evaluate")
    if run and run.refreshes:
        run = dataclasses.replace(run, refreshes=relative_to / run.refreshes)
    if data and run and run.purpose == "release":  # everyone trains, on listed items
        data = dataclasses.replace(data, split="none")
        if data.selection is None:
            data = dataclasses.replace(data, items="declared")
    if run and privacy and isinstance(privacy.groups, Mapping):
        _check_drawn_groups(privacy, privacy.groups, run, problems)
    sampler = _sampler(run.sampler, problems) if run else None
    events = _events_table(data, relative_to, problems)
    world = _world(data, problems)
    selection = None
    if data and data.selection is not None:
        selection = problems.read(ItemSelection, data.selection, "data.selection")
    subset = None
    if data and data.subset is not None:
        subset = problems.read(Subset, data.subset, "data.subset")
    construction = None
    if data and data.construction is not None:
        place = "data.construction"
        construction = problems.read(ContributionBounds, data.construction, place)
    metadata = _metadata(data, relative_to, problems)
    if evaluate:
        _check_baseline_settings(evaluate, problems)
    if data and evaluate and data.protocol is not None:
        evaluate = _as_published(data, evaluate, table, problems)
    has_metrics = "metrics" in table.get("evaluate", {})
    if data and evaluate and data.split == "leave-latest-out" and not has_metrics:
        evaluate = dataclasses.replace(evaluate, metrics=_NEXT_ITEM)
    if data and evaluate and run and run.purpose != "release":
        evaluate = _of_impressions(data, evaluate, table, problems)
    if data and evaluate:
        problems.found += impression_settings.missing_texts(
            data, evaluate, evaluate.baselines
        )
    metric = _metric(evaluate, run, method, sampler, problems)
    serve = problems.read(ServeSettings, table.get("serve", {}), "serve")
    if serve and method:
        try:
            serve.check_method(method)
        except (BadValue, Refused) as error:
            problems.found.append(f"serve: {error}")
    if serve and metric and serve.ranked_for != "any":
        problems.found.append(
            f"serve.list_for={serve.list_for!r}: evaluate.release measures lists for "
            "any; leave one of them out"
        )
    if problems.found:
        raise BadExperiment(where, problems.found)
    parts = (data, name, method, privacy, run, evaluate, sampler)
    assert None not in parts  # no problem was found
    return Experiment(
        *parts,  # type: ignore[arg-type]
        events,
        world,
        selection,
        metric,
        subset,
        construction,
        metadata,
        serve,  # type: ignore[arg-type]
    )


def _with_rounds(run: object, method: Method | None) -> object:
    """The table [run] with the usual rounds of the method, if it gives none."""
    if not isinstance(run, Mapping) or method is None:
        return run
    return {"rounds": method.usual_rounds, **run}


def _world(data: DataSettings | None, problems: Problems) -> World | NewsWorld | None:
    """The invented world of a table [data.world], if there is one."""
    if data is None or not data.world:
        return None
    kind: type[World | NewsWorld] = _WORLDS[data.source]
    return problems.read(kind, data.world, "data.world")


def _of_impressions(
    data: DataSettings, evaluate: EvaluateSettings, table: Table, problems: Problems
) -> EvaluateSettings:
    """The evaluation that goes with the split; notes what does not go together."""
    problems.found += impression_settings.problems_of(data, evaluate, table)
    if not data.holds_out_impressions:
        return evaluate
    return impression_settings.with_defaults(evaluate, table)


def _metadata(
    data: DataSettings | None, relative_to: Path, problems: Problems
) -> MetadataVectors | None:
    """The vectors of metadata, if any; the path of words is the file's neighbour."""
    if data is None or data.metadata_vectors is None:
        return None
    found = problems.read(
        MetadataVectors, data.metadata_vectors, "data.metadata_vectors"
    )
    if found is None:
        return None
    return dataclasses.replace(found, words=str(relative_to / found.words))


def _check_drawn_groups(
    privacy: PrivacySettings,
    groups: Mapping[str, float],
    run: RunSettings,
    problems: Problems,
) -> None:
    """Note groups that are not those of the targets, or drawn in a release."""
    targets = privacy.target_epsilon
    if isinstance(targets, Mapping) and targets.keys() != groups.keys():
        problems.found.append(
            f"privacy.target_epsilon names the groups {sorted(targets)}; "
            f"privacy.groups has {sorted(groups)}: give each of them a target"
        )
    if run.purpose == "release":
        problems.found.append(
            f"privacy.groups = {dict(groups)} draws the groups of users, which is for "
            "simulations; in a release name the category of the profiles that says "
            "what each user chose"
        )


def _check_baseline_settings(evaluate: EvaluateSettings, problems: Problems) -> None:
    for name, settings in evaluate.baseline_settings.items():
        cls: type[Any] = baseline_class(name)
        problems.read(cls, settings, f"evaluate.baseline_settings.{name}")


def _metric(
    evaluate: EvaluateSettings | None,
    run: RunSettings | None,
    method: Method | None,
    sampler: Sampler | None,
    problems: Problems,
) -> ReleasedMetric | None:
    """The metric to release, if any; refuses one without a budget to share."""
    if evaluate is None or evaluate.release is None:
        return None
    metric = problems.read(ReleasedMetric, evaluate.release, "evaluate.release")
    if run and run.refreshes:
        problems.found.append(
            "evaluate.release: the run that is refreshed may have learnt the items "
            "that would be held out; measure a run of its own"
        )
    if metric is None or method is None or sampler is None:
        return None
    try:
        Measured.of(method, metric, sampler)
    except BadValue as error:
        problems.found.append(f"evaluate.release: {error}")
    return metric


def _as_published(
    data: DataSettings, evaluate: EvaluateSettings, table: Table, problems: Problems
) -> EvaluateSettings:
    """The evaluation with the paper's metrics; refuses what its protocol decides."""
    assert data.protocol is not None
    decided = {
        "data": (
            *("min_value", "min_interactions", "min_users", "split"),
            *("validation", "test", "target_share", "items", "selection"),
            "construction",
        ),
        "evaluate": ("protocol", "candidates"),
    }
    for section, settings in (("data", data), ("evaluate", evaluate)):
        default = {f.name: f.default for f in dataclasses.fields(settings)}
        problems.found += [
            f"{section}.{key}: data.protocol = '{data.protocol}' decides it; leave it "
            "out"
            for key in decided[section]
            if getattr(settings, key) != default[key]
        ]
    if "metrics" in table.get("evaluate", {}):
        return evaluate
    own = named(data.protocol, data.source).metrics
    return dataclasses.replace(evaluate, metrics=own)


_SAMPLERS: Mapping[str, Callable[..., Sampler]] = {
    "poisson": Poisson,
    "poisson_by_group": PoissonByGroup,
    "fixed_size": FixedSize,
    "everyone": Everyone,
    "once": Once,
}


MOVED: Mapping[str, Mapping[str, str]] = {
    "method": {
        "privacy": "privacy.mechanism",
        "noise_multiplier": "privacy.noise_multiplier",
        "count_noise": "privacy.noise_multiplier.counts",
        "relate_noise": "privacy.noise_multiplier.relations",
        "epsilon": "privacy.epsilon",
        "votes": "privacy.votes",
        "report": "privacy.mechanism, 'local' for 'priv_unit', 'local_bits' for "
        "'one_bit', and in mode = 'paper' 'published'",
        "clip": "privacy.clip",
        "clip_quantile": "privacy.clip_quantile",
        "is_adaptive": "privacy.clip_quantile, left out for a fixed clip",
        "quantile": "privacy.clip_quantile, of 'published' privacy.quantile",
        "clip_rate": "privacy.clip_rate",
        "least_clip": "privacy.clip_span, of 'published' privacy.least_clip",
        "most_clip": "privacy.clip_span",
        "balance": "privacy.balance",
        "bit_noise": "privacy.bit_noise",
    },
    "run": {"groups": "privacy.groups"},
}


def moved_keys(table: Table) -> list[str]:
    """One problem for each key of an earlier version, with its name today.

    A key that the named method has as a field of its own was not moved.
    """
    own = _own_fields(table.get("method"))
    return [
        f"{section}.{key} = {_toml(table[section][key])!r} is now {place}"
        for section, moved in MOVED.items()
        if isinstance(table.get(section), Mapping)
        for key, place in moved.items()
        if key in table[section] and (section, key) not in own
    ]


def _own_fields(table: object) -> set[tuple[str, str]]:
    """The fields of the method that a table names; none if there is no such method."""
    if not isinstance(table, Mapping) or table.get("name") not in method_names():
        return set()
    own = {f.name for f in dataclasses.fields(method_class(table["name"]))}  # type: ignore[arg-type]
    return {("method", name) for name in own - {"privacy"}}


def _privacy(
    table: object, problems: Problems
) -> tuple[PrivacySettings | None, dict[str, Any]]:
    """The settings of every protection, and those that belong to the chosen one."""
    if not isinstance(table, Mapping):
        return problems.read(PrivacySettings, table, "privacy"), {}
    common = {f.name for f in dataclasses.fields(PrivacySettings)}
    shared = {key: value for key, value in table.items() if key in common}
    own = {key: value for key, value in table.items() if key not in common}
    return problems.read(PrivacySettings, shared, "privacy"), own


def _method(
    table: object,
    privacy: PrivacySettings | None,
    protection: Mapping[str, Any],
    problems: Problems,
) -> tuple[str, Method | None]:
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        problems.found.append("method.name is missing; it says which method to train")
        return "", None
    name = table["name"]
    try:
        cls = method_class(name)
    except BadValue as error:
        problems.found.append(f"method.name: {error}")
        return name, None
    own = {key: value for key, value in table.items() if key != "name"}
    chosen = "none" if privacy is None else privacy.mechanism
    return name, read_method(cls, own, chosen, protection, problems)


def read_method(
    cls: type[Method],
    own: Mapping[str, Any],
    mechanism: str,
    protection: Mapping[str, Any],
    problems: Problems,
) -> Method | None:
    """A method with its protection, from the tables of both."""
    if mechanism not in cls.mechanisms:
        legal = check.unknown(mechanism, cls.mechanisms)
        problems.found.append(f"privacy.mechanism: {legal}")
        return None
    kind = cls.mechanisms[mechanism]
    common = [f.name for f in dataclasses.fields(PrivacySettings)]
    value = problems.read(kind, protection, "privacy", also=common)
    if "privacy" not in {f.name for f in dataclasses.fields(cls)}:  # type: ignore[arg-type]
        return problems.read(cls, own, "method")
    return problems.read(cls, own, "method", given={"privacy": value or kind()})


def _sampler(table: Table, problems: Problems) -> Sampler | None:
    name = str(table.get("name"))
    if name not in _SAMPLERS:
        problems.found.append(f"run.sampler.name: {check.unknown(name, _SAMPLERS)}")
        return None
    own = {key: value for key, value in table.items() if key != "name"}
    cls = _SAMPLERS[name]
    assert isinstance(cls, type)
    return problems.read(cls, own, "run.sampler")


def _events_table(
    data: DataSettings | None, relative_to: Path, problems: Problems
) -> EventsTable | None:
    if data is None or not data.table:
        return None
    own, tables = dict(data.table), dict[str, ItemsTable | UsersTable | None]()
    kinds: dict[str, type[ItemsTable] | type[UsersTable]] = {
        "items": ItemsTable,
        "users": UsersTable,
    }
    for name, kind in kinds.items():
        given = own.pop(name, None)
        tables[name] = given and problems.read(kind, given, f"data.table.{name}")
        if given and tables[name] is None:
            return None
    table = problems.read(EventsTable, own, "data.table", also=[*tables], given=tables)
    return table and table.located(relative_to)


def _apply(change: str, table: dict[str, Any]) -> None:
    """Put `run.rounds=5` into the table; the value is read as TOML, else as text."""
    path, equals, text = change.partition("=")
    keys = path.strip().split(".")
    if not equals or len(keys) < 2:
        raise BadValue(f"--set {change!r} must look like section.key=value")
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise BadValue(f"--set {change!r}: '{key}' is a value, not a table")
    table[keys[-1]] = _toml_value(text.strip())


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except _NOT_TOML:
        return text


def method_settings(name: str, method: Method) -> dict[str, Any]:
    """A method's name and hyper-parameters, without its protection."""
    own = plain_settings(method)
    own.pop("privacy", None)
    return {"name": name, **own}


def privacy_settings(method: Method) -> dict[str, Any]:
    """The mechanism that protects a method's reports, and its fields."""
    value = getattr(method, "privacy", UNPROTECTED)
    names = {kind: name for name, kind in method.mechanisms.items()}
    if type(value) not in names:
        raise BadValue(
            f"{type(method).__name__} is not offered with {type(value).__name__}; "
            f"offered are the mechanisms {', '.join(method.mechanisms)}"
        )
    return {"mechanism": names[type(value)], **plain_settings(value)}


def plain_settings(settings: Any) -> dict[str, Any]:
    """The fields that are not None, because TOML has no null."""
    found = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    return {name: _toml(v) for name, v in found.items() if v is not None}


def _toml(value: object) -> Any:
    if isinstance(value, Path):
        return str(value.resolve())
    if isinstance(value, tuple):
        return [_toml(v) for v in value]
    if isinstance(value, ItemsTable | UsersTable):
        return plain_settings(value)
    if isinstance(value, Mapping):
        return {str(k): _toml(v) for k, v in value.items()}
    return value
