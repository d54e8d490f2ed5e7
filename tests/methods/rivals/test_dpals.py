"""DPALS: the contract in three forms, the sensitivity, and least squares by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue, Refused
from tacit.keys import Key
from tacit.method import Candidates, CentralGaussian, Clients, LocalPrivUnit, Method
from tacit.methods.rivals.dpals import Dpals
from tacit.plans import Plan
from tacit.release import View
from tacit.runtime.simulate import Simulation
from tacit.statement import account
from tacit.testing.contract import (
    MethodContract,
    ScoreFunction,
    assert_checkerboard_learnt,
    checkerboard,
    mixed_world,
)
from tacit.transport.messages import Broadcast
from tacit.tree import Tree

SMALL = {"factors": 2, "head": 12}  # with more it would fit who lacks what


class TestCentral(MethodContract):
    """The contract under noise; the answer is learnt with little of it."""

    rounds = 4

    def method(self) -> Method:
        return Dpals(**SMALL, privacy=CentralGaussian(0.01))

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        assert_checkerboard_learnt(score, world.shards)


class TestBare(TestCentral):
    def method(self) -> Method:
        return Dpals(**SMALL)


class TestPublished(TestCentral):
    """With a Gramian per item, and a head that has less than the catalog."""

    def method(self) -> Method:
        return Dpals(factors=3, head=7, item_gramians=0.2)

    def check_learnt(self, score: ScoreFunction, world: FederatedData) -> None:
        """Seven of twelve items have factors; the others follow, by count."""
        scores = score(world.shards)
        assert np.isfinite(scores).all()
        best = np.argsort(-scores, axis=1)
        assert (np.sort(best[:, :7], axis=1) == np.sort(best[0, :7])).all()
        assert (best[:, 7:] == best[0, 7:]).all()


# sensitivity

N_ITEMS, D = 6, 3
PLAN = Plan(4, rounds=2)


def report_of(method: Dpals, history: list[int], weights: dict) -> Tree:
    """What one client computes in the round of factors, raw."""
    world = FederatedData.of_histories([history], n_items=N_ITEMS)
    clients = Clients(PLAN, np.zeros(1, np.int64), np.zeros(1, np.int64), Tree({}))
    told = Broadcast(1, PLAN.digest, weights, phase=1)
    keys = Key.from_seed(0).each(np.arange(1))
    phase = method.phases(PLAN)[1]
    return method.update(phase, told, clients, world.shards, keys)


histories = st.lists(st.integers(0, N_ITEMS - 1), max_size=12)
numbers = st.floats(-1e6, 1e6)


@settings(deadline=None)
@given(
    history=histories,
    head=arrays(np.int64, N_ITEMS, elements=st.integers(0, N_ITEMS - 1)),
    items=arrays(np.float64, (N_ITEMS, D), elements=numbers),
    weights=arrays(np.float64, N_ITEMS, elements=numbers),
    shares=st.sampled_from([(0.05, 0.0), (0.9, 0.0), (0.05, 0.2), (0.4, 0.5)]),
)
def test_no_history_and_no_broadcast_makes_a_report_longer_than_one(
    history, head, items, weights, shares
):
    """Joint norm of all parts, before the mechanism bounds it once more."""
    g, h = shares
    method = Dpals(factors=D, head=N_ITEMS, gramian_share=g, item_gramians=h)
    told = {"head": head, "items": items, "weights": weights}
    tree = report_of(method, history, told)
    assert {phase.bound for phase in method.phases(PLAN)} == {1.0}
    assert (tree.norms() <= 1.0).all()


@pytest.mark.parametrize("h", [0.0, 0.2])
@pytest.mark.parametrize("history", [[0], [0, 1], list(range(N_ITEMS))])
def test_a_user_whose_factors_are_clipped_has_a_report_of_norm_one(history, h):
    """So the bound is the least there is."""
    items = np.random.default_rng(0).normal(size=(N_ITEMS, D))
    told = {"head": np.arange(N_ITEMS), "items": items, "weights": np.ones(N_ITEMS)}
    method = Dpals(factors=D, head=N_ITEMS, item_gramians=h, clip=1e-3)
    np.testing.assert_allclose(report_of(method, history, told).norms(), 1, rtol=1e-9)


def test_who_has_nothing_says_nothing():
    items = np.ones((N_ITEMS, D))
    told = {"head": np.arange(N_ITEMS), "items": items, "weights": np.ones(N_ITEMS)}
    method = Dpals(factors=D, head=N_ITEMS, item_gramians=0.2)
    assert report_of(method, [], told).norms().tolist() == [0.0]


def test_the_parts_of_a_report_by_hand():
    """One factor, one item: u = 2 / (.3·4 + 4 + 1), clipped to 1 in units of C."""
    items = np.where(np.arange(N_ITEMS)[:, None] == 0, 2.0, 0.0)
    told = {"head": np.arange(N_ITEMS), "items": items, "weights": np.ones(N_ITEMS)}
    for clip, size in ((0.1, 1.0), (1.0, 2 / 6.2)):
        method = Dpals(factors=1, head=N_ITEMS, clip=clip, item_gramians=0.2)
        leaves = report_of(method, [0], told).leaves.items()
        # The half of a square of one number has it over sqrt(2); it is sent times that.
        found = {name: leaf.dense().values.flat[0] for name, leaf in leaves}
        assert found == pytest.approx(
            {
                "gramian": math.sqrt(0.05) * size**2,
                "right": math.sqrt(0.75) * size,
                "item gramians": math.sqrt(0.2) * size**2,
            }
        )


# without noise


def trained(method: Dpals, world: FederatedData, *, rounds: int):
    people = world.catalog, world.profiles, world.shards
    plan = Plan(len(world.shards), rounds=rounds)
    simulation = Simulation(method, plan, *people, Key.from_seed(0))
    start = simulation.start()
    *_, (state, _) = simulation.run(start)
    return start.server.weights, state, simulation


def held_of(world: FederatedData) -> np.ndarray:
    x = np.zeros((len(world.shards), len(world.catalog)))
    x[world.shards.owners, world.shards.items] = 1
    return x


def users_by_hand(method: Dpals, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One least-squares problem per user: rows for held items, all items, the ridge."""
    d = v.shape[1]
    every, ridge = math.sqrt(method.unobserved), math.sqrt(method.user_ridge)
    found = []
    for row in x:
        left = np.concatenate([v[row > 0], every * v, ridge * np.eye(d)])
        right = np.concatenate([np.ones(int(row.sum())), np.zeros(len(v) + d)])
        found.append(np.linalg.lstsq(left, right, rcond=None)[0])
    return np.array(found)


def items_by_hand(method: Dpals, y: np.ndarray, u: np.ndarray) -> np.ndarray:
    """One least-squares problem per item: rows weighted by y, all users, the ridge."""
    n, d = u.shape
    ridge = math.sqrt(method.item_ridge * n)
    found = []
    for column in y.T:
        weights = np.sqrt(column)[:, None]
        left = np.concatenate(
            [weights * u, math.sqrt(method.unobserved) * u, ridge * np.eye(d)]
        )
        right = np.concatenate([weights[:, 0], np.zeros(n + d)])
        found.append(np.linalg.lstsq(left, right, rcond=None)[0])
    return np.array(found)


@pytest.mark.parametrize("world", [mixed_world(), checkerboard()])
@pytest.mark.parametrize("clip", [0.03, 1e3])
def test_as_published_and_without_noise_it_is_alternating_least_squares(world, clip):
    """Every row found by `lstsq` of its own loss, over three rounds."""
    n_items = len(world.catalog)
    method = Dpals(factors=3, head=n_items, clip=clip, item_gramians=0.2)
    start, state, _ = trained(method, world, rounds=4)
    x = held_of(world)
    counts = (x / np.maximum(np.sqrt(x.sum(axis=1, keepdims=True)), 1)).sum(axis=0)
    np.testing.assert_allclose(state.server.weights["counts"], counts)
    head = state.server.weights["head"]
    y = x[:, head] * np.maximum(counts[head], 1.0) ** -0.25
    y /= np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1e-12)
    v = start["items"]
    for _ in range(3):
        u = users_by_hand(method, x[:, head], v)
        u *= np.minimum(1, clip / np.maximum(np.linalg.norm(u, axis=1), 1e-12))[:, None]
        v = items_by_hand(method, y, u)
    np.testing.assert_allclose(
        state.server.weights["items"], v, rtol=1e-6, atol=1e-9 * abs(v).max()
    )


def test_without_item_gramians_a_round_is_one_linear_map():
    """(α A + ridge N I) v = B for every item, from sums made one user at a time."""
    world, clip = mixed_world(), 0.1
    method = Dpals(factors=2, head=20, clip=clip)
    start, state, _ = trained(method, world, rounds=2)
    known, x = state.server.weights, held_of(world)[:, state.server.weights["head"]]
    u = users_by_hand(method, x, start["items"])
    left, right = np.zeros((2, 2)), np.zeros((20, 2))
    for row, one in zip(x, u, strict=True):
        one = one * min(1, clip / max(np.linalg.norm(one), 1e-12))
        left += np.outer(one, one)
        weighed = row * known["weights"]
        right += np.outer(weighed / max(np.linalg.norm(weighed), 1e-12), one)
    left = method.unobserved * left + method.item_ridge * len(x) * np.eye(2)
    np.testing.assert_allclose(known["items"] @ left, right, rtol=1e-8, atol=1e-10)


def test_ranking_uses_the_whole_history_and_puts_the_tail_last():
    world = checkerboard()
    method = Dpals(factors=2, head=5)
    _, state, simulation = trained(method, world, rounds=3)
    broadcast = method.broadcast(state.server)
    tastes = method.represent(
        broadcast, state.clients, world.shards, simulation.population.keys
    )
    scores = method.score(broadcast, tastes, Candidates.all_of(world.catalog))
    head = broadcast.weights["head"]
    u = users_by_hand(method, held_of(world)[:, head], broadcast.weights["items"])
    expected = u @ broadcast.weights["items"].T
    np.testing.assert_allclose(scores[:, head], expected, atol=1e-8)
    tail = np.setdiff1d(np.arange(12), head)
    assert (scores[:, tail].max(axis=1) < scores[:, head].min(axis=1)).all()


def test_it_can_be_looked_at_before_its_last_round():
    """Counts come with the last broadcast: until then the tail is one tie."""
    world = checkerboard()
    method = Dpals(factors=2, head=5)
    _, state, simulation = trained(method, world, rounds=3)
    begun = replace(state.server, round=2)
    broadcast = method.broadcast(begun)
    assert "counts" not in broadcast.weights
    keys = simulation.population.keys
    tastes = method.represent(broadcast, state.clients, world.shards, keys)
    scores = method.score(broadcast, tastes, Candidates.all_of(world.catalog))
    tail = np.setdiff1d(np.arange(12), broadcast.weights["head"])
    assert (np.ptp(scores[:, tail], axis=1) == 0).all()
    head = np.delete(scores, tail, axis=1)
    assert (scores[:, tail].max(axis=1) < head.min(axis=1)).all()


# budget and sizes


@pytest.mark.parametrize(
    ("epsilon", "factors", "head"),
    [(1.0, 11, 391), (2.0, 15, 537), (4.0, 20, 735), (8.0, 27, 993)],
)
def test_sizes_follow_from_the_plan_and_the_target_is_met(epsilon, factors, head):
    """The sizes of ML-1M: 22 and 800 times the root of μ N / 5,000."""
    plan = Plan(
        5034, rounds=4, channel="secure_sum", delta=1e-6, target_epsilon=epsilon
    )
    made = Dpals(privacy=CentralGaussian()).calibrated(plan)
    assert (made.factors, made.head) == (factors, head)
    assert made.calibrated(plan) == made
    found = account(plan, made.releases(plan))
    assert found.worst(view=View.RELEASE) == pytest.approx(epsilon, abs=1e-3)
    chosen = Dpals(privacy=CentralGaussian(), factors=5, head=6).calibrated(plan)
    assert (chosen.factors, chosen.head) == (5, 6)


def test_without_noise_sizes_are_the_largest():
    made = Dpals().calibrated(Plan(100, rounds=3))
    assert (made.factors, made.head) == (64, 3000)


def test_each_round_of_factors_has_more_of_the_budget():
    shares = [phase.share for phase in Dpals(growth=2.0).phases(Plan(10, rounds=4))]
    np.testing.assert_allclose(shares, [0.1, 0.9 / 7, 1.8 / 7, 3.6 / 7])


def test_one_round_is_too_few():
    with pytest.raises(Refused, match="rounds=1"):
        Dpals(**SMALL).phases(Plan(10, rounds=1))


def test_sizes_must_be_known_before_the_start():
    catalog, key = checkerboard().catalog, Key.from_seed(0)
    for known, missing in (("head", "factors"), ("factors", "head")):
        with pytest.raises(BadValue, match=f"{missing} is not set"):
            Dpals(**{known: 3}).start(Plan(24, rounds=2), catalog, key)


@pytest.mark.parametrize(
    "fields",
    [
        {"factors": 0},
        {"head": 0},
        {"clip": 0.0},
        {"unobserved": 0.0},
        {"user_ridge": 0.0},
        {"item_ridge": -1.0},
        {"growth": 0.0},
        {"weight_exponent": -0.1},
        {"count_share": 1.0},
        {"gramian_share": 0.0},
        {"item_gramians": -0.1},
        {"item_gramians": 0.95},
    ],
)
def test_fields_that_are_refused(fields):
    [(name, value)] = fields.items()
    with pytest.raises(BadValue, match=rf"{name}=\s*{value}"):
        Dpals(**fields)


def test_local_reports_are_not_offered():
    with pytest.raises(BadValue, match="Dpals must be one of"):
        Dpals(privacy=LocalPrivUnit(1.0))
