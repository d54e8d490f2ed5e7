"""Array trees: what a cohort of clients computed, one leaf per named array.

Axis 0 of every leaf is the client. A leaf is `Dense`, or `Factored` where a client's
array is a short sum of outer products, or another of the leaves beside this module:
then norms, scaling, sums and inner products come from the factors and the array itself
is never written down.

The server's own values have no client axis and are plain mappings, `Arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.buffers import empty
from tacit.errors import BadValue
from tacit.tree.dense import Dense
from tacit.tree.grouped import Leaf
from tacit.tree.stored import Array, Arrays, Stored


@dataclass(frozen=True, eq=False)
class Tree:
    """Named leaves of the same clients."""

    leaves: Mapping[str, Leaf]

    def __post_init__(self) -> None:
        check_names(self.leaves)
        sizes = {name: len(leaf) for name, leaf in self.leaves.items()}
        if len(set(sizes.values())) > 1:
            raise BadValue(f"leaves disagree on the number of clients: {sizes}")

    @classmethod
    def dense(cls, **values: Array) -> Tree:
        """A tree of dense leaves."""
        return cls({name: Dense(np.asarray(value)) for name, value in values.items()})

    def __len__(self) -> int:
        """The number of clients; 0 for a tree without leaves."""
        return next((len(leaf) for leaf in self.leaves.values()), 0)

    def __getitem__(self, name: str) -> Array:
        """The values of a dense leaf."""
        leaf = self.leaves.get(name)
        if leaf is None:
            raise BadValue(f"no leaf '{name}'; known: {', '.join(self.leaves)}")
        if not isinstance(leaf, Dense):
            raise BadValue(f"leaf '{name}' is factored; read it from .leaves")
        return leaf.values

    def stored(self) -> Stored:
        """The type and shape of every stored array, without the client axis."""
        return {
            name + suffix: kind
            for name, leaf in self.leaves.items()
            for suffix, kind in leaf.stored.items()
        }

    def norms(self) -> Float64[np.ndarray, "clients"]:
        """The joint L2 norm of each client's whole tree."""
        squares = (leaf.squared_norms() for leaf in self.leaves.values())
        return np.sqrt(sum(squares, start=np.zeros(len(self))))

    def scale(self, factors: float | ArrayLike) -> Tree:
        """Each client's whole tree times that client's factor, or all times one.

        Floats keep their type; integers become float64.
        """
        f = np.asarray(factors)  # (): one for all; (clients,): one per client
        if f.shape not in ((), (len(self),)):
            raise BadValue(f"factors of shape {f.shape} for {len(self)} clients")
        f = np.broadcast_to(f, len(self))
        return Tree({name: leaf.scale(f) for name, leaf in self.leaves.items()})

    def sum(self) -> dict[str, Array]:
        """The sum over clients: dense, int64 for integers, float64 for floats.

        Except that a factored leaf of float32 stays float32.
        """
        return {name: leaf.sum() for name, leaf in self.leaves.items()}

    def zero(self) -> dict[str, Array]:
        """The sum over no clients: zeros with the types and shapes of `sum`."""
        return {
            name: np.zeros(leaf.shape, leaf.total_type)
            for name, leaf in self.leaves.items()
        }

    def add_to(self, total: dict[str, Array]) -> None:
        """Add the sum over clients to a total of the same names and shapes, in place.

        One leaf after the other: beside the total there is one leaf's sum at a time.
        """
        found = {name: leaf.shape for name, leaf in self.leaves.items()}
        if found != {name: value.shape for name, value in total.items()}:
            raise BadValue(f"totals differ: {[*total]} and {found}")
        for name, leaf in self.leaves.items():
            leaf.add_to(total[name])

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The joint inner products between clients' whole trees."""
        grams = (leaf.gram() for leaf in self.leaves.values())
        return sum(grams, start=np.zeros((len(self), len(self))))

    def to_dense(self) -> Tree:
        """The same tree with every leaf written out."""
        return Tree({name: leaf.dense() for name, leaf in self.leaves.items()})

    def select(self, rows: ArrayLike | slice) -> Tree:
        """The tree of some of the clients, in the order given."""
        if not self.leaves:
            return self  # clients who keep nothing
        index = rows if isinstance(rows, slice) else arrays.rows(rows, len(self))
        return Tree(
            {name: leaf.map(lambda a: a[index]) for name, leaf in self.leaves.items()}
        )

    def replace_rows(self, rows: ArrayLike, other: Tree) -> Tree:
        """A copy in which clients `rows` have the values of `other`."""
        if not self.leaves and not other.leaves:
            return self  # clients who keep nothing
        if not self.leaves:
            raise BadValue(f"clients who keep nothing were given {[*other.leaves]}")
        index = arrays.rows(rows, len(self))
        if len(index) != len(other):
            raise BadValue(f"{len(index)} rows to replace, {len(other)} given")

        def replaced(mine: Array, theirs: Array) -> Array:
            if not np.can_cast(theirs.dtype, mine.dtype, "same_kind"):
                raise BadValue(f"{theirs.dtype} does not fit into {mine.dtype}")
            copy = mine.copy()  # trees are values: a checkpoint may hold the old one
            copy[index] = theirs
            return copy

        return _zip(replaced, [self, other])

    @staticmethod
    def concatenate(trees: Sequence[Tree]) -> Tree:
        """The clients of several trees, one after another."""
        if not trees:
            raise BadValue("nothing to concatenate: no tree was given")
        return _zip(lambda *stored: np.concatenate(stored), trees)


def check_names(leaves: Iterable[str]) -> None:
    """Refuse names that would be mistaken for a stored array of a leaf: 'V#left'."""
    for name in leaves:
        if "#" in name:
            raise BadValue(f"leaf '{name}' must not have '#' in its name")


def add(totals: Iterable[Arrays]) -> dict[str, Array]:
    """The sum of several mappings of equal names and shapes."""
    result: dict[str, Array] = {}
    for total in totals:
        shapes = {name: value.shape for name, value in total.items()}
        if result and shapes != {name: value.shape for name, value in result.items()}:
            raise BadValue(f"totals differ: {[*result]} and {shapes}")
        result = {k: result[k] + v if result else v for k, v in total.items()}
    return result


def divided(total: Arrays, by: float) -> dict[str, Array]:
    """Every array over one number; floats keep their type."""
    made = {}
    for name, value in total.items():
        kind = value.dtype if value.dtype.kind == "f" else np.dtype(np.float64)
        made[name] = np.divide(value, by, out=empty(value.shape, kind))
    return made


def _zip(change: Callable[..., Array], trees: Sequence[Tree]) -> Tree:
    """Apply `change` to the stored arrays of the same name and suffix in every tree."""
    for tree in trees[1:]:
        if _layout(tree) != _layout(trees[0]):
            raise BadValue(f"trees differ: {_layout(trees[0])} and {_layout(tree)}")

    def leaf(name: str) -> Leaf:
        parts = [tree.leaves[name].parts for tree in trees]
        stored = {s: change(*(part[s] for part in parts)) for s in parts[0]}
        return trees[0].leaves[name].with_parts(stored)

    return Tree({name: leaf(name) for name in trees[0].leaves})


def _layout(tree: Tree) -> dict[str, tuple[int, ...]]:
    """The shape of one client's stored arrays, by name and suffix."""
    return {name: shape for name, (_, shape) in tree.stored().items()}
