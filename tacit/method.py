"""What a federated recommender is. Read this file first.

    server   start, broadcast, aggregate
    device   enrol, local_update, privatize       axis 0 is the client
    serving  represent, ask, score                `ranks_on` says where `score` runs
    account  layout, releases                     what leaves, under which guarantee

A `Method` is a frozen dataclass: its fields are a paper's hyper-parameters, its
functions the paper's procedures, and it keeps no state. Device functions are written
once, for a cohort; a real device is a cohort of one.

Every kind of data has one place:

    Server   the server keeps it              Clients  devices keep it
    Cast     everyone sees it                 Updates  raw; live inside `participate`
    Reports  all that leaves in a round       Tastes   what a device knows of its user
    Queries  all that leaves to be served

Only `Cast`, `Reports` and `Queries` have a codec.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, Self

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import ArrayLike

from tacit.aggregation.mean import Aggregator
from tacit.aggregation.server_optimizers import ServerOptimizer
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.errors import BadValue, EmptyCohort, Refused
from tacit.keys import Key, Keys
from tacit.models.formula import Formula
from tacit.plan import Plan
from tacit.release import Release
from tacit.transport.channels import Delivery, Noise
from tacit.transport.messages import Cast, Layout, Queries, Reports
from tacit.tree import Arrays, Tree


@dataclass(frozen=True)
class Server:
    """What the server keeps; it never holds a history."""

    plan: Plan
    catalog: Catalog  # public
    round: int  # the round that comes next
    weights: Arrays
    memory: Arrays  # optimizer state, clipping bound, counts

    def after(self, *, weights: Arrays, memory: Arrays) -> Server:
        """The server one round later."""
        return replace(self, round=self.round + 1, weights=weights, memory=memory)

    def stepped(self, optimizer: ServerOptimizer, gradient: Arrays) -> Server:
        """The server one round later; weights that the gradient lacks stay."""
        own = {name: self.weights[name] for name in gradient}
        moved, kept = optimizer.step(own, self.memory, gradient)
        return self.after(
            weights={**self.weights, **moved}, memory={**self.memory, **kept}
        )


@dataclass(frozen=True)
class Clients:
    """What the devices of a cohort keep; axis 0 is the client."""

    plan_digest: bytes  # what they agreed to at enrolment
    numbers: Int64[np.ndarray, "clients"]  # who they are to themselves
    groups: Int64[np.ndarray, "clients"]  # public group: its place in the plan
    state: Tree  # private, the method's own

    def __post_init__(self) -> None:
        sizes = {len(self.numbers), len(self.groups)}
        if self.state.leaves:
            sizes.add(len(self.state))
        if len(sizes) > 1:
            raise BadValue(
                f"{len(self.numbers)} numbers, {len(self.groups)} groups and state of "
                f"{len(self.state)} clients; they must agree"
            )

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: ArrayLike) -> Clients:
        """Some of the clients, in the order given."""
        index = np.asarray(rows)
        return replace(
            self,
            numbers=self.numbers[index],
            groups=self.groups[index],
            state=self.state.select(index),
        )

    def with_state(self, rows: ArrayLike, state: Tree) -> Clients:
        """A copy in which clients `rows` keep `state`."""
        return replace(self, state=self.state.replace_rows(rows, state))


@dataclass(frozen=True)
class Updates:
    """What devices computed from raw data; lives inside `participate` only."""

    tree: Tree


@dataclass(frozen=True)
class Tastes:
    """What devices know of their users: vectors, adapted weights. Never leaves."""

    tree: Tree


@dataclass(frozen=True, eq=False)
class Candidates:
    """The public items to be scored."""

    items: Int64[np.ndarray, "candidates"]
    catalog: Catalog

    @classmethod
    def all_of(cls, catalog: Catalog) -> Candidates:
        """The whole catalog."""
        return cls(np.arange(len(catalog)), catalog)


Scores = Float[np.ndarray, "people candidates"]


class Method(ABC):
    """A federated recommender; subclasses are frozen dataclasses."""

    ranks_on: ClassVar[Literal["device", "server"]] = "device"

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the noise the plan's target needs; by default itself."""
        return self

    def refreshing(self, earlier: Method) -> Self:
        """The same method in a run that adds to what a finished run of `earlier` left.

        Refused where two runs do not add up, which is the default.
        """
        raise Refused(
            f"{type(self).__name__} cannot refresh an earlier run; train without it"
        )

    @abstractmethod
    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server before the first round."""

    def continued(self, server: Server, *, weights: Arrays, memory: Arrays) -> Server:
        """A server that has just started, with what an earlier run's server kept."""
        raise Refused(
            f"{type(self).__name__} cannot refresh an earlier run; train without it"
        )

    def broadcast(self, server: Server) -> Cast:
        """What everyone may see before the next round: by default all weights."""
        return Cast(server.round, server.plan.digest, server.weights)

    @property
    @abstractmethod
    def aggregator(self) -> Aggregator:
        """What reads the delivery; a plan checks that its channel can feed it."""

    @abstractmethod
    def aggregate(self, server: Server, delivery: Delivery, key: Key) -> Server:
        """The server after a round."""

    # device

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """The private state devices begin with: by default none."""
        return Tree({})

    @abstractmethod
    def local_update(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """The devices' next private state, and what they computed. Raw."""

    @abstractmethod
    def privatize(
        self, cast: Cast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """All that leaves the devices in this round."""

    def noise(self, cast: Cast) -> Noise | None:
        """What a trusted sum adds before the server sees it: by default nothing."""
        return None

    # serving

    @property
    def liked(self) -> float:
        """The value of an item that somebody names without one, and likes."""
        return 1.0

    @abstractmethod
    def represent(
        self, cast: Cast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """What each device knows of its user, from the local history."""

    def ask(self, cast: Cast, clients: Clients, tastes: Tastes, keys: Keys) -> Queries:
        """All that leaves a device to be served, where the server ranks."""
        raise Refused(
            f"{type(self).__name__} ranks on the device and asks the server nothing"
        )

    @abstractmethod
    def score(
        self, cast: Cast, person: Tastes | Queries, candidates: Candidates
    ) -> Scores:
        """A score for each person and candidate; larger is better."""

    def formula(self, cast: Cast) -> Formula:
        """`represent` and `score` of all items, for devices without Python.

        For somebody who never took part. Refused where it cannot be written down, which
        is the default.
        """
        raise Refused(
            f"{type(self).__name__} has no formula from a history to scores, so a "
            "device needs this package to rank with it"
        )

    def reasons(
        self, cast: Cast, shards: Shards, item: int
    ) -> Float[np.ndarray, "events"]:
        """How much each event of one person's history adds to an item's score.

        Computed on the device, for its owner.
        """
        raise Refused(f"{type(self).__name__} cannot say why it recommends an item")

    # account

    def outlook(self, plan: Plan, catalog: Catalog) -> str | None:
        """What can be learnt under this plan, in a sentence, before anything is spent.

        None where nothing is known beforehand.
        """
        return None

    def for_any_catalog(self) -> Self:
        """The same protection for items of which other things are known.

        An audit plays in an invented place. By default the method itself.
        """
        return self

    @abstractmethod
    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """What every report of a round looks like, and so how large it is."""

    @abstractmethod
    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """Who sees what, under which guarantee."""


class Ledger(Protocol):
    """Keeps what a device has spent and refuses before its cap is passed."""

    def permits(
        self, clients: Int64[np.ndarray, "clients"], *, round: int
    ) -> Bool[np.ndarray, "clients"]:
        """Which of these clients may take part; those are charged before they do."""
        ...


class Unmetered:
    """The ledger of a method that promises nothing: everyone may take part."""

    def permits(
        self, clients: Int64[np.ndarray, "clients"], *, round: int
    ) -> Bool[np.ndarray, "clients"]:
        """Everyone."""
        return np.ones(len(clients), bool)


def enrol(
    method: Method,
    plan: Plan,
    profiles: Profiles,
    keys: Keys,
    *,
    numbers: Int64[np.ndarray, "clients"] | None = None,
    groups: Int64[np.ndarray, "clients"] | None = None,
) -> Clients:
    """Devices that agree to a plan and hold the method's initial private state."""
    n = len(profiles)
    return Clients(
        plan.digest,
        np.arange(n) if numbers is None else numbers,
        np.zeros(n, np.int64) if groups is None else groups,
        method.enrol(profiles, keys.at("enrol")),
    )


def participate(
    method: Method,
    cast: Cast,
    clients: Clients,
    shards: Shards,
    keys: Keys,
    *,
    ledger: Ledger,
) -> tuple[Clients, Reports, Bool[np.ndarray, "clients"]]:
    """Run one round on devices: the privacy boundary.

    Returns the clients afterwards, the reports of those who took part (all that a
    device says in a round) and who did. A device that did not agree to the plan, or
    whose budget is spent, refuses: it computes nothing, changes nothing and counts as
    zero.

    `keys` are the devices' own; a round and a purpose are derived from them here, so no
    key serves two rounds.
    """
    if not len(clients):
        raise EmptyCohort(
            f"{type(method).__name__}, round {cast.round}: nobody was asked; "
            "a round needs at least one device"
        )
    willing = np.zeros(len(clients), bool)
    if clients.plan_digest == cast.plan_digest:
        willing = ledger.permits(clients.numbers, round=cast.round)
    rows = np.flatnonzero(willing)
    if not len(rows):
        return clients, Reports.nobody(), willing
    some, held, own = clients, shards, keys.at("round", cast.round)
    if len(rows) < len(clients):  # taking everyone would copy every history
        some, held, own = clients.take(rows), shards.take(rows), own[rows]
    state, updates = method.local_update(cast, some, held, own.at("local_update"))
    after = replace(some, state=state)
    reports = method.privatize(cast, after, updates, own.at("privatize"))
    if len(reports) != len(rows):
        raise Refused(
            f"{type(method).__name__}.privatize gave {len(reports)} reports for "
            f"{len(rows)} devices; each says one thing"
        )
    return clients.with_state(rows, state), reports, willing
