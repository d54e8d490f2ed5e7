"""The noisy sum of a release: whole numbers from the reports to the noise.

    report   scaled to its bound, then written in whole steps  (tacit.exact_sum)
    sum      of whole numbers: the same in any order, chunk and kernel
    noise    a rounded Gaussian of AES-256, under a secret of the round
    total    the noisy whole numbers over the steps per unit: post-processing

Leaves that share a bound share a limit L on their joint sum of squares, in steps:

    dense      L as in `tacit.exact_sum`
    factored   an outer product a bᵀ is written as rint or trunc of a and of b, which
               are made equally long: its squared norm is Σa² Σb², exactly
    touched    rows of a matrix: written out, then as dense
    symmetric  z zᵀ likewise as q of z, of norm Σq². Its half has noise σ on every pair
               and √2 σ on the diagonal: the half of norm Σq² / √2 plus noise σ

Products of whole numbers and their sums stay below 2⁵³, where a matrix product in
double precision is exact. Each report is compared with L once it is whole numbers: one
that is longer, for whatever reason, counts as zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64

from tacit.errors import Refused
from tacit.exact_sum import Noise, limit, steps_per_unit
from tacit.mechanisms.clipping import SLACK, joint_norms
from tacit.mechanisms.sum_mechanism import Bounded, GaussianMechanism, SumMechanism
from tacit.transport.messages import Layout, Slot
from tacit.tree import (
    Array,
    Arrays,
    Dense,
    Factored,
    Grouped,
    Leaf,
    SparseFactored,
    Symmetric,
    TouchedRows,
    Tree,
)
from tacit.tree.grouped import Whole
from tacit.tree.stored import Change
from tacit.tree.symmetric import diagonal, upper

_MOST_FACTOR_STEPS = 2**12  # per unit of each factor; a product then has 2**24
_ROOM = 2.0**-8  # by which products may pass c² before they are rounded towards zero
_EXACT = 2**53  # whole numbers below it are exact in double precision
_ULPS = 1e-12  # relative; more than double precision loses on the way to σ

_CACHED = 2**18  # numbers of a block of reports: two megabytes

Rows = Bool[np.ndarray, "clients"]
Squares = Float64[np.ndarray, "clients"]


def exact_total(
    trees: Iterable[Tree], mechanism: SumMechanism, layout: Layout, secret: bytes
) -> dict[str, Array]:
    """The noisy sum of reports as float64; the noise follows from the secret alone."""
    return exact_noise(exact_sum(trees, mechanism, layout), mechanism, layout, secret)


def exact_sum(
    trees: Iterable[Tree], mechanism: SumMechanism, layout: Layout
) -> dict[str, Array]:
    """The sum of reports in whole steps, before the noise; sums of parts add up."""
    codes = _codes(mechanism, layout)
    totals = {n: np.zeros(slot.shape, np.int64) for n, slot in layout.slots.items()}
    for tree in trees:
        for code in codes:
            code.add_to(totals, tree)
    return totals


def exact_noise(
    totals: Arrays, mechanism: SumMechanism, layout: Layout, secret: bytes
) -> dict[str, Array]:
    """The noisy sum in units, from the whole steps of everybody's reports."""
    noise = Noise(secret)
    found: dict[str, Array] = {}
    for code in _codes(mechanism, layout):
        found |= code.released(totals, noise)
    return {name: found[name] for name in layout.slots}


def longest_sums(
    totals: Arrays, mechanism: SumMechanism, layout: Layout
) -> Iterator[tuple[float, float]]:
    """How long sums in whole steps are, and how long one report can be, in pairs.

    One pair for the leaves that share a bound. By the triangle inequality the sum of n
    reports is no longer than n times the longest report, √L.
    """
    for code in _codes(mechanism, layout):
        yield code.length_of(totals), math.sqrt(code.twice_limit / 2)


def check_exact(mechanism: SumMechanism, layout: Layout) -> None:
    """Refuse what could not be summed exactly, before anyone is asked."""
    for code in _codes(mechanism, layout):
        _ = code.twice_limit  # refuses too many numbers


def _codes(mechanism: SumMechanism, layout: Layout) -> list[_Code]:
    if not isinstance(mechanism, GaussianMechanism):
        raise Refused(
            f"{type(mechanism).__name__} has no form in whole numbers, which a release "
            "needs; use Gaussian noise"
        )
    return [
        _Code(part, {name: layout.slots[name] for name in part.leaves})
        for part in mechanism.bounded([*layout.slots])
    ]


@dataclass(frozen=True)
class _Code:
    """How leaves that share a bound are written in whole steps."""

    part: Bounded
    slots: Mapping[str, Slot]

    # steps, limit and noise

    @cached_property
    def steps(self) -> float:
        """Steps per unit of the leaves as they are summed."""
        if any(_is_product(slot) for slot in self.slots.values()):
            return self.factor_steps**2
        return steps_per_unit(self.part.bound)

    @cached_property
    def factor_steps(self) -> float:
        """Steps per unit of each factor of a product."""
        return steps_per_unit(self.longest_factor, most=_MOST_FACTOR_STEPS)

    @property
    def longest_factor(self) -> float:
        """The bound on each factor of a product, which is their square."""
        is_square = any(slot.side is not None for slot in self.slots.values())
        return math.sqrt(self.part.bound * (math.sqrt(2.0) if is_square else 1.0))

    @cached_property
    def twice_limit(self) -> int:
        """2 L, since the squared norm of a half is half a whole number."""
        slots = [*self.slots.values()]
        bound = self.steps * self.part.bound
        if self.part.has_smaller:  # rounded towards zero: no report grows
            return 2 * math.floor((bound * (1 + SLACK)) ** 2)
        if len(slots) == 1 and _is_product(slots[0]) and slots[0].side is not None:
            side, steps = slots[0].side, self.factor_steps
            return limit(self.longest_factor, side, steps=steps) ** 2
        if any(_is_product(slot) for slot in slots):
            return 2 * math.floor(bound**2 * (1 + _ROOM))
        n = sum(math.prod(_one_group(slot)) for slot in slots)
        return 2 * limit(self.part.bound, n, steps=self.steps)

    @cached_property
    def deviation(self) -> int:
        """σ: whole steps, no less than the promised multiple of √L."""
        multiplier = self.part.deviation / self.part.bound
        return math.ceil(multiplier * math.sqrt(self.twice_limit / 2) * (1 + _ULPS))

    # sum

    def add_to(self, totals: dict[str, Array], tree: Tree) -> None:
        """Add the reports in whole steps."""
        if len(tree) * self.twice_limit**0.5 >= _EXACT:
            raise Refused(f"{len(tree):,} reports at once are too many to add exactly")
        for some in self._in_blocks(tree):
            for name, leaf in self._encoded(some).items():
                totals[name] += _whole_sum(leaf)

    def _in_blocks(self, tree: Tree) -> Iterator[Tree]:
        """So few clients at once that their numbers stay in the cache between passes.

        Sums of whole numbers are exact, so it does not matter. Products are summed by
        one matrix product, which wants all of them.
        """
        if any(slot.rank is not None for slot in self.slots.values()):
            yield tree
            return
        one = sum(math.prod(slot.shape) for slot in self.slots.values())
        step = max(1, _CACHED // max(1, one))
        for start in range(0, len(tree), step):
            yield tree.select(slice(start, start + step))

    def _encoded(self, tree: Tree) -> dict[str, Leaf]:
        """Every report in whole steps and within the limit, whatever was sent."""
        with np.errstate(all="ignore"):  # what overflows will be too long
            scaled = self._in_steps(tree)
        made = _each(scaled, np.trunc if self.part.has_smaller else np.rint)
        # Rounded to nearest, a report may pass the limit: then towards zero, which
        # never makes it longer; if it is still too long, it was not honest and is zero.
        for change in (np.trunc, np.zeros_like):
            is_long = self._is_long(made)
            if not is_long.any():
                break
            _overwrite(made, is_long, scaled, change)
        return made

    def _in_steps(self, tree: Tree) -> dict[str, Leaf]:
        """Every report, no longer than its bound, not rounded yet."""
        own = Tree({n: _plain(tree.leaves[n], slot) for n, slot in self.slots.items()})
        bounded = _within(own, self.part.bound).leaves
        return {name: self._scaled(leaf) for name, leaf in bounded.items()}

    def _scaled(self, leaf: Leaf) -> Leaf:
        if isinstance(leaf, Grouped):
            inner = self._scaled(leaf.inner)
            assert not isinstance(inner, Grouped)
            return Grouped(inner, _one_hot(leaf.shares))
        if isinstance(leaf, Factored):
            leaf = _evened(leaf)
        steps = self.steps if isinstance(leaf, Dense) else self.factor_steps
        return leaf.map(lambda stored: stored * steps)

    def _is_long(self, leaves: Mapping[str, Leaf]) -> Rows:
        """Which clients pass the limit, or have a NaN."""
        with np.errstate(all="ignore"):
            squares = [_twice_squares(leaf) for leaf in leaves.values()]
            # Not `>`: a comparison with NaN is false, and NaN must count as too long.
            return ~(np.sum(squares, axis=0) <= self.twice_limit)

    def length_of(self, totals: Arrays) -> float:
        """The joint norm of the leaves' sums, as the limit on a report counts it."""
        twice = 0.0
        for name, slot in self.slots.items():
            squares = totals[name].astype(np.float64) ** 2
            twice += 2.0 * float(squares.sum())
            if slot.side is not None and _is_product(slot):
                # A square has every pair twice and its diagonal once; L is of its half.
                twice -= float(squares[..., diagonal(slot.side)].sum())
        return math.sqrt(twice / 2)

    # noise

    def released(self, totals: Arrays, noise: Noise) -> dict[str, Array]:
        """The noisy totals, in units."""
        return {
            n: self._noisy(totals[n], slot, noise) for n, slot in self.slots.items()
        }

    def _noisy(self, total: Array, slot: Slot, noise: Noise) -> Array:
        variance = self.deviation**2
        if slot.side is None or not _is_product(slot):
            return (total + _drawn(noise, variance, total.shape)) / self.steps
        found = np.empty(total.shape)
        on = diagonal(slot.side)
        is_pair = np.ones(total.shape[-1], bool)
        is_pair[on] = False
        pairs, squares = total[..., is_pair], total[..., on]
        found[..., is_pair] = pairs + _drawn(noise, variance, pairs.shape)
        found[..., on] = squares + _drawn(noise, 2 * variance, squares.shape)
        found[..., on] *= math.sqrt(0.5)  # as in a half: post-processing
        return found / self.steps


# --- Leaves ---------------------------------------------------------------------------


def _is_product(slot: Slot) -> bool:
    """Whether the leaf is summed from its factors; longer sums are written out."""
    return slot.rank == 1


def _one_group(slot: Slot) -> tuple[int, ...]:
    return slot.shape if slot.groups is None else slot.shape[1:]


def _plain(leaf: Leaf, slot: Slot) -> Leaf:
    """The leaf in double precision; several products and rows are written out."""
    if isinstance(leaf, Grouped):
        inner = _plain(leaf.inner, slot)
        assert not isinstance(inner, Grouped)
        return Grouped(inner, leaf.shares.astype(np.float64, copy=False))
    if isinstance(leaf, TouchedRows):  # before `map`, which would change row numbers
        leaf = leaf.dense()
    leaf = leaf.map(lambda stored: stored.astype(np.float64, copy=False))
    return leaf if isinstance(leaf, Dense) or _is_product(slot) else leaf.dense()


def _within(tree: Tree, bound: float) -> Tree:
    """Each report scaled to its bound; one that is not finite counts as zero."""
    norms = joint_norms(tree)
    is_finite = np.isfinite(norms)
    if not is_finite.all():
        tree = Tree(_each(tree.leaves, lambda stored: _only(stored, is_finite)))
        norms = np.where(is_finite, norms, 0.0)
    if (norms <= bound).all():
        return tree
    return tree.scale(bound / np.maximum(norms, bound))


def _only(stored: Array, rows: Rows) -> Array:
    """A copy in which all but clients `rows` have zeros."""
    shape = (-1,) + (1,) * (stored.ndim - 1)
    return np.where(rows.reshape(shape), stored, 0.0)


def _evened(leaf: Factored) -> Factored:
    """The same products with both factors as long as each other."""
    left, right = (np.linalg.norm(f, axis=2) for f in (leaf.left, leaf.right))
    is_there = (left > 0) & (right > 0)
    ratio = np.sqrt(np.divide(right, left, out=np.zeros_like(left), where=is_there))
    back = np.divide(1.0, ratio, out=np.zeros_like(ratio), where=ratio > 0)
    return Factored(leaf.left * ratio[..., None], leaf.right * back[..., None])


def _one_hot(shares: Array) -> Array:
    """The shares of clients in exactly one group; zeros for all other claims."""
    is_one = (shares == 1).sum(axis=1) == 1
    is_rest = (shares == 0).sum(axis=1) == shares.shape[1] - 1
    return np.where((is_one & is_rest)[:, None], shares, 0.0)


def _each(leaves: Mapping[str, Leaf], change: Change) -> dict[str, Leaf]:
    return {name: leaf.map(change) for name, leaf in leaves.items()}


def _overwrite(
    leaves: Mapping[str, Leaf], rows: Rows, source: Mapping[str, Leaf], change: Change
) -> None:
    """Let `change` make the leaves of clients `rows` from the source, in place."""
    where = np.flatnonzero(rows)
    for name, leaf in leaves.items():
        own = source[name].parts
        for suffix, part in leaf.parts.items():
            part[where] = change(own[suffix][where])


def _twice_squares(leaf: Leaf) -> Squares:
    """Twice each client's squared norm: exact up to 2⁵³, and so up to any limit."""
    if isinstance(leaf, Grouped):
        return _squares(leaf.shares) * _twice_squares(leaf.inner)
    if isinstance(leaf, Factored | SparseFactored):
        return 2 * _squares(leaf.left) * _squares(leaf.right)
    if isinstance(leaf, Symmetric):
        return _squares(leaf.root) ** 2
    return 2 * _squares(leaf.values)


def _squares(stored: Array) -> Squares:
    flat = stored.reshape(len(stored), math.prod(stored.shape[1:]))
    return np.asarray(np.einsum("ij,ij->i", flat, flat))


def _whole_sum(leaf: Leaf) -> Int64[np.ndarray, "..."]:
    """The sum over clients; of a symmetric leaf the upper triangle as it is."""
    if isinstance(leaf, Grouped):
        inner, shares = leaf.inner, leaf.shares
        members = [np.flatnonzero(shares[:, group]) for group in range(shares.shape[1])]
        return np.stack([_whole_sum(_rows(inner, rows)) for rows in members])
    total = upper(leaf.square()) if isinstance(leaf, Symmetric) else leaf.sum()
    return total.astype(np.int64)


def _rows(leaf: Whole, rows: Int64[np.ndarray, "rows"]) -> Whole:
    return leaf.map(lambda stored: stored[rows])


def _drawn(noise: Noise, variance: int, shape: tuple[int, ...]) -> Array:
    return noise.draw(variance, math.prod(shape)).reshape(shape)
