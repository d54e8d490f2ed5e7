"""SGD on clients: both twins equal the literal loop, and a vector in closed form.

Also tests `tacit.kernels.matrix_factorization`.
"""

import numpy as np
import pytest

from tacit.data.federated_data import FederatedData
from tacit.errors import BadValue
from tacit.kernels.dispatch import TABLE
from tacit.keys import Key
from tacit.models.matrix_factorization import (
    Examples,
    Schedule,
    fold_in,
    most_rows,
    popularity,
    train,
)
from tacit.models.mult_vae import Held
from tacit.testing.contract import mixed_world

KERNEL = "matrix_factorization.sgd"
TWINS = {"numpy": 10**9, "compiled": 0}
WORLD = mixed_world()
N_ITEMS, D = len(WORLD.catalog), 3
NO_BIAS = np.zeros(N_ITEMS)


@pytest.fixture(params=TWINS)
def twin(request, monkeypatch):
    monkeypatch.setitem(TABLE, KERNEL, TABLE[KERNEL].at(TWINS[request.param]))


def held_of(world=WORLD):
    return Held.of(world.shards, np.arange(len(world.catalog)))


def examples_of(*, most=100, negatives=2, seed=0, held=None):
    held = held_of() if held is None else held
    keys = Key.from_seed(seed).each(np.arange(len(held)))
    return Examples.of(held, most=most, negatives=negatives, keys=keys)


def literal(items, bias, user, examples, client, schedule, keys):
    """One client by the formulas: every item there, one example after the other."""
    v, u, first = items.copy(), user.copy(), examples.offsets[client]
    n = examples.lengths[client]
    for epoch in range(schedule.epochs):
        order = examples.order(keys.at("order", epoch))[first : first + n]
        for example in order:
            row = examples.rows[client, examples.slots[example]]
            error = examples.labels[example] - bias[row] - v[row] @ u
            step_u = error * v[row] - schedule.ridge * u
            step_v = error * u - schedule.ridge * v[row]
            u = u + schedule.rate * step_u
            v[row] += schedule.rate * step_v
    return u, v - items


@pytest.mark.parametrize("schedule", [Schedule(1), Schedule(3, 0.2, 0.1)])
def test_a_cohort_equals_the_literal_loop(twin, schedule):
    """In float64 to 1e-9, users and whole matrices, over several passes."""
    draws = np.random.default_rng(0)
    items, users = draws.normal(size=(N_ITEMS, D)), draws.normal(size=(13, D))
    bias = draws.random(N_ITEMS)
    examples, keys = examples_of(), Key.from_seed(1).each(np.arange(13))
    found, moved = train(items, bias, users, examples, schedule=schedule, keys=keys)
    dense = moved.dense().values
    for client in range(13):
        u, v = literal(items, bias, users[client], examples, client, schedule, keys)
        np.testing.assert_allclose(found[client], u, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(dense[client], v, rtol=1e-9, atol=1e-9)


def test_only_rows_of_examples_move(twin):
    examples = examples_of(negatives=1)
    items = np.random.default_rng(0).normal(size=(N_ITEMS, D))
    keys = Key.from_seed(1).each(np.arange(13))
    users = np.ones((13, D))
    _, moved = train(items, NO_BIAS, users, examples, schedule=Schedule(), keys=keys)
    for client, rows in enumerate(examples.rows):
        away = np.flatnonzero(moved.dense().values[client].any(axis=1))
        assert set(away) <= set(rows[rows >= 0])
    assert not moved.values[examples.rows < 0].any()
    assert not moved.dense().values[0].any()  # who has nothing moves nothing


def test_numbers_that_overflow_leave_nothing_behind(twin):
    items = np.full((N_ITEMS, D), 1e200)
    users = np.ones((13, D))
    keys = Key.from_seed(1).each(np.arange(13))
    with np.errstate(all="ignore"):
        after, moved = train(
            items, NO_BIAS, users, examples_of(), schedule=Schedule(3), keys=keys
        )
    assert not after[1:].any()
    np.testing.assert_array_equal(after[0], users[0])  # who has nothing learns nothing
    assert not moved.values.any()


def test_examples_are_what_is_held_and_what_is_not():
    held, examples = held_of(), examples_of(negatives=2)
    for client in range(len(held)):
        own = slice(*examples.offsets[client : client + 2])
        rows = examples.rows[client, examples.slots[own]]
        mine = held.columns[held.offsets[client] : held.offsets[client + 1]]
        is_held = examples.labels[own] == 1
        assert sorted(rows[is_held]) == sorted(mine)
        assert not set(rows[~is_held]) & set(mine)
        wanted = 0 if len(mine) == N_ITEMS else 2 * len(mine)
        assert (~is_held).sum() == wanted
        listed = examples.rows[client][examples.rows[client] >= 0]
        assert (np.diff(listed) > 0).all()
        assert set(listed) == set(rows)


def test_a_long_history_is_sampled_and_every_item_has_its_turn():
    """Negatives never come from what is held and was left out."""
    held, seen = held_of(), set()
    for seed in range(40):
        examples = examples_of(most=4, negatives=1, seed=seed)
        assert examples.rows.shape == (13, 8)
        own = slice(*examples.offsets[12:14])  # of eleven items
        rows = examples.rows[12, examples.slots[own]]
        liked = rows[examples.labels[own] == 1]
        mine = set(held.columns[held.offsets[12] : held.offsets[13]])
        assert len(liked) == 4
        assert not set(rows[examples.labels[own] == 0]) & mine
        seen |= set(liked)
    assert seen == mine


def test_nobody_else_changes_the_examples_of_a_client():
    held, keys = held_of(), Key.from_seed(0).each(np.arange(13))
    whole = Examples.of(held, most=3, negatives=2, keys=keys)
    for client in range(13):
        one = np.array([client])
        alone = Examples.of(held.take(one), most=3, negatives=2, keys=keys[one])
        own = slice(*whole.offsets[client : client + 2])
        np.testing.assert_array_equal(alone.rows[0], whole.rows[client])
        np.testing.assert_array_equal(alone.slots, whole.slots[own])
        np.testing.assert_array_equal(alone.labels, whole.labels[own])


def test_a_vector_in_closed_form_has_the_least_loss():
    """Against least squares over rows for held items, all items and the ridge."""
    items = np.random.default_rng(2).normal(size=(N_ITEMS, D))
    held, ridge, negatives = held_of(), 0.05, 2
    bias = np.random.default_rng(3).random(N_ITEMS)
    found = fold_in(items, bias, held, negatives=negatives, ridge=ridge)
    for client in range(1, 13):
        mine = held.columns[held.offsets[client] : held.offsets[client + 1]]
        n = len(mine)
        weight, pull = np.sqrt(negatives * n / N_ITEMS), np.sqrt(ridge * n * 3)
        left = np.concatenate([items[mine], weight * items, pull * np.eye(D)])
        right = np.concatenate([1 - bias[mine], -weight * bias, np.zeros(D)])
        best = np.linalg.lstsq(left, right, rcond=None)[0]
        np.testing.assert_allclose(found[client], best, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found[0], 0, atol=1e-12)


def test_popularity_is_the_share_of_examples_that_are_held():
    """Counts 6, 2 and 0 of three items, one negative each: 2.25/3.25 and so on."""
    counts = np.array([6.0, 2.0, -4.0])
    found = popularity(counts, negatives=1, floor=0.0)
    np.testing.assert_allclose(found, [2.25 / 3.25, 0.75 / 1.75, 0], atol=1e-8)
    loud = popularity(counts, negatives=1, floor=100.0)
    np.testing.assert_allclose(loud, 0.5)


def test_room_for_rows():
    assert most_rows(50, most=10, negatives=2) == 30
    assert most_rows(20, most=10, negatives=2) == 20


@pytest.mark.parametrize("field", [{"epochs": 0}, {"rate": 0.0}, {"ridge": -1.0}])
def test_schedules_that_cannot_be(field):
    [(name, value)] = field.items()
    with pytest.raises(BadValue, match=f"{name}={value}"):
        Schedule(**field)


def test_nobody_at_all():
    world = FederatedData.of_histories([[], []], n_items=4)
    examples = examples_of(held=held_of(world))
    keys = Key.from_seed(0).each(np.arange(2))
    users = np.ones((2, 2))
    after, moved = train(
        np.ones((4, 2)), np.zeros(4), users, examples, schedule=Schedule(), keys=keys
    )
    np.testing.assert_array_equal(after, users)
    assert not moved.values.any()


def test_both_twins_shuffle_alike(monkeypatch):
    found = []
    for size in (0, 10**9):
        name = "matrix_factorization.shuffle"
        monkeypatch.setitem(TABLE, name, TABLE[name].at(size))
        keys = Key.from_seed(5).each(np.arange(13))
        found.append(examples_of().order(keys))
    np.testing.assert_array_equal(*found)


def test_every_order_is_equally_likely():
    """Three examples, 6,000 clients, six orders: chi-square of 5 degrees below 41.

    False alarm below 1e-7 if the seed were drawn anew.
    """
    n = 6_000
    world = FederatedData.of_histories([[0, 1, 2]] * n, n_items=3)
    examples = examples_of(held=held_of(world))
    order = examples.order(Key.from_seed(0).each(np.arange(n)))
    own = order.reshape(n, 3) - examples.offsets[:-1, None]
    _, counts = np.unique(own @ [9, 3, 1], return_counts=True)
    assert len(counts) == 6
    assert ((counts - n / 6) ** 2 / (n / 6)).sum() < 41
