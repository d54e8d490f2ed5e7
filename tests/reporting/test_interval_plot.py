"""Intervals drawn with characters, on one scale."""

from tacit.reporting.interval_plot import Point, interval_plot
from tacit.reporting.tables import to_rich

POINTS = [
    Point("gram", 1.0, 0.3, 0.01),
    Point("gram", 4.0, 0.5, 0.02),
    Point("popularity", None, 0.3, None),
]


def test_means_stand_where_they_belong():
    first, second, third = (row[3] for row in interval_plot(POINTS, "ndcg@10").rows)
    assert first.index("●") < second.index("●")
    assert first.index("●") == third.index("●")
    assert first.index("├") < first.index("●") < first.index("┤")
    assert "├" not in third  # no error is known
    assert {len(first), len(second), len(third)} == {20}


def test_one_value_is_drawn_too():
    (row,) = interval_plot([Point("gram", None, 0.3, 0.0)], "ndcg@10").rows
    assert row[:3] == ("gram", "–", "0.3000")
    assert row[3].count("●") == 1


def test_it_fits_a_narrow_terminal():
    lines = to_rich(interval_plot(POINTS, "ndcg@10")).lines(60)
    assert max(map(len, lines)) <= 60
