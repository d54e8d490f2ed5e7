"""The project's own vectors are what the command writes: every message of a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from proof_circuits import TOY

from benchmarks import proofs
from tacit.proofs.streams import Usage, draw, open_stream

FILE = Path(__file__).parents[1] / "vectors" / "proofs.json"
PUBLISHED = json.loads(FILE.read_text("utf-8"))
QUICK = 5000  # numbers that are added up; Gram's outer products have more


def small(document):
    sums = {"ball": 1, "flat": 1, "outer": 50, "factors": 29}
    kept = [
        one
        for one in document["honest"]
        if one["n"] * sums[one["kind"]] <= QUICK or one["n"] <= 12
    ]
    return document | {"honest": kept}


def test_the_small_vectors_are_the_published_ones():
    assert proofs.vectors(most=QUICK) == small(PUBLISHED)


@pytest.mark.slow
def test_all_vectors_are_the_published_ones():
    assert proofs.vectors() == PUBLISHED


def test_what_is_honest_is_accepted_and_nothing_else():
    assert all(vector["is_accepted"] for vector in PUBLISHED["honest"])
    assert not any(vector["is_accepted"] for vector in PUBLISHED["forged"])
    assert len(PUBLISHED["forged"]) == 4


def test_every_circuit_is_there_with_groups_and_without():
    kinds = {(one["kind"], len(one["limits"])) for one in PUBLISHED["honest"]}
    assert kinds == {
        (kind, groups)
        for kind in ("ball", "outer", "factors", "flat")
        for groups in (1, 2)
    }


def test_no_published_point_is_a_root_of_unity():
    published = PUBLISHED["points"]
    assert not any(TOY.is_root(t, published["order"]) for t in published["points"])
    binder = bytes([0, published["proofs"]]), proofs.NONCE
    stream = open_stream(published["identity"], Usage.QUERY, proofs.VERIFY_KEY, *binder)
    first = draw(TOY, stream, published["proofs"]).tolist()
    assert any(TOY.is_root(t, published["order"]) for t in first)


def test_the_table_names_what_misses_its_target():
    subject = next(proofs.subjects(is_smoke=True))
    slow = proofs.Subject("x", subject.circuit, subject.report, (1.0, 1.0, 1.0))
    *_, line = proofs.table([(slow, (0.5, 1.0, 1.5))])
    assert line.startswith("| x | 0.50 (≤ 1) | 1.00 (≤ 1) | 1.50 (≤ 1) ! |")
    assert len(proofs.costs(subject, repeats=1)) == 3
