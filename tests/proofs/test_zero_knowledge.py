"""Zero knowledge, over all randomness of a field of 97 numbers and two items.

What a server sees of a report is its own share and the other server's answers. Its
share is uniform for every report: it is a stream, or the measurement minus one.
The query is affine in the shares (tested below), so given its own share, the answers of
the other are those of both together minus its own. So the view has one law for all
honest reports if the answers of both together have. They depend on the values of the
wires at point 0 alone, and here these run through *all* values: 97 for the squares and
97² for the products, for every point t, and the answers to each are counted.

At a root of unity, the wires are the report's numbers, and the laws differ.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from proof_circuits import TOY

from tacit.errors import Refused
from tacit.kernels import prime_field as kernels
from tacit.proofs import Ball, Flat, Outer, TwoFactors
from tacit.proofs.proof import holds, prove, query

P = TOY.modulus
ELSEWHERE = 2  # no root of unity: where the other gadget is queried
_NORMED = {"chunk": 1, "norm_chunk": 1, "tests": 1, "proofs": 1, "field": TOY}
_FLAT = {"chunk": 1, "proofs": 1, "least_items": 1, "field": TOY}
CIRCUITS = {
    "ball": Ball(2, (2,), **_NORMED),
    "outer": Outer(2, (2,), **_NORMED),
    "factors": TwoFactors(2, (2,), split=1, **_NORMED),
    "flat": Flat(2, (4,), **_FLAT),
    "ball, groups": Ball(2, (2, 1), **_NORMED),
    "outer, groups": Outer(2, (2, 1), **_NORMED),
    "factors, groups": TwoFactors(2, (2, 1), split=1, **_NORMED),
    "flat, groups": Flat(2, (4, 1), **_FLAT),
}
each = pytest.mark.parametrize("circuit", CIRCUITS.values(), ids=CIRCUITS)


def honest_heads(circuit):
    """The head of every honest report of every group, and the numbers in its tests."""
    for group in range(len(circuit.limits)):
        for numbers in itertools.product(range(-2, 3), repeat=circuit.n):
            try:
                head = circuit.encode(np.array(numbers), group=group)
            except ValueError:
                continue
            yield head


def measured(circuit, head, signs):
    """The whole measurement, and the results of the tests with these signs."""
    results = np.full(circuit.tests, signs @ head[circuit.tested]) % P
    return np.concatenate([head, circuit.answer(results)]), results


def signs_of(circuit, rng):
    return rng.integers(-1, 2, circuit.n) if circuit.tests else np.zeros(0, np.int64)


def points_of(gadget):
    """All points, and those at which a proof may be queried."""
    return [t for t in range(P) if not TOY.is_root(t, gadget.points)]


def every_proof(circuit, number, measurement, results, joints):
    """The proofs for all values of one gadget's wires at point 0; the others zero."""
    gadget, mine = (
        circuit.gadgets[number],
        part_of(circuit, number, lambda gadget: gadget.proof_size),
    )
    wires = np.zeros((gadget.points, gadget.arity), np.int64)
    [wires[1 : 1 + gadget.calls]] = circuit.wires(
        number, measurement, results, joints, one=1
    )
    root = TOY.root(2 * gadget.points)
    starts = np.array([*itertools.product(range(P), repeat=gadget.arity)])
    total = sum(gadget.proof_size for gadget in circuit.gadgets)
    proofs = np.zeros((len(starts), total), np.int64)
    proofs[:, mine.start : mine.start + gadget.arity] = starts
    for start, proof in zip(starts, proofs[:, mine], strict=True):
        wires[0] = start
        polynomial = kernels.gadget_polynomial(wires, gadget.is_square, root, P)
        proof[gadget.arity :] = polynomial
    return proofs


def part_of(circuit, number, sizes):
    """The place of a gadget's numbers among those of all."""
    first = sum(sizes(gadget) for gadget in circuit.gadgets[:number])
    return slice(first, first + sizes(circuit.gadgets[number]))


def matrix_at(circuit, number, t, joints):
    """The query at t as a matrix, from what it makes of each unit vector."""
    sizes = [
        circuit.length,
        circuit.tests,
        sum(gadget.proof_size for gadget in circuit.gadgets),
    ]
    units = np.vstack([np.zeros(sum(sizes), np.int64), np.eye(sum(sizes), dtype=int)])
    points = [ELSEWHERE] * len(circuit.gadgets)
    points[number] = t
    base, *columns = (
        query(
            circuit,
            *np.split(unit, np.cumsum(sizes)[:-1]),
            joints,
            tuple(points),
            one=1,
        )
        for unit in units
    )
    return (np.stack(columns) - base) % P, base


def laws(circuit, heads, signs, joints, number, ts):
    """For each t and report: the answers of one gadget to all its wires at point 0."""
    inputs = []
    for head in heads:
        measurement, results = measured(circuit, head, signs)
        fixed = np.concatenate([measurement, results])
        proofs = every_proof(circuit, number, measurement, results, joints)
        inputs.append((fixed, proofs.astype(np.float64)))  # whole numbers below 2⁵³
    mine = part_of(circuit, number, lambda gadget: gadget.verifier_size)
    for t in ts:
        matrix, base = matrix_at(circuit, number, t, joints)
        matrix, base = matrix[:, mine].astype(np.float64), base[mine]
        counted = []
        for fixed, proofs in inputs:
            n = len(fixed)
            answers = (proofs @ matrix[n:] + fixed @ matrix[:n] + base) % P
            codes = answers.astype(np.int64) @ P ** np.arange(answers.shape[1])
            counted.append(np.sort(codes))
        yield t, counted


def differing(circuit, heads, seed, every=1):
    """The gadgets and points at which two reports have different answers.

    `every` leaves out points: 8 asks at every eighth.
    """
    rng = np.random.default_rng(seed)
    signs = signs_of(circuit, rng)
    joints = rng.integers(0, P, (1, circuit.n_joint))
    for number, gadget in enumerate(circuit.gadgets):
        assert len(points_of(gadget)) == P - gadget.points
        ts = points_of(gadget)[::every]
        for t, (first, *others) in laws(circuit, heads, signs, joints, number, ts):
            assert len(first) == P**gadget.arity
            if any((first != other).any() for other in others):
                yield number, t


@each
def test_two_honest_reports_give_the_same_answers(circuit):
    """The first and the last of them, at some points; slow tests have all of both."""
    heads = list(honest_heads(circuit))
    assert list(differing(circuit, [heads[0], heads[-1]], seed=0, every=16)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.usefixtures("without_axis_checks")
@each
def test_all_honest_reports_give_the_same_answers(circuit, seed):
    assert list(differing(circuit, list(honest_heads(circuit)), seed)) == []


@each
def test_the_proofs_that_are_counted_are_those_of_clients(circuit):
    rng = np.random.default_rng(0)
    measurement, results = measured(
        circuit, next(honest_heads(circuit)), signs_of(circuit, rng)
    )
    joints = rng.integers(0, P, (1, circuit.n_joint))
    n_starts = sum(gadget.arity for gadget in circuit.gadgets)
    for number, gadget in enumerate(circuit.gadgets):
        proofs = every_proof(circuit, number, measurement, results, joints)
        place = part_of(circuit, number, lambda gadget: gadget.arity)
        mine = part_of(circuit, number, lambda gadget: gadget.proof_size)
        for row in rng.integers(0, P**gadget.arity, 10):
            starts = np.zeros(n_starts, np.int64)
            starts[place] = proofs[row, mine][: gadget.arity]
            one = prove(circuit, measurement, results, joints, starts)
            assert (one[mine] == proofs[row, mine]).all()


def test_a_report_that_is_not_honest_gives_other_answers():
    """Else the test above would be blind."""
    circuit = CIRCUITS["ball"]
    heads = list(honest_heads(circuit))
    forged = heads[0].copy()
    forged[0] = (forged[0] + 1) % P
    numbers = {
        number for number, _ in differing(circuit, [heads[0], forged], 0, every=16)
    }
    assert 0 in numbers


@each
def test_at_a_root_of_unity_the_answers_tell_all_honest_reports_apart(circuit):
    """Point k has the inputs of call k: no randomness is left in them."""
    rng = np.random.default_rng(0)
    signs = signs_of(circuit, rng)
    joints = rng.integers(1, P, (1, circuit.n_joint))
    seen = set()
    heads = list(honest_heads(circuit))
    for head in heads:
        measurement, results = measured(circuit, head, signs)
        wires = [
            circuit.wires(number, measurement, results, joints, one=1)
            for number in range(len(circuit.gadgets))
        ]
        seen.add(b"".join(inputs.tobytes() for inputs in wires))
        for number, gadget in enumerate(circuit.gadgets):
            root = TOY.root(gadget.points)
            start = rng.integers(0, P, (1, gadget.arity))
            empty = np.zeros((gadget.points - gadget.calls - 1, gadget.arity), int)
            every = np.vstack([start, wires[number][0], empty])
            # A polynomial through them has those values at the roots for any `start`.
            coefficients = every.copy()
            kernels.transform(coefficients, pow(root, -1, P), P)
            for k in range(1, gadget.calls + 1):
                t = pow(root, k, P)
                powers = np.array([pow(t, i, P) for i in range(gadget.points)])
                at_t = powers @ coefficients * pow(gadget.points, -1, P) % P
                assert (at_t == wires[number][0][k - 1]).all()
    assert len(seen) == len(heads)


@each
def test_the_query_is_affine_in_the_shares(circuit):
    """Both answers add up to that of the whole, for shares drawn at random."""
    rng = np.random.default_rng(0)
    signs = signs_of(circuit, rng)
    n_starts = sum(gadget.arity * gadget.proofs for gadget in circuit.gadgets)
    for head in honest_heads(circuit):
        measurement, results = measured(circuit, head, signs)
        joints = rng.integers(0, P, (1, circuit.n_joint))
        starts = rng.integers(0, P, n_starts)
        proofs = prove(circuit, measurement, results, joints, starts)
        whole = measurement, results, proofs
        half = [rng.integers(0, P, len(numbers)) for numbers in whole]
        rest = [(a - b) % P for a, b in zip(whole, half, strict=True)]
        t = tuple(int(rng.choice(points_of(gadget))) for gadget in circuit.gadgets)
        answers = query(circuit, *whole, joints, t, one=1)
        shares = [query(circuit, *some, joints, t, one=49) for some in (half, rest)]
        assert ((shares[0] + shares[1]) % P == answers).all()
        assert holds(circuit, answers)


@each
def test_an_honest_report_is_accepted_for_every_joint_randomness(circuit):
    """The circuit's value is zero for each value of each number, 97 at a time."""
    rng = np.random.default_rng(0)
    signs = signs_of(circuit, rng)
    last = len(circuit.gadgets) - 1
    for head in itertools.islice(honest_heads(circuit), 3):
        measurement, results = measured(circuit, head, signs)
        for place, value in itertools.product(range(circuit.n_joint), range(P)):
            joints = rng.integers(0, P, (1, circuit.n_joint))
            joints[0, place] = value
            wires = circuit.wires(last, measurement, results, joints, one=1)
            outputs = (wires[:, :, 0] * wires[:, :, 1]) % P
            values = circuit.values(last, measurement, joints, outputs, one=1)
            assert values == [0]


@each
def test_two_queries_of_one_proof_say_something_of_the_report(circuit):
    """Why a report is prepared under one verify key: the wires at point 0 cancel out.

    Of two points, one combination of the answers is the same for all randomness, and
    it is another one for another report.
    """
    rng = np.random.default_rng(0)
    signs = signs_of(circuit, rng)
    joints = rng.integers(1, P, (1, circuit.n_joint))
    number = len(circuit.gadgets) - 1
    gadget = circuit.gadgets[number]
    one, two = points_of(gadget)[3:5]
    n_starts = sum(gadget.arity * gadget.proofs for gadget in circuit.gadgets)
    mine = part_of(circuit, number, lambda gadget: gadget.verifier_size)
    weight = {t: (pow(t, gadget.points, P) - 1) * pow(t - 1, -1, P) for t in (one, two)}
    leaked = set()
    heads = list(honest_heads(circuit))
    for head in heads:
        measurement, results = measured(circuit, head, signs)
        combinations = set()
        for _ in range(20):
            starts = rng.integers(0, P, n_starts)
            proofs = prove(circuit, measurement, results, joints, starts)
            at = {
                t: query(
                    circuit,
                    *(measurement, results, proofs, joints),
                    (ELSEWHERE,) * number + (t,),
                    one=1,
                )[mine][1:-1]
                for t in (one, two)
            }
            free = (weight[two] * at[one] - weight[one] * at[two]) % P
            combinations.add(tuple(free.tolist()))
        assert len(combinations) == 1
        leaked |= combinations
    assert len(leaked) > len(heads) // 2


@pytest.mark.parametrize("name", ["ball", "flat"])
def test_a_toy_test_that_fails_is_drawn_anew(name):
    """The honest reports above pass all tests: W is far above what two items reach."""
    circuit = CIRCUITS[name]
    if circuit.tests:
        assert circuit.reach > 2 * 2
        with pytest.raises(Refused):
            circuit.answer(np.array([P // 2 + 10]))
    assert replace(circuit, proofs=2).gadgets[-1].proofs == 2
