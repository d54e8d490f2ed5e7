"""Updates planted where a client's own would be, before `privatize`.

A canary is a client whose raw update is one huge coordinate, a different one for each,
so that its part in a sum can be told from everybody else's. What it sends, how that is
summed and what is added is the method's own code and the runtime's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float, Int64

from tacit.keys import Key, Keys
from tacit.method import Clients, Method, Updates
from tacit.transport.channels import Carrier, Delivery, RoundContext, Sum
from tacit.transport.messages import Broadcast, Reports
from tacit.tree import (
    Array,
    Arrays,
    Dense,
    Factored,
    Grouped,
    Leaf,
    Symmetric,
    TouchedRows,
    Tree,
)
from tacit.tree.grouped import Whole
from tacit.tree.touched_rows import NO_ROW

Numbers = Int64[np.ndarray, "clients"]
Plant = Callable[[int, Numbers], Tree]  # the updates of clients in a round


def planted(method: Method, updates: Plant) -> Method:
    """The same method, except that clients hold planted updates."""
    return cast(Method, _Planted(method, updates))


class _Planted:
    """Everything but `local_update` is the method's own, bound to the method."""

    def __init__(self, method: Method, updates: Plant) -> None:
        self._method, self._updates = method, updates

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def local_update(
        self, broadcast: Broadcast, clients: Clients, shards: object, keys: Keys
    ) -> tuple[Tree, Updates]:
        return clients.state, Updates(self._updates(broadcast.round, clients.numbers))


@dataclass(frozen=True, eq=False)
class Canaries:
    """Updates of one huge coordinate per client, a different one for each."""

    template: Tree  # one client's update
    coordinates: Int64[np.ndarray, "canaries"]  # of all leaves end to end; -1: none
    sizes: Mapping[str, float]  # of the coordinate, by leaf

    def __call__(self, numbers: Numbers) -> Tree:
        """The updates of the clients with these numbers, one row per client."""
        leaves: dict[str, Leaf] = {}
        for name, leaf, start in _laid_out(self.template):
            inside = self.coordinates[numbers] - start
            rows = np.flatnonzero((inside >= 0) & (inside < math.prod(leaf.shape)))
            hot = _OneHot(len(numbers), rows, inside[rows], self.sizes[name])
            leaves[name] = hot.like(leaf)
        return Tree(leaves)


def draw_coordinates(template: Tree, n: int, key: Key) -> Int64[np.ndarray, "canaries"]:
    """Distinct coordinates of an update, every set equally likely.

    At most half of them, so that the others show the noise: then some canaries get none
    and say nothing.
    """
    total = sum(math.prod(leaf.shape) for leaf in template.leaves.values())
    drawn = key.generator().permutation(total)[: min(n, total // 2)]
    return np.concatenate([drawn, np.full(n - len(drawn), -1)]).astype(np.int64)


def probes(template: Tree, sizes: Mapping[str, float], key: Key) -> Tree:
    """Updates an adversary would try: every leaf at once, from small to not finite.

    Sizes are in units of the sensitivity; whole-numbered leaves are filled to the same
    number. One row per probe.
    """
    rows = [
        _filled(template, {n: size * factor for n, size in sizes.items()}, key.at(i))
        for i, factor in enumerate((0.5, 1.0, 3.0, 1e3, 1e6, math.inf, math.nan))
    ]
    alone = [
        _filled(template, {n: 1e3 * s * (n == name) for n, s in sizes.items()}, key)
        for name in sizes
    ]
    return Tree.concatenate([*rows, *alone])


@dataclass(frozen=True)
class Only:
    """A ledger that lets these clients take part and no others."""

    present: Bool[np.ndarray, "clients"]

    def permits(
        self,
        clients: Numbers,
        *,
        round: int,
        multipliers: Float[np.ndarray, "clients"] | None = None,
    ) -> Bool[np.ndarray, "clients"]:
        """Whether each client is one of those that may take part."""
        return self.present[clients]


class Tapped:
    """A channel that also keeps what the server got to see."""

    def __init__(self, channel: Carrier) -> None:
        self.channel, self.name, self.delivers = channel, channel.name, channel.delivers
        self.totals: list[Arrays] = []

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """The delivery of the channel inside, whose total is kept."""
        delivery = self.channel.carry(chunks, context)
        assert isinstance(delivery, Sum)
        self.totals.append(delivery.total)
        return delivery


def _laid_out(template: Tree) -> Iterator[tuple[str, Leaf, int]]:
    """Each leaf with its first coordinate when all are laid end to end."""
    start = 0
    for name, leaf in template.leaves.items():
        yield name, leaf, start
        start += math.prod(leaf.shape)


@dataclass(frozen=True, eq=False)
class _OneHot:
    """Arrays of zeros with one coordinate set in some of the rows."""

    clients: int
    rows: Int64[np.ndarray, "rows"]
    places: Int64[np.ndarray, "rows"]  # the coordinate within the leaf
    size: float

    def like(self, leaf: Leaf) -> Leaf:
        if not isinstance(leaf, Grouped):
            return self._whole(leaf)
        size = math.prod(leaf.inner.shape)
        shares = self._set(leaf.shares, self.places // size, 1.0)
        inner = replace(self, places=self.places % size)
        return Grouped(inner._whole(leaf.inner), shares)

    def _whole(self, leaf: Whole) -> Whole:
        if isinstance(leaf, Dense):
            return Dense(self._set(leaf.values, self.places, self.size))
        if isinstance(leaf, Symmetric):
            return Symmetric(self._root(leaf.root))
        if isinstance(leaf, TouchedRows):
            return self._touched(leaf)
        columns = leaf.shape[1]
        # The first of the outer products has it all; the others are zero.
        left = self._set(leaf.left, self.places // columns, self.size)
        right = self._set(leaf.right, self.places % columns, 1.0)
        return Factored(left, right)

    def _touched(self, leaf: TouchedRows) -> TouchedRows:
        """The first of the touched rows has the coordinate; there is no other."""
        row, column = np.divmod(self.places, leaf.shape[1])
        rows = np.full((self.clients, leaf.rows.shape[1]), NO_ROW, leaf.rows.dtype)
        rows[self.rows, 0] = row
        return TouchedRows(rows, self._set(leaf.values, column, self.size), leaf.n_rows)

    def _root(self, like: Array) -> Array:
        """A root whose square is set at one pair of items and at their diagonals."""
        side = like.shape[2]
        rows, columns = (index[self.places] for index in np.triu_indices(side))
        entry = math.sqrt(self.size)  # the product of two entries is the coordinate
        return np.maximum(self._set(like, rows, entry), self._set(like, columns, entry))

    def _set(self, like: Array, places: Array, value: float) -> Array:
        flat = np.zeros((self.clients, math.prod(like.shape[1:])), like.dtype)
        flat[self.rows, places] = _within(value, like.dtype)
        return flat.reshape(self.clients, *like.shape[1:])


def _filled(template: Tree, norms: Mapping[str, float], key: Key) -> Tree:
    """One client whose leaves point anywhere and have about these norms."""

    def full(like: Array, norm: float, generator: np.random.Generator) -> Array:
        shape, n = (1, *like.shape[1:]), max(1, math.prod(like.shape[1:]))
        if like.dtype.kind != "f":  # whole numbers: all alike, rounded up, or full
            entry = norm / math.sqrt(n) if math.isfinite(norm) else math.inf
            return np.full(shape, _within(np.ceil(entry), like.dtype), like.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            drawn = generator.standard_normal(shape) * (norm / math.sqrt(n))
            return np.asarray(drawn, like.dtype)

    def whole(leaf: Whole, norm: float, draws: np.random.Generator) -> Whole:
        if isinstance(leaf, Dense):
            return Dense(full(leaf.values, norm, draws))
        if isinstance(leaf, Symmetric):
            return Symmetric(full(leaf.root, math.sqrt(norm), draws))
        if isinstance(leaf, TouchedRows):
            # Some rows twice, some that are none: whoever lies may name any number.
            shape = (1, *leaf.rows.shape[1:])
            rows = draws.integers(NO_ROW, leaf.n_rows, shape, np.int32, endpoint=True)
            return TouchedRows(rows, full(leaf.values, norm, draws), leaf.n_rows)
        right = full(leaf.right, 1.0, draws)
        return Factored(full(leaf.left, norm, draws), right)

    leaves: dict[str, Leaf] = {}
    for name, leaf in template.leaves.items():
        draws = key.at(name).generator()
        if isinstance(leaf, Grouped):
            inner = whole(leaf.inner, norms[name], draws)
            leaves[name] = Grouped(inner, full(leaf.shares, 1.0, draws))
        else:
            leaves[name] = whole(leaf, norms[name], draws)
    return Tree(leaves)


def _within(value: float, dtype: np.dtype[Any]) -> Any:
    """The value, or the largest that the type can hold."""
    if dtype.kind == "b":
        return bool(value)
    most = np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max
    return dtype.type(min(value, most))
