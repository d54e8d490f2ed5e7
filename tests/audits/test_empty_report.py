"""A report of zeros moves nothing; whoever divides by who came is found."""

import numpy as np
import pytest
from audits.mutants import DividesByWhoCame
from audits.subjects import PLAN, POPULARITY

from tacit.audits.empty_report import check_empty_report, distance
from tacit.privacy import CentralGaussian


def test_a_sum_over_the_planned_cohort_is_not_moved():
    assert check_empty_report(POPULARITY, PLAN).ok


def test_a_sum_over_who_came_is():
    found = check_empty_report(DividesByWhoCame(privacy=CentralGaussian(1.5)), PLAN)
    assert not found.ok
    assert found.measured > 0.1


@pytest.mark.parametrize(
    ("one", "other", "gap"),
    [
        ({}, {}, 0.0),
        ({"a": np.zeros(0)}, {"a": np.zeros(0)}, 0.0),
        ({"a": np.array([0.5])}, {"a": np.array([0.25])}, 0.25),
        ({"a": np.array([8.0, 0.0])}, {"a": np.array([8.0, 4.0])}, 0.5),
        ({"a": np.array([1], np.uint8)}, {"a": np.array([3], np.uint8)}, 2.0),
    ],
)
def test_distances_are_relative_to_the_largest_value_or_to_one(one, other, gap):
    assert distance(one, other) == gap
