"""Making, sharing and checking a proof: pure functions of bytes and arrays.

    shard     1  write the report as a measurement (`circuits`); the helper's share is
                 a stream, the leader's the rest
              2  hash both shares of the numbers: a seed for the wraparound tests
              3  answer the tests; hash both whole shares: a seed for joint randomness
              4  for each proof draw random values of the wires at point 0, interpolate
                 the wires, and send the polynomial of the gadget; share it likewise
    prepare   5  compute both seeds, from the own share and the hash of the other's
              6  the point t of each proof comes from the verify key and the nonce
              7  say the shares of the circuit's value, of the wires and the gadget at t
    decide    8  add both up: the value is zero, the gadget of the wires is the gadget,
                 and both servers had the seeds that follow from both shares

A server learns of an honest report that it is one. It needs a point t that is no root
of unity, where the wires would be the measurement itself: `query` refuses such a point,
and the points of line 6 leave them out. And it needs that a report is queried once:
two points of one proof are two equations. So a server prepares a report under one
verify key alone: the caller of `prepare` has to see to that.

Source: draft-chen-cfrg-vdaf-pine-01, whose messages these are for `Ball`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from tacit.errors import BadMessage, BadValue
from tacit.kernels import prime_field as kernels
from tacit.proofs.circuits import Bits, Circuit, Joints, Measurement, Results, Whole
from tacit.proofs.field import Numbers
from tacit.proofs.streams import SEED_BYTES, Stream, Usage, draw, open_stream

LEADER, HELPER = 0, 1
NONCE_BYTES = 16  # the id of a report
_NO_SEED = bytes(SEED_BYTES)

Points = tuple[int, ...]  # t of each proof, gadget by gadget
Starts = Int64[np.ndarray, "starts"]  # the wires of all proofs at point 0
Proofs = Int64[np.ndarray, "proved"]  # all proofs, or a share of them
Answers = Int64[np.ndarray, "answers"]  # of one server, or of both
Prover = Callable[[Circuit, Measurement, Results, Joints, Starts], Proofs]


@dataclass(frozen=True)
class Shares:
    """A report as it is sent."""

    public: bytes  # hashes of both shares, 32 bytes each
    leader: bytes  # its share of measurement and proofs, and its blinds
    helper: bytes  # seeds of both, and its blinds


@dataclass(frozen=True, eq=False)
class Preparation:
    """What a server has computed of its share."""

    numbers: Numbers  # its half of the numbers that are added up
    message: bytes  # answers of all proofs ‖ hashes of its share ‖ both seeds


# --- Client ---------------------------------------------------------------------------


def shard(
    circuit: Circuit,
    report: Whole,
    *,
    nonce: bytes,
    randomness: bytes,
    group: int = 0,
) -> Shares:
    """Lines 1 to 4. `randomness` has `randomness_bytes`, and is used once.

    Refuses a report beyond its bound, and randomness under which one of the wraparound
    tests fails, which has a probability of 2⁻¹⁰⁰: the caller then draws anew.
    """
    head = circuit.encode(report, group=group)
    return share_measurement(circuit, head, nonce=nonce, randomness=randomness)


def share_measurement(
    circuit: Circuit,
    head: Measurement,
    *,
    nonce: bytes,
    randomness: bytes,
    answer: Callable[[Results], Bits] | None = None,
    proving: Prover | None = None,
) -> Shares:
    """Lines 1 to 4 for a measurement up to the tests, true or not.

    Hostile clients have an `answer` to the tests and a way of proving of their own.
    """
    _check_length("nonce", nonce, NONCE_BYTES)
    _check_length("randomness", randomness, randomness_bytes(circuit))
    seeds = _cut(randomness, SEED_BYTES)
    k_measurement, k_proof, k_prove = seeds[0], seeds[1], seeds[-1]
    n_blinds = _n_blinds(circuit)
    helper_blinds, leader_blinds = seeds[2 : 2 + n_blinds], seeds[2 + n_blinds : -1]
    field = circuit.field
    helper = _helper_measurement(circuit, k_measurement)
    leader = field.subtract(head, helper[: len(head)])
    public: list[bytes] = []
    results = np.empty(0, np.int64)
    if circuit.tests:
        some, usage = circuit.committed, Usage.TESTS_PART
        public = [
            _part(circuit, LEADER, leader_blinds[0], leader[some], nonce, usage),
            _part(circuit, HELPER, helper_blinds[0], helper[some], nonce, usage),
        ]
        seed = _seed(circuit, public, Usage.TESTS_SEED)
        results = _test_results(circuit, head[circuit.tested], seed)
    rest = (answer or circuit.answer)(results)
    measurement = np.concatenate([head, rest])
    leader = np.concatenate([leader, field.subtract(rest, helper[len(head) :])])
    usage = Usage.JOINT_PART
    parts = [
        _part(circuit, LEADER, leader_blinds[-1], leader, nonce, usage),
        _part(circuit, HELPER, helper_blinds[-1], helper, nonce, usage),
    ]
    joints = _joints(circuit, _seed(circuit, parts, Usage.JOINT_SEED))
    stream = _open(circuit, Usage.PROVE, k_prove, _counts(circuit))
    starts = draw(field, stream, sum(g.proofs * g.arity for g in circuit.gadgets))
    proofs = (proving or prove)(circuit, measurement, results, joints, starts)
    rest_of_proofs = field.subtract(proofs, _helper_proofs(circuit, k_proof))
    sent = field.to_bytes(leader) + field.to_bytes(rest_of_proofs)
    return Shares(
        b"".join([*public, *parts]),
        b"".join([sent, *leader_blinds]),
        b"".join([k_measurement, k_proof, *helper_blinds]),
    )


def prove(
    circuit: Circuit,
    measurement: Measurement,
    results: Results,
    joints: Joints,
    starts: Starts,
) -> Proofs:
    """Line 4: every proof as its wires at point 0 and the gadget's coefficients."""
    field, proofs, place = circuit.field, [], 0
    for number, gadget in enumerate(circuit.gadgets):
        calls = circuit.wires(number, measurement, results, joints, one=1)
        for inputs in calls:
            start = starts[place : place + gadget.arity]
            place += gadget.arity
            wires = _with_start(gadget.points, start, inputs)
            root = field.root(2 * gadget.points)
            proofs += [
                start,
                kernels.gadget_polynomial(wires, gadget.is_square, root, field.modulus),
            ]
    return np.concatenate(proofs)


# --- Servers --------------------------------------------------------------------------


def prepare(
    circuit: Circuit,
    server: int,
    share: bytes,
    *,
    verify_key: bytes,
    nonce: bytes,
    public: bytes,
) -> Preparation:
    """Lines 5 to 7, for LEADER or HELPER; refuses a share of another length.

    The verify key is common to both servers, and no client knows it.
    """
    _check_length("verify_key", verify_key, SEED_BYTES)
    _check_length("nonce", nonce, NONCE_BYTES)
    n_blinds = _n_blinds(circuit)
    if len(public) != 2 * n_blinds * SEED_BYTES:
        raise BadMessage(f"a public part of {len(public)} bytes")
    measurement, proofs, blinds = _read(circuit, server, share)
    parts = _cut(public, SEED_BYTES)
    results, hashes, seeds = np.empty(0, np.int64), [], []
    if circuit.tests:
        some = measurement[circuit.committed]
        own = _part(circuit, server, blinds[0], some, nonce, Usage.TESTS_PART)
        hashes.append(own)
        both = [own if i == server else parts[i] for i in (LEADER, HELPER)]
        seeds.append(_seed(circuit, both, Usage.TESTS_SEED))
        results = _test_results(circuit, measurement[circuit.tested], seeds[0])
    own = _part(circuit, server, blinds[-1], measurement, nonce, Usage.JOINT_PART)
    hashes.append(own)
    both = [own if i == server else parts[i - 2] for i in (LEADER, HELPER)]
    seeds.append(_seed(circuit, both, Usage.JOINT_SEED))
    answers = query(
        circuit,
        measurement,
        results,
        proofs,
        _joints(circuit, seeds[-1]),
        points(circuit, verify_key, nonce),
        one=pow(2, -1, circuit.field.modulus),
    )
    message = b"".join([circuit.field.to_bytes(answers), *hashes, *seeds])
    return Preparation(measurement[: circuit.n_sums], message)


def points(circuit: Circuit, verify_key: bytes, nonce: bytes) -> Points:
    """Line 6: the next numbers of the stream that are no root of unity."""
    stream = _open(circuit, Usage.QUERY, verify_key, _counts(circuit), nonce)
    chosen = []
    for gadget in circuit.gadgets:
        for _ in range(gadget.proofs):
            [t] = draw(circuit.field, stream, 1).tolist()
            while circuit.field.is_root(t, gadget.points):
                [t] = draw(circuit.field, stream, 1).tolist()
            chosen.append(t)
    return tuple(chosen)


def query(
    circuit: Circuit,
    measurement: Measurement,
    results: Results,
    proofs: Proofs,
    joints: Joints,
    t: Points,
    *,
    one: int,
) -> Answers:
    """Line 7 for shares, of which `one` is the share of 1; affine in all of them.

    Refuses a point that is a root of unity: the wires there are the measurement.
    """
    field, place, at = circuit.field, 0, iter(t)
    answers: list[Answers] = []
    for number, gadget in enumerate(circuit.gadgets):
        size, root = gadget.proof_size, field.root(gadget.points)
        mine = proofs[place : place + gadget.proofs * size].reshape(-1, size)
        place += mine.size
        inputs = circuit.wires(number, measurement, results, joints, one=one)
        outputs = np.stack([claimed_outputs(circuit, number, row) for row in mine])
        values = circuit.values(number, measurement, joints, outputs, one=one)
        for row, calls, value in zip(mine, inputs, values, strict=True):
            point = next(at)
            if field.is_root(point, gadget.points):
                raise BadValue(
                    f"t={point} is a root of unity of order {gadget.points}: a proof "
                    "is never queried there, because its wires are the report's numbers"
                )
            wires = _with_start(gadget.points, row[: gadget.arity], calls)
            at_t = kernels.wires_at(wires, point, root, field.modulus)
            polynomial = row[gadget.arity :]
            result = kernels.value_at(polynomial, point, field.modulus)
            answers += [np.array([value]), at_t, np.array([result])]
    return np.concatenate(answers)


def decide(circuit: Circuit, leader: bytes, helper: bytes) -> bool:
    """Line 8: whether the report of these two messages counts.

    Refuses messages of another length or with numbers that are not below p.
    """
    answers, hashes, seeds = zip(
        *(_read_message(circuit, message) for message in (leader, helper)), strict=True
    )
    usages = [Usage.TESTS_SEED, Usage.JOINT_SEED][-_n_blinds(circuit) :]
    expected = [
        _seed(circuit, both, usage)
        for both, usage in zip(zip(*hashes, strict=True), usages, strict=True)
    ]
    if not seeds[LEADER] == seeds[HELPER] == expected:
        return False
    return holds(circuit, circuit.field.add(*answers))


def holds(circuit: Circuit, answers: Answers) -> bool:
    """Whether the sum of both answers is that of a true statement."""
    p, place = circuit.field.modulus, 0
    for gadget in circuit.gadgets:
        for _ in range(gadget.proofs):
            value, *wires, result = (
                int(number) for number in answers[place : place + gadget.verifier_size]
            )
            place += gadget.verifier_size
            left, right = wires[::2], wires[1::2]
            if gadget.is_square:
                left = right = wires
            products = (a * b for a, b in zip(left, right, strict=True))
            if value or sum(products) % p != result:
                return False
    return True


# --- Bytes ----------------------------------------------------------------------------


def randomness_bytes(circuit: Circuit) -> int:
    """The length of a client's randomness: three seeds, and the blinds of both."""
    return (3 + 2 * _n_blinds(circuit)) * SEED_BYTES


def leader_bytes(circuit: Circuit) -> int:
    """The length of the leader's share.

    >>> from tacit.proofs.circuits import Ball
    >>> leader_bytes(Ball(3533, (4295033744,)))
    34529
    """
    n = circuit.length + _n_proofs(circuit)
    return n * circuit.field.size + _n_blinds(circuit) * SEED_BYTES


def message_bytes(circuit: Circuit) -> int:
    """The length of what one server says of a report."""
    n = sum(gadget.proofs * gadget.verifier_size for gadget in circuit.gadgets)
    return n * circuit.field.size + 2 * _n_blinds(circuit) * SEED_BYTES


def _n_blinds(circuit: Circuit) -> int:
    return 2 if circuit.tests else 1


def _n_proofs(circuit: Circuit) -> int:
    """The numbers of all proofs."""
    return sum(gadget.proofs * gadget.proof_size for gadget in circuit.gadgets)


def _read(
    circuit: Circuit, server: int, share: bytes
) -> tuple[Measurement, Proofs, list[bytes]]:
    """The measurement, the proofs and the blinds of a server's share."""
    blinds = _n_blinds(circuit) * SEED_BYTES
    if server == HELPER:
        if len(share) != 2 * SEED_BYTES + blinds:
            raise BadMessage(f"a helper's share of {len(share)} bytes")
        k_measurement, k_proof, *rest = _cut(share, SEED_BYTES)
        measurement = _helper_measurement(circuit, k_measurement)
        return measurement, _helper_proofs(circuit, k_proof), rest
    if len(share) != leader_bytes(circuit):
        raise BadMessage(f"a leader's share of {len(share)} bytes")
    end = len(share) - blinds
    n = circuit.length + _n_proofs(circuit)
    numbers = circuit.field.from_bytes(memoryview(share)[:end], n)
    rest = _cut(share[end:], SEED_BYTES)
    return numbers[: circuit.length], numbers[circuit.length :], rest


def _read_message(
    circuit: Circuit, message: bytes
) -> tuple[Answers, list[bytes], list[bytes]]:
    """The answers, hashes and seeds of a message."""
    if len(message) != message_bytes(circuit):
        raise BadMessage(f"a message of {len(message)} bytes about a report")
    end = len(message) - 2 * _n_blinds(circuit) * SEED_BYTES
    answers = circuit.field.from_bytes(message[:end], end // circuit.field.size)
    rest = _cut(message[end:], SEED_BYTES)
    return answers, rest[: len(rest) // 2], rest[len(rest) // 2 :]


def _check_length(name: str, value: bytes, size: int) -> None:
    if len(value) != size:
        raise BadValue(f"{name} has {len(value)} bytes; needed are {size}")


def _cut(joined: bytes, size: int) -> list[bytes]:
    return [joined[i : i + size] for i in range(0, len(joined), size)]


# --- Streams --------------------------------------------------------------------------


def _open(circuit: Circuit, usage: Usage, seed: bytes, *binder: bytes) -> Stream:
    return open_stream(circuit.identity, usage, seed, *binder)


def _counts(circuit: Circuit) -> bytes:
    """How many proofs of each kind there are, as it stands in the binders."""
    counts = [gadget.proofs for gadget in circuit.gadgets]
    return bytes([0, *counts][-2:])


def _helper_measurement(circuit: Circuit, seed: bytes) -> Measurement:
    stream = _open(circuit, Usage.MEASUREMENT, seed, bytes([HELPER]))
    return draw(circuit.field, stream, circuit.length)


def _helper_proofs(circuit: Circuit, seed: bytes) -> Proofs:
    stream = _open(circuit, Usage.PROOF, seed, _counts(circuit), bytes([HELPER]))
    return draw(circuit.field, stream, _n_proofs(circuit))


def _part(
    circuit: Circuit,
    server: int,
    blind: bytes,
    share: Numbers,
    nonce: bytes,
    usage: Usage,
) -> bytes:
    """The hash of one server's share."""
    packed = circuit.field.to_bytes(share)
    return _open(circuit, usage, blind, bytes([server]), nonce, packed)(SEED_BYTES)


def _seed(circuit: Circuit, parts: Sequence[bytes], usage: Usage) -> bytes:
    return _open(circuit, usage, _NO_SEED, *parts)(SEED_BYTES)


def _test_results(circuit: Circuit, x: Numbers, seed: bytes) -> Results:
    """Line 3: ⟨x, ±1 or 0⟩ of every test, or shares of them."""
    row = -(-len(x) // 4)
    raw = _open(circuit, Usage.TESTS, seed)(row * circuit.tests)
    codes = np.frombuffer(raw, np.uint8).reshape(circuit.tests, row)
    return kernels.ternary_products(x, codes, circuit.field.modulus)


def _joints(circuit: Circuit, seed: bytes) -> Joints:
    stream = _open(circuit, Usage.JOINT, seed, bytes([circuit.proofs]))
    values = draw(circuit.field, stream, circuit.proofs * circuit.n_joint)
    return values.reshape(circuit.proofs, circuit.n_joint)


# --- Polynomials ----------------------------------------------------------------------


def _with_start(
    points: int,
    start: Int64[np.ndarray, "arity"],
    calls: Int64[np.ndarray, "calls arity"],
) -> Int64[np.ndarray, "points arity"]:
    """The wires at all points: random values, then the inputs of every call."""
    wires = np.zeros((points, len(start)), np.int64)
    wires[0] = start
    wires[1 : 1 + len(calls)] = calls
    return wires


def claimed_outputs(
    circuit: Circuit, number: int, proof: Numbers
) -> Int64[np.ndarray, "calls"]:
    """The gadget's outputs for every call, as a proof claims them."""
    gadget, field = circuit.gadgets[number], circuit.field
    root = field.root(gadget.points)
    values = kernels.values_at_roots(
        proof[gadget.arity :], gadget.points, root, field.modulus
    )
    return np.asarray(values[1 : 1 + gadget.calls])
