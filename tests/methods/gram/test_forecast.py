"""What a plan foretells of Gram, next to what was measured and to the rule of a run."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import gram_forecast as study
from tacit.data.catalog import Catalog
from tacit.method import CentralGaussian
from tacit.methods.gram import Gram
from tacit.methods.gram_forecast import (
    FIT,
    HISTORIES,
    WIDEST,
    Fit,
    Gain,
    foretell,
    possible_histories,
    round_history,
    usual_counts,
    usual_history,
)
from tacit.methods.gram_heuristics import shows_tastes
from tacit.plans import Plan

CELLS = study.kept()
CENTRAL = Gram(privacy=CentralGaussian())


def gain_of(users, items, epsilon, *, history=None) -> Gain:
    plan = Plan(
        users, rounds=3, channel="secure_sum", delta=1e-7, target_epsilon=epsilon
    )
    method = replace(CENTRAL, usual_history=history).calibrated(plan)
    gain = method.foretell(plan, Catalog.of_ids([str(i) for i in range(items)]))
    assert gain is not None
    return gain


def is_well_formed(gain: Gain, *, is_certain: bool) -> None:
    assert gain.high / gain.low <= WIDEST * (1 + 1e-12)
    assert (gain.low <= 1 <= gain.high) is not is_certain
    assert ("far better" in gain.words) is (gain.low >= 1.1)


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("relates", [[True] * 3, [False] * 3, [True, False, True]])
def test_a_range_contains_1_exactly_where_no_list_may_be_personal(relates, history):
    """Where the rule may not relate, or relations may show no tastes."""
    fits = FIT, Fit(2.0, 3.0, 0.7, 1.4, 1e-3), Fit(0.01, 0.02, 0.7, 1.4, 1e-5)
    for edge in np.geomspace(1e-6, 10, 50):
        for fit in fits:
            gain = foretell(float(edge), relates, history=history, fit=fit)
            shows = shows_tastes(fit.taste * history / edge)
            is_well_formed(gain, is_certain=all(relates) and shows)


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c.name} {c.epsilon:g}")
def test_the_forecast_asks_the_rule_of_the_run(cell):
    """Where any run ended with counts the range has 1, and it is never too wide."""
    gain = cell.foretold(FIT)
    if "counts" in cell.ended:
        assert gain.low <= 1 <= gain.high
    assert gain.high / gain.low <= WIDEST * (1 + 1e-12)


def test_the_constants_in_use_are_those_that_follow_from_all_cells():
    found = study.fitted(CELLS)
    for name in ("slope", "most", "fall", "spread"):
        assert getattr(FIT, name) == pytest.approx(getattr(found, name), abs=0.005)
    assert FIT.taste == pytest.approx(found.taste, rel=0.01)


@pytest.mark.slow
def test_forecasts_of_sets_left_out_next_to_the_constant_range():
    """On test users they are better by a quarter; the page has the figures of both."""
    pairs = [
        (cell, gain) for cell, gain in study.left_out(CELLS) if cell.name in study.REAL
    ]
    assert len(pairs) == 16
    ranges = [study.logarithms(gain) for _, gain in pairs]
    shares = {}
    for part in study.PARTS:
        gains = [getattr(cell, part) for cell, _ in pairs]
        right = [
            gain.low <= one <= gain.high
            for one, (_, gain) in zip(gains, pairs, strict=True)
        ]
        assert sum(right) == 14
        constant = study.mean_score(gains, [study.CONSTANT] * len(gains))
        shares[part] = study.mean_score(gains, ranges) / constant
    assert shares == pytest.approx({"validation": 0.766, "test": 0.703}, abs=0.001)


def test_fitting_without_a_set_does_not_look_at_it():
    """Its gains may be anything: the constants for it stay as they are."""
    some = [c for c in CELLS if c.name in {"steam", "ml-100k", "frappe", "demo"}]
    others = [cell for cell in some if cell.name != "steam"]
    changed = [
        replace(c, validation=9.0, fall=3.0, strongest=9.0) if c.name == "steam" else c
        for c in some
    ]
    [*pairs] = study.left_out(changed)
    fit = study.fitted(others)
    assert [g for c, g in pairs if c.name == "steam"] == [
        c.foretold(fit) for c in some if c.name == "steam"
    ]


def test_the_outlook_follows_what_is_declared():
    few, many = gain_of(700, 4000, 0.5), gain_of(1_000_000, 4000, 1.0)
    assert few.never_relates
    assert "far better" in many.words
    short, long = (gain_of(5000, 20_000, 4.0, history=n) for n in (5, 100))
    assert short.low < 1 < short.high
    assert long.low > 1


def test_without_a_declared_history_the_outlook_says_what_it_assumes():
    plan = Plan(5000, rounds=3, channel="secure_sum", delta=1e-7, target_epsilon=4.0)
    catalog = Catalog.of_ids([str(i) for i in range(500)])
    assumed = CENTRAL.calibrated(plan)
    declared = replace(assumed, usual_history=20)
    assert assumed.foretell(plan, catalog) == declared.foretell(plan, catalog)
    assert "20 items is assumed" in assumed.outlook(plan, catalog)
    assert "assumed" not in declared.outlook(plan, catalog)


def test_where_rounds_are_planned_no_gain_is_foretold():
    plan = Plan(5000, rounds=2, channel="secure_sum", delta=1e-7, target_epsilon=4.0)
    method = CENTRAL.calibrated(plan)
    catalog = Catalog.of_ids([str(i) for i in range(500)])
    assert method.foretell(plan, catalog) is None
    assert "nothing more is foretold" in method.outlook(plan, catalog)


def test_a_usual_history_is_that_of_the_rule():
    """Counts add up to users times a usual root, whatever was declared."""
    lengths = [4.0, 16.0]
    assert usual_history(lengths) == 9.0
    total = usual_counts(2, n_items=30, history=9.0, fall=0.7).sum()
    assert total == pytest.approx(sum(map(math.sqrt, lengths)))


@pytest.mark.parametrize("items", [0.5, 7, 14, 15, 31, 32, 80, 1000])
def test_a_rounded_history_is_one_that_may_be_declared(items):
    assert round_history(items) in HISTORIES
    if 5 <= items <= 100:
        low, _, high = possible_histories(round_history(items))
        assert low * 0.89 < items < high * 1.13  # 20 and 50 lie farther apart
