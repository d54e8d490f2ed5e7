"""Circuits of every kind, honest reports for them, and the two servers that decide."""

from __future__ import annotations

import numpy as np

from tacit.exact_sum import limit
from tacit.proofs import (
    HELPER,
    LEADER,
    Ball,
    Flat,
    Outer,
    TwoFactors,
    decide,
    prepare,
    randomness_bytes,
    shard,
)
from tacit.proofs.field import FIELD32, FIELD40, Field

VERIFY_KEY = bytes(range(32))
TOY = Field(97, 1, pow(5, 3, 97), 32)
FIELDS = {"97": TOY, "32 bits": FIELD32, "40 bits": FIELD40}

SMALL = {  # at most 16 numbers
    "ball": Ball(12, (limit(1.0, 12, steps=1024),)),
    "outer": Outer(6, (limit(1.0, 6, steps=1024),)),
    "factors": TwoFactors(6, (limit(2**0.5, 6, steps=1024),), split=4),
    "flat": Flat(12, (2**20,), least_items=4),
    "ball, groups": Ball(16, (2**18, 2**20, 2**16)),
    "outer, groups": Outer(5, (2**20, 2**18)),
    "factors, groups": TwoFactors(7, (2**18, 2**20), split=3),
    "flat, groups": Flat(16, (2**20, 2**16, 2**18), least_items=4),
}
FULL = {
    "ball": Ball(3533, (limit(1.0, 3533, steps=2**16),)),
    "outer": Outer(900, (limit(1.0, 900, steps=1024),)),
    "factors": TwoFactors(1230, (limit(2**0.5, 1230, steps=1024),), split=1200),
    "flat": Flat(3533, (2**32,)),
    "ball, groups": Ball(3533, (2**32, 2**30)),
    "outer, groups": Outer(300, (2**20, 2**18)),
    "flat, groups": Flat(3533, (2**32, 2**30)),
}


def honest(circuit, rng, group=None):
    """A report within the bound of a group: of any length, at times at the bound."""
    most = circuit.limits[len(circuit.limits) - 1 if group is None else group]
    if isinstance(circuit, Flat):
        return flat(circuit, rng, len(circuit.limits) - 1 if group is None else group)
    x = rng.standard_normal(circuit.n) * (rng.random(circuit.n) < rng.random())
    length = np.linalg.norm(x)
    scale = np.sqrt(most) * rng.choice([1.0, 1.0, rng.random()])
    return np.trunc(x * (scale / length if length else 0.0)).astype(np.int64)


def flat(circuit, rng, group):
    items = int(rng.choice([0, 1, circuit.n, rng.integers(circuit.n + 1)]))
    x = np.zeros(circuit.n, np.int64)
    x[rng.permutation(circuit.n)[:items]] = circuit.height(items, group=group)
    return x


def randomness(circuit, rng):
    """A nonce, and the random bytes of a client."""
    return rng.bytes(16), rng.bytes(randomness_bytes(circuit))


def shared(circuit, report, rng, group=0):
    """A nonce, and the shares of a report."""
    nonce, seeds = randomness(circuit, rng)
    return nonce, shard(circuit, report, nonce=nonce, randomness=seeds, group=group)


def prepared(circuit, shares, nonce, verify_key=VERIFY_KEY):
    """What both servers compute of their shares."""
    common = {"verify_key": verify_key, "nonce": nonce, "public": shares.public}
    return (
        prepare(circuit, LEADER, shares.leader, **common),
        prepare(circuit, HELPER, shares.helper, **common),
    )


def is_accepted(circuit, shares, nonce, verify_key=VERIFY_KEY):
    """Whether the report counts."""
    leader, helper = prepared(circuit, shares, nonce, verify_key)
    return decide(circuit, leader.message, helper.message)


def uniform(field, *shape, seed=0):
    """Uniform numbers, of which the first are the extremes."""
    numbers = np.random.default_rng(seed).integers(0, field.modulus, shape)
    extremes = [0, field.modulus - 1, 1, field.modulus // 2]
    numbers.ravel()[: len(extremes)] = extremes[: numbers.size]
    return numbers
