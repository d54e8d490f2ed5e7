"""Bounds on what one client can contribute: joint norms over whole trees.

A whole update, all its leaves together, is scaled by min(1, clip / norm). Leaf by leaf
would allow sqrt(leaves) clips. The clip is public: a constant, or a value that noise
protected. One computed from a client's own update tells about that update, and no
sensitivity follows from it.

An update that is not finite counts as zero: one NaN would tell everyone that its sender
took part. So does one so large or so unevenly factored that floats cannot scale it
within `SLACK`: every result is measured, none is trusted.

To bound how much history a client uses, before any norm, there is `Shards.at_most`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64

from tacit.errors import BadValue
from tacit.tree import (
    Array,
    Dense,
    Factored,
    Grouped,
    Leaf,
    SparseFactored,
    Tree,
)
from tacit.tree.sparse_factored import CANCELLED
from tacit.tree.touched_rows import ROWS

_EPS = float(np.finfo(np.float64).eps)
SLACK = 1e-6  # by how much, relatively, rounding may leave a norm above its clip

Norms = Float64[np.ndarray, "clients"]
Clip = float | Norms


def clip_by_norm(tree: Tree, clip: Clip) -> Tree:
    """Each client's tree with a joint L2 norm of at most `clip`: one, or one each.

    Guarantee: removing a client moves the sum by at most `clip * (1 + SLACK)`.
    Assumes: `clip` is public.
    Source: Abadi et al. 2016, Algorithm 1; McMahan et al. 2018 for whole updates.

    Floats keep their type, except that float16 becomes float32 (a half is too coarse to
    keep the bound); integers become float64. Factored leaves stay factored.
    """
    return _clipped(tree, clip, joint_norms)


def clip_by_l1_norm(tree: Tree, clip: Clip) -> Tree:
    """As `clip_by_norm`, for the joint L1 norm; factored leaves are written out.

    Guarantee: removing a client moves the sum by at most `clip * (1 + SLACK)` in L1.
    Assumes: `clip` is public.
    Source: Dwork, McSherry, Nissim and Smith 2006.
    """
    with np.errstate(all="ignore"):  # factors may overflow; the norms will tell
        dense = tree.to_dense()
    return _clipped(dense, clip, joint_l1_norms)


def joint_norms(tree: Tree) -> Norms:
    """The joint L2 norm of each client, or a little more; not finite if broken.

    Exact for dense leaves. From factors, rounding can hide a norm where outer products
    cancel, so there an upper bound on what was lost is added.
    """
    with np.errstate(all="ignore"):
        squares = [_largest_norms(leaf) ** 2 for leaf in tree.leaves.values()]
        return np.sqrt(sum(squares, start=np.zeros(len(tree))))


def joint_l1_norms(tree: Tree) -> Norms:
    """The joint L1 norm of each client, all leaves written out."""
    with np.errstate(all="ignore"):
        sizes = [
            np.abs(leaf.dense().values, dtype=np.float64)
            for leaf in tree.leaves.values()
        ]
        sums = [s.sum(axis=tuple(range(1, s.ndim))) for s in sizes]
        return sum(sums, start=np.zeros(len(tree)))


def _clipped(tree: Tree, clip: Clip, norms_of: Callable[[Tree], Norms]) -> Tree:
    limits = _limits(clip, len(tree))
    tree = _without_halves(tree)
    norms = norms_of(tree)
    is_beyond = ~(norms <= limits * (1 + SLACK))
    if not is_beyond.any() and _is_float(tree):
        return tree  # nothing to copy; what was clipped once stays as it is
    tree = _zeroed(tree, ~np.isfinite(norms))
    factors = np.divide(limits, norms, out=np.ones(len(tree)), where=is_beyond)
    scaled = tree.scale(factors)
    return _zeroed(scaled, ~(norms_of(scaled) <= limits * (1 + SLACK)))


def _is_float(tree: Tree) -> bool:
    """Whether scaling would leave the types as they are."""
    kinds = (
        np.dtype(dtype).kind
        for name, (dtype, _) in tree.stored().items()
        if not name.endswith(ROWS)  # numbers of rows are never scaled
    )
    return all(kind == "f" for kind in kinds)


def _limits(clip: Clip, clients: int) -> Norms:
    limits = np.asarray(clip, np.float64)
    if limits.shape not in ((), (clients,)):
        raise BadValue(f"clips of shape {limits.shape} for {clients} clients")
    if not (np.isfinite(limits) & (limits > 0)).all():
        raise BadValue(f"clip={clip} must be finite and > 0")
    return np.broadcast_to(limits, clients)


def _largest_norms(leaf: Leaf) -> Norms:
    if isinstance(leaf, Grouped):
        return _largest_norms(Dense(leaf.shares)) * _largest_norms(leaf.inner)
    norms = np.sqrt(leaf.squared_norms())
    if isinstance(leaf, SparseFactored):
        return _largest_sparse_norms(leaf, norms)
    if not isinstance(leaf, Factored):
        return norms  # squares do not cancel
    # Terms may cancel, their rounding errors do not (Higham 2002, section 3.1): those
    # of the norm, which is computed in float64, and those of the stored factors.
    terms = norms if leaf.left.shape[1] == 1 else _sizes_of_terms(leaf)
    steps = sum(leaf.shape) + leaf.left.shape[1]
    lost = steps * _EPS * terms**2
    return np.sqrt(norms**2 + lost) + 4 * _precision(leaf) * terms


def _largest_sparse_norms(leaf: SparseFactored, norms: Norms) -> Norms:
    """The same where the left side is not written out.

    A sum takes the common row off after the rest was added, and rounds by both.
    """
    lost = (sum(leaf.shape) + 1) * _EPS * CANCELLED * norms**2
    return np.sqrt(norms**2 + lost) + 4 * _EPS * (norms + 2 * leaf.common_norms())


def _sizes_of_terms(leaf: Factored) -> Norms:
    """The sum of the norms of a client's outer products: never below its norm."""
    left, right = (
        np.sqrt(np.einsum("crn,crn->cr", factor, factor, dtype=np.float64))
        for factor in (leaf.left, leaf.right)
    )
    return np.einsum("cr,cr->c", left, right)


def _precision(leaf: Factored) -> float:
    both = np.result_type(leaf.left, leaf.right)
    return float(np.finfo(both).eps) if both.kind == "f" else 0.0


def _without_halves(tree: Tree) -> Tree:
    def widened(stored: Array) -> Array:
        return stored.astype(np.float32) if stored.dtype == np.float16 else stored

    if not any(dtype == "float16" for dtype, _ in tree.stored().values()):
        return tree
    return Tree({name: leaf.map(widened) for name, leaf in tree.leaves.items()})


def _zeroed(tree: Tree, rows: Bool[np.ndarray, "clients"]) -> Tree:
    """The tree with nothing at all from clients `rows`: 0 times NaN is NaN."""
    if not rows.any():
        return tree

    def emptied(stored: Array) -> Array:
        copy = stored.copy()
        copy[rows] = 0
        return copy

    return Tree({name: leaf.map(emptied) for name, leaf in tree.leaves.items()})
