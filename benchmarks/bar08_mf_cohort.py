"""Bar 8: a cohort of matrix factorisation, SGD on touched rows, against the loop.

A round of DPMF for 100 clients: one local pass of SGD, the whole update clipped to a
norm, and the sum. The loop does it as Algorithm 1 of McMahan et al. 2018 reads, in
numpy: one client after the other has a copy of the item matrix, takes a step for one
example after the other on the row that it touches, and finds what has changed, its
norm, the clip and the sum. Both take the same examples in the same order and steps in
double precision. Ours then sends updates in float32, as DPMF does; in float64 sums and
users' vectors agree to 1e-9, which is checked on all clients before anything is timed.

Beside it, without a bar, a thrifty loop that copies and adds only the touched rows.
Histories are invented and as long as those of MovieLens 1M; both sizes of the catalog
have a bar, and the ratio shown is over it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bar import Bar, Case
from benchmarks.timing import fastest
from tacit.data.federated_data import FederatedData
from tacit.keys import Key, Keys
from tacit.mechanisms.clipping import clip_by_norm
from tacit.models.matrix_factorization import Examples, Schedule, train
from tacit.models.mult_vae import Held
from tacit.tree import Array, Tree

CLIENTS, FACTORS, CLIP = 100, 20, 0.1
MOST, NEGATIVES, SCHEDULE = 100, 3, Schedule()  # items as in DPMF; one pass
BARS = {3_700: 18, 50_000: 30}  # items of the catalog: times the loop

Answer = tuple[Array, Array]  # the sum, and every user's vector
Client = tuple[Array, Array, Array]  # its vector; rows and targets of its examples


def measure(quick: bool) -> list[Case]:
    clients = CLIENTS // 10 if quick else CLIENTS
    with threadpool_limits(1):  # the loop's products are so small that two are slower
        return [_case(n_items, bar, clients) for n_items, bar in BARS.items()]


def _case(n_items: int, bar: float, clients: int) -> Case:
    round_ = Round(n_items, clients)
    round_.check_equal()
    runs = {"loop": round_.loop, "thrifty loop": round_.thrifty, "ours": round_.ours}
    best = fastest(runs, repeats=7)
    times, thrifty = best["loop"] / best["ours"], best["thrifty loop"] / best["ours"]
    return Case(
        f"{clients} clients × {n_items:,} items × {FACTORS} factors, over {bar}x",
        times / bar,
        best,
        f"{times:.1f}x, bar {bar}; a thrifty loop {thrifty:.1f}x",
    )


class Round:
    """One round of a cohort, in three ways."""

    def __init__(self, n_items: int, clients: int) -> None:
        draws = np.random.default_rng(0)
        held = _held(draws, n_items, clients)
        self.examples = Examples.of(
            held, most=MOST, negatives=NEGATIVES, keys=_keys(0, clients)
        )
        self.items = 0.1 * draws.standard_normal((n_items, FACTORS))
        self.bias = draws.random(n_items)
        self.users = 0.1 * draws.standard_normal((clients, FACTORS))
        self.keys = _keys(1, clients)

    def ours(self, dtype: str = "float32") -> Answer:
        users, moved = train(
            self.items,
            self.bias,
            self.users,
            self.examples,
            schedule=SCHEDULE,
            keys=self.keys,
            dtype=dtype,
        )
        return clip_by_norm(Tree({"V": moved}), CLIP).sum()["V"], users

    def loop(self) -> Answer:
        """One client after the other; each has the whole matrix."""
        total, users = np.zeros_like(self.items), []
        for user, rows, targets in self._clients():
            v = self.items.copy()
            user = _trained(v, user, rows, targets)
            moved = v - self.items
            total += moved * _shrunk(moved)
            users.append(user)
        return total, np.array(users)

    def thrifty(self) -> Answer:
        """One client after the other; each has the rows that it touches."""
        total, users = np.zeros_like(self.items), []
        for client, each in enumerate(self._clients(by_slot=True)):
            user, slots, targets = each
            touched = self.examples.rows[client]
            touched = touched[touched >= 0]
            before = self.items[touched]
            v = before.copy()
            user = _trained(v, user, slots, targets)
            moved = v - before
            total[touched] += moved * _shrunk(moved)
            users.append(user)
        return total, np.array(users)

    def _clients(self, *, by_slot: bool = False) -> Iterator[Client]:
        """Each client's vector and examples, in the order that ours has too."""
        order = self.examples.order(self.keys.at("order", 0))
        ends = self.examples.offsets
        targets = self.examples.labels - self.bias[self.examples.items]
        for client, user in enumerate(self.users):
            own = order[ends[client] : ends[client + 1]]
            places = self.examples.slots[own]
            rows = places if by_slot else self.examples.rows[client, places]
            yield user, rows, targets[own]

    def check_equal(self) -> None:
        """Refuse to time what does not give the same sum and the same users."""
        ours = self.ours("float64")
        for other in (self.loop(), self.thrifty()):
            for mine, theirs in zip(ours, other, strict=True):
                away = np.abs(mine - theirs).max()
                assert away <= 1e-9, f"they differ by {away}"


def _trained(v: Array, user: Array, rows: Array, targets: Array) -> Array:
    """The vector after one step per example; rows of `v` move in place."""
    rate, ridge = SCHEDULE.rate, SCHEDULE.ridge
    for row, target in zip(rows.tolist(), targets.tolist(), strict=True):
        own = v[row]
        error = target - own @ user
        step = rate * (error * own - ridge * user)
        own += rate * (error * user - ridge * own)
        user = user + step
    return user


def _shrunk(moved: Array) -> float:
    """What a clip multiplies an update by."""
    return min(1.0, CLIP / max(float(np.linalg.norm(moved)), 1e-12))


def _held(draws: np.random.Generator, n_items: int, clients: int) -> Held:
    """Histories as long as in MovieLens 1M: at least 20, most about 96, some 1,000."""
    lengths = np.maximum(20, draws.lognormal(np.log(96), 1.06, clients)).astype(int)
    histories = [
        draws.choice(n_items, min(n, n_items // 2), replace=False).tolist()
        for n in lengths
    ]
    world = FederatedData.of_histories(histories, n_items=n_items)
    return Held.of(world.shards, np.arange(n_items))


def _keys(seed: int, clients: int) -> Keys:
    return Key.from_seed(seed).each(np.arange(clients))


BAR = Bar(8, "MF cohort of 100, SGD on touched rows, against the loop", 1.0, measure)
