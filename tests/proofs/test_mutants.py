"""Verifiers with one thing broken accept what the real one refuses.

Each shows that a check is needed, and that the forgeries of `tacit.attacks` would find
it missing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from proof_circuits import SMALL, honest, is_accepted, prepared, randomness

from tacit.attacks.forged_proofs import (
    Attempt,
    moved_antidiagonal,
    prove_bent,
    too_long_with_false_bits,
    two_heights,
    two_hot_group,
    wrapping_pair,
    zero_hot_group,
)
from tacit.errors import BadMessage
from tacit.proofs import Ball, Outer, decide
from tacit.proofs import proof as module
from tacit.proofs.proof import prove, share_measurement

TIMES = 20


def attempts(circuit, times=TIMES, proving=prove, seed=0):
    rng = np.random.default_rng(seed)
    group = circuit.limits.index(max(circuit.limits))
    for _ in range(times):
        nonce, seeds = randomness(circuit, rng)
        report = honest(circuit, rng, group)
        yield Attempt(circuit, report, nonce, seeds, proving=proving)


def accepted(circuit, forge, *, verifier=None, decision=decide, **options):
    """How many of the forged reports a verifier takes: by default the real one."""
    count = 0
    for attempt in attempts(circuit, **options):
        shares = forge(attempt)
        servers = prepared(verifier or circuit, shares, attempt.nonce)
        messages = [server.message for server in servers]
        count += decision(verifier or circuit, *messages)
    return count


# --- Weights that are powers of one number --------------------------------------------


class PowersOfOne(Outer):
    """The broken form: ρ_i = r^i, so that X_02 and X_11 have the same weight."""

    def _powers(self, joints):
        p = self.field.modulus
        rows = [[pow(int(r), i, p) for i in range(self.n)] for r in joints[:, 3]]
        return np.concatenate([joints[:, :3], np.array(rows)], axis=1)

    def wires(self, gadget, measurement, results, joints, *, one):
        joints = self._powers(joints)
        return super().wires(gadget, measurement, results, joints, one=one)

    def values(self, gadget, measurement, joints, outputs, *, one):
        joints = self._powers(joints)
        return super().values(gadget, measurement, joints, outputs, one=one)


def test_powers_as_weights_accept_a_moved_antidiagonal():
    """A report 500 bounds long: this form takes every one, and the real one none."""
    circuit = SMALL["outer"]
    broken = PowersOfOne(circuit.n, circuit.limits)
    assert accepted(broken, moved_antidiagonal) == TIMES
    assert accepted(circuit, moved_antidiagonal) == 0


# --- Wraparound -----------------------------------------------------------------------


def wrapped(circuit, rng, *, verifier=None, is_marked=True):
    """Whether the wrapping pair is accepted, with marks where its tests have failed."""
    nonce, seeds = randomness(circuit, rng)
    x, limit = np.zeros(circuit.n, np.int64), circuit.limits[0]
    x[:2] = wrapping_pair(circuit.field.modulus, limit)
    norm = int(x @ x) - circuit.field.modulus
    attempt = Attempt(circuit, x, nonce, seeds)

    def answer(results):
        bits = attempt.claim_all(results).reshape(circuit.tests, -1)
        if not is_marked:
            shifted = (results + circuit.reach - 1) % circuit.field.modulus
            bits[:, -1] = shifted < 2 * circuit.reach
        return bits.ravel()

    head = circuit.head_of(x, norm, limit - norm, [])
    shares = share_measurement(
        circuit, head, nonce=nonce, randomness=seeds, answer=answer
    )
    return is_accepted(verifier or circuit, shares, nonce)


def test_one_wraparound_test_instead_of_a_hundred_accepts_the_wrapping_pair():
    """One test takes half: 10 to 50 of 60 but once in 10⁸; a hundred take none."""
    rng = np.random.default_rng(0)
    one, hundred = (Ball(12, (2**20,), tests=n) for n in (1, 100))
    assert 10 <= sum(wrapped(one, rng) for _ in range(60)) <= 50
    assert sum(wrapped(hundred, rng) for _ in range(60)) == 0


class Uncounted(Ball):
    """The broken form: how many tests are marked as passed is not asked."""

    def _weighted(self, terms, r):
        return super()._weighted([*terms[:3], 0, *terms[4:]], r)


def test_marks_that_are_not_counted_accept_every_wrapping_pair():
    rng = np.random.default_rng(0)
    circuit, broken = Ball(12, (2**20,)), Uncounted(12, (2**20,))
    for _ in range(TIMES):
        assert wrapped(circuit, rng, verifier=broken, is_marked=False)
        assert not wrapped(circuit, rng, is_marked=False)


# --- A bound that is larger by one ----------------------------------------------------


@pytest.mark.parametrize("kind", [Ball, Outer])
def test_a_bound_that_is_larger_by_one_accepts_one_step_too_many(kind):
    limit = 10**6
    x = np.zeros(6, np.int64)
    x[:2] = 1000, 1  # Σ x² = L + 1
    rng = np.random.default_rng(0)
    real, broken = kind(6, (limit,)), kind(6, (limit + 1,))
    assert real.length == broken.length
    for verifier, expected in ((real, False), (broken, True)):
        nonce, seeds = randomness(broken, rng)
        attempt = Attempt(broken, x, nonce, seeds)
        assert is_accepted(verifier, attempt.share_honestly(), nonce) is expected
    with pytest.raises(ValueError, match="must be <= 1000000"):
        real.encode(x)


# --- Less than both servers' whole messages -------------------------------------------


def one_server_alone(circuit, leader, helper):
    """Doubles the helper's answers instead of adding the leader's."""
    return decide(circuit, helper, helper)


def test_the_answers_of_one_server_alone_refuse_everything():
    """Shares of one server are uniform: doubled, they are no true statement."""
    for circuit in SMALL.values():
        assert accepted(circuit, Attempt.share_honestly, decision=one_server_alone) == 0
        assert accepted(circuit, Attempt.share_honestly) == TIMES


def only_the_value(circuit, leader, helper):
    """Looks at the circuit's value, and not at the gadget at t."""
    n = len(leader) - 2 * 32 * (2 if circuit.tests else 1)
    field, place = circuit.field, 0
    both = field.add(
        field.from_bytes(leader[:n], n // field.size),
        field.from_bytes(helper[:n], n // field.size),
    )
    for gadget in circuit.gadgets:
        for _ in range(gadget.proofs):
            if both[place]:
                return False
            place += gadget.verifier_size
    return True


def only_the_gadget(circuit, leader, helper):
    """Looks at the gadget at t, and not at the circuit's value."""
    n = len(leader) - 2 * 32 * (2 if circuit.tests else 1)
    field, place = circuit.field, 0
    both = field.add(
        field.from_bytes(leader[:n], n // field.size),
        field.from_bytes(helper[:n], n // field.size),
    )
    for gadget in circuit.gadgets:
        for _ in range(gadget.proofs):
            both[place] = 0
            place += gadget.verifier_size
    return module.holds(circuit, both)


@pytest.mark.parametrize(
    ("name", "forge"),
    [("ball", too_long_with_false_bits), ("flat", two_heights)],
)
def test_both_halves_of_the_decision_are_needed(name, forge):
    """A bent polynomial has the value zero; one that is not bent is the gadget's."""
    circuit = SMALL[name]
    both_ways = {"proving": prove_bent}, {"proving": prove}
    for decision, ways in (
        (only_the_value, both_ways),
        (only_the_gadget, both_ways[::-1]),
    ):
        caught = [accepted(circuit, forge, decision=decision, **way) for way in ways]
        assert caught == [TIMES, 0]
    for way in both_ways:
        assert accepted(circuit, forge, **way) == 0


# --- Groups ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ball, groups", "outer, groups", "flat, groups"])
@pytest.mark.parametrize("forge", [two_hot_group, zero_hot_group])
def test_groups_that_are_not_one_hot_need_their_own_check(name, forge, monkeypatch):
    """Without the sum of the bits, both are accepted."""
    circuit = SMALL[name]
    assert accepted(circuit, forge) == 0
    kind = type(circuit)
    weighted = kind._weighted

    def without_groups(self, terms, r):
        return weighted(self, terms[:-1], r)

    monkeypatch.setattr(kind, "_weighted", without_groups)
    assert accepted(circuit, forge) > 0


# --- Points ---------------------------------------------------------------------------


def test_a_point_that_is_a_root_of_unity_would_be_queried_without_the_check(
    monkeypatch,
):
    """Without it, `query` answers there, with nothing of the randomness in it."""
    circuit = SMALL["flat"]
    root = circuit.field.root(circuit.gadgets[0].points)
    monkeypatch.setattr(module, "points", lambda *_: (root,) * 4)
    [attempt] = attempts(circuit, times=1)
    shares = attempt.share_honestly()
    with pytest.raises(ValueError, match="root of unity"):
        prepared(circuit, shares, attempt.nonce)
    monkeypatch.setattr(type(circuit.field), "is_root", lambda *_: False)
    prepared(circuit, shares, attempt.nonce)


def test_fewer_proofs_are_another_circuit():
    """A server never takes the number of proofs from a report."""
    circuit = SMALL["ball"]
    [attempt] = attempts(circuit, times=1)
    fewer = replace(attempt, circuit=replace(circuit, proofs=1)).share_honestly()
    with pytest.raises(BadMessage, match="leader's share"):
        prepared(circuit, fewer, attempt.nonce)
