"""Figure 2 on a tiny world: which runs are made, and what is said of them."""

import pytest

from tacit.reproduction.privrec import knobs
from tacit.reproduction.privrec.knobs import FULL, WAYS, Knobs, Panel
from tacit.reproduction.tables import Line

FEW = Knobs((1, 2), (1, 2), (2, 4), held=(1, 1, 3))


@pytest.fixture
def panel(tiny, monkeypatch):
    monkeypatch.setattr(knobs, "_OURS", (1, 2))
    monkeypatch.setattr(knobs, "_STABLE", 2)
    return Panel(tiny, FEW)


def test_the_values_of_the_paper():
    assert (FULL.rounds[0], FULL.rounds[-1]) == (5, 100)
    assert (FULL.epochs[0], FULL.epochs[-1]) == (5, 120)
    assert (FULL.cohorts[0], FULL.cohorts[-1]) == (2, 40)


def test_three_charts_and_a_row_a_value(panel):
    found = panel.made()
    assert [chart.x for chart in found.charts] == ["E1", "E2", "M"]
    for chart in found.charts:
        assert {*chart.lines} == {*WAYS}
    labels = [row.label for row in found.tables[0].rows]
    assert labels == ["E1 = 1", "E1 = 2", "E2 = 1", "E2 = 2", "M = 2", "M = 4"]
    assert len(found.claims) == 8


def test_more_passes_are_another_run(panel):
    """The first round of one run is not that of a run with two passes."""
    one, two = panel._method("as published", 1), panel._method("as published", 2)
    assert (one.local_epochs, two.local_epochs, two.adapt_epochs) == (1, 2, 2)
    assert panel._plan(cohort=4).cohort_size == 4
    assert panel._plan(rounds=7).rounds == 7


@pytest.mark.parametrize(
    ("values", "rises", "is_flat"),
    [((0.1, 0.2, 0.2, 0.201), True, True), ((0.2, 0.2, 0.2, 0.3), False, False)],
)
def test_what_rises_and_what_is_flat(values, rises, is_flat):
    found = Line((5.0, 40.0, 60.0, 100.0), values, (0.0,) * 4)
    assert knobs._rises("", found, to=40).ok is rises
    assert knobs._is_flat("", found, above=40).ok is is_flat


def test_a_run_that_is_too_short_to_be_flat_says_so():
    found = Line((5.0, 40.0), (0.1, 0.2), (0.0, 0.0))
    claim = knobs._is_flat("", found, above=40)
    assert not claim.ok
    assert "not run so long" in claim.evidence


def test_what_chance_may_have_made_does_not_rise():
    found = Line((5.0, 120.0), (0.0067, 0.0077), (0.0007, 0.0007))
    assert not knobs._rises("", found, to=120).ok
    surer = Line(found.x, found.y, (0.0002, 0.0002))
    assert knobs._rises("", surer, to=120).ok
