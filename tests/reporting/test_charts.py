"""Charts are text and stretch; labels keep their distance."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tacit.errors import BadValue
from tacit.reporting import charts
from tacit.reporting.report_data import Curve, Estimate

HOSTILE = "<script>alert(1)</script>"


def tops(chart: str) -> list[float]:
    return [
        float(t) for t in re.findall(r'class="end \w+" style="top:([\d.-]+)%', chart)
    ]


def test_bars_share_one_scale_and_errors_stay_inside() -> None:
    rows = [charts.Bar("a", Estimate(0.4, 0.1)), charts.Bar("b", Estimate(0.1))]
    drawn = charts.bars(rows)
    assert 'class="bar" style="left:0%;width:80%"' in drawn
    assert 'class="error" style="left:60%;width:40%"' in drawn
    assert 'class="bar" style="left:0%;width:20%"' in drawn
    assert "0.4000" in drawn
    assert "0.1000" in drawn


def test_bars_of_zeros_and_below_are_empty() -> None:
    drawn = charts.bars([charts.Bar("a", Estimate(0.0)), charts.Bar("b", Estimate(-1))])
    assert drawn.count("left:0%;width:0%") == 2


def test_what_no_attack_can_pass_and_guessing_are_lines() -> None:
    rows = [charts.Bar("a", Estimate(0.4), most=0.9)]
    drawn = charts.bars(rows, end=1.0, mark=0.25)
    assert 'class="most" style="left:90%"' in drawn
    assert 'class="mark" style="left:25%"' in drawn


def test_text_from_outside_is_escaped() -> None:
    bars = charts.bars([charts.Bar(HOSTILE, Estimate(1.0), note=HOSTILE)])
    points = {HOSTILE: [(1.0, 0.1, 0.0), (2.0, 0.2, 0.0)]}
    lines = charts.lines(points, x=HOSTILE, y=HOSTILE, levels={HOSTILE: 0.15})
    for drawn in (bars, lines):
        assert HOSTILE not in drawn
        assert "&lt;script&gt;" in drawn


def test_labels_of_lines_that_meet_do_not_overprint() -> None:
    series = {name: [(1.0, 0.3, 0.0), (4.0, 0.3, 0.0)] for name in "abcd"}
    drawn = charts.lines(series, x="epsilon", y="HR", levels={"e": 0.3, "f": 0.1})
    found = tops(drawn)
    gaps = [below - above for above, below in pairwise(found)]
    assert len(found) == 6
    assert min(gaps) >= 7.49


def test_figures_of_an_axis_that_are_close_are_left_out() -> None:
    places = [1.0, 1.01, 1.02, 2.0, 3.0, 3.01]
    drawn = charts.lines({"a": [(x, x, 0.0) for x in places]}, x="x", y="y")
    ticks = re.findall(r'class="x" style="left:[\d.]+%">([^<]+)<', drawn)
    assert ticks == ["1", "2", "3.01"]


def test_wide_ranges_are_logarithmic() -> None:
    drawn = charts.lines({"a": [(x, x, 0.0) for x in (1.0, 4.0, 16.0)]}, x="x", y="y")
    places = re.findall(r'class="x" style="left:([\d.]+)%', drawn)
    assert [float(place) for place in places] == [3.0, 50.0, 97.0]


def test_all_points_and_errors_are_inside_the_plot() -> None:
    points = [(1.0, 0.113, 0.05), (2.0, 0.387, 0.07)]
    drawn = charts.lines({"a": points}, x="x", y="y", levels={"b": 0.5})
    path = re.search(r'class="error" d="([^"]+)"', drawn)
    assert path
    figures = [float(figure) for figure in re.findall(r"[\d.]+", path[1])]
    assert all(0 <= figure <= 100 for figure in figures)


def test_a_long_curve_has_few_figures_below() -> None:
    rounds = tuple(range(1, 1001))
    curve = Curve("HR", rounds, tuple(Estimate(0.1, 0.01) for _ in rounds))
    drawn = charts.learning_curve(curve)
    assert 2 <= drawn.count('class="x"') <= 12
    assert 'class="band"' in drawn


def test_one_round_stands_in_the_middle() -> None:
    drawn = charts.learning_curve(Curve("HR", (3,), (Estimate(0.0),)))
    assert 'class="x" style="left:50%">3<' in drawn


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(BadValue, match="no bar"):
        charts.bars([])
    with pytest.raises(BadValue, match="no point"):
        charts.lines({}, x="x", y="y")


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1.0), (0.1077, 0.5062), (-3.0, 7.0), (0.5, 0.5), (1e-9, 2e-9)],
)
def test_round_figures_hold_the_range(low: float, high: float) -> None:
    ticks = charts._round_figures(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert 3 <= len(ticks) <= 8
