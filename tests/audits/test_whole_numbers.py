"""Formulas of whole numbers that an audit has of its own, and what it compares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from audits import broken_parts as parts
from audits.subjects import (
    PLAN,
    POPULARITY,
    SCALE,
    STRICT,
    AdaptiveFactors,
    NoisyFactors,
)

from tacit import exact_sum
from tacit.audits.whole_numbers import (
    at_the_bound,
    check_whole,
    deviations,
    encode,
    limits,
    square,
)
from tacit.keys import Key
from tacit.mechanisms.sum_mechanism import Bounded
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.methods.gram import Gram
from tacit.privacy import CentralGaussian, LocalPrivUnit

KEY = Key.from_seed(1)
SCALED = FederatedPopularity(privacy=CentralGaussian(1.5, scale=SCALE))


def test_limits_are_the_published_ones(federation_vectors):
    for one in federation_vectors["limit"]:
        clip = math.sqrt(0.5) if one["clip"] == "sqrt(1/2)" else float(one["clip"])
        assert limits(one["r"], clip, one["d"]) == (one["limit"], one["limit"])


@pytest.mark.parametrize("bound", [0.3, 1.0, math.sqrt(0.5), 7.3])
@pytest.mark.parametrize("n", [1, 2, 20, 3533])
def test_a_limit_is_known_to_the_last_step(bound, n):
    """Both readings agree unless a whole number is nearer than a float can tell."""
    steps = exact_sum.steps_per_unit(bound)
    low, high = limits(steps, bound, n)
    assert low == high == exact_sum.limit(bound, n, steps=steps)


@pytest.mark.parametrize("n", [20, 3533])
def test_flat_reports_pass_the_limit_if_they_are_rounded_to_nearest(n):
    reports = at_the_bound(65536.0, n, KEY)
    most, _ = limits(65536.0, 1.0, n)
    assert all(np.linalg.norm(reports, axis=1) <= 65536.0)
    squares = [square(np.rint(row)) for row in reports]
    assert any(one > most for one in squares)
    assert any(one <= most for one in squares)
    assert all(square(row) <= most for row in encode(reports, most, rounds=True))


def test_squares_are_exact_where_floats_are_not():
    assert square([2**53 + 1, 1]) == (2**53 + 1) ** 2 + 1


def test_the_deviation_is_the_least_that_is_enough():
    """z = 1.5 and L = 16: 36 is a square of a whole number, 36 and a bit is not."""
    part = Bounded(("v",), 2.0, 3.0)
    assert deviations(part, 16) == (6, 7)
    assert deviations(part, 17) == (7, 8)


@pytest.mark.parametrize(
    ("method", "plan"),
    [
        (POPULARITY, PLAN),
        (POPULARITY, parts.SHARED),
        (Gram(**parts.LOADED), PLAN),
        (Gram(**parts.GRAM), parts.SHARED),
        (NoisyFactors(), PLAN),
        (AdaptiveFactors(), PLAN),
        (SCALED, STRICT),
    ],
    ids=["votes", "two", "gram", "gram two", "factors", "bits", "groups"],
)
def test_honest_whole_numbers_are_the_formulas(method, plan):
    found = [*check_whole(method, plan, key=KEY)]
    assert [check.name for check in found if not check.ok] == []
    assert len(found) >= 3


def test_reports_that_have_a_form_in_floats_alone_are_passed_over():
    local = FederatedPopularity(privacy=LocalPrivUnit(1.0))
    assert parts.steps_of(local, KEY)[0].ok
    assert parts.steps_of(POPULARITY, KEY) == []
