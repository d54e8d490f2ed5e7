"""`python -m benchmarks.proofs`: what a proof costs clients and servers, and vectors.

The table has the processor time of one report at each role, the shortest of `--repeats`
turns, beside the target, and the bytes that are sent. `--vectors FILE` writes the
project's own test vectors instead, which tests/vectors/proofs.json holds: all messages
of a report that a formula gives, so that another implementation can compare.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.attacks.forged_proofs import (
    Attempt,
    moved_antidiagonal,
    proof_of_another_circuit,
    wraparound_pair,
)
from tacit.exact_sum import limit
from tacit.proofs import (
    HELPER,
    LEADER,
    Ball,
    Circuit,
    Flat,
    Outer,
    Shares,
    TwoFactors,
    decide,
    prepare,
    randomness_bytes,
    shard,
)
from tacit.proofs.circuits import Whole
from tacit.proofs.field import Field
from tacit.proofs.proof import leader_bytes, message_bytes, points

NONCE, VERIFY_KEY = bytes(range(16)), bytes(range(32))
RANDOMNESS = bytes(range(224))  # a circuit without tests needs the first 160
ABOUT = """
Reports: a_i = (7919 i mod 1009) - 504 and x_i = sign(a_i) floor(S |a_i| / (1 + floor(
sqrt(sum a^2)))); of factors, the first `split` numbers and the others each by itself.
Flat: items at the places 7919 j mod n for j < items, at `height`. Nonce 00 .. 0f,
verify key 00 .. 1f, randomness 00 .. df (flat: .. 9f). A message is the answers, hashes
and seeds of a server. Forged: see tacit.attacks.forged_proofs. Points: those at which
a toy circuit is queried; its stream has roots of unity too, and they are left out.
"""


# --- Costs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A circuit with an honest report, and the milliseconds it may cost each role."""

    name: str
    circuit: Circuit
    report: Whole
    targets: tuple[float, float, float] | None = None


def subjects(*, is_smoke: bool) -> Iterator[Subject]:
    """The circuits of Gram's sums, or their smallest."""
    if is_smoke:
        yield Subject("flat 12", Flat(12, (2**20,)), flat_report(12, 3, 200))
        yield Subject("outer 6", outer(6), whole_report(6, 1024))
        return
    counts = (2.0, 1.0, 1.0)
    steps = 2**16
    items = Flat(3533, (steps**2,))
    yield Subject(
        "flat, 3,533 items",
        items,
        flat_report(3533, 165, items.height(165)),
        counts,
    )
    yield Subject("ball, 3,533 numbers", ball(3533), whole_report(3533, steps), counts)
    for n in (300, 600, 900):
        targets = (20.0, 8.0, 10.0) if n == 900 else None
        yield Subject(f"outer, {n} numbers", outer(n), whole_report(n, 1024), targets)
    for m, k in ((1200, 30), (1252, 50)):
        report = whole_report(m + k, 1024, split=m)
        yield Subject(f"factors, {m:,} × {k}", factors(m, k), report)
    yield Subject("ball, 50,000 numbers", ball(50_000), whole_report(50_000, steps))


def costs(subject: Subject, *, repeats: int) -> tuple[float, float, float]:
    """Milliseconds of client, leader, and helper with its decision."""
    circuit, best = subject.circuit, [math.inf] * 3
    for _ in range(repeats):
        nonce, randomness = os.urandom(16), os.urandom(randomness_bytes(circuit))
        times = [time.process_time()]
        shares = shard(circuit, subject.report, nonce=nonce, randomness=randomness)
        times.append(time.process_time())
        common = {"verify_key": VERIFY_KEY, "nonce": nonce, "public": shares.public}
        leader = prepare(circuit, LEADER, shares.leader, **common)
        times.append(time.process_time())
        helper = prepare(circuit, HELPER, shares.helper, **common)
        if not decide(circuit, leader.message, helper.message):
            raise AssertionError(f"{subject.name}: an honest report was refused")
        times.append(time.process_time())
        spent = 1e3 * np.diff(times)
        best = [min(pair) for pair in zip(best, spent.tolist(), strict=True)]
    client, by_leader, by_helper = best
    return client, by_leader, by_helper


def table(measured: list[tuple[Subject, tuple[float, float, float]]]) -> Iterator[str]:
    """One line for each circuit; an exclamation mark where a target is missed."""
    yield "| proof | client ms | leader ms | helper ms | to leader | now | message |"
    yield "|---|---|---|---|---|---|---|"
    for subject, spent in measured:
        targets = subject.targets or (None,) * 3
        cells = [
            f"{ms:.2f}"
            + ("" if most is None else f" (≤ {most:g}){'' if ms <= most else ' !'}")
            for ms, most in zip(spent, targets, strict=True)
        ]
        circuit = subject.circuit
        sizes = (leader_bytes(circuit), 4 * circuit.n_sums, message_bytes(circuit))
        cells += [f"{size:,}" for size in sizes]
        yield f"| {subject.name} | {' | '.join(cells)} |"


# --- Vectors --------------------------------------------------------------------------


def ball(n: int, steps: int = 2**16) -> Ball:
    """Numbers of a vector of norm 1."""
    return Ball(n, (limit(1.0, n, steps=steps),))


def outer(n: int, steps: int = 1024) -> Outer:
    """Products of a vector of norm 1."""
    return Outer(n, (limit(1.0, n, steps=steps),))


def factors(m: int, k: int, steps: int = 1024) -> TwoFactors:
    """Products of two vectors of norm 1."""
    return TwoFactors(m + k, (limit(math.sqrt(2), m + k, steps=steps),), split=m)


def whole_report(n: int, steps: int, split: int = 0) -> Whole:
    """The vector of the formula, a little shorter than `steps`."""
    a = (7919 * np.arange(n)) % 1009 - 504
    parts = []
    for some in np.split(a, [split] if split else []):
        length = 1 + math.isqrt(int(some @ some))
        parts.append(np.sign(some) * (steps * np.abs(some) // length))
    return np.concatenate(parts)


def flat_report(n: int, items: int, height: int) -> Whole:
    """A history with this number of items, all at one height."""
    x = np.zeros(n, np.int64)
    x[7919 * np.arange(min(items, n)) % n] = height
    return x


def vectors(*, most: int = 10**9) -> dict[str, Any]:
    """All vectors of circuits that add up at most this number of numbers."""
    cases = [*_normed_cases(), *_flat_cases()]
    return {
        "about": " ".join(ABOUT.split()),
        "nonce": NONCE.hex(),
        "verify_key": VERIFY_KEY.hex(),
        "honest": [_honest(*case) for case in cases if case[1].n_sums <= most],
        "forged": [*_forged()],
        "points": _points_beside_roots(),
    }


def _normed_cases() -> Iterator[tuple[str, Circuit, Whole, int, dict[str, int]]]:
    for kind, circuit, steps, split in (
        ("ball", ball(12, 1024), 1024, 0),
        ("ball", Ball(12, (2**20, 2**18)), 512, 0),
        ("ball", ball(3533), 2**16, 0),
        ("outer", outer(6), 1024, 0),
        ("outer", Outer(6, (2**20, 2**18)), 512, 0),
        ("outer", outer(300), 1024, 0),
        ("outer", outer(600), 1024, 0),
        ("outer", outer(900), 1024, 0),
        ("factors", factors(4, 2), 1024, 4),
        ("factors", TwoFactors(6, (2**21, 2**19), split=4), 512, 4),
        ("factors", factors(1200, 30), 1024, 1200),
    ):
        report = whole_report(circuit.n, steps, split)
        shape = {"steps": steps, "split": split} if split else {"steps": steps}
        yield kind, circuit, report, len(circuit.limits) - 1, shape


def _flat_cases() -> Iterator[tuple[str, Circuit, Whole, int, dict[str, int]]]:
    for n, steps, chunk in ((12, 2**16, 64), (3533, 2**16, 64), (10_000, 2**15, 96)):
        for limits in ((steps**2,), (steps**2, steps**2 // 4)):
            circuit = Flat(n, limits, chunk=chunk)
            group = len(limits) - 1
            for items in (0, 1, 20, 165):
                height = circuit.height(items, group=group) if items else 0
                shape = {"items": min(items, n), "height": height}
                yield "flat", circuit, flat_report(n, items, height), group, shape


def _honest(
    kind: str, circuit: Circuit, report: Whole, group: int, shape: dict[str, int]
) -> dict[str, Any]:
    randomness = RANDOMNESS[: randomness_bytes(circuit)]
    shares = shard(circuit, report, nonce=NONCE, randomness=randomness, group=group)
    entry = {
        "kind": kind,
        "n": len(report),
        **shape,
        "limits": [*circuit.limits],
        "group": group,
        "identity": circuit.identity,
        "chunks": [gadget.chunk for gadget in circuit.gadgets],
        "sum": int(report.sum()),
        "squares": int(report @ report),
    }
    return entry | _messages(circuit, shares)


def _messages(circuit: Circuit, shares: Shares) -> dict[str, Any]:
    common = {"verify_key": VERIFY_KEY, "nonce": NONCE, "public": shares.public}
    leader = prepare(circuit, LEADER, shares.leader, **common)
    helper = prepare(circuit, HELPER, shares.helper, **common)
    to_bytes = circuit.field.to_bytes
    return {
        "public": _sha256(shares.public),
        "leader": _sha256(shares.leader),
        "helper": _sha256(shares.helper),
        "leader_message": _sha256(leader.message),
        "helper_message": _sha256(helper.message),
        "leader_numbers": _sha256(to_bytes(leader.numbers)),
        "helper_numbers": _sha256(to_bytes(helper.numbers)),
        "is_accepted": decide(circuit, leader.message, helper.message),
    }


def _forged() -> Iterator[dict[str, Any]]:
    for kind, circuit, forge in (
        ("outer", outer(6), moved_antidiagonal),
        ("ball", ball(12, 1024), wraparound_pair),
        ("ball", ball(12, 1024), proof_of_another_circuit),
    ):
        report = whole_report(circuit.n, 1024)
        attempt = Attempt(circuit, report, NONCE, RANDOMNESS)
        entry = {"forgery": forge.__name__, "kind": kind, "n": circuit.n}
        entry["limits"] = [*circuit.limits]
        yield entry | _messages(circuit, forge(attempt))
    circuit, report = ball(12, 1024), whole_report(12, 1024)
    shares = shard(circuit, report, nonce=NONCE, randomness=RANDOMNESS)
    common: dict[str, bytes] = {"nonce": NONCE, "public": shares.public}
    leader = prepare(circuit, LEADER, shares.leader, verify_key=VERIFY_KEY, **common)
    helper = prepare(circuit, HELPER, shares.helper, verify_key=bytes(32), **common)
    yield {
        "forgery": "second_verify_key",  # the helper's is 00 .. 00
        "kind": "ball",
        "n": 12,
        "limits": [*circuit.limits],
        "helper_message": _sha256(helper.message),
        "is_accepted": decide(circuit, leader.message, helper.message),
    }


def _points_beside_roots() -> dict[str, Any]:
    """In a field of 97 numbers every sixth is a root of unity, and is left out."""
    field = Field(97, 1, pow(5, 3, 97), 32)
    circuit = Flat(2, (4,), least_items=1, chunk=1, proofs=32, field=field)
    return {
        "modulus": 97,
        "root_of_order_32": field.root(32),
        "identity": circuit.identity,
        "order": circuit.gadgets[0].points,
        "proofs": circuit.proofs,
        "points": [*points(circuit, VERIFY_KEY, NONCE)],
    }


def _sha256(message: bytes) -> str:
    return hashlib.sha256(message).hexdigest()


def main() -> None:
    """Print the table, or write the vectors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="two tiny circuits")
    parser.add_argument("--vectors", type=Path, help="write the vectors to this file")
    asked = parser.parse_args()
    if asked.vectors:
        text = json.dumps(vectors(), indent=1) + "\n"
        asked.vectors.write_text(text, encoding="utf-8")
        print(f"{asked.vectors}: {len(text):,} characters")
        return
    measured = [
        (subject, costs(subject, repeats=asked.repeats + 1))  # the first one compiles
        for subject in subjects(is_smoke=asked.smoke)
    ]
    print("\n".join(table(measured)))


if __name__ == "__main__":
    main()
