"""What a federated recommender is. Read this file first.

    server   start, broadcast, aggregate
    client   enrol, local_update, privatize       axis 0 is the client
    serving  represent, score                     on the device
    account  layout, releases                     what leaves, under which guarantee
             broadcast_layouts                    what clients agree to be sent

A `Method` is a frozen dataclass: its fields are a paper's hyper-parameters, its
functions the paper's procedures, and it keeps no state. Client functions are written
once, for a cohort; a real device is a cohort of one.

Nearly every method learns from sums. A `SumMethod` declares its phases and writes

    start            the server before the first round
    update           what clients compute in a phase, raw
    report_shape     the leaves of that, and their shapes
    public_shape     what a broadcast holds, with the range of its values
    learn            the server after a round, from the total: summed, noisy, checked
    represent, score ranking on the device

and a `Privacy` value protects it. Bounds, noise, layout, calibration and account of a
round are derived from the two, once, and the author writes none of them.

What only some methods can do is a capability that is asked for by its protocol:
`Refreshable`, `Exportable`, `Explainable`, `Queryable`, `Decomposable`, `Popular`,
`Purposeful`.

Every kind of data has one place:

    Server     the server keeps it
    Broadcast  everyone sees it
    Clients    clients keep it
    Updates    raw; live inside `participate`
    Tastes     what a client knows of its user; never leaves
    Reports    all that leaves a client in a round

Only `Broadcast` and `Reports` have a codec. What leaves a client to be served is made
of a user vector by `serving`, for every `Queryable` method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Protocol, Self, final, get_args, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import ArrayLike

from tacit import check
from tacit.accounting.serialization import agreed_release
from tacit.aggregation.bucketed import Bucketed
from tacit.aggregation.mean import Aggregator, Mean
from tacit.aggregation.server_optimizers import ServerOptimizer
from tacit.agreement import Agreement
from tacit.data.catalog import Catalog, Profiles
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.errors import BadValue, EmptyCohort, Refused
from tacit.keys import Key, Keys
from tacit.ledger.budget import is_within
from tacit.mechanisms.adaptive_clip import BIT
from tacit.mechanisms.sum_mechanism import SumMechanism
from tacit.models.histories import ListFor
from tacit.models.onnx_graph import Formula
from tacit.phase import Phase, check_phases, in_turn, named, phase_of
from tacit.plans import Plan
from tacit.privacy import (
    UNPROTECTED,
    CentralGaussian,
    LocalPrivUnit,
    Privacy,
    Unprotected,
)
from tacit.privacy.privacy import Legal
from tacit.release import Release
from tacit.sampling import Sampler
from tacit.transport.channels import Delivery, RoundContext, Sum, channel
from tacit.transport.messages import (
    NO_PHASE,
    Broadcast,
    BroadcastLayout,
    Layout,
    PublicSlot,
    Reports,
    Slot,
    zeros,
)
from tacit.tree import (
    Array,
    Arrays,
    Dense,
    Factored,
    Symmetric,
    TouchedRows,
    Tree,
    divided,
)
from tacit.wire_names import digest_of

__all__ = [
    "Array",
    "Arrays",
    "Broadcast",
    "Candidates",
    "Catalog",
    "CentralGaussian",
    "Clients",
    "Decomposable",
    "Dense",
    "Explainable",
    "Exportable",
    "Factored",
    "Formula",
    "ItemSpace",
    "Key",
    "Keys",
    "Layout",
    "Ledger",
    "ListFor",
    "LocalPrivUnit",
    "Mechanisms",
    "Method",
    "Phase",
    "Plan",
    "Popular",
    "Privacy",
    "Profiles",
    "PublicSlot",
    "Purposeful",
    "Queryable",
    "Refreshable",
    "Scores",
    "Server",
    "Shards",
    "Slot",
    "SumMethod",
    "Symmetric",
    "Tastes",
    "TouchedRows",
    "Tree",
    "Unmetered",
    "Unprotected",
    "Updates",
    "Way",
    "check_offered",
    "divided",
    "empty_reports",
    "enrol",
    "in_turn",
    "participate",
    "ranking_for",
]

# Agreements by public catalog, then by the digest of all other terms. Every round asks
# for one, and computing it hashes every layout. A catalog that is gone takes its own
# along.
_AGREEMENTS: WeakKeyDictionary[Catalog, dict[bytes, Agreement]] = WeakKeyDictionary()
_SPENT = "budget spent"  # in the server's memory, where phases are chosen: sum of 1/z²


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

    def stepped(
        self, optimizer: ServerOptimizer, gradient: Arrays, *, epoch: int = 0
    ) -> Server:
        """The server one round later; weights that the gradient lacks stay."""
        own = {name: self.weights[name] for name in gradient}
        moved, memory = optimizer.step(own, self.memory, gradient, epoch=epoch)
        return self.after(
            weights={**self.weights, **moved}, memory={**self.memory, **memory}
        )


@dataclass(frozen=True)
class Clients:
    """What the clients of a cohort keep; axis 0 is the client."""

    plan: Plan  # what they agreed to at enrolment
    numbers: Int64[np.ndarray, "clients"]  # who they are to themselves
    groups: Int64[np.ndarray, "clients"]  # index of the public group in `plan.groups`
    state: Tree  # private, the method's own
    agreement: Agreement | None = None  # None: they rank, and answer no broadcast

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
    """What clients computed from raw data; lives inside `participate` only."""

    tree: Tree


@dataclass(frozen=True)
class Tastes:
    """What clients know of their users: vectors, adapted weights. Never leaves."""

    tree: Tree


@dataclass(frozen=True, eq=False)
class Candidates:
    """The public items to be scored."""

    items: Int64[np.ndarray, "candidates"]
    catalog: Catalog

    @classmethod
    def all_of(cls, catalog: Catalog) -> Candidates:
        """Every item of the catalog, in its order."""
        return cls(np.arange(len(catalog)), catalog)


@dataclass(frozen=True, eq=False)
class ItemSpace:
    """Public vectors of items: the score of an item is user · vector + offset."""

    vectors: Float[np.ndarray, "items factors"]
    offsets: Float[np.ndarray, "items"]

    def __post_init__(self) -> None:
        if len(self.vectors) != len(self.offsets):
            raise BadValue(
                f"vectors of {len(self.vectors)} items and offsets of "
                f"{len(self.offsets)}; they must agree"
            )

    def scores(self, users: Float[np.ndarray, "users factors"]) -> Scores:
        """The score of every item for each user vector."""
        return users @ self.vectors.T + self.offsets


Way = tuple[tuple[int, ...], ...]  # for each round, the phases that it may have
Scores = Float[np.ndarray, "users candidates"]
Mechanisms = Mapping[str, type[Privacy]]  # by their names in `[privacy] mechanism`


class Method(ABC):
    """A federated recommender; subclasses are frozen dataclasses."""

    mechanisms: ClassVar[Mechanisms] = {"none": Unprotected}
    """The names that `[privacy] mechanism` may have, and the field `privacy` then."""

    needs_impressions: ClassVar[bool] = False
    """Whether clients have nothing to say without slates that they were shown."""

    usual_rounds: ClassVar[int] = 1
    """The rounds of a run where nobody says how many; in far fewer it learns little."""

    def needs_rounds(self, rounds: int, sampler: Sampler) -> str | None:
        """Why a run in so few rounds may break what the method promises of its lists.

        None if it does not. Asked before it is calibrated, and of new runs only.
        """
        return None

    # server

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the noise the plan's target needs; by default itself."""
        return self

    @abstractmethod
    def start(self, plan: Plan, catalog: Catalog, key: Key) -> Server:
        """The server before the first round."""

    def is_over(self, server: Server) -> bool:
        """Whether the run is done: by default after the rounds that were planned."""
        return server.round >= server.plan.rounds

    def broadcast(self, server: Server) -> Broadcast:
        """What everyone may see before the next round: by default all weights."""
        phase = NO_PHASE if self.is_over(server) else 0
        agreed = self.agreement(server.plan, server.catalog).digest
        return Broadcast(server.round, agreed, server.weights, phase)

    @abstractmethod
    def aggregators(self, plan: Plan) -> tuple[Aggregator, ...]:
        """What reads deliveries; a plan checks that its channel can feed them."""

    def context(self, server: Server, broadcast: Broadcast, key: Key) -> RoundContext:
        """What a round has agreed on; channel and server are handed the same one."""
        return RoundContext(
            self.layout(server.plan, server.catalog, round=server.round),
            key,
            self.noise(broadcast, server.plan),
            server.plan.min_contributors,
            server.plan.cohort_size,
            server.plan.population,
        )

    def legal(
        self, messages: Tree, plan: Plan, catalog: Catalog, *, phase: int
    ) -> Legal:
        """Which messages of a phase an honest client may have sent: by default all.

        They have the declared layout already. Whoever reads single messages of
        strangers leaves out the others before `aggregate`.
        """
        return np.ones(len(messages), bool)

    @abstractmethod
    def aggregate(
        self, server: Server, delivery: Delivery, context: RoundContext
    ) -> Server:
        """The server after a round."""

    # agreement

    @abstractmethod
    def broadcast_layouts(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[BroadcastLayout, ...]:
        """What a broadcast holds in each phase, whatever was learnt."""

    @abstractmethod
    def model_layout(self, catalog: Catalog) -> BroadcastLayout:
        """What the broadcast after the last round holds: the finished model."""

    def report_layouts(self, plan: Plan, catalog: Catalog) -> tuple[Layout, ...]:
        """What leaves a client in each phase: by default there is one."""
        return (self.layout(plan, catalog, round=0),)

    def update_slots(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[Mapping[str, Slot], ...]:
        """What clients compute in each phase, raw: by default as it is reported."""
        return tuple(layout.slots for layout in self.report_layouts(plan, catalog))

    def terms(self, plan: Plan) -> dict[str, object]:
        """What clients agree to beside layouts and releases."""
        return {"plan": plan.digest, "method": self}

    def agreement(self, plan: Plan, catalog: Catalog) -> Agreement:
        """What clients and server must agree on, with its digest."""
        terms = self.terms(plan)
        own = _AGREEMENTS.setdefault(catalog, {})
        name = digest_of(terms)
        if name not in own:
            releases = [agreed_release(release) for release in self.releases(plan)]
            carrier = channel(plan.channel)
            own[name] = Agreement.of(
                {**terms, "releases": releases, "channel": type(carrier)},
                broadcasts=(
                    *self.broadcast_layouts(plan, catalog),
                    self.model_layout(catalog),
                ),
                updates=self.update_slots(plan, catalog),
                reports=self.report_layouts(plan, catalog),
            )
        return own[name]

    def ways(self, plan: Plan) -> tuple[Way, ...]:
        """The ways that a run may take: by default one, of one phase in every round.

        A phase stands by its index among the layouts that clients agree to.
        """
        return (((0,),) * plan.rounds,)

    # client

    def agrees(self, broadcast: Broadcast, plan: Plan) -> bool:
        """Whether a broadcast is one that clients of this plan answer."""
        return broadcast.phase != NO_PHASE

    def enrol(self, profiles: Profiles, keys: Keys) -> Tree:
        """The private state clients begin with: by default none."""
        return Tree({})

    @abstractmethod
    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """The clients' next private state, and what they computed, raw."""

    def empty_update(
        self, broadcast: Broadcast, clients: Clients, shown: Shards, keys: Keys
    ) -> Updates:
        """What clients that contribute nothing hand to `privatize`: by default zeros.

        It is for clients that cannot compute an update, and must not tell that they
        cannot. It gets no history: `shown` has slates at the most, which are public.
        """
        slots = _agreement(clients).updates[broadcast.phase]
        return Updates(zeros(slots, len(clients)))

    @abstractmethod
    def privatize(
        self, broadcast: Broadcast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """All that leaves the clients in this round."""

    def noise(self, broadcast: Broadcast, plan: Plan) -> SumMechanism | None:
        """The bounds and noise of a sum before anybody sees it: by default none."""
        return None

    def multiplier(self, broadcast: Broadcast, plan: Plan, group: str) -> float | None:
        """Noise over sensitivity of the round for a group, if phases are chosen."""
        return None

    def report_bytes(self, layout: Layout) -> int:
        """The memory of one client's report, by which a simulation sizes its chunks.

        It may depend on nothing but the layout: how clients are stacked must say
        nothing about anybody's history.
        """
        return layout.stored_bytes

    # serving

    @property
    def liked(self) -> float:
        """The value of an item that somebody likes and names without a value."""
        return 1.0

    @abstractmethod
    def represent(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> Tastes:
        """What each client knows of its user, from the local history."""

    @abstractmethod
    def score(
        self, broadcast: Broadcast, user: Tastes, candidates: Candidates
    ) -> Scores:
        """A score for each user and candidate; larger is better."""

    # account

    def outlook(self, plan: Plan, catalog: Catalog) -> str | None:
        """One sentence on what can be learnt under this plan, before budget is spent.

        None where nothing is known beforehand.
        """
        return None

    def for_catalog(self, catalog: Catalog) -> Self:
        """The same method and protection for another catalog: by default itself.

        An audit runs on an invented catalog, whose features differ from the real one's.
        """
        return self

    @abstractmethod
    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """What every report of a round looks like, and so how large it is."""

    @abstractmethod
    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """Who sees what, under which guarantee."""

    def total_multiplier(self, group: str) -> float | None:
        """Multiplier of the one Gaussian that a run of chosen phases amounts to."""
        return None


@dataclass(frozen=True)
class SumMethod(Method):
    """A method that learns from sums of reports, under any `Privacy`."""

    mechanisms: ClassVar[Mechanisms] = {
        "none": Unprotected,
        "central": CentralGaussian,
        "local": LocalPrivUnit,
    }

    _: KW_ONLY
    privacy: Privacy = UNPROTECTED

    # what an author writes

    @abstractmethod
    def phases(self, plan: Plan) -> tuple[Phase, ...]:
        """The phases of a run, in the order of their rounds; each round has one.

        Where `next_phase` chooses, all that it may choose from: rounds may overlap.
        Names are distinct, and so are the words for what is reported.
        """

    @abstractmethod
    def report_shape(self, phase: Phase, catalog: Catalog) -> Mapping[str, Slot]:
        """The leaves of what clients compute in a phase."""

    @abstractmethod
    def public_shape(
        self, phase: Phase | None, catalog: Catalog
    ) -> Mapping[str, PublicSlot]:
        """What a broadcast holds in a phase; None: once the run is over.

        Clients check it before they look at their data, so it must hold in every round
        of the phase, whatever was learnt.
        """

    @abstractmethod
    def update(
        self,
        phase: Phase,
        broadcast: Broadcast,
        clients: Clients,
        shards: Shards,
        keys: Keys,
    ) -> Tree:
        """What clients compute in a phase, raw; axis 0 is the client."""

    @abstractmethod
    def learn(self, server: Server, phase: Phase, total: Arrays) -> Server:
        """The server after a round, from the sum of its reports.

        The total has its noise already. Over `self.planned(server.plan)` it is the mean
        of a whole cohort, whoever turned up.
        """

    def next_phase(self, server: Server) -> Phase | None:
        """The phase of the next round; None if the run is over.

        By default the planned one. A method that overrides this may choose among its
        phases from what was released: the plan then fixes the total budget, of which
        each phase takes its share. A round that would pass it is refused, and so is a
        phase that is not one of them as declared, or not in a round that it has.
        """
        if server.round >= server.plan.rounds:
            return None
        phases = self.phases(server.plan)
        return phases[phase_of(phases, server.round)]

    def ways(self, plan: Plan) -> tuple[Way, ...]:
        """The ways that a run may take: by default each round has any of its phases.

        Where phases are planned, that is the one way. A method that chooses says here
        which phases follow each other, so that no more bytes are planned than needed.
        """
        phases = self.phases(plan)
        rounds = (
            tuple(n for n, phase in enumerate(phases) if round_ in phase.rounds)
            for round_ in range(plan.rounds)
        )
        return (tuple(some for some in rounds if some),)

    def public(self, server: Server, phase: Phase | None) -> Arrays:
        """What everyone may see before the next round: by default all weights."""
        return server.weights

    def robust(self, phase: Phase) -> Aggregator:
        """The aggregator that replaces the sum if attackers are expected."""
        return Mean()

    # what follows

    def planned(self, plan: Plan) -> float:
        """How many whole reports the planned cohort of a round adds up to."""
        return self.privacy.planned(plan)

    def calibrated(self, plan: Plan) -> Self:
        """The same method with the least noise for the plan's target."""
        found = self.privacy.calibrated(
            plan, self.phases(plan), is_chosen=self.chooses_phases
        )
        return replace(self, privacy=found)

    @property
    def chooses_phases(self) -> bool:
        """Whether the method chooses how to go on from what was released.

        A method that overrides `next_phase` and chooses under some settings only says
        here under which.
        """
        return type(self).next_phase is not SumMethod.next_phase

    def with_planned_phases(self) -> Self:
        """The same method with phases that are planned beforehand; refuses if none."""
        if self.chooses_phases:
            raise BadValue(
                f"{type(self).__name__} has no sums that are planned beforehand"
            )
        return self

    @final
    def releases(self, plan: Plan) -> tuple[Release, ...]:
        """One release per phase, as the protection declares it."""
        phases = self.phases(plan)
        check_phases(phases, rounds=None if self.chooses_phases else plan.rounds)
        return self.privacy.releases(plan, phases, is_chosen=self.chooses_phases)

    @final
    def total_multiplier(self, group: str) -> float | None:
        """The protection's multiplier for the whole run, if phases are chosen."""
        return self.privacy.total_multiplier(group) if self.chooses_phases else None

    @final
    def layout(self, plan: Plan, catalog: Catalog, *, round: int) -> Layout:
        """The protected report of the first phase that may have this round."""
        phases = self.phases(plan)
        return self._layout(phases[phase_of(phases, round)], catalog)

    def _layout(self, phase: Phase, catalog: Catalog) -> Layout:
        slots, robust = self.report_shape(phase, catalog), self.robust(phase)
        layout = self.privacy.layout(phase, slots)
        if not isinstance(robust, Bucketed):
            return layout
        # Only the method's leaves are summed by group: the bit of a moving clip is one
        # number for the whole cohort.
        own = {name: slot for name, slot in layout.slots.items() if name in slots}
        grouped = robust.declared(Layout(own, layout.split_axis))
        return Layout({**layout.slots, **grouped.slots}, layout.split_axis)

    @final
    def is_over(self, server: Server) -> bool:
        """Whether there is no next phase; the planned rounds are the most."""
        return super().is_over(server) or self.next_phase(server) is None

    @final
    def broadcast(self, server: Server) -> Broadcast:
        """What everyone may see, the phase, and what its protection tells."""
        phase = None if self.is_over(server) else self._phase_now(server)
        weights = self.public(server, phase)
        agreed = self.agreement(server.plan, server.catalog).digest
        if phase is None:
            return Broadcast(server.round, agreed, weights, NO_PHASE)
        told = self.privacy.told(phase, server.memory)
        index = self.phases(server.plan).index(phase)
        return Broadcast(server.round, agreed, {**weights, **told}, index)

    def _phase_now(self, server: Server) -> Phase:
        """What `next_phase` chose; refuses a phase that no client would answer."""
        phase = None if super().is_over(server) else self.next_phase(server)
        if phase is None:
            raise Refused(f"the run is over after {server.round} rounds")
        chose = f"{type(self).__name__} chose '{phase.name}' for round {server.round}"
        phases = self.phases(server.plan)
        if phase not in phases:
            raise Refused(
                f"{chose}, and it is none of the phases that were declared: "
                f"{named(phases)}; `next_phase` must give one of them as it is"
            )
        if server.round not in phase.rounds:
            raise Refused(
                f"{chose}, and clients agreed to {named([phase])}; choose a phase that "
                "may have this round"
            )
        return phase

    @final
    def terms(self, plan: Plan) -> dict[str, object]:
        """The plan, the method, its phases, and the bounds and noise of each."""
        phases = self.phases(plan)
        privacy = self.privacy
        made = [privacy.mechanism(one, privacy.told(one, {})) for one in phases]
        return super().terms(plan) | {"phases": phases, "mechanisms": made}

    @final
    def broadcast_layouts(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[BroadcastLayout, ...]:
        """The method's own arrays in each phase, and those that its protection adds."""
        told = self.privacy.told_shape
        return tuple(
            BroadcastLayout({**self.public_shape(phase, catalog), **told(phase)})
            for phase in self.phases(plan)
        )

    @final
    def model_layout(self, catalog: Catalog) -> BroadcastLayout:
        """The method's own arrays once the run is over."""
        return BroadcastLayout(self.public_shape(None, catalog))

    @final
    def report_layouts(self, plan: Plan, catalog: Catalog) -> tuple[Layout, ...]:
        """What a protected report looks like in each phase."""
        return tuple(self._layout(phase, catalog) for phase in self.phases(plan))

    @final
    def update_slots(
        self, plan: Plan, catalog: Catalog
    ) -> tuple[Mapping[str, Slot], ...]:
        """What the method reports in each phase, before any protection."""
        return tuple(self.report_shape(phase, catalog) for phase in self.phases(plan))

    @final
    def phase(self, broadcast: Broadcast, plan: Plan) -> Phase:
        """The phase that a broadcast belongs to; refuses one of a run that is over."""
        phases = self.phases(plan)
        if broadcast.phase >= len(phases):
            raise Refused(
                f"a broadcast of round {broadcast.round} asks for phase "
                f"{broadcast.phase} of {len(phases)}: there is nothing to answer"
            )
        return phases[broadcast.phase]

    @final
    def agrees(self, broadcast: Broadcast, plan: Plan) -> bool:
        """Whether the phase is one that may have this round."""
        phases = self.phases(plan)
        if not 0 <= broadcast.phase < len(phases):
            return False
        if self.chooses_phases:
            return broadcast.round in phases[broadcast.phase].rounds
        return (
            broadcast.round < plan.rounds
            and phase_of(phases, broadcast.round) == broadcast.phase
        )

    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
    ) -> tuple[Tree, Updates]:
        """What clients compute in the phase of this round; their state stays."""
        phase = self.phase(broadcast, clients.plan)
        return clients.state, Updates(
            self.update(phase, broadcast, clients, shards, keys)
        )

    @final
    def empty_update(
        self, broadcast: Broadcast, clients: Clients, shown: Shards, keys: Keys
    ) -> Updates:
        """Zeros, laid out as the protection reads an update."""
        slots = _agreement(clients).updates[broadcast.phase]
        return Updates(self.privacy.empty(slots, len(clients), keys))

    @final
    def privatize(
        self, broadcast: Broadcast, clients: Clients, updates: Updates, keys: Keys
    ) -> Reports:
        """All that leaves the clients: protected first, then placed into groups."""
        phase = self.phase(broadcast, clients.plan)
        # Bounded before it is grouped, so that the bound does not depend on the group.
        tree = self.privacy.report(
            updates.tree, phase, broadcast.weights, codes=clients.groups, keys=keys
        )
        robust = self.robust(phase)
        if not isinstance(robust, Bucketed):
            return Reports(tree)
        bit = {name: leaf for name, leaf in tree.leaves.items() if name == BIT}
        own = Tree({n: leaf for n, leaf in tree.leaves.items() if n != BIT})
        return Reports(Tree({**robust.placed(own, keys.at("group")).leaves, **bit}))

    @final
    def noise(self, broadcast: Broadcast, plan: Plan) -> SumMechanism | None:
        """The bounds and noise of this round's sum, at the clip that was broadcast."""
        return self.privacy.mechanism(self.phase(broadcast, plan), broadcast.weights)

    @final
    def multiplier(self, broadcast: Broadcast, plan: Plan, group: str) -> float | None:
        """The protection's multiplier for this round, if phases are chosen."""
        if not self.chooses_phases:
            return None
        return self.privacy.multiplier(self.phase(broadcast, plan), group)

    @final
    def aggregators(self, plan: Plan) -> tuple[Aggregator, ...]:
        """The aggregator of each phase: a sum, or what method or protection need."""
        wanted = (self.robust(phase) for phase in self.phases(plan))
        return tuple(self.privacy.aggregator(one) for one in wanted)

    @final
    def context(self, server: Server, broadcast: Broadcast, key: Key) -> RoundContext:
        """Layout, noise and key of the round; refuses one that passes the budget."""
        phase = self._phase_now(server)
        self._spent_after(server, phase)  # refuses before any client is asked
        return RoundContext(
            self._layout(phase, server.catalog),
            key,
            self.noise(broadcast, server.plan),
            server.plan.min_contributors,
            self.planned(server.plan),
            server.plan.population,
        )

    @final
    def legal(
        self, messages: Tree, plan: Plan, catalog: Catalog, *, phase: int
    ) -> Legal:
        """Those that the protection of the phase may have made."""
        now = self.phases(plan)[phase]
        return self.privacy.legal(messages, now, slots=self.report_shape(now, catalog))

    @final
    def aggregate(
        self, server: Server, delivery: Delivery, context: RoundContext
    ) -> Server:
        """The server after a round: read the total, learn from it, move the clip."""
        phase = self._phase_now(server)
        slots = self.report_shape(phase, server.catalog)
        found = self.privacy.total(
            delivery, context, phase, slots=slots, wanted=self.robust(phase)
        )
        total = {name: value for name, value in found.items() if name != BIT}
        after = self._learnt(server, phase, total, delivery)
        # The memory from before `learn`: the clip that this round's clients were sent.
        told = self.privacy.told(phase, server.memory)
        moved = self.privacy.after(phase, told, found, planned=context.planned)
        spent = self._spent_after(server, phase)
        return replace(after, memory={**after.memory, **moved, **spent})

    def _learnt(
        self, server: Server, phase: Phase, total: Arrays, delivery: Delivery
    ) -> Server:
        """What is learnt from a total, as of those who came if they were counted."""
        if not isinstance(delivery, Sum) or delivery.contributors is None:
            return self.learn(server, phase, total)
        present = replace(server, plan=server.plan.with_present(delivery.contributors))
        return replace(self.learn(present, phase, total), plan=server.plan)

    def _spent_after(self, server: Server, phase: Phase) -> Arrays:
        """The sum of 1/z² after one more round, where phases are chosen."""
        # For the unnamed group, whose scale is 1: a scale divides both and cancels.
        z, total = self.privacy.multiplier(phase, ""), self.total_multiplier("")
        if z is None or total is None:
            return {}
        # Gaussian releases compose by adding 1/z² (zCDP, Bun and Steinke 2016), also
        # when each is chosen from the ones before (Smith and Thakurta 2022).
        spent = float(server.memory.get(_SPENT, np.zeros(()))) + z**-2
        if not is_within(spent, total**-2):
            raise Refused(
                f"{type(self).__name__} chose '{phase.name}' for round {server.round}, "
                f"and its noise would spend {spent * total**2:.3f} times the budget of "
                "the run; a phase's share is that of the whole run"
            )
        return {_SPENT: np.array(spent)}


def check_offered(method: Method) -> None:
    """Refuse a `privacy` that the method does not offer, or that is no protection."""
    value = getattr(method, "privacy", UNPROTECTED)
    if not isinstance(value, (*method.mechanisms.values(),)):
        kinds = (kind.__name__ for kind in method.mechanisms.values())
        raise BadValue(
            f"privacy={value!r} of {type(method).__name__} must be one of "
            f"{', '.join(kinds)}, from tacit.privacy"
        )


# --- What only some methods can do ----------------------------------------------------


@runtime_checkable
class Refreshable(Protocol):
    """A method that can go on from what a finished run learnt."""

    def refreshing(self, earlier: Method) -> Method:
        """The same method for a run that goes on from one of `earlier`."""
        ...

    def continued(self, server: Server, *, weights: Arrays, memory: Arrays) -> Server:
        """The started server with the weights and memory of an earlier run."""
        ...


@runtime_checkable
class Exportable(Protocol):
    """A method whose ranking can be written down for devices without Python."""

    def formula(self, broadcast: Broadcast) -> Formula:
        """`represent` and `score` of all items, for somebody who never took part."""
        ...


@runtime_checkable
class Explainable(Protocol):
    """A method that can say why it recommends an item."""

    def reasons(
        self, broadcast: Broadcast, shards: Shards, item: int
    ) -> Float[np.ndarray, "events"]:
        """How much each event of one user's history adds to an item's score.

        Computed on the device, for its owner.
        """
        ...


@runtime_checkable
class Queryable(Protocol):
    """A method that scores by an inner product, so that a server can rank for a client.

    `score` must order items as `user · vector + offset` does. The item space is public:
    it follows from the broadcast alone. What a client sends instead of its user vector,
    and under which guarantee, is decided in `tacit.serving`.
    """

    def item_space(self, broadcast: Broadcast, candidates: Candidates) -> ItemSpace:
        """The public vectors and offsets of the candidates."""
        ...

    def user_vectors(
        self, broadcast: Broadcast, tastes: Tastes
    ) -> Float[np.ndarray, "users factors"]:
        """The private vector of each user, from what its client knows; stays there."""
        ...


@runtime_checkable
class Decomposable(Protocol):
    """A method whose training may make a basis: few vectors that mix into any user's.

    It is beside `Queryable`: a client that says its attention over the basis, which is
    the softmax of u·b / sqrt(width), says as many numbers as there are basis vectors.
    Basis and padding item follow from the broadcast.
    """

    @property
    def basis_size(self) -> int:
        """How many basis vectors these settings train; 0 where they train none."""
        ...

    def basis(self, broadcast: Broadcast) -> Float[np.ndarray, "interests factors"]:
        """The public basis vectors, as the broadcast has them."""
        ...

    def encodings(
        self, broadcast: Broadcast, histories: Ragged
    ) -> Float[np.ndarray, "users factors"]:
        """The private vector u of each history, before any mixture; stays there.

        In a history the number after the last item stands for the padding item.
        """
        ...


@runtime_checkable
class Popular(Protocol):
    """A method whose model tells how popular each item is, from released counts."""

    def popularity(self, broadcast: Broadcast) -> Float[np.ndarray, "items"]:
        """A number per item of the catalog, larger for those that more users have.

        The broadcast is that after the last round. It is the same for everyone.
        """
        ...


@runtime_checkable
class Purposeful(Protocol):
    """A method whose finished model can rank for a session, or for the next visit."""

    def ranking_for(self, list_for: ListFor) -> Method:
        """The method as it ranks for that: from the same model, and never trained.

        Refuses settings of its own that weigh events already.
        """
        ...


def ranking_for(method: Method, list_for: ListFor) -> Method:
    """The method as it ranks for a session or a visit; refuses one that cannot."""
    check.one_of(get_args(ListFor), list_for=list_for)
    if not isinstance(method, Purposeful):
        if list_for == "any":
            return method
        raise Refused(
            f"{type(method).__name__} cannot weigh a history by its order or its "
            f"times, so it has no list for {list_for!r}; use gram, or list_for = 'any'"
        )
    return method.ranking_for(list_for)


# --- One round on clients -------------------------------------------------------------


class Ledger(Protocol):
    """Keeps what a client has spent and refuses before its cap is passed."""

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        """Which of these clients may take part; those are charged before they do.

        `multipliers` are the noise of the round over what each may add, where a method
        chooses it as it goes.
        """
        ...


class Unmetered:
    """The ledger of a method that promises nothing: everyone may take part."""

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        """True for every client, whatever it has said before."""
        return np.ones(len(clients), bool)


def enrol(
    method: Method,
    plan: Plan,
    profiles: Profiles,
    keys: Keys,
    *,
    catalog: Catalog | None = None,
    numbers: Int64[np.ndarray, "clients"] | None = None,
    groups: Int64[np.ndarray, "clients"] | None = None,
) -> Clients:
    """Clients that agree to a plan and hold the method's initial private state.

    The layouts that they agree to follow from the public catalog. Without one they can
    rank, and answer no broadcast.
    """
    n = len(profiles)
    return Clients(
        plan,
        np.arange(n) if numbers is None else numbers,
        np.zeros(n, np.int64) if groups is None else groups,
        method.enrol(profiles, keys.at("enrol")),
        None if catalog is None else method.agreement(plan, catalog),
    )


def participate(
    method: Method,
    broadcast: Broadcast,
    clients: Clients,
    shards: Shards,
    keys: Keys,
    *,
    ledger: Ledger,
    on_failure: Callable[[Exception], None] | None = None,
) -> tuple[Clients, Reports, Bool[np.ndarray, "clients"]]:
    """Run one round on clients: the privacy boundary.

    Returns the clients afterwards, the reports of those who took part (all that a
    client says in a round) and who did. A client that did not agree to the broadcast,
    its phase or its layout, or whose budget is spent, refuses: it computes nothing,
    changes nothing and counts as zero. None of that depends on its history.

    Once it has agreed, a real client must not fail, because its silence would depend on
    its history. It gives `on_failure`: an error is handed there, and the client sends
    an empty update through the mechanism. Of many clients only those who fail do: the
    others say what they would have said. A simulation leaves `on_failure` out and sees
    the error; so does a release on one machine, which then publishes nothing.

    `keys` are the clients' own; a round and a purpose are derived from them here, so no
    key serves two rounds.
    """
    if not len(clients):
        raise EmptyCohort(
            f"{type(method).__name__}, round {broadcast.round}: nobody was asked; "
            "a round needs at least one client"
        )
    # The ledger is charged here, before any history is read: a crash after this line
    # has spent budget and said nothing, never the reverse.
    willing = _willing(method, broadcast, clients, ledger)
    rows = np.flatnonzero(willing)
    if not len(rows):
        return clients, Reports.nobody(), willing
    some, held, own = clients, shards, keys.at("round", broadcast.round)
    if len(rows) < len(clients):  # taking everyone would copy every history
        some, held, own = clients.take(rows), shards.take(rows), own[rows]
    if on_failure is None:
        state, reports = _contribution(method, broadcast, some, held, own)
    else:
        state, reports = _guarded(method, broadcast, some, held, own, on_failure)
    return clients.with_state(rows, state), reports, willing


def empty_reports(
    method: Method, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
) -> Reports:
    """Reports of clients that contribute nothing, through the mechanism like any other.

    For a round that was begun and cannot be finished. No history is looked at, and no
    click: of `shards` only what is public.
    """
    own = keys.at("round", broadcast.round)
    return _nothing(method, broadcast, clients, shards, own)


def _contribution(
    method: Method, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
) -> tuple[Tree, Reports]:
    """The clients' next private state and their reports, from what they hold."""
    state, updates = method.local_update(
        broadcast, clients, shards, keys.at("local_update")
    )
    after = replace(clients, state=state)
    reports = method.privatize(broadcast, after, updates, keys.at("privatize"))
    if len(reports) != len(clients):
        raise Refused(
            f"{type(method).__name__}.privatize gave {len(reports)} reports for "
            f"{len(clients)} clients; each says one thing"
        )
    return state, reports


def _guarded(
    method: Method,
    broadcast: Broadcast,
    clients: Clients,
    shards: Shards,
    keys: Keys,
    on_failure: Callable[[Exception], None],
) -> tuple[Tree, Reports]:
    """The same; who fails contributes nothing, and keeps the state from before."""
    try:
        return _checked(method, broadcast, clients, shards, keys)
    except Exception as error:
        if len(clients) > 1:
            return _around_failures(
                method, broadcast, clients, shards, keys, on_failure
            )
        on_failure(error)
        return clients.state, _nothing(method, broadcast, clients, shards, keys)


def _around_failures(
    method: Method,
    broadcast: Broadcast,
    clients: Clients,
    shards: Shards,
    keys: Keys,
    on_failure: Callable[[Exception], None],
) -> tuple[Tree, Reports]:
    """The same for many, of whom some fail: nobody else's report is lost with theirs.

    A sum then moves by the reports of those who fail, and by no more. Alone, everybody
    is found out. How clients are stacked decides the last bits of what each computes;
    so the others are computed in a stack as large as before, in which one of them
    stands in for whoever fails, and their reports are as if nobody had.
    """
    errors: list[Exception] = []
    alone: list[tuple[Tree, Reports]] = []
    failed: list[int] = []
    for row in range(len(clients)):
        one = clients.take([row]), shards.take([row]), keys[[row]]
        alone.append(_guarded(method, broadcast, *one, errors.append))
        if len(errors) > len(failed):
            failed.append(row)
            on_failure(errors[-1])
    rows = np.arange(len(clients))
    working = np.setdiff1d(rows, failed)
    states, said = zip(*alone, strict=True)
    everyones = Tree.concatenate([one.tree for one in said])
    if not len(working):
        return clients.state, Reports(everyones)
    rows[failed] = working[0]
    some = clients.take(rows), shards.take(rows), keys[rows]
    try:
        state, reports = _checked(method, broadcast, *some)
    except Exception as error:  # no user's own: together they need too much memory, say
        on_failure(error)
        return Tree.concatenate(states), Reports(everyones)
    nothing = everyones.select(failed)
    kept = state.replace_rows(failed, clients.state.select(failed))
    return kept, Reports(reports.tree.replace_rows(failed, nothing))


def _checked(
    method: Method, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
) -> tuple[Tree, Reports]:
    """The clients' contribution; refuses one that is not finite or not as agreed."""
    with np.errstate(all="ignore"):  # an overflow fails `check_finite` just below
        state, reports = _contribution(method, broadcast, clients, shards, keys)
    _agreement(clients).reports[broadcast.phase].check(reports)
    reports.check_finite()
    return state, reports


def _nothing(
    method: Method, broadcast: Broadcast, clients: Clients, shards: Shards, keys: Keys
) -> Reports:
    # Keys of their own: the failed attempt may have used those of "privatize" already.
    shown = shards.only_shown()
    updates = method.empty_update(broadcast, clients, shown, keys.at("empty"))
    return method.privatize(broadcast, clients, updates, keys.at("empty privatize"))


def _willing(
    method: Method, broadcast: Broadcast, clients: Clients, ledger: Ledger
) -> Bool[np.ndarray, "clients"]:
    """Who agreed to what the broadcast says, and has budget left for it."""
    plan = clients.plan
    # Agreement first: a broadcast that nobody agreed to must not cost any budget.
    if not _agreement(clients).admits(broadcast) or not method.agrees(broadcast, plan):
        return np.zeros(len(clients), bool)
    found = [method.multiplier(broadcast, plan, group) for group in plan.groups]
    chosen = [z for z in found if z is not None]
    multipliers = np.array(chosen)[clients.groups] if chosen else None
    return ledger.permits(
        clients.numbers, round=broadcast.round, multipliers=multipliers
    )


def _agreement(clients: Clients) -> Agreement:
    """What these clients agreed to."""
    if clients.agreement is None:
        raise Refused(
            "these clients agreed to nothing and cannot be asked; enrol them with the "
            "public catalog"
        )
    return clients.agreement
