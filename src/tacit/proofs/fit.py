"""What a field has room for: bounds that can be proved, sums that do not wrap around.

    3 L + 2 ≤ p                 v + u = L modulo p is v + u = L
    2600 W ≤ p, W² ≤ 4000 p     a vector that is too long fails a test every other time
    m² n < p                    (`flat`) s Σ x is a whole number
    (D / p)^k ≤ 2⁻¹⁰⁰           a client that tries hashes needs luck in all k proofs
    S N + 12.36 σ ≤ (p - 1)/2   the sum of N reports and its noise can be read as signed

L `limits`, W `reach`, m `highest`, D `joint_degree`, k `proofs`, S the largest number
that one report may add, σ the deviation of the noise of the sum where it is loudest.
The first two lines are those of draft-chen-cfrg-vdaf-pine-01.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tacit.errors import Refused
from tacit.exact_sum import limit
from tacit.proofs.circuits import Circuit, Flat, NormCircuit

_TAILS = 12 * 1.03  # deviations of the noise for which there is room
_LEAST_LUCK = 100  # bits of luck that a client needs to find joint randomness
_MOST_EXCESS = 1.01  # of the bound of an outer product over its steps squared


def check_fit(circuit: Circuit, *, reports: int, deviation: float) -> None:
    """Refuses, with all reasons, what the field has no room for.

    `deviation` is that of the noise of both servers together, in steps.
    """
    problems = [*_unsound(circuit), *_without_room(circuit, reports, deviation)]
    if problems:
        raise Refused("; ".join(problems))


def fitting_steps(
    circuit_of: Callable[[int], Circuit],
    *,
    most: int,
    reports: int,
    deviation_of: Callable[[Circuit], float],
) -> int:
    """The largest power of two up to `most` whose circuit fits.

    >>> from tacit.proofs.circuits import Ball
    >>> def counts(steps: int) -> Circuit:
    ...     return Ball(3533, (limit(1.0, 3533, steps=steps),))
    >>> def both_noises(circuit: Circuit) -> float:
    ...     return math.sqrt(2 * circuit.limits[0])
    >>> [
    ...     fitting_steps(counts, most=2**16, reports=n, deviation_of=both_noises)
    ...     for n in (8 * 10**6, 16 * 10**6)
    ... ]
    [65536, 32768]
    """
    steps = most
    while True:
        try:
            circuit = circuit_of(steps)
            check_fit(circuit, reports=reports, deviation=deviation_of(circuit))
        except Refused:
            if steps <= 1:
                raise
            steps //= 2
        else:
            return steps


def outer_limit(bound: float, n: int, *, steps: int) -> int:
    """L of `n` numbers of which products are sent; refuses steps that are too coarse.

    The length of X grows as L, and not as √L as that of x.

    >>> outer_limit(1.0, 900, steps=1024)
    1049840
    """
    most = limit(bound, n, steps=steps)
    if most > _MOST_EXCESS * (steps * bound) ** 2:
        times = most / (steps * bound) ** 2
        raise Refused(
            f"products of {n:,} numbers in steps of 1/{steps} would need {times:.3f} "
            f"times the noise, and {_MOST_EXCESS} times is the most; use a smaller "
            "model, or fewer reports"
        )
    return most


def _unsound(circuit: Circuit) -> list[str]:
    """Why a proof over this field would prove too little."""
    p, most = circuit.field.modulus, max(circuit.limits)
    problems = []
    if p < 3 * most + 2:
        problems.append(f"3 L + 2 = {3 * most + 2} must be <= p = {p}")
    if isinstance(circuit, Flat):
        wrapping = max(circuit.highest) ** 2 * circuit.n
        if wrapping >= p:
            problems.append(
                f"m² n = {wrapping} must be < p = {p}: use fewer steps, fewer items "
                "or more least_items"
            )
    if isinstance(circuit, NormCircuit):
        reach = circuit.reach
        if p < 2600 * reach:
            problems.append(f"2600 W = {2600 * reach} must be <= p = {p}")
        if reach**2 > 4000 * p:
            problems.append(f"W² = {reach**2} must be <= 4000 p = {4000 * p}")
    luck = circuit.proofs * math.log2(circuit.joint_degree / p)
    if luck > -_LEAST_LUCK:
        problems.append(
            f"{circuit.proofs} proofs would hold for a false report with 2^{luck:.1f}, "
            f"and 2^-{_LEAST_LUCK} is the most: use more proofs"
        )
    problems += [
        f"{gadget.calls:,} calls of a gadget need roots of unity of order "
        f"{2 * gadget.points:,}, and {circuit.field.order:,} is the largest: use "
        "larger chunks"
        for gadget in circuit.gadgets
        if 2 * gadget.points > circuit.field.order
    ]
    return problems


def _without_room(circuit: Circuit, reports: int, deviation: float) -> list[str]:
    """Why the sum of these reports could wrap around."""
    room = (circuit.field.modulus - 1) // 2
    needed = reports * circuit.largest + math.ceil(_TAILS * deviation)
    if needed <= room:
        return []
    return [
        f"{reports:,} reports of numbers up to {circuit.largest} and a noise of "
        f"deviation {deviation:.4g} need {needed}, and the field has room for {room}: "
        "use fewer steps"
    ]
