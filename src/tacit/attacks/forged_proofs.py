"""Twenty ways to forge a report with a proof; none of them may be accepted.

Each function makes the shares of a client that does not keep to the rules, from an
attempt: an honest report for the same circuit, and randomness. Most claim something
false and prove it as well as they can; the last five mix up true messages. The proof
of a false claim has two forms, which `proving` chooses: as it comes (`prove`), so that
the circuit's value is not zero, or with polynomials that are bent until it is
(`prove_bent`), so that they are no longer the gadget's.

    forgery                        circuits
 1  whole_norm_on_one_item         all        500 bounds; in flat one bound
 2  moved_antidiagonal             outer      X_02 up and X_11 down by 500 bounds
 3  product_off_by_one             products   one number of X
 4  diagonal_alone                 outer      X is no z zᵀ
 5  too_long_with_honest_bits      normed     1.1 bounds, the lowest bits of v and L - v
 6  too_long_with_false_bits       normed     1.1 bounds, v = L
 7  norm_bit_of_two                normed     a true sum of bits that are none
 8  flipped_test_bit               normed
 9  wraparound_pair                normed     a² + b² = p + little, all tests claimed
10  two_heights                    flat
11  negative_number                flat
12  height_above_most              flat       m - s is negative
13  false_sum                      flat       v is not s Σ x
14  two_hot_group                  groups
15  zero_hot_group                 groups
16  another_blind                  all
17  another_public_part            all
18  proof_of_another_report        all
19  proof_of_another_circuit       all        a wider bound with messages of one length
20  swapped_helper_seeds           all
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from tacit.kernels import prime_field as kernels
from tacit.proofs.circuits import (
    Bits,
    Circuit,
    Flat,
    Joints,
    Measurement,
    NormCircuit,
    Outer,
    Outputs,
    Products,
    Results,
    TwoFactors,
    Whole,
    to_bits,
)
from tacit.proofs.proof import (
    Proofs,
    Prover,
    Shares,
    Starts,
    claimed_outputs,
    prove,
    shard,
    share_measurement,
)
from tacit.proofs.streams import SEED_BYTES

_FAR = 500  # bounds
_LONGER = 1.1  # bounds


@dataclass(frozen=True, eq=False)
class Attempt:
    """What a forgery begins with."""

    circuit: Circuit
    report: Whole  # an honest one
    nonce: bytes
    randomness: bytes
    proving: Prover = prove

    @property
    def normed(self) -> NormCircuit:
        """The circuit, which has a norm test."""
        assert isinstance(self.circuit, NormCircuit)
        return self.circuit

    @property
    def flat(self) -> Flat:
        """The circuit, which is about a flat history."""
        assert isinstance(self.circuit, Flat)
        return self.circuit

    @property
    def hot(self) -> list[int]:
        """The bits of the group with the largest bound."""
        limits = self.circuit.limits
        return self.circuit.group_bits(limits.index(max(limits)))

    def share(
        self, head: Measurement, answer: Callable[[Results], Bits] | None = None
    ) -> Shares:
        """The shares of any measurement, proved in the way of this attempt."""
        return share_measurement(
            self.circuit,
            head,
            nonce=self.nonce,
            randomness=self.randomness,
            answer=answer,
            proving=self.proving,
        )

    def share_numbers(
        self, x: Whole, v: int, u: int, X: Products | None = None
    ) -> Shares:
        """The same for a circuit with a norm test, with all tests claimed as passed."""
        head = self.normed.head_of(x, v, u, self.hot, X)
        return self.share(head, self.claim_all)

    def share_items(self, x: Whole, s: int, v: int) -> Shares:
        """The same for a flat history, with what is left to the bounds."""
        highest, limit = max(self.flat.highest), max(self.flat.limits)
        heights, sums = (s, highest - s), (v, limit - v)
        return self.share(self.flat.head_of(x, heights, sums, self.hot))

    def share_honestly(self) -> Shares:
        """The shares of the honest report."""
        group = self.hot.index(1) if self.hot else 0
        return shard(
            self.circuit,
            self.report,
            nonce=self.nonce,
            randomness=self.randomness,
            group=group,
        )

    def claim_all(self, results: Results) -> Bits:
        """All tests claimed as passed, with the nearest bits where they are not."""
        reach, width = self.normed.reach, self.normed.test_bits
        shifted = self.circuit.field.signed(results) + reach - 1
        shifted = np.clip(shifted, 0, 2 * reach - 1)
        bits = shifted[:, None] >> np.arange(width) & 1
        marks = np.ones((len(results), 1), np.int64)
        return np.concatenate([bits, marks], axis=1).ravel()


@dataclass(frozen=True)
class Forgery:
    """A way to forge, and the circuits for which there is one."""

    forge: Callable[[Attempt], Shares]
    circuits: tuple[type[Circuit], ...] = (NormCircuit, Flat)
    needs_groups: bool = False

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.forge.__name__

    def suits(self, circuit: Circuit) -> bool:
        """Whether the circuit can be lied to in this way."""
        is_kind = isinstance(circuit, self.circuits)
        return is_kind and (circuit.n_groups > 0 or not self.needs_groups)


# --- False claims ---------------------------------------------------------------------


def whole_norm_on_one_item(attempt: Attempt) -> Shares:
    """Forgery 1: all weight on one item, 500 bounds; in a flat history one bound."""
    x = np.zeros_like(attempt.report)
    norm = math.isqrt(max(attempt.circuit.limits))
    if isinstance(attempt.circuit, Flat):
        x[0] = norm
        return attempt.share_items(x, norm, norm**2)
    x[0] = _FAR * norm
    return attempt.share_numbers(x, max(attempt.circuit.limits), 0)


def moved_antidiagonal(attempt: Attempt) -> Shares:
    """Forgery 2: X_02 up by 500 bounds and X_11 down by twice as much.

    With weights that are powers of one number, both have the same power.
    """
    X = attempt.normed.products(attempt.report)
    distance = _FAR * max(attempt.circuit.limits)
    X[2] += distance
    X[attempt.normed.n] -= 2 * distance
    return _with_products(attempt, X)


def product_off_by_one(attempt: Attempt) -> Shares:
    """Forgery 3: one number of X is larger by one."""
    X = attempt.normed.products(attempt.report)
    X[len(X) // 2] += 1
    return _with_products(attempt, X)


def diagonal_alone(attempt: Attempt) -> Shares:
    """Forgery 4: X has the squares of z, one more, and nothing beside the diagonal."""
    n = attempt.normed.n
    X = attempt.normed.products(attempt.report)
    is_diagonal = np.zeros(len(X), np.bool_)
    is_diagonal[np.cumsum([0, *range(n, 1, -1)])] = True
    X[~is_diagonal] = 0
    X[0] += 1  # a report with one number beside zero is its own diagonal
    return _with_products(attempt, X)


def too_long_with_honest_bits(attempt: Attempt) -> Shares:
    """Forgery 5: 1.1 times the bound, and the lowest bits of v and of L - v."""
    x = _scaled(attempt.report, _LONGER**2 * max(attempt.circuit.limits))
    norm = int(np.dot(x, x))
    return attempt.share_numbers(x, norm, max(attempt.circuit.limits) - norm)


def too_long_with_false_bits(attempt: Attempt) -> Shares:
    """Forgery 6: 1.1 times the bound, and v is claimed to be L."""
    x = _scaled(attempt.report, _LONGER**2 * max(attempt.circuit.limits))
    return attempt.share_numbers(x, max(attempt.circuit.limits), 0)


def norm_bit_of_two(attempt: Attempt) -> Shares:
    """Forgery 7: a sum that is true, of bits of which one is 2 or 3."""
    x, width = attempt.report, attempt.normed.value_bits
    limit = max(attempt.circuit.limits)
    v = int(np.dot(x, x))
    head = attempt.normed.head_of(x, v, limit - v, attempt.hot)
    start, value = (0, v) if v > 1 else (width, limit - v)
    first = attempt.circuit.tested.stop + start
    head[first : first + width] = to_bits(value - 2, width)
    head[first] += 2
    return attempt.share(head)


def flipped_test_bit(attempt: Attempt) -> Shares:
    """Forgery 8: one bit of a test is another one."""

    def answer(results: Results) -> Bits:
        bits = attempt.circuit.answer(results)
        bits[0] ^= 1
        return bits

    return attempt.share(_honest_head(attempt), answer)


def wraparound_pair(attempt: Attempt) -> Shares:
    """Forgery 9: two numbers whose squares are a little more than p, all marks 1."""
    p, x = attempt.circuit.field.modulus, np.zeros_like(attempt.report)
    limit = max(attempt.circuit.limits)
    x[:2] = wrapping_pair(p, limit)
    norm = int(np.dot(x, x)) - p
    return attempt.share_numbers(x, norm, limit - norm)


def two_heights(attempt: Attempt) -> Shares:
    """Forgery 10: one item is higher by one than the others."""
    x = attempt.report.copy()
    s = int(x.max())
    x[np.argmax(x)] = s + 1
    return attempt.share_items(x, s, s * int(x.sum()))


def negative_number(attempt: Attempt) -> Shares:
    """Forgery 11: one item has the height with the other sign."""
    x = attempt.report.copy()
    s = max(1, int(x.max()))
    x[np.argmax(x)] = -s
    return attempt.share_items(x, s, max(0, s * int(x.sum())))


def height_above_most(attempt: Attempt) -> Shares:
    """Forgery 12: a single item above the highest height; m - s is negative."""
    x, highest = np.zeros_like(attempt.report), max(attempt.flat.highest)
    s = max(highest + 1, min(2 ** attempt.flat.widths[0] - 1, _norm(attempt)))
    x[0] = s
    return attempt.share_items(x, s, s * s)


def false_sum(attempt: Attempt) -> Shares:
    """Forgery 13: v is L where s Σ x is more, and one less where it is not."""
    s = max(attempt.flat.highest)
    x = np.full_like(attempt.report, s)
    total, limit = s * int(x.sum()), max(attempt.circuit.limits)
    return attempt.share_items(x, s, limit if total > limit else total - 1)


def two_hot_group(attempt: Attempt) -> Shares:
    """Forgery 14: two groups at once, whose bounds would add up."""
    circuit, hot = attempt.circuit, [0] * attempt.circuit.n_groups
    hot[:2] = 1, 1
    both = sum(circuit.limits[:2])
    if isinstance(circuit, Flat):
        m = sum(circuit.highest[:2])
        s = m // 2
        x = np.zeros_like(attempt.report)
        x[: max(1, both // 2 // s**2)] = s
        v = s * int(x.sum())
        return attempt.share(circuit.head_of(x, (s, m - s), (v, both - v), hot))
    x = _scaled(attempt.report, both / 2)
    v = int(np.dot(x, x))
    head = attempt.normed.head_of(x, v, both - v, hot)
    return attempt.share(head, attempt.claim_all)


def zero_hot_group(attempt: Attempt) -> Shares:
    """Forgery 15: no group, and a report of zeros, for which no bound is needed."""
    circuit, hot = attempt.circuit, [0] * attempt.circuit.n_groups
    x = np.zeros_like(attempt.report)
    if isinstance(circuit, Flat):
        return attempt.share(circuit.head_of(x, (0, 0), (0, 0), hot))
    return attempt.share(attempt.normed.head_of(x, 0, 0, hot))


# --- True messages, mixed up ----------------------------------------------------------


def another_blind(attempt: Attempt) -> Shares:
    """Forgery 16: the leader's last blind is not the one that was hashed."""
    shares = attempt.share_honestly()
    return replace(shares, leader=_flipped(shares.leader, len(shares.leader) - 1))


def another_public_part(attempt: Attempt) -> Shares:
    """Forgery 17: the hash of the leader's share is another one."""
    shares = attempt.share_honestly()
    place = len(shares.public) - 2 * SEED_BYTES
    return replace(shares, public=_flipped(shares.public, place))


def proof_of_another_report(attempt: Attempt) -> Shares:
    """Forgery 18: the proofs are those of another report with the same seeds."""
    mine = attempt.share_honestly()
    other = replace(attempt, report=np.zeros_like(attempt.report)).share_honestly()
    end = attempt.circuit.length * attempt.circuit.field.size
    blinds = len(mine.public) // 2
    proofs = other.leader[end:-blinds]
    if not attempt.report.any():  # then both are the same report
        proofs = _flipped(proofs, 0)
    return replace(mine, leader=mine.leader[:end] + proofs + mine.leader[-blinds:])


def proof_of_another_circuit(attempt: Attempt) -> Shares:
    """Forgery 19: a report at a wider bound, whose messages have the same lengths."""
    circuit = attempt.circuit
    wider = _wider(circuit)
    x = attempt.report
    if isinstance(wider, NormCircuit) and wider.limits != circuit.limits:
        most = max(wider.limits)
        x = _scaled(x, most - 2 * math.isqrt(wider.n * most))
    return replace(attempt, circuit=wider, report=x).share_honestly()


def swapped_helper_seeds(attempt: Attempt) -> Shares:
    """Forgery 20: the helper's seeds of measurement and proofs change places."""
    shares = attempt.share_honestly()
    first, second = shares.helper[:SEED_BYTES], shares.helper[SEED_BYTES:]
    swapped = second[:SEED_BYTES] + first + second[SEED_BYTES:]
    return replace(shares, helper=swapped)


_PRODUCTS = (Outer, TwoFactors)
FORGERIES = (
    Forgery(whole_norm_on_one_item),
    Forgery(moved_antidiagonal, (Outer,)),
    Forgery(product_off_by_one, _PRODUCTS),
    Forgery(diagonal_alone, (Outer,)),
    Forgery(too_long_with_honest_bits, (NormCircuit,)),
    Forgery(too_long_with_false_bits, (NormCircuit,)),
    Forgery(norm_bit_of_two, (NormCircuit,)),
    Forgery(flipped_test_bit, (NormCircuit,)),
    Forgery(wraparound_pair, (NormCircuit,)),
    Forgery(two_heights, (Flat,)),
    Forgery(negative_number, (Flat,)),
    Forgery(height_above_most, (Flat,)),
    Forgery(false_sum, (Flat,)),
    Forgery(two_hot_group, needs_groups=True),
    Forgery(zero_hot_group, needs_groups=True),
    Forgery(another_blind),
    Forgery(another_public_part),
    Forgery(proof_of_another_report),
    Forgery(proof_of_another_circuit),
    Forgery(swapped_helper_seeds),
)


# --- Bent polynomials -----------------------------------------------------------------


def prove_bent(
    circuit: Circuit,
    measurement: Measurement,
    results: Results,
    joints: Joints,
    starts: Starts,
) -> Proofs:
    """Proofs whose circuit has the value zero, also for a false measurement.

    One output of the gadget is claimed to be what it would have to be. Only the query
    at a point that the client does not know can tell.
    """
    proofs = prove(circuit, measurement, results, joints, starts)
    p, place = circuit.field.modulus, 0
    for number, gadget in enumerate(circuit.gadgets):
        size = gadget.proof_size
        some = proofs[place : place + gadget.proofs * size].reshape(-1, size)
        place += some.size
        outputs = np.stack([claimed_outputs(circuit, number, row) for row in some])

        def values(of: Outputs, number: int = number) -> list[int]:
            return circuit.values(number, measurement, joints, of, one=1)

        moved = outputs.copy()
        moved[:, 0] += 1
        for row, value, other in zip(some, values(outputs), values(moved), strict=True):
            slope = (other - value) % p
            # The polynomial that is `change` at the first call's point, else zero.
            change = -value * pow(slope * gadget.points, -1, p) % p
            step = np.zeros((gadget.points, 1), np.int64)
            step[1] = change
            root = circuit.field.root(gadget.points)
            kernels.transform(step, pow(root, -1, p), p)
            bent = row[gadget.arity : gadget.arity + gadget.points]
            kernels.add_modulo(bent, step[:, 0].copy(), bent, p)
    return proofs


# --- Pieces ---------------------------------------------------------------------------


@cache
def wrapping_pair(p: int, limit: int) -> tuple[int, int]:
    """Two numbers with p ≤ a² + b² ≤ p + limit.

    >>> from tacit.proofs.field import FIELD40
    >>> wrapping_pair(FIELD40.modulus, 120)
    (1048565, 1024)
    """
    for a in range(math.isqrt(p), 0, -1):
        b = math.isqrt(p - a * a - 1) + 1
        if a * a + b * b <= p + limit:
            return a, b
    raise ValueError(f"no two squares lie between {p} and {p + limit}")


def _norm(attempt: Attempt) -> int:
    return math.isqrt(max(attempt.circuit.limits))


def _scaled(x: Whole, squares: float) -> Whole:
    """The vector, or one of equal numbers for zeros, with this sum of squares."""
    direction = x if x.any() else np.ones_like(x)
    length = math.sqrt(float(np.dot(direction, direction)))
    scaled: Whole = np.rint(direction * (math.sqrt(squares) / length)).astype(np.int64)
    return scaled


def _honest_head(attempt: Attempt) -> Measurement:
    group = attempt.hot.index(1) if attempt.hot else 0
    return attempt.circuit.encode(attempt.report, group=group)


def _with_products(attempt: Attempt, X: Products) -> Shares:
    """The honest z with another X."""
    head = _honest_head(attempt)
    head[: len(X)] = attempt.circuit.field.remainders(X)
    return attempt.share(head)


def _wider(circuit: Circuit) -> Circuit:
    """A circuit with a wider bound and messages of one length, or another identity."""
    for share in (1.0, 0.5, 0.25, 0.1, 0.01):
        most = max(circuit.limits)
        room = 2 ** most.bit_length() - 1 - most
        limits = tuple(
            limit + int(share * room) if limit == most else limit
            for limit in circuit.limits
        )
        wider = replace(circuit, limits=limits)  # type: ignore[type-var]
        if limits != circuit.limits and _lengths(wider) == _lengths(circuit):
            return wider
    return replace(circuit, identity=circuit.identity ^ 1)  # type: ignore[type-var]


def _lengths(circuit: Circuit) -> tuple[object, ...]:
    reach = circuit.reach if isinstance(circuit, NormCircuit) else 0
    return circuit.head, circuit.length, circuit.gadgets, reach


def _flipped(message: bytes, place: int) -> bytes:
    """The message with one bit of this byte changed."""
    changed = bytearray(message)
    changed[place] ^= 1
    return bytes(changed)
