"""A whole federation on one machine: the same round, thousands of clients at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from tacit import arrays, check
from tacit.codes import Code
from tacit.data.catalog import Catalog, Profiles
from tacit.data.shards import Shards
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.ledger.cohort import Limits
from tacit.ledger.terms import Terms
from tacit.method import (
    Ledger,
    Method,
    Refreshable,
    Server,
    SumMethod,
    Unmetered,
    check_offered,
    enrol,
)
from tacit.plans import Plan
from tacit.release import Release, stretches
from tacit.runtime.ledger import caps_of, releases_of, terms_of
from tacit.runtime.rounds import Population, State, Tally, play_round
from tacit.runtime.secrets import Secrets
from tacit.runtime.warm_start import Earlier
from tacit.sampling import Everyone, FixedSize
from tacit.statement import Account, Past, account
from tacit.text import nth_round
from tacit.transport.channels import Carrier, channel
from tacit.transport.exact_total import check_exact
from tacit.transport.masked_sum import MaskedReports
from tacit.transport.neighbor_graph import GraphSize
from tacit.transport.shared_sum import SharedSum

RELEASE_ASSUMES = (Code("cipher_randomness"), Code("public_inputs"))


@dataclass(frozen=True, eq=False)
class Simulation:
    """A method, a plan and users; `start`, then `step` until the plan is done.

    Stepping is a function of the state alone: whoever holds the state of round t gets
    the same round t + 1, bit for bit, whether the run was interrupted or not. That is
    so in a release too, where the state of an open round has its secret.
    """

    method: Method
    plan: Plan
    catalog: Catalog
    profiles: Profiles
    shards: Shards
    key: Key
    groups: Int64[np.ndarray, "clients"] | None = None
    chunk: int | None = None
    ledger: Ledger | None = None  # None: clients keep the caps by their own counts
    caps: tuple[Cap, ...] | None = None  # None: the plan's target, if it has one
    channel: Carrier | None = None  # None: the plan's, by name
    earlier: Earlier | None = None  # the run that this one goes on from
    absent: int = 0  # users of the plan who have no client: they contribute nothing
    is_release: bool = False  # rounds draw from the operating system and sum exactly
    one_operator: str = ""  # of two: the code why one of them sees what both see
    numbers: Int64[np.ndarray, "clients"] | None = None  # of their keys; None: rows

    def __post_init__(self) -> None:
        here = self.plan.population - self.absent
        if self.absent < 0 or {len(self.profiles), len(self.shards)} != {here}:
            raise BadValue(
                f"the plan speaks of {self.plan.population} users, profiles of "
                f"{len(self.profiles)}, shards of {len(self.shards)}, and "
                f"{self.absent} are absent; they must agree"
            )
        if self.absent and isinstance(self.plan.sampler, FixedSize):
            raise BadValue(
                f"a cohort of fixed size cannot be drawn while {self.absent} of "
                f"{self.plan.population} users are absent: those who are here would "
                "be asked more often than the account says; use poisson"
            )
        if self.chunk is not None:
            check.count(chunk=self.chunk)
        self._check_groups()
        check_plan(self.method, self.plan)
        if self.plan.noise_shares > 1 or self.plan.is_masked:
            self._check_shared(self.method)
        elif self.is_release and isinstance(self.method, SumMethod):
            self._check_exact(self.method)

    def start(self) -> State:
        """The state before the first round."""
        # Every purpose derives its own key: "start" and "clients" never share draws.
        server = self.method.start(self.plan, self.catalog, self.key.at("start"))
        if self.earlier is not None:
            assert isinstance(self.method, Refreshable)  # by `refreshing`
            weights, memory = self.earlier.weights, self.earlier.memory
            server = self.method.continued(server, weights=weights, memory=memory)
        return self.before_any_round(server)

    def before_any_round(self, server: Server) -> State:
        """A state in which all clients have just enrolled."""
        clients = enrol(
            self.method,
            self.plan,
            self.profiles,
            self.population.keys,
            catalog=self.catalog,
            groups=self.groups,
        )
        never = np.zeros((len(clients), len(self.parts)), np.int64)
        secrets = Secrets.from_os() if self.is_release else None
        return State(server, clients, never, np.zeros(len(clients)), secrets)

    def step(self, state: State) -> tuple[State, Tally]:
        """The state and the counts after one more round."""
        self.refuse_played_channel()
        self.refuse_without_secrets(state)
        return play_round(self.method, state, self.population, self.key)

    def refuse_without_secrets(self, state: State) -> None:
        """Refuse a round of a release that could only draw from a seed."""
        if self.is_release and state.secrets is None:
            raise Refused(
                f"{nth_round(state.server.round)} of a release has no secret to draw "
                "from; its checkpoint is not one of a release: begin again, elsewhere"
            )

    def refuse_played_channel(self) -> None:
        """Refuse a release in which this process plays operators, or clients."""
        reason = channel(self.plan.channel).in_one_process
        if self.is_release and reason:
            raise Refused(f"a release over '{self.plan.channel}' needs {reason}")

    def run(self, state: State) -> Iterator[tuple[State, Tally]]:
        """Every state from the next round to the last of the plan."""
        while not self.method.is_over(state.server):
            state, tally = self.step(state)
            yield state, tally

    @property
    def keeps_every_round(self) -> bool:
        """Whether a run can go on from the state after its last round only."""
        return self.is_release  # the secret of a round is gone with its result

    @cached_property
    def account(self) -> Account:
        """What the run will reveal, by itself and with the runs it goes on from."""
        return self.account_of(runs=1)

    def account_of(self, *, runs: int) -> Account:
        """What `runs` runs of the plan will reveal together."""
        past = self.spent_before
        return account(self.plan, self.releases, runs=runs, earlier=past)

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """What will be seen, by whom, under which guarantee."""
        return releases_of(
            self.method,
            self.plan,
            assumes=self._assumes,
            one_operator=self.one_operator,
        )

    @property
    def _assumes(self) -> tuple[Code, ...]:
        """The codes under which every release stands besides those of the method."""
        return RELEASE_ASSUMES if self.is_release else ()

    @property
    def spent_before(self) -> tuple[Past, ...]:
        """The releases of the runs that this one goes on from."""
        return () if self.earlier is None else self.earlier.spent

    @cached_property
    def population(self) -> Population:
        """The clients, each with a key of its own."""
        keys = self.key.at("clients").each(
            self.rows if self.numbers is None else self.numbers
        )
        carrier = self.channel or channel(self.plan.channel)
        ledger = Unmetered() if self.ledger is None else self.ledger
        limits = None
        if self.ledger is None and (any(self._caps) or self._budgets is not None):
            limits = self.limits
        return Population(
            self.shards,
            keys,
            carrier,
            ledger,
            self.parts,
            self.chunk,
            limits,
            self._budgets,
        )

    @cached_property
    def terms(self) -> list[Terms]:
        """What the clients of each public group agree to."""
        return [
            terms_of(self.method, self.plan, group=group, releases=self.releases)
            for group in self.plan.groups
        ]

    @cached_property
    def parts(self) -> tuple[range, ...]:
        """Stretches of rounds in which reports are of the same kind."""
        made = (release.rounds for release in self.releases)
        return stretches(self.plan.rounds, made)

    @cached_property
    def limits(self) -> Limits:
        """How often each client may take part; without caps where a ledger decides."""
        return Limits(self.terms, self.codes, self._caps, self.parts)

    def most_participations(self, state: State) -> int:
        """The most rounds that any client can have joined after the next one."""
        part = self.population.part_of(state.server.round)
        limits = self.limits.within(part, state.taken)
        after = state.taken.sum(axis=1) + (state.taken[:, part] < limits)
        return int(after.max(initial=0))

    @property
    def rows(self) -> Int64[np.ndarray, "clients"]:
        """The row of each client among those who are here."""
        return np.arange(len(self.shards))

    @property
    def codes(self) -> Int64[np.ndarray, "clients"]:
        """The index of each client's group in the plan."""
        codes = np.zeros(len(self.shards), np.int64)
        return codes if self.groups is None else self.groups

    @property
    def _budgets(self) -> Float64[np.ndarray, "clients"] | None:
        """What each client may spend in 1/z², where the method chooses its noise."""
        totals = [terms.total_multiplier for terms in self.terms]
        known = [z**-2.0 for z in totals if z is not None]
        return np.array(known)[self.codes] if known else None

    @property
    def _caps(self) -> list[tuple[Cap, ...]]:
        """The caps that the clients of each group keep."""
        if self.ledger is not None:
            return [() for _ in self.plan.groups]
        if self.caps is not None:
            return [self.caps for _ in self.plan.groups]
        return [
            caps_of(self.plan, group, one_operator=self.one_operator)
            for group in self.plan.groups
        ]

    def _check_exact(self, method: SumMethod) -> None:
        """Refuse sums that have no form in whole numbers, before anyone is asked."""
        for phase in method.phases(self.plan):
            told = method.privacy.told(phase, {})
            mechanism = method.privacy.mechanism(phase, told)
            if mechanism is not None:
                first = phase.rounds.start
                layout = method.layout(self.plan, self.catalog, round=first)
                check_exact(mechanism, layout)

    def _check_shared(self, method: Method) -> None:
        """Refuse what has no sum over two servers, or under masks, from the start."""
        if not isinstance(method, SumMethod):
            return  # its bound and noise are known when the first round begins
        layouts = method.report_layouts(self.plan, self.catalog)
        for phase, layout in zip(method.phases(self.plan), layouts, strict=True):
            mechanism = method.privacy.mechanism(phase, method.privacy.told(phase, {}))
            most_reports = self.plan.population
            if self.plan.is_masked:
                planned = self.plan.cohort_size
                MaskedReports.of(
                    mechanism, layout, planned=planned, most_reports=most_reports
                )
            else:
                SharedSum.of(mechanism, layout, most_reports=most_reports)

    def _check_groups(self) -> None:
        """Refuse groups that are not as large as the plan, and so the account, says."""
        names, n = [*self.plan.groups], self.plan.population
        given = np.zeros(len(self.shards), np.int64)
        given = given if self.groups is None else self.groups
        codes = arrays.integers(given, "groups", below=len(names))
        counts = np.bincount(codes, minlength=len(names)).tolist()
        found = dict(zip(names, counts, strict=True))
        missing = [size - found[name] for name, size in self.plan.groups.items()]
        if min(missing) < 0 or sum(missing) != self.absent:
            raise BadValue(
                f"groups has {len(codes)} users, {found}; the plan says {n}, "
                f"{dict(self.plan.groups)}, of whom {self.absent} are absent: give "
                "every user's place in it"
            )


def check_plan(method: Method, plan: Plan) -> None:
    """Refuse what cannot work, or would break the sensitivity the account relies on."""
    check_offered(method)
    carrier = channel(plan.channel)
    if plan.noise_shares > 1 or plan.is_masked:
        _check_everyone(plan)
    if plan.is_masked:
        GraphSize.least(
            plan.population,
            survivors=plan.min_contributors,
            colluders=plan.assumed_sybils,
        )
    for reader in dict.fromkeys(method.aggregators(plan)):
        name = type(reader).__name__
        if carrier.delivers not in reader.accepts:
            needs = " or ".join(kind.__name__ for kind in reader.accepts)
            raise Refused(
                f"channel '{plan.channel}' delivers {carrier.delivers.__name__}, and "
                f"{name} in {type(method).__name__} needs {needs}"
            )
        # Clipping bounds what a user adds to a sum; a median or a choice of reports can
        # move by more, and the account would be wrong.
        if not reader.is_plain_sum and _is_central(method.releases(plan)):
            raise Refused(
                f"{name} looks at reports before the noise: one user could move the "
                "result by more than a clip; use Mean, or robust statistics over sums "
                "that are noisy already"
            )


def _check_everyone(plan: Plan) -> None:
    """Refuse what earns nothing where an operator sees who reports, and sums before."""
    if not isinstance(plan.sampler, Everyone):
        raise Refused(
            f"the sampler is {type(plan.sampler).__name__}, and over '{plan.channel}' "
            "an operator sees who reports in a round: a cohort drawn in secret earns "
            "nothing in the server's view; use run.sampler.name = 'everyone'"
        )
    if plan.before:
        raise Refused(
            f"'{plan.before[0].what}' is released before the first round by one "
            f"aggregator that sees the reports, which '{plan.channel}' does not have; "
            "declare the items"
        )


def _is_central(releases: tuple[Release, ...]) -> bool:
    """Whether something is protected by noise on a sum, and by no client itself."""
    return any(
        any(cell.event is not None for cell in release.cells.values())
        and not any(cell.is_local for cell in release.cells.values())
        for release in releases
    )
