"""A method may choose how to go on from what was released, within one budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tacit.accounting.calibration import gaussian_epsilon
from tacit.audits.audit_method import audit
from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.ledger.durable import ClientLedger
from tacit.ledger.records import Refusal
from tacit.method import (
    Candidates,
    CentralGaussian,
    Method,
    Phase,
    PublicSlot,
    Server,
    Slot,
    SumMethod,
    Tastes,
    Tree,
    Unprotected,
    participate,
)
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.models.histories import rows
from tacit.models.item_relations import unit
from tacit.plans import Plan
from tacit.release import EVERYONE, Unit, View
from tacit.runtime.client import Client
from tacit.runtime.ledger import terms_of
from tacit.runtime.simulate import Simulation
from tacit.sampling import Poisson
from tacit.statement import account
from tacit.testing.contract import MethodContract, mixed_world
from tacit.transport.channels import Each, RoundContext
from tacit.transport.codec import encode_broadcast
from tacit.transport.messages import Broadcast, Layout


@dataclass(frozen=True)
class CountThenChoose(SumMethod):
    """Counts once; then counts once more, or in two rounds, as the counts say."""

    threshold: float = 0.0  # of the first noisy sum: above it, one more round

    def phases(self, plan):
        return (
            Phase("first", range(1), what="histories", share=0.3),
            Phase("once more", range(1, 2), what="histories again", share=0.7),
            Phase("twice more", range(1, 3), what="histories twice", share=0.7),
        )

    def next_phase(self, server):
        first, once, twice = self.phases(server.plan)
        if server.round == 0:
            return first
        chosen = once if server.memory["first"] > self.threshold else twice
        return chosen if server.round in chosen.rounds else None

    def report_shape(self, phase, catalog):
        return {"counts": Slot("float64", (len(catalog),))}

    def public_shape(self, phase, catalog):
        return {"counts": PublicSlot("float64", (len(catalog),))}

    def start(self, plan, catalog, key):
        nothing = np.zeros(len(catalog))
        memory = {"first": np.array(0.0)}
        return Server(plan, catalog, 0, {"counts": nothing}, memory)

    def update(self, phase, broadcast, clients, shards, keys):
        return Tree.dense(counts=unit(rows(shards)))

    def learn(self, server, phase, total):
        memory = server.memory
        if phase.name == "first":
            memory = {"first": np.array(total["counts"].sum())}
        counts = server.weights["counts"] + total["counts"]
        return server.after(weights={"counts": counts}, memory=memory)

    def represent(self, broadcast, clients, shards, keys):
        return Tastes(Tree.dense(nothing=np.zeros((len(shards), 0))))

    def score(self, broadcast, user, candidates: Candidates):
        counts = broadcast.weights["counts"][candidates.items]
        return np.broadcast_to(counts, (len(user.tree), len(counts)))


class Greedy(CountThenChoose):
    """Goes on with the large share although it is spent."""

    def next_phase(self, server):
        return self.phases(server.plan)[2 if server.round else 0]

    def phases(self, plan):
        first, once, twice = super().phases(plan)
        return first, once, replace(twice, share=0.9)


def plan_for(world: FederatedData, **fields) -> Plan:
    given = {"rounds": 3, "channel": "secure_sum", "delta": 1e-6, "target_epsilon": 4.0}
    return Plan(len(world.shards), **{**given, **fields})


WORLD = mixed_world()
PLAN = plan_for(WORLD)


def simulated(method: Method, plan: Plan = PLAN) -> Simulation:
    data = WORLD.catalog, WORLD.profiles, WORLD.shards
    return Simulation(method.calibrated(plan), plan, *data, Key.from_seed(1))


class TestContract(MethodContract):
    """Every seam of the engine holds for a method that chooses."""

    def method(self) -> Method:
        return CountThenChoose(math.inf)  # without noise: all three rounds

    def check_learnt(self, score, world) -> None:
        counts = np.bincount(world.shards.items, minlength=world.shards.n_items)
        found = score(world.shards)[0]
        assert found[counts == counts.max()].min() > found[counts < counts.max()].max()

    def answer_world(self) -> FederatedData:
        return FederatedData.of_histories([[0, 1], [1], [1, 2]], n_items=4)


@pytest.mark.parametrize(("threshold", "rounds"), [(-math.inf, 2), (math.inf, 3)])
def test_both_ways_on_spend_the_budget_and_no_more(threshold, rounds):
    simulation = simulated(CountThenChoose(threshold, privacy=CentralGaussian()))
    *_, (state, _) = simulation.run(simulation.start())
    assert state.server.round == rounds
    total = simulation.method.privacy.total_noise
    assert float(state.server.memory["budget spent"]) == pytest.approx(total**-2)
    assert state.spent == pytest.approx(np.full(len(WORLD.shards), total**-2))


def test_the_choice_is_made_from_what_was_released():
    """The noisy first sum decides: whoever sees the releases sees the choice coming."""
    simulation = simulated(CountThenChoose(0.0, privacy=CentralGaussian()))
    states = [state for state, _ in simulation.run(simulation.start())]
    first = float(states[0].server.memory["first"])
    assert len(states) == (2 if first > 0 else 3)


def test_the_account_is_one_gaussian_whatever_is_chosen():
    method = CountThenChoose(privacy=CentralGaussian()).calibrated(PLAN)
    told = account(PLAN, method.releases(PLAN))
    assert told.worst(view=View.RELEASE) == pytest.approx(4.0, rel=1e-6)
    assert told.worst(view=View.SERVER) == pytest.approx(4.0, rel=1e-6)
    noise = method.privacy.total_noise
    assert gaussian_epsilon(noise, delta=1e-6) == pytest.approx(4.0, rel=1e-6)
    [release] = method.releases(PLAN)
    assert "adaptive composition" in release.cells[Unit.USER, View.RELEASE].reason


def test_the_engine_refuses_a_round_that_passes_the_budget():
    simulation = simulated(Greedy(privacy=CentralGaussian()))
    state, _ = simulation.step(simulation.start())
    state, _ = simulation.step(state)  # 0.3 and a half of 0.9 are spent
    with pytest.raises(Refused, match=r"'twice more' for round 2.*1\.2"):
        simulation.step(state)


def test_clients_refuse_it_from_their_own_count_though_the_server_lies():
    """A server that forgets what was spent finds nobody who answers."""
    simulation = simulated(Greedy(privacy=CentralGaussian()))
    state = simulation.start()
    for _ in range(2):
        state, tally = simulation.step(state)
        assert tally.took_part == len(WORLD.shards)
    lied = {**state.server.memory, "budget spent": np.array(0.0)}
    state = replace(state, server=replace(state.server, memory=lied))
    after, tally = simulation.step(state)
    assert tally.took_part == 0
    assert np.array_equal(after.spent, state.spent)


def test_a_client_refuses_a_phase_that_the_round_cannot_have():
    method = CountThenChoose(privacy=CentralGaussian()).calibrated(PLAN)
    simulation = simulated(method)
    state = simulation.start()
    broadcast = replace(
        method.broadcast(state.server), phase=1
    )  # "once more", in round 0
    _, reports, took_part = participate(
        method,
        broadcast,
        state.clients,
        WORLD.shards,
        simulation.population.keys,
        ledger=simulation.population.ledger_at(state),
    )
    assert len(reports) == 0
    assert not took_part.any()


def test_a_device_keeps_the_sum_in_its_ledger(tmp_path):
    """What was chosen stands beside each answer, and survives a restart."""
    method = Greedy(privacy=CentralGaussian()).calibrated(PLAN)
    server = method.start(PLAN, WORLD.catalog, Key.from_seed(0))
    path, held = tmp_path / "ledger.db", WORLD.shards.take([3])
    for round_ in range(3):  # a new process each time
        client = Client(path, method, PLAN, catalog=WORLD.catalog, history=held)
        said = client.participate(
            encode_broadcast(method.broadcast(replace(server, round=round_)))
        )
        client.close()
        assert (said is None) == (round_ == 2)
    with ClientLedger(path) as ledger:
        multipliers = [ledger.answer(client.run, r).multiplier for r in range(2)]
        assert sum(z**-2 for z in multipliers) < method.privacy.total_noise**-2
        assert [why for _, why, _, _ in ledger.refusals()] == [str(Refusal.BUDGET)]
        terms = ledger.runs()[client.run]
    agreed = method.agreement(PLAN, WORLD.catalog).digest.hex()
    assert terms == replace(terms_of(method, PLAN), agreement=agreed)
    assert terms.total_multiplier == method.privacy.total_noise


def test_groups_have_totals_of_their_own():
    """A group of half the target answers within its own budget, at the same noise."""
    n = len(WORLD.shards)
    plan = plan_for(
        WORLD, groups={"a": n - 5, "b": 5}, target_epsilon={"a": 4.0, "b": 2.0}
    )
    codes = np.repeat([0, 1], [n - 5, 5])
    simulation = replace(
        simulated(CountThenChoose(math.inf, privacy=CentralGaussian()), PLAN),
        plan=plan,
        method=CountThenChoose(math.inf, privacy=CentralGaussian()).calibrated(plan),
        groups=codes,
    )
    *_, (state, tally) = simulation.run(simulation.start())
    assert tally.took_part == n
    privacy = simulation.method.privacy
    for code, group in enumerate(plan.groups):
        total = privacy.total_multiplier(group)
        assert state.spent[codes == code] == pytest.approx(total**-2)
    told = account(plan, simulation.releases)
    found = {
        line.group: line.epsilon
        for line in told.totals
        if (line.unit, line.view) == (Unit.USER, View.RELEASE)
    }
    assert found == pytest.approx({"a": 4.0, "b": 2.0}, rel=1e-6)


def test_amplified_rounds_cannot_be_chosen():
    """No theorem here covers a choice among rounds of secret cohorts."""
    plan = plan_for(WORLD, sampler=Poisson(0.5))
    with pytest.raises(Refused, match="Poisson"):
        CountThenChoose(privacy=CentralGaussian()).calibrated(plan)


def test_without_protection_nothing_is_counted():
    simulation = simulated(
        CountThenChoose(-math.inf, privacy=Unprotected()),
        plan_for(WORLD, target_epsilon=None, channel="direct"),
    )
    *_, (state, _) = simulation.run(simulation.start())
    assert "budget spent" not in state.server.memory
    assert not state.spent.any()


@pytest.mark.slow
def test_the_audit_of_a_method_that_chooses():
    """The canaries' rounds are those that were chosen, and their claims hold."""
    plan = Plan(2_000, 3, channel="secure_sum", delta=1e-6, target_epsilon=4.0)
    method = CountThenChoose(math.inf, privacy=CentralGaussian()).calibrated(plan)
    found = audit(method, plan, key=Key.from_seed(0))
    assert [check.name for check in found.failed] == []
    assert found.checks


def test_nothing_is_computed_for_a_run_that_is_over():
    simulation = simulated(CountThenChoose(-math.inf, privacy=CentralGaussian()))
    *_, (state, _) = simulation.run(simulation.start())
    broadcast = simulation.method.broadcast(state.server)
    assert not simulation.method.agrees(broadcast, PLAN)
    with pytest.raises(Refused, match="nothing to answer"):
        simulation.method.local_update(
            broadcast, state.clients, WORLD.shards, simulation.population.keys
        )


class Undeclared(CountThenChoose):
    """Takes a smaller share of a phase than was declared."""

    def next_phase(self, server):
        return replace(self.phases(server.plan)[0], share=0.1)


class Late(CountThenChoose):
    """Chooses the phase of the first round again."""

    def next_phase(self, server):
        return self.phases(server.plan)[0]


@pytest.mark.parametrize(
    ("method", "round_", "said"),
    [
        (Undeclared, 0, r"'first' for round 0, .* declared: first \(0 to 0\), once"),
        (Late, 1, r"'first' for round 1, and clients agreed to first \(0 to 0\);"),
    ],
)
def test_a_phase_that_nobody_would_answer_is_refused(method, round_, said):
    """Else the server would learn from noise alone, and count it as spent."""
    simulation = simulated(method(privacy=CentralGaussian()))
    server = replace(simulation.start().server, round=round_)
    broadcast = Broadcast(round_, PLAN.digest, {}, 0)
    context = RoundContext(Layout({}), Key.from_seed(0), None, 1, 1.0)
    with pytest.raises(Refused, match=said):
        simulation.method.broadcast(server)
    with pytest.raises(Refused, match=said):
        simulation.method.context(server, broadcast, Key.from_seed(0))
    with pytest.raises(Refused, match=said):
        simulation.method.aggregate(server, Each(iter(())), context)


@pytest.mark.parametrize("field", ["name", "what"])
def test_phases_have_a_name_and_words_of_their_own(field):
    class Twins(CountThenChoose):
        def phases(self, plan):
            first, once, twice = super().phases(plan)
            return first, once, replace(twice, **{field: getattr(first, field)})

    with pytest.raises(BadValue, match=f"two phases have the same `{field}`"):
        Twins(privacy=CentralGaussian()).calibrated(PLAN).releases(PLAN)


def test_phases_that_are_not_chosen_are_the_rounds_of_the_plan():
    """Found by `tacit plan`, before anybody is asked."""

    class Short(FederatedPopularity):
        def phases(self, plan):
            [votes] = super().phases(plan)
            return (replace(votes, rounds=range(plan.rounds - 1)),)

    with pytest.raises(BadValue, match=r"votes \(0 to 1\) must be the 3 rounds"):
        Short(privacy=CentralGaussian()).calibrated(PLAN).releases(PLAN)


# --- Which noise goes with which kind of method ---------------------------------------

ROUND_NOISE, RUN_NOISE = CentralGaussian(1.0), CentralGaussian(total_noise=2.0)


@pytest.mark.parametrize("step", ["calibrated", "releases"])
def test_the_noise_of_a_run_is_refused_where_no_phase_is_chosen(step):
    """Nobody could say what a round costs, so nobody would ever answer."""
    method = FederatedPopularity(privacy=RUN_NOISE)
    with pytest.raises(BadValue, match=r"total_noise=2\.0.*set noise_multiplier"):
        getattr(method, step)(PLAN)
    assert method.total_multiplier(EVERYONE) is None


@pytest.mark.parametrize("step", ["calibrated", "releases"])
def test_the_noise_of_a_round_is_refused_where_phases_are_chosen(step):
    """It would be replaced by what the budget and the share of a phase say."""
    method = CountThenChoose(privacy=ROUND_NOISE)
    with pytest.raises(BadValue, match=r"noise_multiplier=1\.0.*set total_noise"):
        getattr(method, step)(PLAN)
