"""Tests of what being served costs."""

import pytest

from tacit.ledger.budget import spent
from tacit.release import CELLS, Unit, View
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.serving_account import release_of, serving_terms

from .worlds import interests

MECHANISM = InterestResponse(0.1, interests(5))


def test_every_view_and_unit_has_the_same_guarantee():
    release = release_of(MECHANISM)
    assert {*release.cells} == {*CELLS}
    assert all(cell.has_epsilon and cell.is_local for cell in release.cells.values())


@pytest.mark.parametrize(
    ("times", "delta", "expected"), [(1, 0.0, 0.1), (30, 0.0, 3.0)]
)
def test_releases_add_up_without_a_delta(times, delta, expected):
    terms = serving_terms(MECHANISM, times)
    found = spent([(terms, range(times))], (Unit.USER, View.SERVER), delta=delta)
    assert found.value == pytest.approx(expected)


def test_thirty_days_at_a_delta_are_those_of_the_test_vector():
    """Thirty responses of 0.1 over five interests: 1.5002 at a delta of 1e-6."""
    terms = serving_terms(MECHANISM, 30)
    found = spent([(terms, range(30))], (Unit.USER, View.SERVER), delta=1e-6)
    assert found.value == pytest.approx(1.5002, abs=5e-4)
