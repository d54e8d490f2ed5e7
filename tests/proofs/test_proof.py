"""Shares, messages and decisions: published vectors, honest reports, wrong bytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from proof_circuits import (
    FULL,
    SMALL,
    TOY,
    VERIFY_KEY,
    honest,
    is_accepted,
    prepared,
    randomness,
    shared,
)

from tacit.errors import BadMessage, BadValue, Refused
from tacit.proofs import HELPER, LEADER, Ball, decide, prepare, shard
from tacit.proofs.field import FIELD32, FIELD40
from tacit.proofs.proof import leader_bytes, message_bytes, points, query
from tacit.proofs.streams import Usage, draw, open_stream

VECTORS = Path(__file__).parents[1] / "vectors"
PINE = json.loads((VECTORS / "pine.json").read_text("utf-8"))["vectors"]
FIELDS = {"Field32": (FIELD32, 0xFFFF1005), "Field40": (FIELD40, 0xFFFF1006)}


def sha256(message):
    return hashlib.sha256(message).hexdigest()


def both(name):
    """A circuit, and a random generator of its own."""
    return SMALL[name], np.random.default_rng(0)


# --- Published vectors ----------------------------------------------------------------


@pytest.mark.parametrize("vector", PINE, ids=[vector["file"] for vector in PINE])
def test_a_ball_is_pine_byte_for_byte(vector):
    field, identity = FIELDS[vector["field"]]
    circuit = Ball(
        vector["dimension"],
        (vector["l2_norm_bound"] ** 2,),
        chunk=vector["chunk_length"],
        norm_chunk=vector["chunk_length_norm_equality"],
        tests=vector["num_wr_checks"],
        passing=vector["num_wr_successes"],
        proofs=vector["proofs"],
        norm_proofs=vector["proofs_norm_equality"],
        field=field,
        identity=identity,
    )
    for case in vector["reports"]:
        report = np.zeros(circuit.n, np.int64)
        numbers = [round(a * 2 ** vector["num_frac_bits"]) for a in case["measurement"]]
        report[: len(numbers)] = numbers
        nonce, rand = bytes.fromhex(case["nonce"]), bytes.fromhex(case["rand"])
        shares = shard(circuit, report, nonce=nonce, randomness=rand)
        assert shares.public.hex() == case["public_share"]
        assert shares.helper.hex() == case["helper_share"]
        assert sha256(shares.leader) == case["leader_share_sha256"]
        key = bytes.fromhex(vector["verify_key"])
        servers = prepared(circuit, shares, nonce, key)
        for server, prep_share, out_share in zip(
            servers,
            case["prep_shares_sha256"],
            case["out_shares_sha256"],
            strict=True,
        ):
            assert sha256(server.message[:-64]) == prep_share
            assert server.message[-64:].hex() == case["prep_message"]
            assert sha256(field.to_bytes(server.numbers)) == out_share
        assert decide(circuit, *(server.message for server in servers))


# --- Honest reports -------------------------------------------------------------------


def accept_honest(circuit, times, seed):
    """Every report of every group counts, and the halves add up to its numbers."""
    rng = np.random.default_rng(seed)
    for i in range(times):
        group = i % len(circuit.limits)
        report = honest(circuit, rng, group)
        nonce, shares = shared(circuit, report, rng, group)
        leader, helper = prepared(circuit, shares, nonce)
        assert decide(circuit, leader.message, helper.message)
        total = circuit.field.signed(circuit.field.add(leader.numbers, helper.numbers))
        assert (total == expected(circuit, report)).all()


def expected(circuit, report):
    kind = type(circuit).__name__
    if kind == "Outer":
        return np.outer(report, report)[np.triu_indices(circuit.n)]
    if kind == "TwoFactors":
        m = circuit.split
        return np.outer(report[:m], report[m:]).ravel()
    return report


@pytest.mark.parametrize("circuit", SMALL.values(), ids=SMALL)
def test_honest_reports_are_accepted_and_add_up(circuit):
    accept_honest(circuit, 60, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("circuit", SMALL.values(), ids=SMALL)
@pytest.mark.usefixtures("without_axis_checks")
def test_a_hundred_thousand_honest_reports_are_accepted(circuit):
    accept_honest(circuit, 100_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("circuit", FULL.values(), ids=FULL)
def test_honest_reports_of_full_size_are_accepted(circuit):
    accept_honest(circuit, 20, seed=2)


@pytest.mark.parametrize("name", ["ball, groups", "flat, groups"])
def test_no_length_tells_the_group(name):
    circuit, rng = both(name)
    lengths = set()
    for group in range(len(circuit.limits)):
        nonce, shares = shared(circuit, honest(circuit, rng, group), rng, group)
        messages = [server.message for server in prepared(circuit, shares, nonce)]
        sent = (shares.public, shares.leader, shares.helper, *messages)
        lengths.add(tuple(map(len, sent)))
    assert len(lengths) == 1


@pytest.mark.parametrize("circuit", SMALL.values(), ids=SMALL)
def test_the_lengths_are_those_that_are_foretold(circuit):
    rng = np.random.default_rng(0)
    nonce, shares = shared(circuit, honest(circuit, rng, 0), rng)
    assert len(shares.leader) == leader_bytes(circuit)
    for server in prepared(circuit, shares, nonce):
        assert len(server.message) == message_bytes(circuit)


# --- Other messages than the client's -------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_any_changed_byte_is_refused(name):
    """One bit anywhere: the proof does not hold, or the bytes are no message."""
    circuit, rng = both(name)
    nonce, shares = shared(circuit, honest(circuit, rng, 0), rng)
    for part in ("public", "leader", "helper"):
        whole = getattr(shares, part)
        for place in rng.integers(0, len(whole), 6):
            changed = bytearray(whole)
            changed[place] ^= 1 << rng.integers(8)
            harmed = replace(shares, **{part: bytes(changed)})
            try:
                assert not is_accepted(circuit, harmed, nonce), (part, place)
            except BadMessage:
                assert part == "leader"  # a number that is not below p


@pytest.mark.parametrize("name", ["ball", "flat"])
def test_bytes_of_another_length_are_refused(name):
    circuit, rng = both(name)
    nonce, shares = shared(circuit, honest(circuit, rng, 0), rng)
    for part in ("public", "leader", "helper"):
        whole = getattr(shares, part)
        for other in (whole[:-1], whole + b"\0", b""):
            with pytest.raises(BadMessage):
                prepared(circuit, replace(shares, **{part: other}), nonce)
    leader, helper = (server.message for server in prepared(circuit, shares, nonce))
    for other in (leader[:-1], leader + b"\0", b""):
        with pytest.raises(BadMessage):
            decide(circuit, other, helper)
        with pytest.raises(BadMessage):
            decide(circuit, leader, other)
    too_large = FIELD40.modulus.to_bytes(5, "little") + leader[5:]
    with pytest.raises(BadMessage):
        decide(circuit, too_large, helper)


def test_a_leader_who_shifts_its_share_learns_nothing():
    """The helper refuses every shift but zero: no status depends on the report."""
    circuit, rng = both("ball")
    nonce, shares = shared(circuit, honest(circuit, rng, 0), rng)
    leader, helper = prepared(circuit, shares, nonce)
    assert decide(circuit, leader.message, helper.message)
    common = {"verify_key": VERIFY_KEY, "nonce": nonce, "public": shares.public}
    for shift in (0, *rng.integers(1, FIELD40.modulus, 30).tolist()):
        numbers = FIELD40.from_bytes(
            shares.leader[:-64], (len(shares.leader) - 64) // 5
        )
        numbers[rng.integers(circuit.n)] += shift
        shifted = FIELD40.to_bytes(FIELD40.remainders(numbers)) + shares.leader[-64:]
        other = prepare(circuit, LEADER, shifted, **common)
        assert decide(circuit, other.message, helper.message) is (shift == 0)


def test_servers_with_different_verify_keys_refuse_every_report():
    for circuit in SMALL.values():
        rng = np.random.default_rng(0)
        nonce, shares = shared(circuit, honest(circuit, rng, 0), rng)
        leader, _ = prepared(circuit, shares, nonce)
        _, helper = prepared(circuit, shares, nonce, bytes(32))
        assert not decide(circuit, leader.message, helper.message)


def test_a_report_under_another_nonce_is_refused():
    for circuit in SMALL.values():
        rng = np.random.default_rng(0)
        _, shares = shared(circuit, honest(circuit, rng, 0), rng)
        assert not is_accepted(circuit, shares, bytes(16))


def test_the_same_bytes_have_the_same_answer():
    circuit, rng = both("outer")
    nonce, shares = shared(circuit, honest(circuit, rng), rng)
    one, two = prepared(circuit, shares, nonce), prepared(circuit, shares, nonce)
    assert [each.message for each in one] == [each.message for each in two]


@pytest.mark.parametrize("name", ["nonce", "randomness"])
def test_a_client_with_too_few_random_bytes_is_refused(name):
    circuit, rng = both("ball")
    nonce, seeds = randomness(circuit, rng)
    arguments = {"nonce": nonce, "randomness": seeds}
    arguments[name] = arguments[name][:-1]
    with pytest.raises(BadValue, match=name):
        shard(circuit, np.zeros(12, np.int64), **arguments)
    with pytest.raises(BadValue, match="verify_key"):
        prepare(circuit, HELPER, b"", verify_key=b"", nonce=nonce, public=b"")


def test_randomness_under_which_a_test_fails_is_to_be_drawn_anew():
    """W would have to be as small as here for that to happen at all."""

    class Narrow(Ball):
        reach = 1  # results from 0 to 1

    circuit = Narrow(12, (2**20,), tests=3)
    nonce, seeds = randomness(circuit, np.random.default_rng(0))
    with pytest.raises(Refused, match="draw fresh randomness"):
        shard(circuit, np.arange(12), nonce=nonce, randomness=seeds)


# --- Points ---------------------------------------------------------------------------


def toy_ball():
    return Ball(2, (2,), chunk=1, norm_chunk=1, tests=1, proofs=1, field=TOY)


def test_no_point_is_a_root_of_unity_whatever_the_verify_key():
    """In a field of 97 numbers one in six is one; a key is the server's own choice."""
    circuit = toy_ball()
    seen = set()
    for i in range(2000):
        key = i.to_bytes(32, "big")
        chosen = points(circuit, key, bytes(16))
        for t, gadget in zip(chosen, circuit.gadgets, strict=True):
            assert not TOY.is_root(t, gadget.points)
            seen.add((gadget.points, t))
    assert seen == {
        (gadget.points, t)
        for gadget in circuit.gadgets
        for t in range(97)
        if not TOY.is_root(t, gadget.points)
    }


def test_a_query_at_a_root_of_unity_is_refused():
    circuit = toy_ball()
    n_proofs = sum(gadget.proof_size for gadget in circuit.gadgets)
    inputs = [np.zeros(n, np.int64) for n in (circuit.length, 1, n_proofs)]
    joints = np.ones((1, 3), np.int64)
    for number, gadget in enumerate(circuit.gadgets):
        for k in range(gadget.points):
            t = [2, 2]
            t[number] = pow(TOY.root(gadget.points), k, 97)
            with pytest.raises(BadValue, match="root of unity"):
                query(circuit, *inputs, joints, tuple(t), one=49)
    assert len(query(circuit, *inputs, joints, (2, 2), one=49)) == 3 + 4


def test_the_points_of_a_report_are_the_first_of_their_stream():
    circuit, nonce = SMALL["ball"], bytes(16)
    stream = open_stream(
        circuit.identity, Usage.QUERY, VERIFY_KEY, bytes([1, 4]), nonce
    )
    assert list(points(circuit, VERIFY_KEY, nonce)) == draw(FIELD40, stream, 5).tolist()
