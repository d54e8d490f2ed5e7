"""Array trees: what a cohort of clients computed, a leaf for each named part.

Axis 0 of every leaf is the client. A leaf is `Dense`, or `Factored` where a client's
array is a short sum of outer products: then norms, scaling, sums and inner products come
from the factors and the array itself is never written down.

The server's own values have no client axis and are plain mappings, `Arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped
from numpy.typing import ArrayLike, NDArray

from tacit.errors import BadValue

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Dense:
    """One array a client, written out."""

    values: Shaped[np.ndarray, "clients ..."]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one client's array."""
        return self.values.shape[1:]

    @property
    def parts(self) -> dict[str, Array]:
        """What travels, by suffix."""
        return {"": self.values}

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared L2 norm of each client's array."""
        flat = self._flat()
        return np.einsum("ij,ij->i", flat, flat, dtype=np.float64)

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Dense:
        """Each client's array times that client's factor."""
        shape = (-1,) + (1,) * len(self.shape)
        factor = factors.astype(np.result_type(self.values, np.float32))
        return Dense(self.values * factor.reshape(shape))

    def sum(self) -> Array:
        """The sum over clients, exact for integers, in float64 for floats."""
        return self.values.sum(axis=0, dtype=_accumulator(self.values))

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients."""
        flat = self._flat().astype(np.float64)
        return flat @ flat.T

    def dense(self) -> Dense:
        """Itself."""
        return self

    def map(self, change: Callable[[Array], Array]) -> Dense:
        """The leaf with `change` applied to what is stored."""
        return Dense(change(self.values))

    def _flat(self) -> Array:
        return self.values.reshape(len(self.values), -1)


@dataclass(frozen=True)
class Factored:
    """A sum of outer products a client: sum over r of left[r] right[r]ᵀ."""

    left: Shaped[np.ndarray, "clients rank rows"]
    right: Shaped[np.ndarray, "clients rank columns"]

    def __len__(self) -> int:
        return len(self.left)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one client's array, if it were written out."""
        return self.left.shape[2], self.right.shape[2]

    @property
    def parts(self) -> dict[str, Array]:
        """What travels, by suffix."""
        return {"#left": self.left, "#right": self.right}

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared Frobenius norm of each client's array, from the factors."""
        left = np.einsum("irm,ism->irs", self.left, self.left, dtype=np.float64)
        right = np.einsum("irm,ism->irs", self.right, self.right, dtype=np.float64)
        # Rounding may leave a tiny negative where the products cancel.
        return np.maximum((left * right).sum(axis=(1, 2)), 0.0)

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Factored:
        """Each client's array times that client's factor, on the left side."""
        factor = factors.astype(np.result_type(self.left, np.float32))
        return Factored(self.left * factor[:, None, None], self.right)

    def sum(self) -> Array:
        """The sum over clients as one GEMM; no client's array is written down."""
        left = self.left.reshape(-1, self.left.shape[2])
        right = self.right.reshape(-1, self.right.shape[2])
        return (left.T @ right).astype(_accumulator(left))

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients: (A Aᵀ) ∘ (B Bᵀ), summed over ranks."""
        clients, rank, _ = self.left.shape
        a = self.left.reshape(clients * rank, -1).astype(np.float64)
        b = self.right.reshape(clients * rank, -1).astype(np.float64)
        product = (a @ a.T) * (b @ b.T)
        return product.reshape(clients, rank, clients, rank).sum(axis=(1, 3))

    def dense(self) -> Dense:
        """The same arrays written out."""
        return Dense(np.einsum("irm,irn->imn", self.left, self.right))

    def map(self, change: Callable[[Array], Array]) -> Factored:
        """The leaf with `change` applied to each stored factor."""
        return Factored(change(self.left), change(self.right))


Leaf = Dense | Factored


@dataclass(frozen=True)
class Tree:
    """Named leaves of the same clients."""

    leaves: Mapping[str, Leaf]

    def __post_init__(self) -> None:
        sizes = {name: len(leaf) for name, leaf in self.leaves.items()}
        if len(set(sizes.values())) > 1:
            raise BadValue(f"leaves disagree on the number of clients: {sizes}")

    @classmethod
    def dense(cls, **values: Array) -> Tree:
        """A tree of dense leaves."""
        return cls({name: Dense(value) for name, value in values.items()})

    def __len__(self) -> int:
        """The number of clients; 0 for a tree without leaves."""
        return next((len(leaf) for leaf in self.leaves.values()), 0)

    def __getitem__(self, name: str) -> Array:
        """The values of a dense leaf."""
        leaf = self.leaves[name]
        if not isinstance(leaf, Dense):
            raise BadValue(f"leaf '{name}' is factored; read it from .leaves")
        return leaf.values

    def norms(self) -> Float64[np.ndarray, "clients"]:
        """The joint L2 norm of each client's whole tree."""
        squares = [leaf.squared_norms() for leaf in self.leaves.values()]
        return np.sqrt(np.sum(squares, axis=0))

    def scale(self, factors: ArrayLike) -> Tree:
        """Each client's whole tree times that client's factor."""
        f = np.asarray(factors)
        return Tree({name: leaf.scale(f) for name, leaf in self.leaves.items()})

    def sum(self) -> dict[str, Array]:
        """The sum over clients: dense, int64 for integers, float64 for floats."""
        return {name: leaf.sum() for name, leaf in self.leaves.items()}

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The joint inner products between clients' whole trees."""
        grams = [leaf.gram() for leaf in self.leaves.values()]
        return np.asarray(np.sum(grams, axis=0))

    def to_dense(self) -> Tree:
        """The same tree with every leaf written out."""
        return Tree({name: leaf.dense() for name, leaf in self.leaves.items()})

    def select(self, rows: ArrayLike | slice) -> Tree:
        """The tree of some of the clients, in the order given."""
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        return Tree(
            {name: leaf.map(lambda a: a[index]) for name, leaf in self.leaves.items()}
        )

    def replace_rows(self, rows: ArrayLike, other: Tree) -> Tree:
        """A copy in which clients `rows` have the values of `other`."""
        index = np.asarray(rows)

        def replaced(mine: Array, theirs: Array) -> Array:
            new = mine.copy()
            new[index] = theirs
            return new

        return _zip(replaced, [self, other])

    @staticmethod
    def concatenate(trees: Sequence[Tree]) -> Tree:
        """The clients of several trees, one after another."""
        return _zip(lambda *arrays: np.concatenate(arrays), trees)


def add(totals: Iterable[Arrays]) -> dict[str, Array]:
    """The sum of several mappings of equal names and shapes."""
    result: dict[str, Array] = {}
    for arrays in totals:
        for name, value in arrays.items():
            result[name] = result[name] + value if name in result else value
    return result


def _zip(change: Callable[..., Array], trees: Sequence[Tree]) -> Tree:
    """Apply `change` to the stored arrays that have the same place in every tree."""

    def leaf(name: str) -> Leaf:
        parts = [tree.leaves[name].parts for tree in trees]
        stored = [change(*(part[suffix] for part in parts)) for suffix in parts[0]]
        return type(trees[0].leaves[name])(*stored)

    return Tree({name: leaf(name) for name in trees[0].leaves})


def _accumulator(values: Array) -> type[np.generic]:
    is_integer = np.issubdtype(values.dtype, np.integer) or values.dtype == np.bool_
    return np.int64 if is_integer else np.float64
