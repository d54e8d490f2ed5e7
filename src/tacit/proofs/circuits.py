"""What a proof says of a report: four circuits over a prime field.

    ball      x, any whole numbers with Σ x² ≤ L
    outer     X = z zᵀ, its upper triangle, of z with Σ z² ≤ L
    factors   X = q tᵀ of one vector (q, t) with Σ q² + Σ t² ≤ L
    flat      x_i ∈ {0, s}, with s ≤ m and s Σ x ≤ L

A client writes its report as a *measurement*, numbers modulo p:

    ball, outer, factors   [X] ‖ x ‖ bits(v) ‖ bits(u) ‖ [group] ‖ tests
    flat                   x ‖ bits(s) ‖ bits(m - s) ‖ bits(v) ‖ bits(u) ‖ [group]

v = Σ x² or s Σ x, and u = L - v; since both have few bits, v is at most L. `group` has
one bit per public group, of which one is set, and L = Σ b_g L_g: neither server learns
whose bound it is. Σ x² ≤ L modulo p says nothing yet of whole numbers, because squares
may wrap around p. So there are 100 tests ⟨x, ±1 or 0⟩ = t with -W < t ≤ W: a vector
that is too long passes each with a probability of at most ½. A test is the bits of
t + W - 1 and a mark that it passed.

Everything a circuit says is a sum of products. A *gadget* computes `chunk` products per
call; a circuit gives the inputs of all calls (`wires`) and, from their outputs, one
number that is zero if its statement holds (`values`). Both are affine in measurement
and outputs, so that servers can compute their shares from shares: `one` is what stands
for 1, which is ½ at each of two servers.

The symbols: n numbers under the norm test; L `limits`, one per group; W `reach`; ρ the
weights of the quadratic form; p the modulus. Joint randomness of a proof: r_bit,
r_test, r_sum, then ρ; in `flat` r_item, r_bit, r_sum.

Source: `ball` is PINE, draft-chen-cfrg-vdaf-pine-01 (Rothblum, Omri, Chen, Talwar 2023,
arXiv 2311.10237). `outer`, `factors`, `flat` and the groups are ours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int64

from tacit.errors import BadValue, Refused
from tacit.kernels import prime_field as kernels
from tacit.proofs.field import FIELD40, Field, Numbers

Whole = Int64[np.ndarray, "n"]  # a report, signed
Products = Int64[np.ndarray, "products"]  # X
Measurement = Int64[np.ndarray, "measured"]  # or its share, or its part up to the tests
Results = Int64[np.ndarray, "tests"]  # of the wraparound tests
Bits = Int64[np.ndarray, "bits"]
Joints = Int64[np.ndarray, "joint_proofs values"]  # of the last gadget's proofs
Wires = Int64[np.ndarray, "proofs calls arity"]
Outputs = Int64[np.ndarray, "proofs calls"]

_TEN_ALPHA = 87  # W covers 8.7 √L: an honest test fails with 2 exp(-8.7²)


@dataclass(frozen=True)
class Gadget:
    """Products that are computed alike, and how often they are proved.

    More than one proof has joint randomness of its own each: a client who tries hashes
    until they suit it needs luck in all of them.
    """

    proofs: int
    calls: int
    chunk: int  # products per call
    is_square: bool  # Σ f_j² instead of f_0 f_1 + f_2 f_3 + …

    @property
    def arity(self) -> int:
        """The inputs of a call."""
        return self.chunk if self.is_square else 2 * self.chunk

    @cached_property
    def points(self) -> int:
        """P: a power of two above the number of calls; point 0 has random values."""
        return 1 << self.calls.bit_length()

    @property
    def proof_size(self) -> int:
        """The numbers of one proof: values at point 0, coefficients."""
        return self.arity + 2 * self.points - 1

    @property
    def verifier_size(self) -> int:
        """The numbers of one answer: the circuit's value, wires and gadget at t."""
        return self.arity + 2


class Circuit(ABC):
    """What proving and checking need of a statement; see the module."""

    identity: int  # in the domain of every stream
    field: Field
    limits: tuple[int, ...]  # L of each public group
    tests: int = 0  # against wraparound; 0 where nothing can wrap around
    proofs: int  # of the last gadget, the one with joint randomness

    n_sums: int  # the first numbers of a measurement: those that are added up
    head: int  # the numbers of a measurement before the tests
    length: int  # the numbers of a measurement
    n_joint: int = 3  # the values of joint randomness of one proof
    gadgets: tuple[Gadget, ...]
    tested: slice = slice(0, 0)  # of the measurement: the numbers in the tests

    @abstractmethod
    def encode(self, report: Whole, *, group: int = 0) -> Measurement:
        """The measurement up to the tests; refuses a report beyond its bound."""

    @abstractmethod
    def wires(
        self,
        gadget: int,
        measurement: Measurement,
        results: Results,
        joints: Joints,
        *,
        one: int,
    ) -> Wires:
        """The inputs of every call of a gadget, for each of its proofs."""

    @abstractmethod
    def values(
        self,
        gadget: int,
        measurement: Measurement,
        joints: Joints,
        outputs: Outputs,
        *,
        one: int,
    ) -> list[int]:
        """The number that must be zero, for each proof of a gadget."""

    def answer(self, results: Results) -> Bits:
        """The measurement from the tests on, from their results."""
        return np.empty(0, np.int64)

    @property
    def largest(self) -> int:
        """The most that one report adds to a number of the sum."""
        return math.isqrt(max(self.limits))

    @property
    @abstractmethod
    def joint_degree(self) -> int:
        """The degrees of all joint randomness: a false statement holds for that / p."""

    @property
    def committed(self) -> slice:
        """What the randomness of the tests depends on."""
        return slice(self.tested.start, self.head)

    @property
    def n_groups(self) -> int:
        """The bits that choose a group: none where there is one group."""
        return len(self.limits) if len(self.limits) > 1 else 0

    def group_bits(self, group: int) -> list[int]:
        """One bit per group, of which one is set; none where there is one group."""
        if not 0 <= group < len(self.limits):
            raise BadValue(f"group={group} must be in [0, {len(self.limits)})")
        return [int(g == group) for g in range(self.n_groups)]

    def _chosen(self, of_groups: Sequence[int], hot: Bits, one: int) -> int:
        """Σ b_g L_g, or the one L there is."""
        if not self.n_groups:
            return of_groups[0] * one
        return sum(n * int(b) for n, b in zip(of_groups, hot, strict=True))

    def _weighted(self, terms: Sequence[int], r: int) -> int:
        """Σ r^i term_i modulo p."""
        total = 0
        for term in reversed(terms):
            total = (total * r + term) % self.field.modulus
        return total


# --- One bound on the sum of squares --------------------------------------------------


@dataclass(frozen=True)
class NormCircuit(Circuit):
    """Σ x² ≤ L, and what X has to do with x; see `Ball`, `Outer` and `TwoFactors`."""

    n: int
    limits: tuple[int, ...]
    _: KW_ONLY
    chunk: int = 50
    norm_chunk: int = 0  # ⌊√n⌋, unless it is named
    tests: int = 100
    passing: int = 0  # of the tests that have to pass: all, unless they are fewer
    proofs: int = 4
    norm_proofs: int = 1
    field: Field = FIELD40

    @cached_property
    def n_products(self) -> int:
        """The numbers of X."""
        return 0

    @cached_property
    def n_weights(self) -> int:
        """The numbers of ρ."""
        return 0

    def products(self, report: Whole) -> Products:
        """X of an honest report."""
        return np.empty(0, np.int64)

    def forms(self, measurement: Measurement, weights: Joints) -> list[int]:
        """The form of X that the product of both sums of x must be, for each proof."""
        return []

    def sides(self, x: Numbers, weights: Numbers) -> tuple[int, int]:
        """The two weighted sums of x whose product is a form of X."""
        raise NotImplementedError

    @cached_property
    def n_sums(self) -> int:  # type: ignore[override]
        """The numbers that are added up."""
        return self.n_products or self.n

    @cached_property
    def value_bits(self) -> int:
        """The bits of v, and of u."""
        return max(self.limits).bit_length()

    @cached_property
    def reach(self) -> int:
        """W: a power of two above 8.7 times the largest norm."""
        norm = math.isqrt(max(self.limits) - 1) + 1
        return 1 << (-(-_TEN_ALPHA * norm // 10)).bit_length()

    @cached_property
    def test_bits(self) -> int:
        """The bits of a test's result."""
        return (2 * self.reach - 1).bit_length()

    @cached_property
    def tested(self) -> slice:  # type: ignore[override]
        """The numbers under the norm test."""
        return slice(self.n_products, self.n_products + self.n)

    @cached_property
    def head(self) -> int:  # type: ignore[override]
        """The numbers before the tests."""
        return self.tested.stop + 2 * self.value_bits + self.n_groups

    @cached_property
    def length(self) -> int:  # type: ignore[override]
        """The numbers of a measurement."""
        return self.head + self.tests * (self.test_bits + 1)

    @cached_property
    def n_joint(self) -> int:  # type: ignore[override]
        """The values r_bit, r_test, r_sum and ρ."""
        return 3 + self.n_weights

    @property
    def joint_degree(self) -> int:
        """Bits, tests, the weights of the sum, and 2 of ρ."""
        return self.length - self.tested.stop + self.tests + 6

    @cached_property
    def _calls(self) -> tuple[int, int]:
        """Calls for bits, and those and the calls for tests."""
        bits = -(-(self.length - self.tested.stop) // self.chunk)
        return bits, bits + -(-self.tests // self.chunk)

    @cached_property
    def gadgets(self) -> tuple[Gadget, ...]:  # type: ignore[override]
        """The squares of x; and the products of all else."""
        chunk = self.norm_chunk or max(1, math.isqrt(self.n))
        calls = self._calls[1] + bool(self.n_products)
        return (
            Gadget(self.norm_proofs, -(-self.n // chunk), chunk, is_square=True),
            Gadget(self.proofs, calls, self.chunk, is_square=False),
        )

    def encode(self, report: Whole, *, group: int = 0) -> Measurement:
        """The measurement up to the tests; refuses a report beyond its bound."""
        hot, limit = self.group_bits(group), self.limits[group]
        if report.shape != (self.n,):
            raise BadValue(f"a report of shape {report.shape}, not ({self.n},)")
        norm = _sum_of_squares(report, limit)
        if norm > limit:
            raise BadValue(
                f"the sum of squares of the report, {norm}, must be <= {limit}: "
                "encode it to its bound first"
            )
        return self.head_of(report, norm, limit - norm, hot)

    def head_of(
        self, x: Whole, v: int, u: int, hot: Sequence[int], X: Products | None = None
    ) -> Measurement:
        """The measurement up to the tests with these claims, true or not."""
        width = self.value_bits
        claims = np.array([*to_bits(v, width), *to_bits(u, width), *hot])
        products = self.products(x) if X is None else X
        return np.concatenate([products, self.field.remainders(x), claims])

    def answer(self, results: Results) -> Bits:
        """The bits and the mark of each test."""
        shifted = (results + self.reach - 1) % self.field.modulus
        passed = shifted < 2 * self.reach
        needed = self.passing or self.tests
        if np.count_nonzero(passed) < needed:
            raise Refused(
                f"{np.count_nonzero(passed)} of {self.tests} wraparound tests passed, "
                f"and {needed} have to: draw fresh randomness and share again"
            )
        marks = passed & (np.cumsum(passed) <= needed)
        bits = shifted[:, None] >> np.arange(self.test_bits) & 1
        return np.concatenate([bits, marks[:, None]], axis=1).ravel()

    def wires(
        self,
        gadget: int,
        measurement: Measurement,
        results: Results,
        joints: Joints,
        *,
        one: int,
    ) -> Wires:
        """The inputs of every call of a gadget, for each of its proofs."""
        shape = self.gadgets[gadget]
        wires = np.zeros((shape.proofs, shape.calls * shape.arity), np.int64)
        if gadget == 0:
            wires[:, : self.n] = measurement[self.tested]
        else:
            self._fill(wires, measurement, results, joints, one)
        return wires.reshape(shape.proofs, shape.calls, shape.arity)

    def _fill(
        self,
        wires: Int64[np.ndarray, "proofs inputs"],
        measurement: Measurement,
        results: Results,
        joints: Joints,
        one: int,
    ) -> None:
        p, bits = self.field.modulus, measurement[self.tested.stop :]
        tests = measurement[self.head :].reshape(self.tests, -1)
        claimed = kernels.binary_values(tests[:, :-1], p)
        differences = (results - claimed + (self.reach - 1) * one) % p
        marks = tests[:, -1].copy()
        to_tests, to_sides = (calls * 2 * self.chunk for calls in self._calls)
        for row, joint in zip(wires, joints, strict=True):
            kernels.root_pairs(bits, joint[0], one, row, p)
            kernels.claim_pairs(differences, marks, joint[1], row[to_tests:], p)
            if self.n_products:
                x = measurement[self.tested]
                row[to_sides : to_sides + 2] = self.sides(x, joint[3:])

    def values(
        self,
        gadget: int,
        measurement: Measurement,
        joints: Joints,
        outputs: Outputs,
        *,
        one: int,
    ) -> list[int]:
        """The number that must be zero, for each proof of a gadget."""
        p, width = self.field.modulus, self.value_bits
        claims = measurement[self.tested.stop : self.head]
        v, u = kernels.binary_values(claims[: 2 * width].reshape(2, width), p).tolist()
        if gadget == 0:
            return [(v - int(row.sum())) % p for row in outputs]
        hot = claims[2 * width :]
        bits, tests = self._calls
        marks = int(measurement[self.head :].reshape(self.tests, -1)[:, -1].sum())
        forms = self.forms(measurement, joints[:, 3:])
        values = []
        for proof, (joint, row) in enumerate(zip(joints, outputs, strict=True)):
            terms = [
                int(row[:bits].sum()),
                v + u - self._chosen(self.limits, hot, one),
                int(row[bits:tests].sum()),
                marks - (self.passing or self.tests) * one,
            ]
            if self.n_products:
                terms.append(int(row[tests]) - forms[proof])
            if self.n_groups:
                terms.append(int(hot.sum()) - one)
            values.append(self._weighted(terms, int(joint[2])))
        return values


@dataclass(frozen=True)
class Ball(NormCircuit):
    """Numbers whose sum of squares is at most L; they are what is added up.

    >>> Ball(3533, (4295033744,)).length
    5799
    """

    _: KW_ONLY
    identity: int = 0xFFFF1006


@dataclass(frozen=True)
class Outer(NormCircuit):
    """X_ij = z_i z_j for i ≤ j, row by row; z has n numbers.

    With ρ drawn after z and X are fixed, (ρ z)² = Σ_{i ≤ j} (2 - [i = j]) ρ_i ρ_j X_ij.
    The ρ_i are independent. As powers of one number, X_02 and X_11 would have the same
    weight, and one could be traded for the other.
    """

    _: KW_ONLY
    identity: int = 0xFFFF7401

    @cached_property
    def n_products(self) -> int:
        """The numbers of X."""
        return self.n * (self.n + 1) // 2

    @cached_property
    def n_weights(self) -> int:
        """The numbers of ρ."""
        return self.n

    @property
    def largest(self) -> int:
        """The most that one report adds to a number of the sum: z_i² ≤ L."""
        return max(self.limits)

    def products(self, report: Whole) -> Products:
        """X of an honest report."""
        out = np.empty(self.n_products, np.int64)
        kernels.upper_products(report, out, self.field.modulus)
        return out

    def sides(self, x: Numbers, weights: Numbers) -> tuple[int, int]:
        """The weighted sum of z, twice."""
        side = kernels.dot(x, weights, self.field.modulus)
        return side, side

    def forms(self, measurement: Measurement, weights: Joints) -> list[int]:
        """The quadratic form of X, for each proof."""
        X = measurement[: self.n_products]
        values = kernels.quadratic_forms(X, weights, self.field.modulus)
        return [int(value) for value in values]


@dataclass(frozen=True)
class TwoFactors(NormCircuit):
    """X_ij = q_i t_j, row by row; (q, t) has n numbers, of which q are the first.

    2 |q| |t| ≤ |q|² + |t|² ≤ L, so the length of X is at most L / 2.
    """

    _: KW_ONLY
    split: int  # the numbers of q
    identity: int = 0xFFFF7402

    @cached_property
    def n_products(self) -> int:
        """The numbers of X."""
        return self.split * (self.n - self.split)

    @cached_property
    def n_weights(self) -> int:
        """The numbers of ρ."""
        return self.n

    @property
    def largest(self) -> int:
        """The most that one report adds to a number of the sum: 2 |q_i t_j| ≤ L."""
        return max(self.limits) // 2

    def products(self, report: Whole) -> Products:
        """X of an honest report."""
        matrix = np.multiply.outer(report[: self.split], report[self.split :])
        return self.field.remainders(matrix.ravel())

    def sides(self, x: Numbers, weights: Numbers) -> tuple[int, int]:
        """The weighted sums of q and of t."""
        m, p = self.split, self.field.modulus
        return kernels.dot(x[:m], weights[:m], p), kernels.dot(x[m:], weights[m:], p)

    def forms(self, measurement: Measurement, weights: Joints) -> list[int]:
        """The bilinear form of X, for each proof."""
        X, left = measurement[: self.n_products], weights[:, : self.split]
        right = weights[:, self.split :]
        values = kernels.bilinear_forms(X, left, right, self.field.modulus)
        return [int(value) for value in values]


# --- A history at one height ----------------------------------------------------------


@dataclass(frozen=True)
class Flat(Circuit):
    """Items at one height s, the others at zero: x_i (x_i - s) = 0.

    s ≤ m = ⌊√(L / least_items)⌋: an item weighs no more than each of a history of
    `least_items` items. s Σ x is Σ x², since every x is 0 or s. All
    numbers are small by their bits, so nothing wraps around as long as m² n < p.
    """

    n: int
    limits: tuple[int, ...]
    _: KW_ONLY
    least_items: int = 20
    chunk: int = 64
    proofs: int = 4
    field: Field = FIELD40
    identity: int = 0xFFFF7403

    @cached_property
    def highest(self) -> tuple[int, ...]:
        """The largest height m of each group."""
        return tuple(math.isqrt(limit // self.least_items) for limit in self.limits)

    @property
    def largest(self) -> int:
        """The most that one report adds to an item."""
        return max(self.highest)

    def height(self, items: int, *, group: int = 0) -> int:
        """The height at which a history of `items` items keeps both bounds.

        >>> Flat(3533, (2**32,)).height(1), Flat(3533, (2**32,)).height(80)
        (14654, 7327)
        """
        return math.isqrt(self.limits[group] // max(items, self.least_items))

    @cached_property
    def widths(self) -> tuple[int, int]:
        """The bits of s, and of v."""
        return max(self.highest).bit_length(), max(self.limits).bit_length()

    @property
    def n_sums(self) -> int:  # type: ignore[override]
        """The numbers that are added up."""
        return self.n

    @cached_property
    def head(self) -> int:  # type: ignore[override]
        """The numbers of a measurement."""
        return self.n + 2 * sum(self.widths) + self.n_groups

    @property
    def length(self) -> int:  # type: ignore[override]
        """The numbers of a measurement."""
        return self.head

    @property
    def joint_degree(self) -> int:
        """Items, bits and the weights of the sum."""
        return self.length + 5

    @cached_property
    def _calls(self) -> tuple[int, int]:
        """Calls for items, and those and the calls for bits."""
        items = -(-self.n // self.chunk)
        return items, items + -(-(self.length - self.n) // self.chunk)

    @cached_property
    def gadgets(self) -> tuple[Gadget, ...]:  # type: ignore[override]
        """The products of items, of bits, and s times Σ x."""
        calls = self._calls[1] + 1
        return (Gadget(self.proofs, calls, self.chunk, is_square=False),)

    def encode(self, report: Whole, *, group: int = 0) -> Measurement:
        """The measurement; refuses a report that is not flat or beyond its bound."""
        hot = self.group_bits(group)
        if report.shape != (self.n,):
            raise BadValue(f"a report of shape {report.shape}, not ({self.n},)")
        s = int(report.max())
        highest, limit = self.highest[group], self.limits[group]
        if not ((report == 0) | (report == s)).all() or not 0 <= s <= highest:
            raise BadValue(
                "a flat report has one height beside zero, and it must be in "
                f"[0, {highest}]; its numbers go from {report.min()} to {s}"
            )
        v = s * int(report.sum())
        if v > limit:
            raise BadValue(
                f"{np.count_nonzero(report):,} items at height {s} have the sum of "
                f"squares {v}, and it must be <= {limit}: use `height`"
            )
        return self.head_of(report, (s, highest - s), (v, limit - v), hot)

    def head_of(
        self,
        x: Whole,
        heights: tuple[int, int],
        sums: tuple[int, int],
        hot: Sequence[int],
    ) -> Measurement:
        """The measurement with these claims of s, m - s, v and u, true or not."""
        width, wide = self.widths
        bits = [bit for height in heights for bit in to_bits(height, width)]
        bits += [bit for number in sums for bit in to_bits(number, wide)]
        return np.concatenate([self.field.remainders(x), np.array([*bits, *hot])])

    def _claimed(self, measurement: Measurement) -> list[int]:
        """The numbers s, m - s, v and u, or shares of them."""
        p, (width, wide) = self.field.modulus, self.widths
        bits = measurement[self.n : self.n + 2 * (width + wide)]
        heights = kernels.binary_values(bits[: 2 * width].reshape(2, width), p)
        sums = kernels.binary_values(bits[2 * width :].reshape(2, wide), p)
        return [*heights.tolist(), *sums.tolist()]

    def wires(
        self,
        gadget: int,
        measurement: Measurement,
        results: Results,
        joints: Joints,
        *,
        one: int,
    ) -> Wires:
        """The inputs of every call, for each proof."""
        [shape], p = self.gadgets, self.field.modulus
        wires = np.zeros((shape.proofs, shape.calls * shape.arity), np.int64)
        x, bits = measurement[: self.n], measurement[self.n :]
        s = self._claimed(measurement)[0]
        to_bits, to_sum = (calls * shape.arity for calls in self._calls)
        for row, joint in zip(wires, joints, strict=True):
            kernels.root_pairs(x, joint[0], s, row, p)
            kernels.root_pairs(bits, joint[1], one, row[to_bits:], p)
            row[to_sum : to_sum + 2] = s, int(x.sum()) % p
        return wires.reshape(shape.proofs, shape.calls, shape.arity)

    def values(
        self,
        gadget: int,
        measurement: Measurement,
        joints: Joints,
        outputs: Outputs,
        *,
        one: int,
    ) -> list[int]:
        """The number that must be zero, for each proof."""
        s, rest, v, u = self._claimed(measurement)
        hot = measurement[self.length - self.n_groups :]
        items, bits = self._calls
        values = []
        for joint, row in zip(joints, outputs, strict=True):
            terms = [
                int(row[:items].sum()),
                int(row[items:bits].sum()),
                int(row[bits]) - v,
                v + u - self._chosen(self.limits, hot, one),
                s + rest - self._chosen(self.highest, hot, one),
            ]
            if self.n_groups:
                terms.append(int(hot.sum()) - one)
            values.append(self._weighted(terms, int(joint[2])))
        return values


def to_bits(number: int, width: int) -> list[int]:
    """The lowest `width` bits, the lowest first; of two's complement below zero."""
    return [number >> i & 1 for i in range(width)]


def _sum_of_squares(report: Whole, limit: int) -> int:
    """Σ x², or a number above the limit where 64 bits could overflow."""
    longest = max(int(report.max()), -int(report.min()))
    if longest > math.isqrt(limit):
        return longest**2
    return int(np.dot(report, report))
