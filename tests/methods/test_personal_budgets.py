"""Budgets of their own for public groups, through whole methods: bounds and account.

strict    a fifth of a report
open      a whole one
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian

from tacit.accounting.calibration import gaussian_epsilon, gaussian_noise
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Refusal
from tacit.method import Unmetered, participate
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.privacy.budgets import as_one_epsilon
from tacit.privacy.central_gaussian import consent_weight
from tacit.release import Standing, Unit, View, of_one_operator
from tacit.runtime.client import Client
from tacit.runtime.ledger import caps_of
from tacit.runtime.simulate import Simulation
from tacit.statement import account
from tacit.testing.contract import mixed_world
from tacit.transport.codec import encode_broadcast
from tacit.tree import Tree

DELTA = 1e-6
SCALE = {"strict": 0.2, "open": 1.0}
TARGETS = {"strict": 1.0, "balanced": 4.0, "open": 8.0}
SIZES = {"head": 12, "load_items": 20, "load_rank": 4, "rank": 8}
CHOSEN = Gram(
    privacy=CentralGaussian(total_noise=0.01, scale=SCALE), count_share=0.1, **SIZES
)
PLANNED = Gram(
    privacy=CentralGaussian(0.05, scale=SCALE), count_rounds=1, load_rounds=1, **SIZES
)
METHODS = {
    "popularity": FederatedPopularity(privacy=CentralGaussian(0.05, scale=SCALE)),
    "gram, phases chosen": CHOSEN,
    "gram, phases planned": PLANNED,
}


def hostile_world() -> FederatedData:
    """Each history twice: none, all items, one a hundred times, one item, others."""
    own = [shard.tolist() for shard in mixed_world().shards.histories]
    odd = [[7] * 100, [19], [0, 19], [*range(20), *range(20)]]
    return FederatedData.of_histories([*own, *odd] * 2, n_items=20)


def of_halves(world: FederatedData, **fields) -> tuple[Plan, np.ndarray]:
    """The first half is strict, the second has the same histories and is open."""
    half = len(world.shards) // 2
    groups = dict.fromkeys(SCALE, half)
    plan = Plan(2 * half, 3, channel="secure_sum", delta=DELTA, groups=groups, **fields)
    return plan, np.repeat([0, 1], half)


def simulated(method, world, plan, codes) -> Simulation:
    people = world.catalog, world.profiles, world.shards
    return Simulation(method, plan, *people, Key.from_seed(2), groups=codes)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_strict_report_has_its_share_of_the_bound_whatever_the_history(method):
    """It is that of the same history in the open group, times the scale."""
    world = hostile_world()
    plan, codes = of_halves(world)
    simulation = simulated(method, world, plan, codes)
    state, seen, rows = simulation.start(), [], np.arange(len(codes))
    while not method.is_over(state.server):
        phase, broadcast = (
            method.next_phase(state.server),
            method.broadcast(state.server),
        )
        _, reports, _ = participate(
            method,
            broadcast,
            state.clients,
            world.shards,
            Key.from_seed(0).each(rows % (len(rows) // 2)),  # twins draw the same
            ledger=Unmetered(),
        )
        norms = reports.tree.norms()
        strict, whole = norms[codes == 0], norms[codes == 1]
        assert whole.max() == pytest.approx(phase.bound, rel=1e-6)
        np.testing.assert_allclose(strict, SCALE["strict"] * whole, rtol=1e-6)
        # A short history of nothing in the head says nothing; all others, all they may.
        assert {*np.round(whole / phase.bound, 6)} <= {0.0, 1.0}
        _assert_times(reports.tree, SCALE["strict"], codes)
        seen.append(phase.name)
        state, _ = simulation.step(state)
    assert len(seen) == 3


def _assert_times(tree: Tree, scale: float, codes: np.ndarray) -> None:
    for leaf in tree.leaves.values():
        values = leaf.dense().values
        np.testing.assert_allclose(
            values[codes == 0], scale * values[codes == 1], rtol=1e-5, atol=1e-12
        )


@pytest.mark.parametrize("method", [METHODS["popularity"], CHOSEN, PLANNED])
def test_every_group_has_the_closed_form_of_its_own_mu(method):
    """mu_g = s_g mu, and all rounds together are one Gaussian of that mu."""
    plan, _ = of_halves(hostile_world())
    # With 40 times the noise, for an epsilon that can be proven.
    privacy = method.privacy
    louder = (
        {"noise_multiplier": 40 * privacy.noise_multiplier}
        if privacy.total_noise is None
        else {"total_noise": 40 * privacy.total_noise}
    )
    method = replace(method, privacy=replace(privacy, **louder))
    phases = method.phases(plan)
    total = method.privacy.total_noise
    if total is None:
        squares = sum(len(p.rounds) / method.privacy.noise_of(p) ** 2 for p in phases)
        total = 1 / math.sqrt(squares)
    found = {
        line.group: line.epsilon
        for line in account(plan, method.releases(plan)).totals
        if (line.unit, line.view) == (Unit.USER, View.RELEASE)
    }
    for group, scale in SCALE.items():
        exact = get_epsilon_gaussian(total / scale, DELTA)
        assert found[group] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("method", [CHOSEN, Gram(privacy=CentralGaussian())])
def test_whatever_is_chosen_nobody_passes_the_budget_of_the_group(method):
    """The sum of 1/z² is mu² for the open group and s_g² mu² for the others."""
    world = hostile_world()
    targets = {"strict": 1.0, "open": 8.0}
    plan, codes = of_halves(world, target_epsilon=targets)
    if method is CHOSEN:
        plan = replace(plan, target_epsilon=None)
    method = method.calibrated(plan)
    simulation = simulated(method, world, plan, codes)
    *_, (state, tally) = simulation.run(simulation.start())
    assert tally.took_part == len(codes)
    for code, group in enumerate(plan.groups):
        mu = method.privacy.scale[group] / method.privacy.total_noise
        assert state.spent[codes == code] == pytest.approx(mu**2)
        if method is not CHOSEN and plan.target_epsilon is not None:
            found = get_epsilon_gaussian(1 / mu, DELTA)
            assert found == pytest.approx(targets[group], rel=1e-6)
            assert found <= targets[group]


def sized(**groups: int) -> Plan:
    n = sum(groups.values())
    fields = {"channel": "secure_sum", "delta": DELTA, "target_epsilon": TARGETS}
    return Plan(n, 3, groups=groups, **fields)


@pytest.mark.parametrize("sizes", [(3262, 2235, 543), (2000, 2000, 2040)])
def test_the_outlook_is_that_of_everyone_at_the_mean_of_mu(sizes):
    """Sizes, shares and edge of the noise follow from users over noise alone."""
    plan = sized(**dict(zip(TARGETS, sizes, strict=True)))
    one = as_one_epsilon(plan, TARGETS)
    same = replace(plan, groups={}, target_epsilon=one)
    gram = Gram(privacy=CentralGaussian(), usual_history=90)
    grouped, mean = gram.calibrated(plan), gram.calibrated(same)
    for field in ("head", "load_items", "load_rank"):
        assert getattr(grouped, field) == pytest.approx(getattr(mean, field), abs=1)
    assert grouped.count_share == pytest.approx(mean.count_share, rel=1e-6)
    edges = [m.edge(p, side=300) for m, p in ((grouped, plan), (mean, same))]
    assert edges[0] == pytest.approx(edges[1], rel=1e-6)
    catalog = FederatedData.of_histories([[0]], n_items=3000).catalog
    told = [m.outlook(p, catalog) for m, p in ((grouped, plan), (mean, same))]
    assert told[0].rpartition("expect")[2] == told[1].rpartition("expect")[2]


def test_groups_of_one_target_are_worth_that_target():
    plan = sized(strict=10, balanced=10, open=10)
    assert as_one_epsilon(plan, dict.fromkeys(TARGETS, 3.0)) == pytest.approx(3.0)
    mu = [1 / gaussian_noise(e, delta=DELTA) for e in TARGETS.values()]
    expected = gaussian_epsilon(3 / sum(mu), delta=DELTA)
    assert as_one_epsilon(plan, TARGETS) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("group", SCALE)
def test_every_client_stops_at_the_cap_of_its_own_group(tmp_path, group):
    """At this noise the open group has budget for all rounds, the strict for one."""
    world = hostile_world()
    z = gaussian_noise(1.0, delta=DELTA) * 0.2  # one round costs a strict user 1.0
    plan, _ = of_halves(world, target_epsilon={"strict": 1.0, "open": 20.0})
    privacy = CentralGaussian(z, scale=SCALE)
    method = FederatedPopularity(privacy=privacy)
    assert gaussian_epsilon(z / math.sqrt(3), delta=DELTA) < 20
    server = method.start(plan, world.catalog, Key.from_seed(0))
    client = Client(
        tmp_path / "ledger.db",
        method,
        plan,
        catalog=world.catalog,
        history=world.shards.take([3]),
        group=group,
    )
    answers = [
        client.participate(encode_broadcast(method.broadcast(replace(server, round=r))))
        for r in range(3)
    ]
    client.close()
    spoke = [answer is not None for answer in answers]
    assert spoke == ([True, False, False] if group == "strict" else [True] * 3)
    with ClientLedger(tmp_path / "ledger.db") as ledger:
        refused = [why for _, why, _, _ in ledger.refusals()]
    assert {*refused} == ({str(Refusal.TARGET)} if group == "strict" else set())


# --- A group that accepts that nothing is promised to it ------------------------------


def consenting_plan(**fields) -> Plan:
    """190 users at epsilon 1, and 10 who accept that nothing is promised to them."""
    usual = {"channel": "secure_sum", "delta": DELTA}
    targets = {"others": 1.0, "few": None}
    sizes = {"others": 190, "few": 10}
    return Plan(200, 3, target_epsilon=targets, groups=sizes, **{**usual, **fields})


def everyone_at_one(**fields) -> Plan:
    return replace(consenting_plan(**fields), target_epsilon=1.0, groups={})


WAYS = {
    "popularity": FederatedPopularity(privacy=CentralGaussian()),
    "gram, phases chosen": Gram(privacy=CentralGaussian(), count_share=0.1, **SIZES),
    "gram, phases planned": Gram(
        privacy=CentralGaussian(), count_rounds=1, load_rounds=1, **SIZES
    ),
    "weights given": FederatedPopularity(
        privacy=CentralGaussian(scale={"few": 1.0, "others": 0.05})
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("channel", ["secure_sum", "two_servers", "direct"])
@pytest.mark.parametrize("machine", ["", "one_machine"])
def test_the_account_of_the_others_is_what_it_is_without_a_consenting_group(
    way, channel, machine
):
    """Channel by channel, of one machine or two: their lines have the same figures."""
    own = consenting_plan(channel=channel)
    alike, method = everyone_at_one(channel=channel), WAYS[way]
    if way == "weights given":
        method = WAYS["popularity"]
    expected = _lines(method, alike, machine)
    found = _lines(WAYS[way], own, machine)
    for (unit, view), line in expected.items():
        ours = found["others", unit, view]
        if line.epsilon is None:
            assert ours.epsilon is None
        else:
            assert ours.epsilon == pytest.approx(line.epsilon, rel=1e-9)
        assert (ours.standing, ours.assumes) == (line.standing, line.assumes)
    few = [line for (group, *_), line in found.items() if group == "few"]
    assert {line.standing for line in few} == {Standing.NONE}
    said = [line.reason for line in few if line.view is View.RELEASE]
    assert all("accept that nothing is promised" in reason for reason in said)


def _lines(method, plan, machine):
    """Totals by unit and view, and by group where the plan has groups."""
    releases = method.calibrated(plan).releases(plan)
    if machine and plan.channel == "two_servers":
        releases = of_one_operator(releases, machine)
    totals = account(plan, releases).totals
    has_groups = len(plan.groups) > 1
    return {
        (*((line.group,) if has_groups else ()), line.unit, line.view): line
        for line in totals
    }


@pytest.mark.parametrize("way", WAYS)
def test_noise_over_the_bound_of_the_others_is_what_it_would_be_alone(way):
    """The weight is whatever the few have; their reports hide nobody."""
    plan = consenting_plan()
    method = WAYS[way].calibrated(plan)
    own = method.privacy
    alone = WAYS["popularity" if way == "weights given" else way].calibrated(
        everyone_at_one()
    )
    spent, usual = (
        sum(len(p.rounds) / one.privacy.noise_of(p) ** 2 for p in one.phases(plan))
        for one in (method, alone)
    )  # the shares of planned phases follow from what the noise leaves
    assert spent * own.scale["others"] ** 2 == pytest.approx(usual, rel=1e-9)
    assert own.scale["few"] == 1.0
    noise = own.total_multiplier("others") or 1 / math.sqrt(usual)
    weight = 20.0 if way == "weights given" else consent_weight(noise, 190)
    assert own.scale["others"] == pytest.approx(1 / weight)


def test_caps_of_the_others_stay_and_a_consenting_client_has_its_own_alone():
    """A cap of its owner's refuses every round, because nothing has a figure there."""
    plan = consenting_plan()
    method = WAYS["popularity"].calibrated(plan)
    assert caps_of(plan, "others") == caps_of(everyone_at_one(), "everyone")
    assert caps_of(plan, "few") == ()
    world = FederatedData.of_histories([[0, 1]] * 200, n_items=4)
    codes = np.repeat([0, 1], [190, 10])
    simulation = simulated(method, world, plan, codes)
    _, tally = simulation.step(simulation.start())
    assert tally.took_part == 200
    capped = replace(simulation, caps=(Cap(100.0, DELTA),))
    _, tally = capped.step(capped.start())
    assert tally.took_part == 190


def test_a_plan_that_promises_nothing_to_anybody_is_refused():
    with pytest.raises(BadValue, match="mechanism = 'none'"):
        replace(consenting_plan(), target_epsilon={"others": None, "few": None})
