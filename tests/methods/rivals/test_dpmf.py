"""DPMF: the contract, a round by hand, what stays on the client, sizes and budget."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import (
    Candidates,
    CentralGaussian,
    LocalPrivUnit,
    Method,
    TouchedRows,
    Unmetered,
    participate,
)
from tacit.methods.rivals.dpmf import Dpmf
from tacit.models.matrix_factorization import Examples, Schedule, fold_in, train
from tacit.models.mult_vae import Held
from tacit.plans import Plan
from tacit.release import Unit, View
from tacit.runtime.simulate import Simulation
from tacit.statement import account
from tacit.testing.contract import (
    MethodContract,
    ScoreFunction,
    assert_checkerboard_learnt,
    checkerboard,
    mixed_world,
)

SMALL = {
    "factors": 2,
    "head": 20,
    "local_epochs": 3,
    "rate": 0.1,
    "ridge": 0.1,  # with less it would fit who lacks what
    "server_rate": 0.1,
    "dtype": "float64",
}


class TestBare(MethodContract):
    """The contract without noise."""

    def method(self) -> Method:
        return Dpmf(**SMALL)

    def answer_plan(self, world: FederatedData) -> Plan:
        return Plan(len(world.shards), rounds=20)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        assert_checkerboard_learnt(score, world.shards)


class TestCentral(TestBare):
    """The contract under noise; the answer is learnt with little of it."""

    def method(self) -> Method:
        return Dpmf(**SMALL, privacy=CentralGaussian(0.01))


class TestHead(MethodContract):
    """Fewer items in the head than in the catalog, and histories that are sampled."""

    def method(self) -> Method:
        return Dpmf(
            factors=3,
            head=7,
            most_items=2,
            dtype="float64",
            privacy=CentralGaussian(1.0),
        )

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """Seven of twelve items have factors; the others follow, by count."""
        scores = score(world.shards)
        assert np.isfinite(scores).all()
        best = np.argsort(-scores, axis=1)
        assert (np.sort(best[:, :7], axis=1) == np.sort(best[0, :7])).all()
        assert (best[:, 7:] == best[0, 7:]).all()


# a round by hand


def simulated(method: Dpmf, world: FederatedData, *, rounds: int) -> Simulation:
    people = world.catalog, world.profiles, world.shards
    plan = Plan(len(world.shards), rounds=rounds)
    return Simulation(method, plan, *people, Key.from_seed(0))


def test_a_round_is_the_clipped_movement_of_all_clients():
    """Summed one client at a time, over the planned cohort, by a plain step."""
    world, clip = mixed_world(), 0.05
    method = Dpmf(
        factors=2,
        head=20,
        dtype="float64",
        server_step="sgd",
        server_rate=3.0,
        privacy=CentralGaussian(1e-9, clip=clip),
    )
    made = simulated(method, world, rounds=2)
    state, _ = made.step(made.start())
    broadcast, everyone = method.broadcast(state.server), np.arange(13)
    public, keys = broadcast.weights, made.population.keys
    own = keys.at("round", 1).at("local_update")
    total, users = np.zeros((20, 2)), []
    for client in everyone:
        one = np.array([client])
        held = Held.of(world.shards.take(one), public["head"])
        examples = Examples.of(
            held, most=100, negatives=3, keys=own[one].at("examples")
        )
        user, moved = train(
            *(public["items"], public["bias"], np.zeros((1, 2)), examples),
            schedule=Schedule(3, 0.05, 0.01),
            keys=own[one],
        )
        away = moved.dense().values[0]
        total += away * min(1, clip / max(np.linalg.norm(away), 1e-12))
        users.append(user[0])
    after, _ = made.step(state)
    expected = public["items"] + 3.0 * total / 13
    np.testing.assert_allclose(after.server.weights["items"], expected, atol=1e-8)
    np.testing.assert_allclose(after.clients.state["user"], users, atol=1e-12)


def test_a_report_has_room_for_some_rows_and_names_them_in_order():
    world = mixed_world()
    method = Dpmf(factors=2, head=15, most_items=4, negatives=2)
    made = simulated(method, world, rounds=2)
    state, _ = made.step(made.start())
    _, reports, _ = participate(
        *(method, method.broadcast(state.server), state.clients, world.shards),
        made.population.keys,
        ledger=Unmetered(),
    )
    leaf = reports.tree.leaves["items"]
    assert isinstance(leaf, TouchedRows)
    assert leaf.values.shape == (13, 12, 2)
    assert leaf.shape == (15, 2)
    assert (np.diff(leaf.rows[leaf.rows[:, -1] >= 0], axis=1) > 0).all()


def test_the_users_vector_is_kept_and_goes_on():
    """It begins at zero, changes with every round and is in no message."""
    made = simulated(Dpmf(**SMALL), checkerboard(), rounds=3)
    played = made.run(made.start())
    seen = [state.clients.state["user"] for state, _ in played]
    assert not seen[0].any()  # counting
    assert (seen[1] != 0).all()
    assert (seen[2] != seen[1]).all()
    layouts = made.method.report_layouts(made.plan, made.catalog)
    assert [set(layout.slots) for layout in layouts] == [{"counts"}, {"items"}]


def test_ranking_is_for_everybody_and_puts_the_tail_last():
    world = checkerboard()
    method = Dpmf(factors=2, head=5, local_epochs=2)
    made = simulated(method, world, rounds=6)
    *_, (state, _) = made.run(made.start())
    broadcast = method.broadcast(state.server)
    tastes = method.represent(
        broadcast, state.clients, world.shards, made.population.keys
    )
    scores = method.score(broadcast, tastes, Candidates.all_of(world.catalog))
    public, head = broadcast.weights, broadcast.weights["head"]
    held = Held.of(world.shards, head)
    u = fold_in(public["items"], public["bias"], held, negatives=3, ridge=0.01)
    expected = public["bias"] + u @ public["items"].T
    np.testing.assert_allclose(scores[:, head], expected, atol=1e-12)
    tail = np.setdiff1d(np.arange(12), head)
    assert (scores[:, tail].max(axis=1) < scores[:, head].min(axis=1)).all()


def test_before_training_everybody_is_ranked_by_popularity():
    made = simulated(Dpmf(**SMALL), mixed_world(), rounds=2)
    state, _ = made.step(made.start())
    public = state.server.weights
    by_count = np.argsort(-public["counts"], kind="stable")
    np.testing.assert_array_equal(public["head"], by_count)
    assert (np.diff(public["bias"]) <= 0).all()


# budget and sizes


def plan_of(epsilon: float, **changes) -> Plan:
    return Plan(
        **{
            "population": 5034,
            "rounds": 51,
            "channel": "secure_sum",
            "delta": 1e-6,
            "target_epsilon": epsilon,
            **changes,
        }
    )


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_sizes_follow_from_the_plan_and_the_target_is_met(epsilon):
    plan = plan_of(epsilon)
    made = Dpmf(privacy=CentralGaussian()).calibrated(plan)
    assert made.calibrated(plan) == made
    found = account(plan, made.releases(plan))
    assert found.worst(view=View.RELEASE) == pytest.approx(epsilon, abs=1e-3)
    chosen = Dpmf(privacy=CentralGaussian(), factors=5, head=6).calibrated(plan)
    assert (chosen.factors, chosen.head) == (5, 6)


def test_more_budget_allows_more_factors_and_items():
    one, eight = (
        Dpmf(privacy=CentralGaussian()).calibrated(plan_of(e)) for e in (1.0, 8.0)
    )
    assert one.head < eight.head
    assert one.factors < eight.factors


def test_without_noise_sizes_are_the_largest():
    made = Dpmf().calibrated(Plan(100, rounds=3))
    assert (made.factors, made.head) == (32, 3000)


def test_groups_have_budgets_of_their_own():
    """Strict users send shorter updates, and the account has both epsilons."""
    plan = plan_of({"strict": 1.0, "open": 4.0}, groups={"strict": 3000, "open": 2034})
    made = Dpmf(privacy=CentralGaussian()).calibrated(plan)
    assert made.privacy.scale["open"] == 1.0
    assert made.privacy.scale["strict"] < 0.4
    totals = account(plan, made.releases(plan)).totals
    spent = {
        s.group: s.epsilon
        for s in totals
        if (s.unit, s.view) == (Unit.USER, View.RELEASE)
    }
    assert spent == pytest.approx({"strict": 1.0, "open": 4.0}, abs=1e-3)


def test_one_round_is_too_few():
    with pytest.raises(Refused, match="rounds=1"):
        Dpmf(**SMALL).phases(Plan(10, rounds=1))


def test_sizes_must_be_known_before_the_start():
    catalog, key = checkerboard().catalog, Key.from_seed(0)
    for known, missing in (("head", "factors"), ("factors", "head")):
        with pytest.raises(BadValue, match=f"{missing} is not set"):
            Dpmf(**{known: 3}).start(Plan(24, rounds=2), catalog, key)


@pytest.mark.parametrize(
    "fields",
    [
        {"factors": 0},
        {"head": 0},
        {"most_items": 0},
        {"negatives": 0},
        {"local_epochs": 0},
        {"rate": 0.0},
        {"ridge": 0.0},
        {"server_step": "newton"},
        {"dtype": "float16"},
        {"server_rate": 0.0},
        {"init_deviation": 0.0},
        {"count_rounds": 0},
        {"count_share": 1.0},
    ],
)
def test_fields_that_are_refused(fields):
    [(name, value)] = fields.items()
    name = "epochs" if name == "local_epochs" else name
    with pytest.raises(BadValue, match=rf"{name}='?{value}"):
        Dpmf(**fields)


def test_local_reports_are_not_offered():
    with pytest.raises(BadValue, match="Dpmf must be one of"):
        Dpmf(privacy=LocalPrivUnit(1.0))
