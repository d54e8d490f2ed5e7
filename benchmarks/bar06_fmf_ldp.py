"""Bar 6: an epoch of FMF-LDP, against the paper's loop and against numpy and scipy.

The loop does what Algorithms 1 and 2 print, for one client after the other: the normal
equations, the whole gradient, and k times Algorithm 1, which gives back a matrix. It is
timed on 300 clients and extrapolated to all, and says so. The vectorised baseline does
the same for batches of clients, with numpy's fast generator and a count of the bits.

For scale, and without a bar, two that know more than the paper says: a thrifty loop
that writes its k bits into one sum, and numpy that computes the gradient only where it
is sampled, which is our own trick. Ours is a round of the engine: the cohort, the
devices' own keys, reports that could be encoded, the count, the server's steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest, seconds
from tacit.data.catalog import Catalog, Profiles
from tacit.data.interactions import Interactions
from tacit.data.shards import Shards
from tacit.data.strings import Strings
from tacit.keys import Key
from tacit.methods.fmf_ldp import FmfLdp
from tacit.models.implicit_factors import ImplicitFactors
from tacit.plans import Plan
from tacit.privacy import PublishedVotes
from tacit.runtime.rounds import play_round
from tacit.runtime.simulate import Simulation

USERS, ITEMS, EVENTS, VOTES, EPSILON = 50_000, 5_000, 100, 100, 2.5
METHOD = FmfLdp(mode="paper", privacy=PublishedVotes(EPSILON, VOTES))
ALPHA, RIDGE, BATCH, TIMED = METHOD.alpha, METHOD.user_ridge, 500, 300
LOOP_BAR, NUMPY_BAR = 500, 8
B = np.tanh(EPSILON / 2) ** -1

Gradient = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def measure(quick: bool) -> list[Case]:
    users = USERS // 10 if quick else USERS
    simulation = _simulation(users)
    state = simulation.start()
    items = state.server.weights["items"].astype(np.float32).astype(np.float64)
    clicks = simulation.shards.log.matrix()
    rng = np.random.default_rng(1)

    def ours() -> np.ndarray:
        after, _ = play_round(METHOD, state, simulation.population, simulation.key)
        return after.server.weights["items"]

    def numpy(gradient: Gradient) -> np.ndarray:
        return _step(items, _vectorized(clicks, items, rng, gradient) / users)

    runs = {
        "numpy": lambda: numpy(_everywhere),
        "numpy, sampled only": lambda: numpy(_where_sampled),
        "ours": ours,
    }
    some = clicks[:TIMED].toarray()
    _check_agreement(some, items, simulation.shards.take(np.arange(TIMED)))
    best = fastest(runs, repeats=7)
    loops = {"loop": _loop, "thrifty loop": _thrifty_loop}
    for name, loop in loops.items():
        took = [seconds(partial(loop, some, items, rng)) for _ in range(3)]
        best[name] = min(took) * users / TIMED
    return _cases(users, best)


def _cases(users: int, best: dict[str, float]) -> list[Case]:
    """Both ratios over their bars, so that the worse one counts."""
    name = f"{users:,} users × {ITEMS:,} items, k = {VOTES}"
    ours, whole, loop = best["ours"], best["numpy"], best["loop"]
    thrifty = f"a thrifty loop {best['thrifty loop'] / ours:.0f}x"
    note = f"{loop / ours:.0f}x, bar {LOOP_BAR}; {thrifty}; extrapolated from {TIMED}"
    times = {"loop": loop, "ours": ours}
    sampled = best["numpy, sampled only"] / ours
    beside = f"{whole / ours:.1f}x, bar {NUMPY_BAR}; sampled only {sampled:.1f}x"
    return [
        Case(f"{name}, the loop", loop / ours / LOOP_BAR, times, note),
        Case(
            f"{name}, vectorised",
            whole / ours / NUMPY_BAR,
            {"numpy": whole, "ours": ours},
            beside,
        ),
    ]


def _check_agreement(clicks: np.ndarray, items: np.ndarray, shards: Shards) -> None:
    """All have the same gradient before it is randomised."""
    model = ImplicitFactors(items, ALPHA, RIDGE)
    at = np.random.default_rng(2).integers(items.size, size=(TIMED, VOTES))
    found, x = model.gradients_at(shards, at.astype(np.int32)), model.users(shards)
    for baseline in (_everywhere, _where_sampled):
        expected = baseline(clicks, items, x, at)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    for own, p in zip(x, clicks, strict=True):
        np.testing.assert_allclose(own, _user(p, items), rtol=1e-9, atol=1e-12)


def _loop(clicks: np.ndarray, items: np.ndarray, rng: np.random.Generator) -> object:
    """Algorithm 2, lines 3 to 11."""
    total = np.zeros_like(items)
    for p in clicks:
        gradient = _gradient(p, items)
        for _ in range(VOTES):
            total += _algorithm_1(gradient, rng)
    return total


def _algorithm_1(gradient: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As printed: a matrix that is zero but for one number."""
    report = np.zeros_like(gradient)
    item, factor, value = _drawn(gradient, rng)
    report[item, factor] = value
    return report


def _thrifty_loop(
    clicks: np.ndarray, items: np.ndarray, rng: np.random.Generator
) -> object:
    """The same sum without a matrix for every bit."""
    total = np.zeros_like(items)
    for p in clicks:
        gradient = _gradient(p, items)
        for _ in range(VOTES):
            item, factor, value = _drawn(gradient, rng)
            total[item, factor] += value
    return total


def _drawn(
    gradient: np.ndarray, rng: np.random.Generator
) -> tuple[np.int64, np.int64, float]:
    """Algorithm 1, lines 2 to 10."""
    (n_items, factors), chance = gradient.shape, np.exp(EPSILON)
    item, factor = rng.integers(n_items), rng.integers(factors)
    value = np.clip(gradient[item], -1.0, 1.0)[factor]
    one = (value * (chance - 1) + chance + 1) / (2 * chance + 2)
    constant = B * gradient.size
    return item, factor, constant if rng.random() < one else -constant


def _gradient(p: np.ndarray, items: np.ndarray) -> np.ndarray:
    x = _user(p, items)
    return -2.0 * ((1.0 + ALPHA * p) * (p - items @ x))[:, None] * x


def _user(p: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Equation 4; r is p, because nobody clicks twice."""
    c = 1.0 + ALPHA * p
    system = items.T @ (c[:, None] * items) + RIDGE * np.eye(items.shape[1])
    return np.linalg.solve(system, items.T @ (c * p))


def _vectorized(
    clicks: sp.csr_array,
    items: np.ndarray,
    rng: np.random.Generator,
    gradient: Gradient,
) -> np.ndarray:
    """The same for batches of users."""
    size, factors, total = items.size, items.shape[1], np.zeros(items.size)
    outer = (items[:, :, None] * items[:, None, :]).reshape(len(items), -1)
    common = items.T @ items + RIDGE * np.eye(factors)
    chance = np.exp(EPSILON)
    for start in range(0, clicks.shape[0], BATCH):
        some = clicks[start : start + BATCH]
        n = some.shape[0]
        systems = common + ALPHA * (some @ outer).reshape(n, factors, factors)
        right = (1.0 + ALPHA) * (some @ items)
        x = np.linalg.solve(systems, right[:, :, None])[:, :, 0]
        at = rng.integers(size, size=(n, VOTES))
        values = np.clip(gradient(some.toarray(), items, x, at), -1, 1)
        one = (values * (chance - 1) + chance + 1) / (2 * chance + 2)
        signs = np.where(rng.random(values.shape) < one, 1.0, -1.0)
        total += np.bincount(at.ravel(), signs.ravel(), minlength=size)
    return (B * size * total).reshape(items.shape)


def _everywhere(
    p: np.ndarray, items: np.ndarray, x: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Line 5 as it stands, then the coordinates that were drawn."""
    residuals = -2.0 * (1.0 + ALPHA * p) * (p - x @ items.T)
    whole = (residuals[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return np.take_along_axis(whole, at, 1)


def _where_sampled(
    p: np.ndarray, items: np.ndarray, x: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """The same numbers, no others."""
    item, factor = np.divmod(at, items.shape[1])
    rows = np.arange(len(x))[:, None]
    p, scores = p[rows, item], np.einsum("nf,nkf->nk", x, items[item])
    return -2.0 * (1.0 + ALPHA * p) * (p - scores) * x[rows, factor]


def _step(items: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    for _ in range(METHOD.server_steps):
        items = items - 1e-3 * (gradient + 2 * METHOD.ridge * items)
    return items


def _simulation(users: int) -> Simulation:
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, ITEMS + 1) ** 0.7
    drawn = rng.choice(ITEMS, users * EVENTS, p=chance / chance.sum())
    owners = np.repeat(np.arange(users), EVENTS)
    log = Interactions.of_columns(owners, drawn, n_users=users, n_items=ITEMS)
    return Simulation(
        METHOD,
        Plan(users, rounds=20),
        Catalog.of_ids([str(i) for i in range(ITEMS)]),
        Profiles(Strings.of(str(i) for i in range(users))),
        Shards.of(log.distinct()),
        Key.from_seed(0),
    )


BAR = Bar(6, "FMF-LDP epoch: shares of 500x the loop and of 8x numpy", 1.0, measure)
