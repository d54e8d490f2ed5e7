"""Cohorts as the runtime draws them, against the event that the sampler hands out.

Amplification by sampling is earned by independent coins of a known rate. Clients are
asked through the runtime and all refuse, so a round costs next to nothing; who was
asked is written down. Against the event of the sampler:

    a Poisson sample   how many are asked in all; how often the size of a cohort is near
                       its mean; how often two neighbours, or one client in two rounds
                       that follow each other, are asked: exact binomial tests
    a fixed size       exactly that many, from exactly that population
    any                nobody is asked more often than counted

Nothing is tested of a sampler that earns nothing. Each test of chance fails an honest
sampler with probability 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64
from scipy.stats import binom

from tacit.audits.checks import Check
from tacit.audits.small_world import small_data
from tacit.keys import Key
from tacit.mechanisms.gaussian import gaussian_event
from tacit.method import Method
from tacit.plans import Plan
from tacit.runtime.rounds import State
from tacit.runtime.simulate import Simulation
from tacit.transport.channels import Carrier, Delivery, RoundContext, channel
from tacit.transport.messages import Reports

ALARM = 1e-7
_FEW = 20  # items, where any number does
_ROUNDS = 96  # rounds that are drawn, over as many runs as it takes
_LEAST_USERS, _MOST_USERS = 400, 20_000  # invented ones, whatever the plan has
_ASKED = 40  # users per round, if the population is large enough

Asked = Bool[np.ndarray, "rounds clients"]


def check_cohorts(
    method: Method, plan: Plan, *, group: str, key: Key
) -> Iterator[Check]:
    """Every check of the plan's sampler; none if it earns nothing."""
    group = group if group in plan.groups else next(iter(plan.groups))
    event: Any = plan.sampler.event(gaussian_event(1.0), group=group, plan=plan)
    count, inner = _repeated(event)
    rate, size = _rate(inner), _size(inner)
    most = plan.sampler.most_participations(plan)
    if rate is None and size is None and most >= plan.rounds:
        return
    n_users = plan.population if size else _users_needed(rate or 1 / plan.rounds)
    own = _of_one_group(plan, group, n_users)
    asked = _asked(method, own, key)
    yield _check_participations(asked, plan, most=most, counted=count, inner=inner)
    if rate is not None:
        yield _check_coins(asked, rate)
    if size is not None:
        yield _check_fixed(asked, size, inner.source_dataset_size)


def _repeated(event: Any) -> tuple[int, Any]:
    from tacit.accounting.dp_events import SelfComposedDpEvent

    is_repeated = isinstance(event, SelfComposedDpEvent)
    return (event.count, event.event) if is_repeated else (1, event)


def _rate(event: Any) -> float | None:
    from tacit.accounting.dp_events import PoissonSampledDpEvent

    is_sampled = isinstance(event, PoissonSampledDpEvent)
    return float(event.sampling_probability) if is_sampled else None


def _size(event: Any) -> int | None:
    from tacit.accounting.dp_events import SampledWithoutReplacementDpEvent

    is_sampled = isinstance(event, SampledWithoutReplacementDpEvent)
    return int(event.sample_size) if is_sampled else None


def _users_needed(rate: float) -> int:
    wanted = math.ceil(_ASKED / rate)
    return min(max(wanted, _LEAST_USERS), _MOST_USERS)


def _of_one_group(plan: Plan, group: str, n_users: int) -> Plan:
    groups = {name: n_users if name == group else 0 for name in plan.groups}
    return replace(plan, population=n_users, groups=groups)


# --- Through the runtime --------------------------------------------------------------


def _asked(method: Method, plan: Plan, key: Key) -> Asked:
    """Who is asked in each round; as many runs as it takes."""
    n, rounds = plan.population, min(plan.rounds, _ROUNDS)
    runs = -(-_ROUNDS // rounds)  # rounded up
    asked = np.zeros((runs, rounds, n), bool)
    for run in range(runs):
        for round_, numbers in _run(method, plan, rounds, key.at("run", run)):
            asked[run, round_, numbers] = True
    return asked.reshape(-1, n)


def _run(
    method: Method, plan: Plan, rounds: int, key: Key
) -> Iterator[tuple[int, Int64[np.ndarray, "asked"]]]:
    data, heard = small_data(_FEW).repeated(plan.population), _Heard()
    code = int(np.argmax([*plan.groups.values()]))
    simulation = Simulation(
        method,
        plan,
        data.catalog,
        data.profiles,
        data.shards,
        key,
        groups=np.full(plan.population, code, np.int64),
        ledger=heard,
        channel=_Cut(channel(plan.channel)),
    )
    start = simulation.start()
    for round_ in range(rounds):
        heard.numbers.clear()
        _step(simulation, _at(start, round_))
        yield round_, np.concatenate([np.zeros(0, np.int64), *heard.numbers])


def _at(state: State, round_: int) -> State:
    return replace(state, server=replace(state.server, round=round_))


def _step(simulation: Simulation, state: State) -> None:
    try:
        simulation.step(state)
    except _Enough:
        return


class _Enough(Exception):
    """Raised once everyone was asked: the rest of the round tells nothing."""


class _Heard:
    """A ledger that refuses, and writes down who was asked."""

    def __init__(self) -> None:
        self.numbers: list[Int64[np.ndarray, "asked"]] = []

    def permits(
        self,
        clients: Int64[np.ndarray, "clients"],
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        self.numbers.append(np.array(clients))
        return np.zeros(len(clients), bool)


@dataclass(frozen=True)
class _Cut:
    """A channel that asks everyone and then ends the round."""

    channel: Carrier

    @property
    def name(self) -> str:
        return self.channel.name

    @property
    def delivers(self) -> type[Delivery]:
        return self.channel.delivers

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        for _ in chunks:
            pass
        raise _Enough


# --- Against the event ----------------------------------------------------------------


def _check_participations(
    asked: Asked, plan: Plan, *, most: int, counted: int, inner: Any
) -> Check:
    """No client is asked more often than the server's view and the event count."""
    rounds = min(plan.rounds, _ROUNDS)
    runs = asked.reshape(-1, rounds, asked.shape[1]).sum(axis=1)
    is_sampled = _rate(inner) is not None or _size(inner) is not None
    missing = plan.rounds - counted if is_sampled else 0
    return Check.at_most(
        "rounds in which a client is asked beyond those counted",
        float(max(int(runs.max()) - most, missing, 0)),
        claimed=0.0,
        slack=0.0,
        detail=f"{len(runs)} runs of {rounds} rounds; counted are {most} "
        f"participations of a client and {counted} releases",
    )


def _check_coins(asked: Asked, rate: float) -> Check:
    chances = {
        "how many": _chance(int(asked.sum()), asked.size, rate),
        "the sizes": _chance_of_sizes(asked, rate),
        "neighbours": _chance_of_pairs(asked[:, 0::2], asked[:, 1::2], rate),
        "rounds": _chance_of_pairs(asked[0::2], asked[1::2], rate),
    }
    worst = min(chances, key=lambda name: chances[name])
    each = ALARM / len(chances)
    return Check(
        "p-value of independent coins, at least",
        each,
        chances[worst],
        chances[worst] > each,
        f"rate {rate:g}, {asked.shape[0]} cohorts of {asked.shape[1]} users, exact "
        f"binomial; least of {', '.join(chances)}: {worst}; false alarm {ALARM:g}",
        ALARM,
    )


def _check_fixed(asked: Asked, size: int, population: int) -> Check:
    sizes = asked.sum(axis=1)
    gap = max(int(np.abs(sizes - size).max()), abs(population - asked.shape[1]))
    return Check.at_most(
        "difference of a cohort's size from the event's",
        float(gap),
        claimed=0.0,
        slack=0.0,
        detail=f"{len(sizes)} cohorts; {size} of {population} are counted",
    )


def _chance(hits: int, n: int, p: float) -> float:
    """The two-sided exact binomial p-value: twice the smaller tail."""
    below, above = binom.cdf(hits, n, p), binom.sf(hits - 1, n, p)
    return min(1.0, 2 * float(min(below, above)))


def _chance_of_sizes(asked: Asked, rate: float) -> float:
    """The p-value of how many cohort sizes lie within the quartiles of the binomial."""
    n = asked.shape[1]
    low, high = int(binom.ppf(0.25, n, rate)), int(binom.ppf(0.75, n, rate))
    inside = float(binom.cdf(high, n, rate) - binom.cdf(low - 1, n, rate))
    sizes = asked.sum(axis=1)
    hits = int(((sizes >= low) & (sizes <= high)).sum())
    return _chance(hits, len(sizes), inside)


def _chance_of_pairs(one: Asked, other: Asked, rate: float) -> float:
    rows, columns = np.minimum(one.shape, other.shape)
    both = one[:rows, :columns] & other[:rows, :columns]
    return _chance(int(both.sum()), both.size, rate**2)
