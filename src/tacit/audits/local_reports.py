"""A method's own reports, where clients protect them: extreme histories, two rounds.

The catalog is small, so that reports are short or of few kinds. Everyone was shown all
of it and clicked what they hold, for methods that read that: slates are public and the
same for all. The rounds before the one that is looked at are played, so that what
clients are told is what a run tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.audits.canary_run import Tick
from tacit.audits.checks import Check
from tacit.audits.claims import Claims
from tacit.audits.likelihood_ratios import (
    PILOT,
    Said,
    Say,
    check_epsilon,
    check_fresh,
    check_mu,
)
from tacit.audits.small_world import small_data
from tacit.data.federated_data import FederatedData
from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged
from tacit.keys import Key, Keys
from tacit.method import (
    LocalPrivUnit,
    Method,
    Server,
    SumMethod,
    Unmetered,
    enrol,
    participate,
)
from tacit.plans import Plan
from tacit.runtime.simulate import Simulation
from tacit.transport.messages import Layout

_FEW = 2_000  # clients whose reports are looked at number by number
_STEP = 2.0**-10  # of a PrivUnit report, as the proof in docs/privacy.md has it
_ITEMS = 4  # 16 histories, and reports of few kinds: every event is frequent
_HISTORIES: dict[str, list[int]] = {
    "no item": [],
    "the first item": [0],
    "the last item": [_ITEMS - 1],
    "every item": [*range(_ITEMS)],
}


def check_local_reports(
    method: Method, plan: Plan, claims: Claims, *, key: Key, tick: Tick = lambda: None
) -> Iterator[Check]:
    """Every check of reports that clients protect themselves, if there are any."""
    if claims.report_epsilon is None and claims.report_mu is None:
        return
    data = small_data(_ITEMS)
    servers = _servers(method, plan, data, key.at("rounds"))
    kinds = _of_each_kind(method, servers)
    for server in kinds:
        say = _speaker(method, server, data)
        found = _check_pairs(say, claims, key.at("pairs", server.round))
        when = "" if len(kinds) == 1 else f", round {server.round}"
        yield replace(found, name=found.name + when)
        tick()
    yield from check_steps(method, plan, key=key.at("steps"), servers=kinds)
    # The same clients in two rounds: keys that forget the round repeat their noise.
    keys, same = key.at("twice").each(np.arange(PILOT)), _holding(data, [0], PILOT)
    yield check_fresh(*(_said(method, one, same, keys) for one in servers[-2:]))
    tick()


def check_steps(
    method: Method, plan: Plan, *, key: Key, servers: list[Server] | None = None
) -> Iterator[Check]:
    """Every number of a PrivUnit report is a whole number of the proof's steps.

    What is finer tells more than the proof counts on, in bits that no ratio of
    frequencies shows.
    """
    privacy = getattr(method, "privacy", None)
    if not isinstance(method, SumMethod) or not isinstance(privacy, LocalPrivUnit):
        return
    if type(privacy).report is not LocalPrivUnit.report:  # it sends something else
        return
    data, wrong, n = small_data(_ITEMS), 0, 0
    for server in servers or _servers(method, plan, data, key.at("rounds"))[:1]:
        phase = method.phase(method.broadcast(server), server.plan)
        keys = key.at("clients", server.round).each(np.arange(_FEW))
        said = _said(method, server, _holding(data, [0], _FEW), keys)
        unit = privacy.randomizer(phase, said.shape[1])
        step = _STEP * unit.radius / unit.cap.gain
        whole = np.rint(said / step) * step
        wrong += int((whole.astype(np.float32) != said.astype(np.float32)).sum())
        n += said.size
    yield Check.at_most(
        "numbers of PrivUnit reports between two whole steps",
        float(wrong),
        claimed=0.0,
        slack=0.0,
        detail=f"{n:,} numbers in single precision, bit for bit, against multiples of "
        f"2⁻¹⁰ of the noise's deviation",
    )


def _check_pairs(say: Say, claims: Claims, key: Key) -> Check:
    if claims.report_epsilon is not None:
        return check_epsilon(say, _HISTORIES, epsilon=claims.report_epsilon, key=key)
    assert claims.report_mu is not None
    return check_mu(say, _HISTORIES, mu=claims.report_mu, key=key)


def _servers(method: Method, plan: Plan, data: FederatedData, key: Key) -> list[Server]:
    """The server before each round of the plan."""
    repeated = data.repeated(plan.population)
    simulation = Simulation(
        method, plan, data.catalog, repeated.profiles, repeated.shards, key
    )
    start = simulation.start()
    states = [start, *(state for state, _ in simulation.run(start))]
    return [state.server for state in states[:-1]]


def _of_each_kind(method: Method, servers: list[Server]) -> list[Server]:
    """The servers before the first round of each kind of report."""
    # Reversed, so that the first round of a kind is the one that stays in the table.
    kinds = {repr(_layout(method, server)): server for server in reversed(servers)}
    return [*reversed(kinds.values())]


def _layout(method: Method, server: Server) -> Layout:
    return method.context(server, method.broadcast(server), Key.from_seed(0)).layout


def _speaker(method: Method, server: Server, data: FederatedData) -> Say:
    def say(items: list[int], keys: Keys) -> Said:
        return _said(method, server, _holding(data, items, len(keys)), keys)

    return say


def _holding(data: FederatedData, items: list[int], n: int) -> FederatedData:
    """`n` clients who hold these items, were shown all and clicked what they hold."""
    every, own = np.arange(len(data.catalog), dtype=np.int32), np.array(items, np.int32)
    shown = Impressions.of_columns(
        np.arange(n),
        Ragged.of_lengths([len(every)] * n, np.tile(every, n)),
        clicked=np.tile(np.isin(every, own), n),
        histories=Ragged.of_lengths([len(own)], own),
        history_of=np.zeros(n, np.int64),
        n_users=n,
        n_items=len(every),
    )
    found = data.all_holding(items, n)
    return replace(found, shards=replace(found.shards, impressions=shown))


def _said(method: Method, server: Server, data: FederatedData, keys: Keys) -> Said:
    """What clients with this data report in a round, one report per row."""
    clients = enrol(method, server.plan, data.profiles, keys, catalog=data.catalog)
    _, reports, _ = participate(
        method,
        method.broadcast(server),
        clients,
        data.shards,
        keys,
        ledger=Unmetered(),  # far more reports than any budget allows
    )
    dense = reports.tree.to_dense()
    rows = [dense[name].reshape(len(keys), -1) for name in dense.leaves]
    return np.concatenate(rows, axis=1).astype(np.float64)
