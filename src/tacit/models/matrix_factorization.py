"""Matrix factorisation by SGD on clients: a user's vector, and item rows it touches.

    V, b    items × factors, one row v per item; a fixed bias per item
    u       the user's vector
    y       1 for an item that the user has, 0 for one that was drawn as a negative
    η, λ    rate, ridge

    for one example after the other, in a random order:
        e = y - b - u·v
        u, v = u + η (e v - λ u), v + η (e u - λ v)

Only the rows of a client's examples can move, so a client
keeps copies of those and of nothing else, and its update of V has no other rows.

With V fixed the best u for the same loss, with the negatives in expectation, has a
closed form, which ranks for everybody, in the training or not:

    (Σ v vᵀ over held items + w VᵀV + κ I) u = Σ (1 - b) v over held items - w Vᵀ b

for w = (negatives per item held) (items held) / (items), κ = λ (examples).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Float64, Int32, Int64

from tacit import check
from tacit.data.ragged import Ragged, offsets_of, skip_taken
from tacit.kernels import dispatch
from tacit.keys import Keys
from tacit.models.mult_vae.inputs import Held
from tacit.tree import TouchedRows
from tacit.tree.touched_rows import NO_ROW

Items = Float64[np.ndarray, "items factors"]
Bias = Float64[np.ndarray, "items"]
Users = Float64[np.ndarray, "clients factors"]
Targets = Float64[np.ndarray, "examples"]
Moved = Float[np.ndarray, "clients most factors"]
Order = Int64[np.ndarray, "examples"]
Orders = Int64[np.ndarray, "epochs examples"]


@dataclass(frozen=True)
class Schedule:
    """How a client trains: passes over its examples, rate and ridge."""

    epochs: int = 1
    rate: float = 0.05
    ridge: float = 0.01

    def __post_init__(self) -> None:
        check.count(epochs=self.epochs)
        check.positive(rate=self.rate)
        check.not_negative(ridge=self.ridge)


@dataclass(frozen=True, eq=False)
class Examples:
    """Items and labels of each client, end to end, and the rows that they touch."""

    offsets: Int64[np.ndarray, "clients_and_one"]
    slots: Int64[np.ndarray, "examples"]  # the place in the client's list of rows
    labels: Float64[np.ndarray, "examples"]
    rows: Int32[np.ndarray, "clients most"]  # rising; NO_ROW where there are fewer

    @classmethod
    def of(cls, held: Held, *, most: int, negatives: int, keys: Keys) -> Examples:
        """At most `most` items held, and for each `negatives` that are not, drawn anew.

        Whoever holds more has some of them, drawn anew. Whoever holds every item gets
        no negatives.
        """
        owners, items, labels = _labelled(held, most, negatives, keys)
        cells, place = np.unique(owners * held.n_items + items, return_inverse=True)
        owner_of, item_of = np.divmod(cells, max(1, held.n_items))
        starts = offsets_of(np.bincount(owner_of, minlength=len(held)))
        room = most_rows(held.n_items, most=most, negatives=negatives)
        rows = np.full((len(held), room), NO_ROW, np.int32)
        rows[owner_of, np.arange(len(cells)) - starts[owner_of]] = item_of
        by_owner = np.argsort(owners, kind="stable")
        return cls(
            offsets_of(np.bincount(owners, minlength=len(held))),
            (place - starts[owners])[by_owner],
            labels[by_owner],
            rows,
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def items(self) -> Int32[np.ndarray, "examples"]:
        """The item of each example."""
        owners = np.repeat(np.arange(len(self)), self.lengths)
        return self.rows[owners, self.slots]

    @property
    def lengths(self) -> Int64[np.ndarray, "clients"]:
        """How many examples each client has."""
        return np.diff(self.offsets)

    def order(self, keys: Keys) -> Order:
        """A random order of each client's own examples, clients one after another."""
        draws = keys.uniform_ragged(self.lengths)
        if not dispatch.pays("matrix_factorization.shuffle", len(draws)):
            return _shuffled(draws, self.offsets)
        from tacit.kernels.matrix_factorization import shuffle  # loads numba

        out = np.empty(len(draws), np.int64)
        shuffle(draws, self.offsets, out)
        return out


def _shuffled(
    draws: Float64[np.ndarray, "examples"], offsets: Int64[np.ndarray, "ends"]
) -> Order:
    """The shuffle of Fisher and Yates in numpy: a swap of all clients at once."""
    lengths = np.diff(offsets)
    order = np.arange(len(draws))
    for i in range(int(lengths.max(initial=0)) - 1, 0, -1):
        first = offsets[:-1][lengths > i]
        a, b = first + i, first + (draws[first + i] * (i + 1)).astype(np.int64)
        order[a], order[b] = order[b], order[a]
    return order


def most_rows(n_items: int, *, most: int, negatives: int) -> int:
    """How many rows a client can touch that learns from `most` items it holds."""
    return min(n_items, most * (1 + negatives))


def _labelled(
    held: Held, most: int, negatives: int, keys: Keys
) -> tuple[
    Int64[np.ndarray, "examples"],
    Int64[np.ndarray, "examples"],
    Float64[np.ndarray, "examples"],
]:
    """Owner, item and label of every example."""
    chosen = _at_most(held, most, keys.at("items"))
    free = held.n_items - held.lengths
    counts = np.where(free > 0, negatives * np.minimum(held.lengths, most), 0)
    who = np.repeat(np.arange(len(held)), counts)
    # The n-th item that is not held; `skip_taken` steps over those that are.
    numbers = (keys.at("negatives").uniform_ragged(counts) * free[who]).astype(np.int64)
    drawn = skip_taken(numbers, who, Ragged(held.offsets, held.columns))
    return (
        np.concatenate([held.owners[chosen], who]),
        np.concatenate([held.columns[chosen], drawn]),
        np.concatenate([np.ones(len(chosen)), np.zeros(len(drawn))]),
    )


def _at_most(held: Held, most: int, keys: Keys) -> Int64[np.ndarray, "chosen"]:
    """Which entries stay: at most `most` of each client, all equally likely."""
    if (held.lengths <= most).all():
        return np.arange(len(held.columns))
    draws, owners = keys.bits_ragged(held.lengths), held.owners
    order = np.lexsort((draws, owners))
    rank = np.arange(len(order)) - held.offsets[owners]
    return np.sort(order[rank < most])


def train(
    items: Items,
    bias: Bias,
    users: Users,
    examples: Examples,
    *,
    schedule: Schedule,
    keys: Keys,
    dtype: str = "float64",
) -> tuple[Users, TouchedRows]:
    """The users' vectors after training, and how the rows that they touch moved.

    Steps are in double precision; `dtype` is that of what leaves a client.

    A client whose numbers overflow, which a hostile V can bring about, has a vector of
    zeros and moves nothing: what it keeps must not spoil its next round.
    """
    targets = examples.labels - bias[examples.items]
    epochs = range(schedule.epochs)
    orders = np.stack([examples.order(keys.at("order", epoch)) for epoch in epochs])
    after = users.copy()
    is_small = not dispatch.pays("matrix_factorization.sgd", items.size)
    trained = _trained_plain if is_small else _trained_compiled
    moved = np.empty((*examples.rows.shape, items.shape[1]), dtype)
    trained(items, after, examples, targets, orders, schedule, moved)
    return after, TouchedRows(examples.rows, moved, len(items))


def _trained_compiled(
    items: Items,
    users: Users,
    examples: Examples,
    targets: Targets,
    orders: Orders,
    schedule: Schedule,
    moved: Moved,
) -> None:
    """All passes of every client: `users` in place, how rows moved into `moved`."""
    from tacit.kernels.matrix_factorization import sgd  # loads numba

    sgd(
        *(items, users, examples.rows),
        *(examples.offsets, examples.slots, targets, orders),
        *(float(schedule.rate), float(schedule.ridge), moved),
    )


def _trained_plain(
    items: Items,
    users: Users,
    examples: Examples,
    targets: Targets,
    orders: Orders,
    schedule: Schedule,
    moved: Moved,
) -> None:
    """The same in numpy: a step of all clients at once."""
    values = items[
        examples.rows
    ]  # (clients, most, factors); any row where there is none
    rate, ridge, lengths = schedule.rate, schedule.ridge, examples.lengths
    for order in orders:
        for place in range(int(lengths.max(initial=0))):
            clients = np.flatnonzero(lengths > place)
            at = order[examples.offsets[clients] + place]
            u, v = users[clients], values[clients, examples.slots[at]]
            error = (targets[at] - np.einsum("cf,cf->c", u, v))[:, None]
            users[clients] = u + rate * (error * v - ridge * u)
            values[clients, examples.slots[at]] = v + rate * (error * u - ridge * v)
    values -= items[examples.rows]  # exactly zero where there is no row
    # A sum is finite only if all of its numbers are.
    spoiled = ~np.isfinite(users.sum(axis=1) + values.sum(axis=(1, 2)))
    users[spoiled], values[spoiled] = 0.0, 0.0
    moved[:] = values


def fold_in(
    items: Items, bias: Bias, held: Held, *, negatives: int, ridge: float
) -> Users:
    """The best vector of each user with the items fixed; zeros without a history."""
    n, factors = held.lengths, items.shape[1]
    ones = np.ones(len(held.columns))
    shape = (len(held), held.n_items)
    x = sp.csr_array((ones, held.columns, held.offsets), shape)
    outer = (items[:, :, None] * items[:, None, :]).reshape(-1, factors**2)
    w = negatives * n / max(1, held.n_items)
    kappa = np.maximum(ridge * n * (1 + negatives), 1e-9)  # never a singular system
    systems = (x @ outer).reshape(-1, factors, factors)
    systems += w[:, None, None] * (items.T @ items)
    systems += kappa[:, None, None] * np.eye(factors)
    right = x @ ((1 - bias)[:, None] * items) - w[:, None] * (bias @ items)
    return np.asarray(np.linalg.solve(systems, right[:, :, None])[:, :, 0])


def popularity(
    counts: Float64[np.ndarray, "items"], *, negatives: int, floor: float
) -> Float64[np.ndarray, "items"]:
    """How likely an example with each item is one of an item held.

    With f an item's share of all that is held and M items, that is f / (f + ρ / M) for
    ρ negatives per item held. Counts below `floor`, the deviation of their noise, are
    read as the floor, so that noise is never read as popularity.
    """
    read = np.maximum(counts, max(floor, 1e-9))
    over_mean = read * len(read) / read.sum()
    return np.asarray(over_mean / (over_mean + max(negatives, 1)))
