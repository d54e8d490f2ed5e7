"""Plan, statement, ledger and channel, each recomputed from the others.

    releases   every one is in the totals, in the runtime's account and in the terms
    totals     no figure lies below all releases composed anew, nor below a closed form
    delta      the plan's or none, in every view, and small enough for a guarantee
    ledger     whoever took part as often as possible has spent the plan's total
    channel    nobody's trust is claimed that the channel does not ask for

Nothing is drawn here: an honest method never fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tacit.accounting.epsilon import compose
from tacit.audits import closed_forms
from tacit.audits.checks import Check
from tacit.audits.small_world import simulation_of
from tacit.errors import BadValue, Refused
from tacit.method import Method
from tacit.plans import Plan
from tacit.release import EVERYONE, Adjacency, Cell, CellName, Release, View, implying
from tacit.runtime.ledger import run_statements, terms_of
from tacit.runtime.simulate import Simulation
from tacit.statement import Statement
from tacit.transport.channels import CHANNELS

_SAME = 1e-9  # what rounding may change, relatively
# The largest deltas of a guarantee: as `statement` has them, written down once more.
_LOCAL_DELTA, _CENTRAL_DELTA = 1e-6, 1e-5
_MOST_RESPONSES = 2_000  # that are composed outcome by outcome
_MOST_CLONES = 400  # reports that are mixed; the sum has their square of terms
_MIXED = 50  # contributors of a plan with a relay


def check_books(method: Method, plan: Plan, *, group: str) -> Iterator[Check]:
    """Every check of the account of `plan`, for a member of `group`."""
    books = _Books(method, plan, group)
    yield books.check_counted()
    yield books.check_totals()
    yield books.check_closed_forms()
    yield books.check_deltas()
    yield books.check_ledger()
    yield check_trust(method, plan)


@dataclass(frozen=True, eq=False)
class _Books:
    """The account of a plan for a member of a group, from every side."""

    method: Method
    plan: Plan
    group: str

    @cached_property
    def made(self) -> tuple[Release, ...]:
        """What is released about a member of the group, from the method itself."""
        made = (*self.plan.before, *self.method.releases(self.plan))
        return tuple(r for r in made if r.group in (self.group, EVERYONE))

    @cached_property
    def runtime(self) -> Simulation:
        """The run as it would be played; only its own account of itself is read."""
        return simulation_of(self.method, self.plan)

    @cached_property
    def totals(self) -> list[Statement]:
        told = self.runtime.account.totals
        groups = {line.group for line in told}
        own = self.group if self.group in groups else EVERYONE
        return [line for line in told if line.group == own]

    @cached_property
    def terms(self) -> list[Any]:
        """What clients of the group agree to: by themselves, and in the runtime."""
        number = [*self.plan.groups].index(self._named)
        alone = terms_of(self.method, self.plan, group=self._named)
        return [alone, self.runtime.terms[number]]

    @property
    def _named(self) -> str:
        """The group's name in the plan; its first group stands for everyone."""
        groups = [*self.plan.groups]
        return self.group if self.group in groups else groups[0]

    # checks

    def check_counted(self) -> Check:
        told = {line.what for line in self.runtime.account.releases}
        missing = [r.what for r in self.made if r not in self.runtime.releases]
        missing += [r.what for r in self.made if r.what not in told]
        missing += [
            r.what for t in self.terms for r in self.made if r not in t.releases
        ]
        return Check.at_most(
            "releases that the account or the ledger leaves out",
            float(len(missing)),
            claimed=0.0,
            slack=0.0,
            detail="; ".join(missing)
            or f"{len(self.made)} releases, looked for in the account of the run and "
            "in what clients agree to",
        )

    def check_totals(self) -> Check:
        """Totals are no less than all releases together, composed anew."""
        short = [(self._short(line), line) for line in self.totals]
        worst, line = max(short, key=lambda one: one[0])
        return Check.at_most(
            "share of epsilon that a total leaves out",
            worst,
            claimed=0.0,
            slack=_SAME,
            detail=f"{len(self.totals)} totals against all releases composed anew; "
            f"largest: {line.unit} in the {line.view} view",
        )

    def _short(self, line: Statement) -> float:
        """How far a printed epsilon lies below what it must be, relatively."""
        if line.epsilon is None:
            return 0.0
        names, delta = implying((line.unit, line.view)), line.delta or 0.0
        held = [[_guarantee(r, name) for r in self.made] for name in names]
        proven = [cells for cells in held if all(cell.has_epsilon for cell in cells)]
        least = min((_composed(cells, delta) for cells in proven), default=math.inf)
        return _gap(line.epsilon, least)

    def check_closed_forms(self) -> Check:
        """No figure is below what the audit's own formulas say it is at the least."""
        gaps = {"": 0.0}
        known: dict[str, dict[str, float]] = {}
        for line in self.totals:
            if line.epsilon is not None and line.delta:
                cells = [_guarantee(r, (line.unit, line.view)) for r in self.made]
                if all(cell.has_epsilon for cell in cells):
                    _note(gaps, _gaps(_parts(cells), line.epsilon, line.delta, known))
        where = max(gaps, key=lambda name: gaps[name])
        return Check.at_most(
            "share of the exact epsilon that a figure lacks",
            gaps[where],
            claimed=0.0,
            slack=_SAME,
            detail=f"closed forms of {', '.join(sorted({*gaps} - {''})) or 'none'}; an "
            "optimistic figure lies below",
        )

    def check_deltas(self) -> Check:
        lines = [*self.totals, *self.runtime.account.releases, *self._ledger_lines()]
        proven = [line for line in lines if line.epsilon is not None]
        wrong = [line for line in proven if not self._is_allowed(line)]
        return Check.at_most(
            "proven lines whose delta is not the plan's, or too large",
            float(len(wrong)),
            claimed=0.0,
            slack=0.0,
            detail=f"{len(proven)} lines of the account and the ledger; the plan has "
            f"delta {self.plan.delta}"
            + "".join(f"; {w.unit}, {w.view}: {w.delta}" for w in wrong[:3]),
        )

    def _is_allowed(self, line: Statement) -> bool:
        is_local = all(r.cells[line.unit, line.view].is_local for r in self.made)
        # With delta = 1/N one user may be published outright; a tenth of that at most.
        few = min(_CENTRAL_DELTA, 1 / (10 * self.plan.population))
        most = _LOCAL_DELTA if is_local else few
        if line.delta is None or line.delta == 0:
            return line.delta == 0
        return line.delta == self.plan.delta and line.delta <= most

    def check_ledger(self) -> Check:
        """The ledger of a client that took part in all rounds says the total."""
        told = {(line.unit, line.view): line for line in self.totals}
        gaps = [
            _difference(line.epsilon, told[line.unit, line.view].epsilon)
            for line in self._ledger_lines()
        ]
        return Check.at_most(
            "difference between the ledger of all rounds and the plan's total",
            max(gaps, default=0.0),
            claimed=0.0,
            slack=_SAME,
            detail="relative, every unit and view"
            if gaps
            else "not compared: a client takes part in one of several phases",
        )

    def _ledger_lines(self) -> list[Statement]:
        most = self.plan.sampler.most_participations(self.plan)
        if most < self.plan.rounds and len(self.made) > 1:
            return []  # which of the releases it made depends on the round
        return [
            line
            for terms in self.terms
            for line in run_statements(terms, range(most), delta=self.plan.delta)
        ]


# --- Trust ----------------------------------------------------------------------------


def check_trust(method: Method, plan: Plan) -> Check:
    """What is claimed of the server and of a relay is what the channel gives."""
    wrong = [fault for one in _channels(plan) for fault in _faults(method, one)]
    return Check.at_most(
        "claims that the channel does not support",
        float(len(wrong)),
        claimed=0.0,
        slack=0.0,
        detail="; ".join(dict.fromkeys(wrong))
        or "every channel, with and without a least number of contributors",
    )


def _channels(plan: Plan) -> Iterator[Plan]:
    yield plan
    # A view that only one of the channels has, and sybils among more than one client.
    plan = replace(plan, target_view=None, assumed_sybils=0)
    for channel in CHANNELS:
        for least in (1, _MIXED):
            yield replace(plan, channel=channel, min_contributors=least)


def _faults(method: Method, plan: Plan) -> Iterator[str]:
    try:
        releases = method.releases(plan)
    except (BadValue, Refused):
        return
    for release in releases:
        for (_, view), cell in release.cells.items():
            if cell.has_epsilon:
                where = f"over '{plan.channel}' from {plan.min_contributors}"
                for fault in _untrue(cell, view, plan):
                    yield f"{fault} in the {view} view {where}"


def _untrue(cell: Cell, view: View, plan: Plan) -> Iterator[str]:
    from tacit.accounting import dp_events as dp
    from tacit.accounting.events import ShuffledDpEvent

    sampled = (
        *(dp.PoissonSampledDpEvent, dp.SampledWithoutReplacementDpEvent),
        dp.TruncatedSubsampledGaussianDpEvent,
    )
    events = [event for event, _ in _flat(cell.event)]
    mixed = [one for one in events if isinstance(one, ShuffledDpEvent)]
    is_mixed = plan.channel == "shuffle" and plan.least_honest > 1
    if mixed and (not is_mixed or view is View.COLLUSION):
        yield "shuffling is claimed"
    if any(one.reports > plan.least_honest for one in mixed):
        yield "more contributors are claimed than promised"
    if view is View.RELEASE:
        return
    # Amplification by sampling needs cohorts that nobody sees.
    if any(isinstance(one, sampled) for one in events):
        yield "sampling is claimed against those who know the cohorts"
    hiding = ("secure_sum", "two_servers", "masked_sum")
    is_hidden = plan.channel in hiding and view is View.SERVER
    if not (cell.is_local or mixed or is_hidden):
        yield "noise on a sum is claimed against those who see the reports"


# --- Composing anew -------------------------------------------------------------------


def _guarantee(release: Release, name: CellName) -> Cell:
    held = [release.cells[other] for other in implying(name)]
    return next((cell for cell in held if cell.has_epsilon), held[0])


def _composed(cells: Iterable[Cell], delta: float) -> float:
    events = [(cell.event, str(cell.adjacency)) for cell in cells]
    try:
        found = compose(events, delta=delta).value
    except Refused:
        return math.inf
    return math.inf if found is None else found


def _gap(printed: float, least: float) -> float:
    """How far the printed figure lies below the least, relatively."""
    if printed >= least:  # an upper bound may be loose, never too low
        return 0.0
    return 1.0 if least == math.inf else (least - printed) / least


def _difference(one: float | None, other: float | None) -> float:
    if one is None or other is None:
        return 0.0 if one is other else math.inf
    return abs(one - other) / max(abs(other), 1e-12) if one != other else 0.0


@dataclass(frozen=True)
class _Part:
    """An elementary event, how often it happens, and under which adjacency."""

    event: Any
    count: int
    is_exchange: bool


def _parts(cells: Iterable[Cell]) -> list[_Part]:
    return [
        _Part(event, count, cell.adjacency is Adjacency.REPLACE_ONE)
        for cell in cells
        for event, count in _flat(cell.event)
    ]


def _flat(event: Any, times: int = 1) -> list[tuple[Any, int]]:
    """The elementary events, and how often each happens."""
    from tacit.accounting import dp_events as dp

    if isinstance(event, dp.SelfComposedDpEvent):
        return _flat(event.event, times * event.count)
    if isinstance(event, dp.ComposedDpEvent):
        return [one for inner in event.events for one in _flat(inner, times)]
    return [(event, times)]


def _note(gaps: dict[str, float], more: dict[str, float]) -> None:
    """Keeps the largest gap of each kind of release, in `gaps`."""
    for name, gap in more.items():
        gaps[name] = max(gap, gaps.get(name, 0.0))


def _gaps(
    parts: Sequence[_Part],
    printed: float,
    delta: float,
    known: dict[str, dict[str, float]],
) -> dict[str, float]:
    """How far figures lie below the closed forms, by kind of release.

    Gaussians and responses have a closed form for any number, so the total itself is
    compared; sampled and shuffled releases for one round or two.
    """
    from tacit.accounting import dp_events as dp

    adjacencies = {part.is_exchange for part in parts}
    found: dict[str, float] = {}
    for part in parts:
        question = repr((part, delta))
        if question not in known:
            known[question] = _gaps_alone(part, delta)
        _note(found, known[question])
    normal = [p for p in parts if isinstance(p.event, dp.GaussianDpEvent)]
    if normal and len(adjacencies) == 1:
        mu = math.sqrt(sum(p.count / p.event.noise_multiplier**2 for p in normal))
        profile = closed_forms.gaussian(1 / (mu * (2 if True in adjacencies else 1)))
        # The total has these and perhaps more: it may not lie below them alone.
        found["Gaussians"] = _gap(printed, closed_forms.epsilon_of(profile, delta))
    return found


def _gaps_alone(part: _Part, delta: float) -> dict[str, float]:
    """Closed forms of one release, or of a few, against the accountant."""
    from tacit.accounting import dp_events as dp
    from tacit.accounting.events import PureDpEvent, ShuffledDpEvent

    event, forms = part.event, closed_forms
    if isinstance(event, PureDpEvent):
        times = min(part.count, _MOST_RESPONSES)
        profile = forms.responses(event.epsilon, choices=event.choices, times=times)
        return {"randomised responses": _below(part, event, times, profile, delta)}
    if isinstance(event, ShuffledDpEvent):
        few = min(event.reports, _MOST_CLONES)
        mixed = ShuffledDpEvent(event.epsilon, few)
        profile = forms.clones(event.epsilon, few)
        return {"shuffled reports": _below(part, mixed, 1, profile, delta)}
    if isinstance(event, dp.PoissonSampledDpEvent) and not part.is_exchange:
        z = _multiplier(event.event)
        rate = event.sampling_probability
        one, two = forms.behind_a_coin(rate, z), forms.behind_two_coins(rate, z)
        found = _below(part, event, 1, one, delta), _below(part, event, 2, two, delta)
        return {"Poisson samples": max(found)}
    if isinstance(event, dp.SampledWithoutReplacementDpEvent) and part.is_exchange:
        rate = event.sample_size / event.source_dataset_size
        profile = forms.fixed_size(rate, _multiplier(event.event))
        return {"samples of fixed size": _below(part, event, 1, profile, delta)}
    return {}


def _multiplier(event: Any) -> float:
    """The noise multiplier of several Gaussians on one sample, merged into one."""
    return float(sum(n / e.noise_multiplier**2 for e, n in _flat(event)) ** -0.5)


def _below(
    part: _Part, event: Any, times: int, profile: closed_forms.Profile, delta: float
) -> float:
    adjacency = Adjacency.REPLACE_ONE if part.is_exchange else Adjacency.ZERO_OUT
    told = compose([(event, str(adjacency))] * times, delta=delta).value
    least = closed_forms.epsilon_of(profile, delta)
    return 0.0 if told is None else _gap(told, least)
