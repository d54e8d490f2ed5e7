"""An experiment whose users are on several machines: what is agreed, and each share.

    head_of(experiment)            method, plan, catalog: from public facts alone
    prepare_node(experiment, …)    reads one share of the users into a node's folder
    node_at(folder, …)             the node in that folder, ready to answer
    gather_over(nodes, …)          the server's side, for `training.train`

A table of events is read line by line, and only lines of the node's own users are kept:
no machine ever holds all users. That asks for declared facts: the items, in a table of
their own; how many users there are; that everyone trains, or is held out by a coin that
follows from the user's id; and the labels of what is known of users. Data sets that
come with Tacit are small: every node reads them whole and keeps its share, and such a
run equals `tacit train`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from tacit.data import cache
from tacit.data.catalog import Catalog, Profiles
from tacit.data.dataset import Dataset
from tacit.data.digest import content_digest
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.sources.listed_tables import UsersTable
from tacit.data.splits import everyone_trains
from tacit.data.strings import Strings
from tacit.data.text_vectors import Progress, with_text_vectors
from tacit.data.user_shares import key_numbers, share_of
from tacit.documents import read_document, write_document
from tacit.errors import BadValue, Damaged, Refused
from tacit.experiment.assemble import Assembled, assemble, planned, root_key
from tacit.experiment.settings import Experiment, check_experiment
from tacit.files import draft, make_private_folder
from tacit.keys import Key
from tacit.method import Method
from tacit.models.sentence_encoder import MiniLm
from tacit.plans import Plan
from tacit.runtime.declined import NotAgreed
from tacit.runtime.federation import Federation, Nodes
from tacit.runtime.node import Node
from tacit.runtime.node_log import note_failure
from tacit.runtime.node_store import NodeStore
from tacit.runtime.simulate import Simulation
from tacit.transport.node_answer import Share

Rows = Int64[np.ndarray, "users"]

_HELD_OUT = ("new-users", "none")  # splits that a user's id can decide
_OF_ONE_MACHINE = ("table", "archive", "words")  # settings: where files lie
_FORMAT = 1  # of a node's folder
_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, eq=False)
class Head:
    """What the server and all nodes of a run agree on, before any user is read."""

    method: Method
    plan: Plan
    catalog: Catalog
    dataset: Dataset  # without users, or of all users where every node reads them
    purpose: str  # a simulation draws from its seed, and promises nothing
    selected: Mapping[str, Any]  # the settings that decide which events are trained on

    @property
    def digest(self) -> str:
        """32 digits that change with the method, the plan and every item.

        They change with the purpose as well, because whoever knows the seed of a
        simulation can subtract what its clients draw; and with the filters and the
        split, so that nobody is held out on one node and trained on elsewhere.
        """
        agreed = {
            "agreement": self.method.agreement(self.plan, self.catalog).digest.hex(),
            "items": content_digest(self.catalog),  # layouts have no ids
            "purpose": self.purpose,
            "selected": self.selected,
        }
        text = json.dumps(agreed, sort_keys=True).encode()
        return hashlib.blake2b(text, digest_size=16).hexdigest()


def head_of(experiment: Experiment) -> Head:
    """What follows from the experiment and declared facts; reads no user's events.

    Of a data set that comes with Tacit all users are read.
    """
    purpose, selected = experiment.run.purpose, _selected(experiment)
    if experiment.table is None:
        found = _assembled(experiment)
        catalog = found.split.catalog
        return Head(found.method, found.plan, catalog, found.dataset, purpose, selected)
    _refuse_undeclared(experiment)
    nobody = _without_users(experiment)
    plan, method = _planned(experiment)
    # Labels that the method does not expect are refused here, not in a round.
    method.enrol(nobody.profiles, Key.from_seed(0).each(np.zeros(0, np.int64)))
    return Head(method, plan, nobody.catalog, nobody, purpose, selected)


def _selected(experiment: Experiment) -> dict[str, Any]:
    """The settings of the data that all nodes share: not where their files lie.

    The columns of a table are each node's own, too: two partners name them differently.
    """
    found = _shared(_plain(experiment)["data"])
    vectors = _shared(found.get("metadata_vectors") or {})
    # Without a split nothing is drawn from a seed.
    seed = None if experiment.data.split == "none" else experiment.split_seed
    groups = experiment.privacy.groups
    found |= {"metadata_vectors": vectors, "seed": seed, "groups": groups}
    users = None if experiment.table is None else experiment.table.users
    if users is None or not users.labels:
        return found
    labels = {name: sorted(one) for name, one in users.labels.items()}
    return found | {"labels of users": labels}


def _shared(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {n: value for n, value in settings.items() if n not in _OF_ONE_MACHINE}


def _planned(experiment: Experiment) -> tuple[Plan, Method]:
    declared, total = experiment.data.population, experiment.data.declared_users
    assert total is not None  # by `_refuse_undeclared`
    sizes = declared if isinstance(declared, Mapping) else {}
    return planned(experiment, total, sizes=sizes)


def _without_users(experiment: Experiment) -> Dataset:
    """The declared catalog, and a log of nobody with the columns that a table has."""
    table = experiment.table
    assert table is not None
    assert table.items is not None
    catalog = table.items.parse()
    none = np.zeros(0, np.int64)
    log = Interactions.of_columns(
        none,
        none,
        times=None if table.time is None else none,
        n_users=0,
        n_items=len(catalog),
    )
    name = table.path.name.split(".")[0]
    known = {} if table.users is None else _labelled(experiment, table.users).nobody()
    nobody = Profiles(Strings.of([]), known)
    return _described(experiment, Dataset(name, log, catalog, nobody, listed=catalog))


def _labelled(experiment: Experiment, users: UsersTable) -> UsersTable:
    """The table of users with all labels that are declared, wherever they are."""
    groups, sizes = experiment.privacy.groups, experiment.data.population
    labels = {**(users.labels or {})}
    if isinstance(sizes, Mapping) and groups in users.columns:
        labels.setdefault(str(groups), tuple(sizes))
    return replace(users, labels=labels)


def _undeclared_labels(experiment: Experiment, users: UsersTable) -> list[str]:
    """What to do about columns whose labels a node would take from its own users.

    Two nodes would have other labels, and one network cannot read both.
    """
    known = _labelled(experiment, users).labels or {}
    return [
        f"declare the labels of {name!r}: [data.table.users.labels] {name} = [...], or "
        "leave the column out"
        for name in users.columns
        if name not in known
    ]


def _described(experiment: Experiment, dataset: Dataset) -> Dataset:
    """The data set with vectors of its texts, if the experiment asks for them."""
    texts = experiment.data.text_vectors
    return with_text_vectors(dataset, texts, MiniLm()) if texts else dataset


def _refuse_undeclared(experiment: Experiment) -> None:
    """Refuse what somebody could only know who holds all users; all in one message."""
    data, table, privacy = experiment.data, experiment.table, experiment.privacy
    assert table is not None
    problems = []
    if table.items is None:
        problems.append("declare the items in a table [data.table.items]")
    if data.items != "declared":
        problems.append("set data.items = 'declared'")
    if data.population is None:
        problems.append("declare the number of users with data.population")
    if data.split not in _HELD_OUT:
        problems.append(f"set data.split to one of {', '.join(_HELD_OUT)}")
    elif data.split == "new-users" and max(data.validation, data.test) >= 1:
        problems.append("give data.validation and data.test as fractions below 1")
    if table.users is not None:
        problems += _undeclared_labels(experiment, table.users)
    if isinstance(privacy.groups, Mapping):
        problems.append("name a column of the users as privacy.groups")
    named = {
        "data.protocol": data.protocol is not None,
        "data.min_users": data.min_users > 1,
        "data.subset": experiment.subset is not None,
        "data.construction": experiment.construction is not None,
        "data.metadata_vectors": experiment.metadata is not None,
        "data.selection": experiment.selection is not None,
        "run.refreshes": experiment.run.refreshes is not None,
    }
    problems += [f"leave {name} out" for name, is_set in named.items() if is_set]
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise Refused(
            f"no machine of this run holds all users, and some settings need one that "
            f"does:\n{listed}"
        )


def _assembled(experiment: Experiment) -> Assembled:
    if experiment.run.refreshes is not None or experiment.selection is not None:
        raise Refused(
            "run.refreshes and data.selection are not known to nodes yet; leave them "
            "out, or train on one machine"
        )
    return assemble(experiment)


# --- One share of the users -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UsersOfNode:
    """The users that train on one node: what each holds, and where draws come from."""

    dataset: Dataset  # all of whose events are trained on
    numbers: Rows  # by which the users' keys are addressed
    groups: Rows  # the index of each user's group in the plan


def users_of(
    experiment: Experiment,
    head: Head,
    share: Share,
    *,
    own: bool = False,
    reading: Progress | None = None,
) -> UsersOfNode:
    """The training users of one share; with `own`, all in the table are this node's."""
    if experiment.table is None:
        return _of_all(experiment, share)
    table = experiment.table
    if table.users is not None:
        table = replace(table, users=_labelled(experiment, table.users))

    def is_here(user: str) -> bool:
        return own or share_of(user, parts=share.parts) == share.part

    read = table.parse(progress=reading, keep=is_here)
    kept = _described(experiment, read).filtered(
        min_value=experiment.data.min_value,
        min_interactions=experiment.data.fewest_interactions,
        keep_items=True,
    )
    kept = _not_held_out(experiment, kept)
    if len(kept.profiles) > head.plan.population:
        raise BadValue(
            f"{table.path.name} has {len(kept.profiles):,} users of this node, and "
            f"data.population declares {head.plan.population:,} in all; declare at "
            "least as many as may take part"
        )
    numbers = key_numbers(kept.profiles.ids)
    return UsersOfNode(kept, numbers, _group_codes(experiment, head.plan, kept))


def _not_held_out(experiment: Experiment, dataset: Dataset) -> Dataset:
    """Those who train: a coin that follows from a user's id holds others out."""
    data = experiment.data
    split = everyone_trains(dataset)
    rows = split.users
    if data.split == "new-users":
        key = Key.from_seed(experiment.split_seed).at("split", "of nodes")
        coins = key.each(key_numbers(dataset.profiles.ids)).uniform(1)[:, 0]
        rows = rows[coins[rows] >= data.validation + data.test]
    return _of_rows(dataset, rows)


def _of_rows(dataset: Dataset, rows: Rows) -> Dataset:
    if not len(rows):
        raise BadValue(
            f"{dataset.name} has no user for this node to train on; give it another "
            "share, or run with fewer nodes"
        )
    shown = dataset.impressions
    return replace(
        dataset,
        interactions=dataset.interactions.take_users(rows),
        profiles=dataset.profiles.take(rows),
        impressions=None if shown is None else shown.take_users(rows),
    )


def _group_codes(experiment: Experiment, plan: Plan, dataset: Dataset) -> Rows:
    name = experiment.privacy.groups
    if name is None:
        return np.zeros(len(dataset.profiles), np.int64)
    column = dataset.profiles.features.get(str(name))
    if not isinstance(column, Category):
        raise BadValue(f"privacy.groups = {name!r} is no column of the table of users")
    places = {label: place for place, label in enumerate(plan.groups)}
    labels = [places.get(label, -1) for label in column.labels]
    codes = np.array([*labels, -1], np.int64)[column.codes]
    if (codes < 0).any():
        raise BadValue(
            f"privacy.groups = {name!r}: {int((codes < 0).sum())} users of this node "
            f"are in none of the groups of data.population, {', '.join(plan.groups)}"
        )
    return codes


def _of_all(experiment: Experiment, share: Share) -> UsersOfNode:
    """A share of a data set that comes with Tacit, by the rows of `tacit train`."""
    found = _assembled(experiment)
    split, simulation = found.split, found.simulation
    ids = simulation.profiles.ids
    is_here = [share_of(one, parts=share.parts) == share.part for one in ids]
    rows = np.flatnonzero(is_here)
    trained = Dataset(
        found.dataset.name,
        split.train.log,
        split.catalog,
        simulation.profiles,
        split.train.impressions,
    )
    return UsersOfNode(_of_rows(trained, rows), rows, simulation.codes[rows])


# --- A node's folder ------------------------------------------------------------------


@dataclass(frozen=True)
class NodeFolder:
    """The files of one node for one head; private, as its users' events are.

    A node's folder has one of them per experiment that its operator agreed to.
    """

    path: Path

    @property
    def settings(self) -> Path:
        """The experiment that the node agreed to, its share, and how many runs."""
        return self.path / "node.json"

    @property
    def shard(self) -> Path:
        """The events of its users, one file per column."""
        return self.path / "shard"

    @property
    def numbers(self) -> Path:
        """The numbers of its users' keys."""
        return self.path / "numbers.npy"

    @property
    def groups(self) -> Path:
        """The group of each of its users."""
        return self.path / "groups.npy"

    @property
    def store(self) -> Path:
        """The private state of its users and its answers."""
        return self.path / "store.db"


def prepare_node(
    experiment: Experiment,
    share: Share,
    folder: Path,
    *,
    own: bool = False,
    most_runs: int | None = None,
    is_restored: bool = False,
    reading: Progress | None = None,
) -> int:
    """Read the users of one share into a node's folder; how many there are.

    A folder that was prepared before keeps its store, and with it every round that was
    answered. `most_runs` is how often its users may be trained on: by default once in
    a release, and without a limit in a simulation. A store that is a copy is refused,
    unless the operator says that it `is_restored`: then all runs before are over.
    """
    head = head_of(experiment)
    place = NodeFolder(folder / head.digest)
    make_private_folder(folder)
    make_private_folder(place.path)
    NodeStore(place.store, is_restored=is_restored).close()
    users = users_of(experiment, head, share, own=own, reading=reading)
    cache.write(users.dataset, place.shard, stamp={"share": str(share)})
    for path, column in ((place.numbers, users.numbers), (place.groups, users.groups)):
        with draft(path, is_private=True) as file:
            np.save(file, column)
    if most_runs is None and experiment.is_release:
        most_runs = 1
    facts = {
        "format": _FORMAT,
        "experiment": _plain(experiment),
        "part": share.part,
        "parts": share.parts,
        "population": head.plan.population,
        "groups": {**head.plan.groups},
        "most_runs": most_runs,
    }
    write_document(place.settings, facts, is_private=True)
    return len(users.numbers)


def _plain(experiment: Experiment) -> dict[str, Any]:
    """The resolved experiment as JSON, with every path absolute."""
    found: dict[str, Any] = json.loads(json.dumps(experiment.resolved()))
    return found


def node_at(folder: Path, run: str, *, head: str) -> Node:
    """The node in a prepared folder; refuses a run with a head that is not there."""
    if not _HEX.fullmatch(head):  # it becomes a path, and came from outside
        raise Refused(f"head={head[:80]!r} is no digest of 32 digits")
    place = NodeFolder(folder / head)
    if not place.settings.exists():
        raise NotAgreed(
            f"this node has agreed to no run with the head {head}: its method, plan, "
            "items, split or purpose are others; prepare it with the same experiment: "
            "tacit flower node EXPERIMENT --prepare"
        )
    facts = read_document(place.settings)
    experiment = check_experiment(facts["experiment"], str(place.settings))
    store = NodeStore(place.store)
    try:
        return Node(
            _simulation(
                experiment,
                place,
                population=facts["population"],
                sizes=facts["groups"],
            ),
            Share(facts["part"], facts["parts"]),
            store,
            run,
            most_runs=facts["most_runs"],
            note=partial(note_failure, folder),
        )
    except BaseException:
        store.close()
        raise


def _simulation(
    experiment: Experiment,
    place: NodeFolder,
    *,
    population: int,
    sizes: Mapping[str, int],
) -> Simulation:
    """The users of a prepared folder as clients; everybody else is absent."""
    dataset = cache.read(place.shard)
    if dataset is None:
        raise Damaged(place.shard, "prepare the node again: its store stays")
    plan, method = planned(experiment, population, sizes=sizes)
    numbers, groups = np.load(place.numbers), np.load(place.groups)
    return Simulation(
        method,
        plan,
        dataset.catalog,
        dataset.profiles,
        Shards.of(dataset.interactions, dataset.impressions),
        root_key(experiment).at("run"),
        groups=groups,
        absent=plan.population - len(numbers),
        chunk=experiment.run.chunk,
        is_release=experiment.is_release,
        numbers=numbers,
    )


# --- The server -----------------------------------------------------------------------


def gather_over(
    experiment: Experiment,
    nodes: Nodes,
    *,
    shares: int,
    min_nodes: int | None = None,
    head: Head | None = None,
) -> Assembled:
    """The server's side of an experiment over nodes; it holds no user."""
    head = head or head_of(experiment)
    federation = Federation.of(
        head.method,
        head.plan,
        head.catalog,
        root_key(experiment).at("run"),
        nodes=nodes,
        shares=shares,
        min_nodes=min_nodes,
        is_release=experiment.is_release,
    )
    nobody = everyone_trains(_nobody_of(head))
    return Assembled(experiment, head.dataset, nobody, federation)


def _nobody_of(head: Head) -> Dataset:
    log = head.dataset.interactions
    none = np.zeros(0, np.int64)
    empty = Interactions.of_columns(
        none,
        none,
        times=None if log.times is None else none,
        n_users=0,
        n_items=len(head.catalog),
    )
    profiles = Profiles(Strings.of([]))
    return Dataset(head.dataset.name, empty, head.catalog, profiles)
