"""Proofs that a report keeps its bound, of which two servers see one bit.

A client shares its report between two servers, and with it a proof, shared likewise,
that its whole numbers keep a bound. The servers check it with one message each.

    client   shard(circuit, report)  ──▶  public part, leader's share, helper's share
    server   prepare(circuit, own share)  ──▶  its half of the numbers, a message
    helper   decide(circuit, both messages)  ──▶  whether the report counts

    field       numbers modulo a prime of 40 bits, and their bytes
    streams     pseudorandom numbers from seeds
    circuits    what is proved: `Ball`, `Outer`, `TwoFactors`, `Flat`
    proof       shard, prepare, decide
    fit         which bounds, steps and numbers of reports a field has room for

No channel uses the proofs yet. docs/verified.md has the statement, the errors and what
is not proven.
"""

from tacit.proofs.circuits import Ball, Circuit, Flat, Outer, TwoFactors
from tacit.proofs.proof import (
    HELPER,
    LEADER,
    Preparation,
    Shares,
    decide,
    prepare,
    randomness_bytes,
    shard,
)

__all__ = [
    "HELPER",
    "LEADER",
    "Ball",
    "Circuit",
    "Flat",
    "Outer",
    "Preparation",
    "Shares",
    "TwoFactors",
    "decide",
    "prepare",
    "randomness_bytes",
    "shard",
]
