"""From settings to data set, split, plan and simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.data import sources
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.news_split import by_part, by_time
from tacit.data.public_inputs import private_inputs, undeclared, with_selected_items
from tacit.data.shards import Shards
from tacit.data.splits import (
    Split,
    adapt_half,
    everyone_trains,
    global_cut,
    leave_last_visit_out,
    leave_one_out,
    new_users,
    ratio,
)
from tacit.data.strings import Strings
from tacit.data.text_vectors import Progress, with_text_vectors
from tacit.errors import BadValue, Refused
from tacit.evaluation.candidate_sets import (
    EachTargetAlone,
    FullRanking,
    SampledCandidates,
    ShownCandidates,
)
from tacit.evaluation.evaluate import Protocol
from tacit.evaluation.paper_protocols import named
from tacit.evaluation.released_metric import Measured
from tacit.experiment.settings import DataSettings, Experiment, SplitName
from tacit.experiment.warm_start import EarlierRun
from tacit.keys import Key
from tacit.method import Method, Refreshable, SumMethod
from tacit.models.sentence_encoder import MiniLm
from tacit.plans import Plan
from tacit.privacy import UNPROTECTED, CentralGaussian
from tacit.privacy.budgets import as_one_epsilon, rates_for_targets
from tacit.privacy.guarantees import set_of_items
from tacit.release import Unit, View
from tacit.runtime.federation import Federation
from tacit.runtime.simulate import Simulation, check_plan

COULD_BE_RELEASED = "could_be_released"  # key of documents; earlier ones did not say


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
    def could_be_released(self) -> bool:
        """Whether a release could follow from data, filters, method and channel."""
        if self.plan.is_masked:  # which is simulated only
            return False
        filters = _filters(self.experiment)
        private = private_inputs(self.dataset, self.split, **filters)
        return not private and not _is_papers_own(self.method)

    @property
    def plan(self) -> Plan:
        """The plan that clients agree to."""
        return self.simulation.plan

    @property
    def has_users(self) -> bool:
        """Whether the users are on this machine; else nodes hold them."""
        return not isinstance(self.simulation, Federation)

    @property
    def measured(self) -> Measured | None:
        """The wrapper that releases a metric, if the experiment asks for one."""
        return self.method if isinstance(self.method, Measured) else None

    @property
    def learner(self) -> Method:
        """The method that learns and ranks, without the wrapper of a metric."""
        return self.method if self.measured is None else self.measured.inner

    @property
    def as_one_epsilon(self) -> float | None:
        """The epsilon for all that would tell as much as the groups' own do together.

        None where all have the same, or where a group has none that is proven.
        """
        spent = {
            line.group: line.epsilon
            for line in self.simulation.account.totals
            if (line.unit, line.view) == (Unit.USER, View.RELEASE) and line.epsilon
        }
        if len(spent) < 2 or spent.keys() != self.plan.groups.keys():
            return None
        return as_one_epsilon(self.plan, spent)

    @property
    def consent_weight(self) -> float | None:
        """What a report of a consenting group weighs, beside one of the largest target.

        None where something is promised to every group.
        """
        privacy, few = getattr(self.learner, "privacy", None), self.plan.consenting
        if not few or not isinstance(privacy, CentralGaussian) or not privacy.scale:
            return None
        others = [s for group, s in privacy.scale.items() if group not in few]
        return privacy.scale[few[0]] / max(others)


def assemble(
    experiment: Experiment,
    *,
    progress: Progress | None = None,
    reading: Progress | None = None,
    selected: Sequence[str] | None = None,
) -> Assembled:
    """Load, filter and divide the data; make the plan; check that they fit.

    `selected` are the items that a release has selected before it was interrupted.
    `progress` is told how many texts have become vectors, if the experiment asks for
    them, and `reading` how much of a table has been read; what is in the cache is
    neither.
    """
    dataset = _read(experiment, progress=progress, reading=reading, selected=selected)
    if experiment.metadata is not None:
        dataset = experiment.metadata.joined(dataset)
    earlier = _earlier(experiment)
    if earlier is not None:  # before the split, which goes by item index
        dataset = earlier.renumbered(dataset)
    return _assembled(experiment, dataset, divide(experiment, dataset), earlier)


def assemble_public(
    experiment: Experiment, catalog: Catalog, *, population: int | None = None
) -> Assembled:
    """The same without anybody's data, for a server that is sent reports.

    It is a release: nothing follows from a seed. The items are public, and so is the
    `population`, which by default is the one that the experiment declares.
    """
    if experiment.run.refreshes is not None or experiment.selection is not None:
        raise Refused(
            "a run between real machines neither refreshes an earlier one nor selects "
            "its items under noise; leave run.refreshes and data.selection out"
        )
    if experiment.privacy.groups is not None:
        raise Refused(
            f"privacy.groups={experiment.privacy.groups!r} is not offered between real "
            "machines: leave it out, or simulate"
        )
    declared = experiment.data.population if population is None else population
    if declared is None:
        raise Refused(
            "the population is not declared: set data.population, a number of users "
            "that you would publish"
        )
    public = replace(
        experiment,
        data=replace(experiment.data, population=declared, split="none", protocol=None),
        run=replace(experiment.run, purpose="release"),
    )
    log = Interactions.of_columns([], [], n_users=0, n_items=len(catalog))
    nobody = Profiles(Strings.of([]))
    dataset = Dataset(experiment.data.name, log, catalog, nobody, listed=catalog)
    return _assembled(public, dataset, everyone_trains(dataset), None)


def declared_catalog(experiment: Experiment) -> Catalog:
    """The items that an experiment declares; refuses one that declares none."""
    table = experiment.table
    if table is None or table.items is None:
        raise Refused(
            "the items are not declared: a service has no events to collect them from; "
            "list them in a table of their own, [data.table.items]"
        )
    return table.items.parse()


def _assembled(
    experiment: Experiment, dataset: Dataset, split: Split, earlier: EarlierRun | None
) -> Assembled:
    split = _asked(experiment, split)
    profiles = split.profiles.take(split.users)
    groups = _groups(experiment, split)
    if earlier is not None:
        earlier.refuse_other_items(split.catalog)
    if not experiment.is_release:
        refuse_without_times(experiment, dataset.interactions.times)
    plan, method = planned(
        experiment, groups.population, sizes=groups.sizes, earlier=earlier
    )
    if experiment.is_release:
        _refuse_undeclared(experiment, dataset, split)
    simulation = Simulation(
        method,
        plan,
        split.catalog,
        profiles,
        split.train,
        _run_key(experiment, earlier),
        is_release=experiment.is_release,
        groups=groups.codes,
        absent=groups.population - len(profiles),
        chunk=experiment.run.chunk,
        earlier=None if earlier is None else earlier.left,
    )
    return Assembled(experiment, dataset, split, simulation)


def refuse_without_times(
    experiment: Experiment, times: Int64[np.ndarray, "events"] | None
) -> None:
    """Refuse lists for what comes next where nothing says what came last."""
    list_for = experiment.serve.ranked_for
    if list_for != "any" and times is None:
        raise BadValue(
            f"serve.list_for={list_for!r} needs the times of events, and "
            f"{experiment.data.name} has none: the order of a file need not be that of "
            "events; name a time column, or leave list_for out"
        )


def planned(
    experiment: Experiment,
    population: int,
    *,
    sizes: Mapping[str, int],
    earlier: EarlierRun | None = None,
) -> tuple[Plan, Method]:
    """The plan for so many users, and the method with the noise that it needs.

    Both follow from the experiment and from public numbers. `sizes` are those of the
    public groups; none where there are no groups.
    """
    run, privacy = experiment.run, experiment.privacy
    plan = Plan(
        population=population,
        rounds=run.rounds + (experiment.metric is not None),  # a metric has its own
        sampler=experiment.sampler,
        channel=privacy.channel,
        delta=privacy.delta,
        target_epsilon=privacy.planned_targets,
        target_view=privacy.target_view,
        groups=sizes,
        min_contributors=population
        if privacy.min_contributors == "all"
        else privacy.min_contributors,
        assumed_sybils=privacy.assumed_sybils,
        counted_by=privacy.counted_by,
    )
    if experiment.selection is not None:  # calibration must leave room for its cost
        plan = replace(plan, before=(set_of_items(plan, experiment.selection.event),))
    method = experiment.method
    if earlier is not None:
        method = _refreshing(method, earlier)
    if privacy.budgets == "sample":
        plan = _sampled_by_group(method, plan)
    if experiment.metric is not None:
        method = Measured.of(method, experiment.metric, plan.sampler)
    # Last, when everything that spends budget is in the plan or around the method.
    method = method.calibrated(plan)
    check_plan(method, plan)
    if experiment.is_release:
        _refuse_papers_own(method)
    return plan, method


_kept: ContextVar[dict[str, Dataset] | None] = ContextVar("kept data", default=None)


@contextmanager
def data_read_once() -> Iterator[None]:
    """Within it the last data set is kept for experiments that ask for the same one.

    For studies, whose many runs differ in method and seed but not in their data. The
    files must not change in between.
    """
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def _read(
    experiment: Experiment,
    *,
    progress: Progress | None,
    reading: Progress | None,
    selected: Sequence[str] | None,
) -> Dataset:
    """The data set with vectors of its texts, or the one kept, if it is the same."""
    load = partial(
        _loaded, experiment, progress=progress, reading=reading, selected=selected
    )
    kept = _kept.get()
    if kept is None or experiment.selection is not None:
        return load()
    settings = replace(experiment.data, seed=None)  # the seed draws the split alone
    made = experiment.table, experiment.subset, experiment.construction
    name = repr((settings, made))
    if name not in kept:
        kept.clear()  # one at a time: data sets are large
        kept[name] = load()
    return kept[name]


def _loaded(
    experiment: Experiment,
    *,
    progress: Progress | None,
    reading: Progress | None,
    selected: Sequence[str] | None,
) -> Dataset:
    texts = experiment.data.text_vectors
    encoder = MiniLm() if texts else None  # refuses before the data are read
    dataset = load_dataset(experiment, selected=selected, reading=reading)
    if encoder is None:
        return dataset
    return with_text_vectors(dataset, texts, encoder, progress=progress)


def _refuse_papers_own(method: Method) -> None:
    """Refuse a release under a protection that only reproduces a paper."""
    if _is_papers_own(method):
        protection = getattr(method, "privacy", UNPROTECTED)
        raise Refused(
            f"{type(protection).__name__} is there to compare and to learn from; a "
            "release needs a protection in whole numbers: use mode = 'sound' or "
            "another privacy.mechanism"
        )


def _is_papers_own(method: Method) -> bool:
    protection = getattr(method, "privacy", UNPROTECTED)
    return bool(protection.is_private and not protection.is_releasable)


def _filters(experiment: Experiment) -> dict[str, Any]:
    """What the experiment does to its data before anybody is asked."""
    return {
        "protocol": experiment.data.protocol,
        "min_users": experiment.data.min_users,
        "has_subset": experiment.subset is not None,
        "has_construction": experiment.construction is not None,
        "has_metadata": experiment.metadata is not None,
    }


def _refuse_undeclared(experiment: Experiment, dataset: Dataset, split: Split) -> None:
    """Refuse a release that would read public facts from private events."""
    population = experiment.data.declared_users
    found = undeclared(dataset, split, population=population, **_filters(experiment))
    if found:
        problems = "\n".join(f"  - {problem}" for problem in found)
        raise Refused(
            f"a release takes nothing from users' events but what the account "
            f"covers:\n{problems}"
        )


def _refreshing(method: Method, earlier: EarlierRun) -> Method:
    if not isinstance(method, Refreshable):
        raise Refused(
            f"{type(method).__name__} cannot refresh an earlier run; train without it"
        )
    return method.refreshing(earlier.method)


def _sampled_by_group(method: Method, plan: Plan) -> Plan:
    """The plan with a rate for each group, so that each just meets its own target."""
    if not isinstance(method, SumMethod):
        raise Refused(f"{type(method).__name__} has no phases to sample by group")
    # Chosen phases need everyone in every round; where coins fall, they are planned.
    rates = rates_for_targets(plan, method.with_planned_phases().phases(plan))
    return replace(plan, sampler=rates)


def _earlier(experiment: Experiment) -> EarlierRun | None:
    """The finished run that the experiment refreshes, if it does."""
    path = experiment.run.refreshes
    if path is None:
        return None
    earlier = EarlierRun.at(path)
    if experiment.is_release and earlier.is_simulation:
        raise Refused(
            f"the run at {path} was a simulation: whoever knows its seed can subtract "
            "the noise from what it learnt; refresh a release, or release without it"
        )
    return earlier


def root_key(experiment: Experiment) -> Key:
    """The key of the seed, or in a release a new one each time."""
    if experiment.is_release:
        return Key.from_os()
    return Key.from_seed(experiment.run.seed)


def _run_key(experiment: Experiment, earlier: EarlierRun | None) -> Key:
    """The key of the run: another one in every refresh, because noise must be fresh."""
    key = root_key(experiment).at("run")
    # The same seed in a refresh would repeat the noise of the first run: the difference
    # of the two sums would then be noiseless.
    return key if earlier is None else key.at("refresh", len(earlier.left.spent))


def _users_key(experiment: Experiment) -> Key:
    """The key that decides who is held out, and which candidates they are ranked on."""
    if experiment.is_release:  # nobody is held out
        return Key.from_os()
    return Key.from_seed(experiment.split_seed)


def load_dataset(
    experiment: Experiment,
    *,
    selected: Sequence[str] | None = None,
    reading: Progress | None = None,
) -> Dataset:
    """The data set, filtered as the experiment says, without vectors of texts."""
    data = experiment.data
    if experiment.table is not None:
        whole = experiment.table.load(progress=reading)
    elif experiment.world is not None:
        whole = experiment.world.load()
    else:
        where = None if data.archive is None else Path(data.archive)
        whole = sources.load(data.source, where=where)
    _refuse_small_population(data, whole)  # before any filter
    if data.protocol is not None:
        kept = named(data.protocol, data.source).kept(whole)
        return kept if experiment.subset is None else experiment.subset.of(kept)
    has_table = experiment.table is not None and experiment.table.items is not None
    if data.items == "declared":
        whole = whole.declared()
    kept = whole.filtered(
        min_value=data.min_value,
        min_interactions=data.fewest_interactions,
        min_users=data.min_users,
        keep_items=has_table or data.items == "declared",
    )
    if experiment.construction is not None:
        kept = experiment.construction.of(kept)
    if experiment.subset is not None:
        kept = experiment.subset.of(kept)
    return _with_selected_items(experiment, kept, selected)


def _refuse_small_population(data: DataSettings, dataset: Dataset) -> None:
    """Refuse a declared population that is smaller than the data."""
    declared = data.declared_users
    if declared is not None and declared < len(dataset.profiles):
        raise BadValue(
            f"data.population declares {declared:,} users, and the data have "
            f"{len(dataset.profiles):,}; declare at least as many as may take part"
        )


def _with_selected_items(
    experiment: Experiment, dataset: Dataset, selected: Sequence[str] | None
) -> Dataset:
    """The data set over the items that enough users have, chosen under noise.

    A user with none of these items stays, with an empty history. Without `selection` in
    the experiment the data set stays as it is.
    """
    selection = experiment.selection
    if selection is None:
        return dataset
    if selected is not None:  # a second draw would be a second release
        return with_selected_items(dataset, dataset.catalog.indices([*selected]))
    key = root_key(experiment).at("set of items")
    keys = key.at("clients").each(np.arange(len(dataset.profiles)))
    named = selection.name(Shards.of(dataset.interactions), keys)
    noise = selection.noise(key.at("noise"))
    items = selection.select(selection.add_up(named), noise)
    if not len(items):
        raise Refused(
            f"no item passes the threshold of {selection.users_needed:.1f} users in "
            "data.selection; raise failure, lower noise_multiplier, or declare items"
        )
    return with_selected_items(dataset, items)


def divide(experiment: Experiment, dataset: Dataset) -> Split:
    """The split the experiment names, drawn by its seed."""
    # The split has its own key: runs that differ in noise hold out the same users.
    data, key = experiment.data, _users_key(experiment).at("split")
    if data.protocol is not None:
        return named(data.protocol, data.source).divide(dataset, key=key)
    return _SPLITS[data.split](data, dataset, key)


def protocol(experiment: Experiment) -> Protocol:
    """The protocol of evaluation."""
    data, evaluate = experiment.data, experiment.evaluate
    key = _users_key(experiment).at("candidates")
    if data.protocol is not None:
        return named(data.protocol, data.source).candidates(key)
    if evaluate.protocol == "impressions":
        return ShownCandidates()
    if evaluate.protocol == "sampled":
        return SampledCandidates(evaluate.candidates, key)
    return EachTargetAlone() if evaluate.protocol == "each-alone" else FullRanking()


def _new_users(data: DataSettings, dataset: Dataset, key: Key) -> Split:
    n = dataset.interactions.n_users
    return new_users(
        dataset,
        n_validation=_how_many(data.validation, n),
        n_test=_how_many(data.test, n),
        target_share=data.target_share,
        targets=data.targets,
        catalog="training" if data.items == "training" else "all",
        key=key,
    )


def _adapt_half(data: DataSettings, dataset: Dataset, key: Key) -> Split:
    n = dataset.interactions.n_users
    validate, test = (_how_many(s, n) / n for s in (data.validation, data.test))
    return adapt_half(
        dataset, train_share=1 - validate - test, validation_share=validate, key=key
    )


def _ratio(data: DataSettings, dataset: Dataset, key: Key) -> Split:
    train = 1 - data.validation - data.test
    return ratio(dataset, shares=(train, data.validation, data.test), key=key)


def _random_item(_: DataSettings, dataset: Dataset, key: Key) -> Split:
    return leave_one_out(dataset, which="random", key=key)


def _latest_item(_: DataSettings, dataset: Dataset, key: Key) -> Split:
    return leave_one_out(dataset, which="latest", key=key)


def _last_visit(data: DataSettings, dataset: Dataset, _: Key) -> Split:
    return leave_last_visit_out(dataset, gap=data.visit_gap or 1.0)


def _global_cut(data: DataSettings, dataset: Dataset, _: Key) -> Split:
    assert data.validation_from is not None
    assert data.test_from is not None
    return global_cut(
        dataset, validation_from=data.validation_from, test_from=data.test_from
    )


def _none(_: DataSettings, dataset: Dataset, __: Key) -> Split:
    return everyone_trains(dataset)


def _by_time(data: DataSettings, dataset: Dataset, _: Key) -> Split:
    assert data.validation_from is not None
    assert data.test_from is not None
    return by_time(
        dataset, validation_from=data.validation_from, test_from=data.test_from
    )


def _by_part(data: DataSettings, dataset: Dataset, _: Key) -> Split:
    assert data.validation_part is not None
    assert data.test_part is not None
    return by_part(dataset, validation=data.validation_part, test=data.test_part)


_SPLITS: Mapping[SplitName, Callable[[DataSettings, Dataset, Key], Split]] = {
    "new-users": _new_users,
    "adapt-half": _adapt_half,
    "leave-one-out": _random_item,
    "leave-latest-out": _latest_item,
    "leave-last-visit-out": _last_visit,
    "global-cut": _global_cut,
    "ratio": _ratio,
    "none": _none,
    "by-time": _by_time,
    "by-part": _by_part,
}


@dataclass(frozen=True)
class _Groups:
    """The planned users, in all and by group, and the group of those in the data."""

    population: int
    sizes: Mapping[str, int]
    codes: Int64[np.ndarray, "clients"] | None


def _groups(experiment: Experiment, split: Split) -> _Groups:
    """The public groups of those who train, if the experiment has any."""
    name, declared = experiment.privacy.groups, experiment.data.population
    if declared is not None and (name is None) == isinstance(declared, Mapping):
        raise BadValue(
            f"data.population={declared} and privacy.groups={name!r} do not go "
            "together; with groups declare how many users each has, else a number"
        )
    everyone = public_groups(experiment, split)
    if everyone is None:
        assert not isinstance(declared, Mapping)
        return _Groups(len(split.users) if declared is None else declared, {}, None)
    column = everyone.take(split.users)
    codes = column.codes.astype(np.int64)
    if (codes < 0).any():
        raise BadValue(f"groups={name!r}: {int((codes < 0).sum())} users have no value")
    counts = np.bincount(codes, minlength=len(column.labels)).tolist()
    found = dict(zip(column.labels, counts, strict=True))
    sizes = declared if isinstance(declared, Mapping) else found
    if experiment.privacy.asks is not None:
        sizes = {group: sizes[group] for group in experiment.privacy.asks}
    missing = [label for label, n in found.items() if n and label not in sizes]
    if missing:
        raise BadValue(
            f"data.population says nothing of the group '{missing[0]}' of "
            f"groups={name!r}; it has {', '.join(sizes)}"
        )
    indices = {label: index for index, label in enumerate(sizes)}
    group = np.array([indices.get(label, -1) for label in found], np.int64)
    return _Groups(sum(sizes.values()), sizes, group[codes])


def _asked(experiment: Experiment, split: Split) -> Split:
    """The split in which only members of the groups that are asked train."""
    asks, everyone = experiment.privacy.asks, public_groups(experiment, split)
    if asks is None or everyone is None:
        return split
    known = [*everyone.labels]
    for group in asks:
        check.one_of(known, asks=group)
    held_out = (*split.validation.users.tolist(), *split.test.users.tolist())
    if not {*held_out}.isdisjoint(split.users.tolist()):
        raise Refused(
            f"asks={[*asks]} leaves others out of the training, and data.split = "
            f"{experiment.data.split!r} ranks for users who train: use a split that "
            "holds users out, such as 'new-users'"
        )
    codes = [known.index(group) for group in asks]
    rows = np.flatnonzero(np.isin(everyone.codes[split.users], codes))
    return replace(split, users=split.users[rows], train=split.train.take(rows))


def public_groups(experiment: Experiment, split: Split) -> Category | None:
    """The public group of every user of the data, held out or not.

    It is a category of the profiles, or what a coin says in place of the user; never
    anything that follows from events.
    """
    wanted, profiles = experiment.privacy.groups, split.profiles
    if wanted is None:
        return None
    if isinstance(wanted, Mapping):
        return _chosen_at_random(wanted, _users_key(experiment), len(profiles))
    known = [n for n, f in profiles.features.items() if isinstance(f, Category)]
    check.one_of(known, groups=wanted)
    column = profiles.features[wanted]
    assert isinstance(column, Category)
    return column


def _chosen_at_random(shares: Mapping[str, float], key: Key, n: int) -> Category:
    """A group for each of `n` users, by a coin of their own."""
    edges = np.cumsum([*shares.values()])
    coins = key.at("groups").each(np.arange(n)).uniform(1)[:, 0] * edges[-1]
    codes = np.searchsorted(edges[:-1], coins, side="right").astype(np.int32)
    return Category(codes, Strings.of([*shares]))


def _how_many(wanted: float, n: int) -> int:
    return int(wanted) if wanted >= 1 else max(1, round(wanted * n))
