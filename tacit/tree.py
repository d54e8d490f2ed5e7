"""Array trees: what a cohort of clients computed, a leaf for each named part.

Axis 0 of every leaf is the client. A leaf is `Dense`, or `Factored` where a client's
array is a short sum of outer products, or `Symmetric` where it is one of squares: then
norms, scaling, sums and inner products come from the factors and the array itself is
never written down.

The server's own values have no client axis and are plain mappings, `Arrays`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Shaped
from numpy.typing import ArrayLike, NDArray

from tacit import arrays
from tacit.errors import BadValue

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Dense:
    """One array a client, written out."""

    values: Shaped[np.ndarray, "clients ..."]

    def __post_init__(self) -> None:
        if self.values.ndim == 0:
            raise BadValue("a leaf needs a client axis; a single number has none")

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
        return Dense(self.values * _as_float(factors, self.values).reshape(shape))

    def sum(self) -> Array:
        """The sum over clients, exact for integers, in float64 for floats."""
        wide = np.int64 if _is_whole(self.values.dtype) else np.float64
        return np.asarray(self.values.sum(axis=0, dtype=wide))

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
        return self.values.reshape(len(self), math.prod(self.shape))


@dataclass(frozen=True, eq=False)
class Factored:
    """A sum of outer products a client: sum over r of left[r] right[r]ᵀ."""

    left: Shaped[np.ndarray, "clients rank rows"]
    right: Shaped[np.ndarray, "clients rank columns"]

    def __post_init__(self) -> None:
        left, right = self.left.shape, self.right.shape
        if not len(left) == len(right) == 3 or left[:2] != right[:2]:
            raise BadValue(
                f"factors of shape {left} and {right}; needed are "
                "(clients, rank, rows) and (clients, rank, columns)"
            )

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
        left, right = self.left.astype(np.float64), self.right.astype(np.float64)
        product = (left @ left.swapaxes(1, 2)) * (right @ right.swapaxes(1, 2))
        # Rounding may leave a tiny negative where the products cancel.
        return np.maximum(product.sum(axis=(1, 2)), 0.0)

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Factored:
        """Each client's array times that client's factor, on the left side."""
        factor = _as_float(factors, self.left)
        return Factored(self.left * factor[:, None, None], self.right)

    def sum(self) -> Array:
        """The sum over clients as one GEMM; no client's array is written down.

        Exact for integers. The GEMM of float32 factors runs in float32, twice as fast:
        each entry is off by about 1e-7 of the sum of its terms' sizes.
        """
        left, right = (_flat_rank(f.astype(self._dtype)) for f in self.parts.values())
        total = left.T @ right
        return total if _is_whole(total.dtype) else total.astype(np.float64)

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients: (A Aᵀ) ∘ (B Bᵀ), summed over ranks."""
        a, b = (_flat_rank(f.astype(np.float64)) for f in self.parts.values())
        clients, rank, _ = self.left.shape
        product = (a @ a.T) * (b @ b.T)
        return product.reshape(clients, rank, clients, rank).sum(axis=(1, 3))

    def dense(self) -> Dense:
        """The same arrays written out."""
        left, right = (f.astype(self._dtype) for f in self.parts.values())
        return Dense(left.swapaxes(1, 2) @ right)

    def map(self, change: Callable[[Array], Array]) -> Factored:
        """The leaf with `change` applied to each stored factor."""
        return Factored(change(self.left), change(self.right))

    @property
    def _dtype(self) -> np.dtype[Any]:
        """What products are computed in: int64 for integers, else as the factors."""
        both = np.result_type(self.left, self.right)
        return np.dtype(np.int64) if _is_whole(both) else both


@dataclass(frozen=True, eq=False)
class Symmetric:
    """Half of a sum of squares a client: Z = sum over r of root[r] root[r]ᵀ.

    The half is Z_ij for i < j and Z_ii / sqrt(2), by rows: every pair once, and its
    norm is that of Z over sqrt(2), so one row cannot weigh more on the diagonal.
    """

    root: Shaped[np.ndarray, "clients rank side"]

    def __post_init__(self) -> None:
        if self.root.ndim != 3 or _is_whole(self.root.dtype):
            raise BadValue(
                f"roots of shape {self.root.shape} and type {self.root.dtype}; needed "
                "are floats of (clients, rank, side)"
            )

    def __len__(self) -> int:
        return len(self.root)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of one client's half, if it were written out."""
        side = self.root.shape[2]
        return (side * (side + 1) // 2,)

    @property
    def parts(self) -> dict[str, Array]:
        """What travels, by suffix."""
        return {"#root": self.root}

    def squared_norms(self) -> Float64[np.ndarray, "clients"]:
        """The squared norm of each client's half."""
        root = self.root.astype(np.float64, copy=False)
        if root.shape[1] == 1:  # the same, three times faster
            return np.einsum("crs,crs->c", root, root) ** 2 / 2
        inner = root @ root.swapaxes(1, 2)
        return np.einsum("crs,crs->c", inner, inner) / 2

    def scale(self, factors: Shaped[np.ndarray, "clients"]) -> Symmetric:
        """Each client's array times that client's factor, which is not negative."""
        if (factors < 0).any():
            raise BadValue("a sum of squares cannot be scaled by a negative factor")
        factor = np.sqrt(_as_float(factors, self.root))
        return Symmetric(self.root * factor[:, None, None])

    def sum(self) -> Array:
        """The half of the sum over clients, as one product of half the usual cost."""
        flat = _flat_rank(np.ascontiguousarray(self.root, np.float64))
        return halved(flat.T @ flat)  # numpy sees the square and computes half of it

    def gram(self) -> Float64[np.ndarray, "clients clients"]:
        """The inner products between clients' halves."""
        clients, rank, _ = self.root.shape
        flat = _flat_rank(self.root.astype(np.float64))
        product = (flat @ flat.T) ** 2 / 2
        return product.reshape(clients, rank, clients, rank).sum(axis=(1, 3))

    def dense(self) -> Dense:
        """The same halves written out."""
        whole = self.root.swapaxes(1, 2) @ self.root
        rows, columns = np.triu_indices(self.root.shape[2])
        half = whole[:, rows, columns]
        half[:, rows == columns] *= math.sqrt(0.5)
        return Dense(half)

    def map(self, change: Callable[[Array], Array]) -> Symmetric:
        """The leaf with `change` applied to its roots."""
        return Symmetric(change(self.root))


def halved(whole: Float64[np.ndarray, "side side"]) -> Float64[np.ndarray, "half"]:
    """The half of a symmetric matrix, read from its upper triangle."""
    half = whole.reshape(-1)[_upper(len(whole))]
    half[_diagonal(len(whole))] *= math.sqrt(0.5)
    return half


def mirrored(half: Float64[np.ndarray, "half"]) -> Float64[np.ndarray, "side side"]:
    """The symmetric matrix of a half; noise on the diagonal grows by sqrt(2)."""
    side = math.isqrt(2 * len(half))
    whole = np.zeros((side, side))
    whole.reshape(-1)[_upper(side)] = half
    whole += np.triu(whole, 1).T
    whole[np.diag_indices(side)] *= math.sqrt(2.0)
    return whole


@lru_cache(maxsize=2)  # every chunk of a sum asks for the same
def _upper(side: int) -> Int64[np.ndarray, "half"]:
    """Where the upper triangle stands in a matrix, by rows."""
    rows, columns = np.triu_indices(side)
    return rows * side + columns


def _diagonal(side: int) -> Int64[np.ndarray, "side"]:
    """Where the diagonal stands in a half."""
    rows = np.arange(side)
    return rows * side - rows * (rows - 1) // 2


Leaf = Dense | Factored | Symmetric


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

    def norms(self) -> Float64[np.ndarray, "clients"]:
        """The joint L2 norm of each client's whole tree."""
        squares = (leaf.squared_norms() for leaf in self.leaves.values())
        return np.sqrt(sum(squares, start=np.zeros(len(self))))

    def scale(self, factors: float | ArrayLike) -> Tree:
        """Each client's whole tree times that client's factor, or all times one.

        Floats keep their type; integers become float64.
        """
        f = np.asarray(factors)
        if f.shape not in ((), (len(self),)):
            raise BadValue(f"factors of shape {f.shape} for {len(self)} clients")
        f = np.broadcast_to(f, len(self))
        return Tree({name: leaf.scale(f) for name, leaf in self.leaves.items()})

    def sum(self) -> dict[str, Array]:
        """The sum over clients: dense, int64 for integers, float64 for floats."""
        return {name: leaf.sum() for name, leaf in self.leaves.items()}

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
            copy = mine.copy()
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
    """Refuse names that would be mistaken for a part of a leaf: 'V#left'."""
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


def _zip(change: Callable[..., Array], trees: Sequence[Tree]) -> Tree:
    """Apply `change` to the stored arrays that have the same place in every tree."""
    for tree in trees[1:]:
        if _layout(tree) != _layout(trees[0]):
            raise BadValue(f"trees differ: {_layout(trees[0])} and {_layout(tree)}")

    def leaf(name: str) -> Leaf:
        parts = [tree.leaves[name].parts for tree in trees]
        stored = [change(*(part[suffix] for part in parts)) for suffix in parts[0]]
        return type(trees[0].leaves[name])(*stored)

    return Tree({name: leaf(name) for name in trees[0].leaves})


def _layout(tree: Tree) -> dict[str, tuple[int, ...]]:
    """The shape of one client's stored arrays, by name and suffix."""
    return {
        name + suffix: stored.shape[1:]
        for name, leaf in tree.leaves.items()
        for suffix, stored in leaf.parts.items()
    }


def _as_float(factors: Array, like: Array) -> Array:
    """Factors in the type of the floats they scale; float64 for integers."""
    return factors.astype(np.float64 if _is_whole(like.dtype) else like.dtype)


def _flat_rank(factor: Shaped[np.ndarray, "clients rank n"]) -> Array:
    clients, rank, n = factor.shape
    return factor.reshape(clients * rank, n)


def _is_whole(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iub"
