"""Figure 2: which runs are made, and what is said of them."""

from __future__ import annotations

import pytest
from tacit_study_privrec.contenders import Bench
from tacit_study_privrec.knobs import KNOBS, WAYS, _cells, is_flat, rises

from tacit.reproduction.tables import Line


def test_the_values_of_the_paper():
    """Section 4.2."""
    full = KNOBS["full"]
    assert full.rounds == (5, 20, 40, 60, 80, 100)
    assert full.passes == (5, 20, 40, 60, 80, 100, 120)
    assert full.cohorts == (2, 5, 10, 15, 20, 25, 30, 35, 40)


@pytest.mark.slow
def test_three_charts_and_a_row_a_value(reproduced):
    found = reproduced("figure-2")
    assert [chart.x for chart in found.charts] == ["E1", "E2", "M"]
    for chart in found.charts:
        assert {*chart.lines} == {*WAYS}
    labels = [row.label for row in found.tables[0].rows]
    assert labels == ["E1 = 1", "E1 = 2", "E2 = 1", "E2 = 2", "M = 4", "M = 12"]
    assert len(found.claims) == 8


@pytest.mark.parametrize(
    ("knob", "way", "expected"),
    [
        ("E1", "as published", {(r, 100, 30) for r in KNOBS["full"].rounds}),
        ("E2", "as published", {(100, e, 30) for e in KNOBS["full"].passes}),
        ("M", "as published", {(100, 100, m) for m in KNOBS["full"].cohorts}),
        ("E2", "as we train", {(40, e, 30) for e in (1, 5, 20)}),
        ("M", "as we train", {(40, 1, m) for m in KNOBS["full"].cohorts}),
    ],
)
def test_one_knob_is_turned_and_the_others_are_held(knob, way, expected):
    cells = dict(_cells(knob, way, Bench("ml1m", "full")))
    found = set()
    for cell in cells.values():
        [one] = cell.experiments()
        found.add((one.run.rounds, one.method.local_epochs, one.sampler.size))
        adapts = one.method.local_epochs if way == "as published" else 5
        assert one.method.adapt_epochs == adapts
    assert found == expected


@pytest.mark.parametrize(
    ("values", "is_rising", "is_stable"),
    [((0.1, 0.2, 0.2, 0.201), True, True), ((0.2, 0.2, 0.2, 0.3), False, False)],
)
def test_what_rises_and_what_is_flat(values, is_rising, is_stable):
    found = Line((5.0, 40.0, 60.0, 100.0), values, (0.0,) * 4)
    assert rises("", found, to=40).ok is is_rising
    assert is_flat("", found, above=40).ok is is_stable


def test_a_run_that_is_too_short_to_be_flat_says_so():
    found = Line((5.0, 40.0), (0.1, 0.2), (0.0, 0.0))
    claim = is_flat("", found, above=40)
    assert not claim.ok
    assert "not run so long" in claim.evidence


def test_what_chance_may_have_made_does_not_rise():
    found = Line((5.0, 120.0), (0.0067, 0.0077), (0.0007, 0.0007))
    assert not rises("", found, to=120).ok
    surer = Line(found.x, found.y, (0.0002, 0.0002))
    assert rises("", surer, to=120).ok
