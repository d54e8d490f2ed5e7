"""Settings to parts: data set, split, plan, simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data import sources
from tacit.data.archives import Progress
from tacit.data.catalog import Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.splits import Split, leave_one_out, new_users
from tacit.errors import BadValue
from tacit.evaluation.protocols import FullRanking, SampledCandidates
from tacit.experiment.settings import Experiment
from tacit.keys import Key
from tacit.method import Method
from tacit.plan import Plan
from tacit.runtime.simulate import Simulation, check_plan


@dataclass(frozen=True, eq=False)
class Assembled:
    """Everything an experiment needs, ready to run."""

    experiment: Experiment
    dataset: Dataset
    split: Split
    simulation: Simulation

    @property
    def method(self) -> Method:
        """The method, its noise calibrated to the plan."""
        return self.simulation.method

    @property
    def plan(self) -> Plan:
        """The plan that devices agree to."""
        return self.simulation.plan


def assemble(experiment: Experiment, *, progress: Progress | None = None) -> Assembled:
    """Load, filter and divide the data; make the plan; check that they fit."""
    dataset = load_dataset(experiment, progress=progress)
    split = divide(experiment, dataset)
    people = split.profiles.take(split.users)
    groups = _groups(experiment, people)
    run, privacy = experiment.run, experiment.privacy
    plan = Plan(
        population=len(split.users),
        rounds=run.rounds,
        sampler=experiment.sampler,
        channel=privacy.channel,
        delta=privacy.delta,
        target_epsilon=privacy.target_epsilon,
        groups=groups.sizes,
        min_contributors=privacy.min_contributors,
    )
    method = experiment.method.calibrated(plan)
    check_plan(method, plan)
    simulation = Simulation(
        method,
        plan,
        split.catalog,
        people,
        split.train,
        root_key(experiment).at("run"),
        groups=groups.codes,
        chunk=run.chunk,
    )
    return Assembled(experiment, dataset, split, simulation)


def root_key(experiment: Experiment) -> Key:
    """The seed's key; every purpose derives its own."""
    return Key.from_seed(experiment.run.seed)


def load_dataset(
    experiment: Experiment, *, progress: Progress | None = None
) -> Dataset:
    """The data set, filtered as the experiment says."""
    data = experiment.data
    if experiment.csv is not None:
        whole = experiment.csv.load()
    else:
        where = None if data.archive is None else Path(data.archive)
        whole = sources.load(data.source, where=where, progress=progress)
    return whole.filtered(
        min_value=data.min_value, min_interactions=data.min_interactions
    )


def divide(experiment: Experiment, dataset: Dataset) -> Split:
    """The split the experiment names, drawn by its seed."""
    data, key = experiment.data, root_key(experiment).at("split")
    if data.split == "new-users":
        n = dataset.interactions.n_users
        return new_users(
            dataset,
            n_validation=_how_many(data.validation, n),
            n_test=_how_many(data.test, n),
            target_share=data.target_share,
            key=key,
        )
    if data.split == "leave-one-out":
        return leave_one_out(dataset, which="random", key=key)
    return leave_one_out(dataset, which="latest", key=key)


def protocol(experiment: Experiment) -> FullRanking | SampledCandidates:
    """The protocol of evaluation."""
    if experiment.evaluate.protocol == "full":
        return FullRanking()
    key = root_key(experiment).at("candidates")
    return SampledCandidates(experiment.evaluate.candidates, key)


@dataclass(frozen=True)
class _Groups:
    sizes: Mapping[str, int]
    codes: Int64[np.ndarray, "clients"] | None


def _groups(experiment: Experiment, people: Profiles) -> _Groups:
    """Public groups from a category of the profiles, if the experiment names one."""
    name = experiment.run.groups
    if name is None:
        return _Groups({}, None)
    known = [n for n, f in people.features.items() if isinstance(f, Category)]
    check.one_of(known, groups=name)
    column = people.features[name]
    assert isinstance(column, Category)
    codes = column.codes.astype(np.int64)
    if (codes < 0).any():
        raise BadValue(
            f"groups={name!r}: {int((codes < 0).sum())} people have no value"
        )
    counts = np.bincount(codes, minlength=len(column.labels)).tolist()
    return _Groups(dict(zip(column.labels, counts, strict=True)), codes)


def _how_many(wanted: float, n: int) -> int:
    return int(wanted) if wanted >= 1 else max(1, round(wanted * n))
