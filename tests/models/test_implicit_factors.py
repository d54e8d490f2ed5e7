"""Factors and gradients by hand, by differences, and by both twins."""

import numpy as np
import pytest

from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.kernels.dispatch import TABLE
from tacit.models.implicit_factors import ImplicitFactors, descend

HISTORIES = [[], [2], [3, 3, 1, 3], [0, 1, 2, 3, 4, 5, 6], [6, 0]]
N_ITEMS = 7


def shards_of(histories, n_items=N_ITEMS):
    users = np.repeat(np.arange(len(histories)), [len(h) for h in histories])
    items = np.array([i for h in histories for i in h], np.int64)
    log = Interactions.of_columns(users, items, n_users=len(histories), n_items=n_items)
    return Shards.of(log)


def model_of(alpha=0.7, ridge=0.5, factors=3, n_items=N_ITEMS):
    draw = np.random.default_rng(3)
    return ImplicitFactors(draw.normal(size=(n_items, factors)), alpha, ridge)


@pytest.fixture(params=["plain", "compiled"])
def twin(request, monkeypatch):
    limit = {"plain": 2**62, "compiled": 0}[request.param]
    for name in ("implicit_factors.solver", "implicit_factors.spread"):
        monkeypatch.setitem(TABLE, name, TABLE[name].at(limit))


def literal(model, history):
    """Equations 4 to 6 for one user, as they are printed."""
    r = np.bincount(np.array(history, np.int64), minlength=len(model.items))
    p, c = (r > 0) * 1.0, 1.0 + model.alpha * r
    v = model.items.T  # F × M, as in the paper
    system = v @ np.diag(c) @ v.T + model.ridge * np.eye(len(v))
    x = np.linalg.solve(system, v @ np.diag(c) @ p)
    return x, -2.0 * (c * (p - x @ v))[:, None] * x


def loss(model, items, x, history):
    r = np.bincount(np.array(history, np.int64), minlength=len(items))
    return ((1 + model.alpha * r) * ((r > 0) - items @ x) ** 2).sum()


@pytest.mark.parametrize("alpha", [0.0, 0.7, 40.0])
def test_the_equations_one_user_at_a_time(twin, alpha):
    model, shards = model_of(alpha), shards_of(HISTORIES)
    at = np.tile(np.arange(21, dtype=np.int32), (len(HISTORIES), 1))
    users, whole = model.users(shards), model.gradients(shards)
    some = model.gradients_at(shards, at[:, ::-2].copy())
    for u, history in enumerate(HISTORIES):
        x, g = literal(model, history)
        np.testing.assert_allclose(users[u], x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(whole[u], g, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(some[u], g.ravel()[::-2], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_twins_agree_on_a_thousand_users(monkeypatch):
    """Repeats, nobody, everything; the sizes that the compiled one is for."""
    draw, n_items = np.random.default_rng(0), 300
    histories = [draw.integers(0, n_items, n).tolist() for n in range(0, 1000, 2)]
    shards, model = shards_of(histories, n_items), model_of(2.0, 1e-6, 5, n_items)
    at = draw.integers(0, 1500, (500, 40)).astype(np.int32)
    found = {}
    for name, limit in {"plain": 2**62, "compiled": 0}.items():
        for kernel in ("implicit_factors.solver", "implicit_factors.spread"):
            monkeypatch.setitem(TABLE, kernel, TABLE[kernel].at(limit))
        found[name] = (
            model.users(shards),
            model.gradients_at(shards, at),
            model.gradients(shards.take(np.arange(0, 500, 50))),
        )
    for one, other in zip(found["plain"], found["compiled"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_the_gradient_is_the_slope_of_the_loss():
    """And so its sign descends; the paper's Equation 5 has the other one."""
    model, history = model_of(), [3, 3, 1, 3]
    shards = shards_of([history])
    x, gradient = model.users(shards)[0], model.gradients(shards)[0]
    step = 1e-6
    for place in np.ndindex(*model.items.shape):
        up, down = model.items.copy(), model.items.copy()
        up[place] += step
        down[place] -= step
        slope = loss(model, up, x, history) - loss(model, down, x, history)
        assert slope / (2 * step) == pytest.approx(gradient[place], abs=1e-6)


def test_a_user_minimises_their_loss():
    model, history = model_of(), [0, 4]
    x = model.users(shards_of([history]))[0]

    def whole(y):
        return loss(model, model.items, y, history) + model.ridge * (y @ y)

    for nudge in np.vstack([np.eye(3), -np.eye(3)]) * 1e-3:
        assert whole(x + nudge) > whole(x)


def test_who_has_nothing_says_nothing(twin):
    """And has no taste: every score is zero."""
    shards = shards_of([[]])
    assert not model_of().users(shards).any()
    assert not model_of().gradients(shards).any()
    assert not model_of().gradients_at(shards, np.zeros((1, 4), np.int32)).any()


def test_more_factors_than_items(twin):
    """The ridge keeps the system solvable, and the history is fitted."""
    model = model_of(alpha=0.0, ridge=1e-6, n_items=2)
    shards = shards_of([[], [1], [0, 1, 1]], n_items=2)
    scores = model.users(shards) @ model.items.T
    held = [[0, 0], [0, 1], [1, 1]]
    np.testing.assert_allclose(scores, held, atol=1e-4)


def test_a_repeated_click_is_trusted_more(twin):
    model = model_of(alpha=1.0)
    once, thrice = shards_of([[3, 1]]), shards_of([[3, 1, 3, 3]])
    near = [1 - model.users(s)[0] @ model.items[3] for s in (once, thrice)]
    assert abs(near[1]) < abs(near[0])
    same = model_of(alpha=0.0)
    np.testing.assert_allclose(same.users(once), same.users(thrice), rtol=1e-12)


def test_an_item_nobody_touched_is_pushed_to_zero(twin):
    """Its gradient is 2 (x·v) x: a step makes its score smaller for whoever said so."""
    model, shards = model_of(), shards_of([[2]])
    x, gradient = model.users(shards)[0], model.gradients(shards)[0]
    before = model.items[5] @ x
    after = (model.items[5] - 1e-3 * gradient[5]) @ x
    assert abs(after) < abs(before)
    np.testing.assert_allclose(gradient[5], 2 * before * x)


def test_nan_stays_nan(twin):
    """What is not a number is not made one here; mechanisms count it as zero."""
    items = model_of().items.copy()
    items[0, 0] = np.nan
    model = ImplicitFactors(items, 0.7, 0.5)
    assert np.isnan(model.gradients(shards_of([[0, 1]]))).all()
    assert np.isnan(model.users(shards_of([[1]]))).all()


@pytest.mark.parametrize("history", [[4], [3, 3, 1, 3], [0, 1, 2, 3, 4, 5, 6]])
def test_parts_add_up_to_the_score(history):
    model, shards = model_of(), shards_of([history])
    x = model.users(shards)[0]
    for item in range(N_ITEMS):
        parts = model.reasons(shards, item)
        assert parts.shape == (len(history),)
        assert parts.sum() == pytest.approx(x @ model.items[item])
    assert model.reasons(shards_of([[]]), 0).shape == (0,)


def test_twenty_steps_by_hand():
    """V (1 - 2 gamma lambda)^20 less a geometric sum of gradients."""
    items, gradient = np.full((2, 1), 3.0), np.array([[1.0], [-2.0]])
    found = descend(items, gradient, rate=0.1, ridge=0.5, steps=20)
    shrunk = 0.9**20
    expected = 3.0 * shrunk - gradient * (1 - shrunk)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (items == 3.0).all()  # as it was
