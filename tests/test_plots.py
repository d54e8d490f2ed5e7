from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from benchmarks import plots

HOSTILE = "<i>$x_1$</i> & _"


SERIES = {HOSTILE: [(1.0, 0.1, 0.01), (2.0, 0.2, 0.0)], "_other": [(1.0, 0.3, 0.0)]}
DRAWINGS: dict[str, Callable[[], str]] = {
    "lines": lambda: plots.lines("lines", SERIES, x=HOSTILE, y="HR"),
    "levels": lambda: plots.lines("a & b", SERIES, x="x", y="HR", levels={"_n": 0.2}),
}


@pytest.fixture(params=sorted(DRAWINGS))
def svg(request: pytest.FixtureRequest) -> str:
    return DRAWINGS[request.param]()


def words(svg: str) -> list[str]:
    tree = ElementTree.fromstring(svg)
    return [(e.text or "").strip() for e in tree.iter() if e.tag.endswith("text")]


def test_it_is_well_formed_and_shows_names_as_they_are(svg: str) -> None:
    assert HOSTILE in words(svg)


def test_it_takes_the_color_of_the_page(svg: str) -> None:
    colors = set(re.findall(r"(?:fill|stroke): ?(#\w+|currentColor)", svg))
    assert "currentColor" in colors
    assert colors <= {"currentColor", plots.QUIET, *plots.PALETTE}


def test_it_has_no_size_of_its_own(svg: str) -> None:
    head = svg[: svg.index(">")]
    assert "viewBox" in head
    assert "width=" not in head
    assert "height=" not in head


def test_drawing_twice_gives_the_same_bytes() -> None:
    for draw in DRAWINGS.values():
        assert draw() == draw()


def test_ids_do_not_collide() -> None:
    drawn = [set(re.findall(r'\bid="([^"]+)"', draw())) for draw in DRAWINGS.values()]
    assert sum(map(len, drawn)) == len(set().union(*drawn))


def test_references_lead_to_ids(svg: str) -> None:
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    assert used
    assert used <= set(re.findall(r'\bid="([^"]+)"', svg))


@pytest.mark.parametrize("color", [*plots.PALETTE, plots.QUIET])
@pytest.mark.parametrize("page", ["#ffffff", "#14181d"])
def test_series_stand_out_from_both_pages(color: str, page: str) -> None:
    """WCAG 2.1 asks 3:1 of graphics."""
    high, low = sorted((luminance(color), luminance(page)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 3


def luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_matplotlib_is_loaded_by_the_first_plot_and_pyplot_never() -> None:
    program = """
import sys
from benchmarks import plots
from tacit.reporting import charts, html
assert "matplotlib" not in sys.modules
plots.lines("x", {"a": [(1.0, 0.5, 0.0)]}, x="x", y="y")
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(("places", "is_log"), [((1.0, 2.0), False), ((1, 50), True)])
def test_lines_with_levels_across(places, is_log):
    series = {"k = 1": [(x, 0.1, 0.01) for x in places], "k = 50": [(1.0, 0.3, 0.0)]}
    drawn = plots.lines("Figure 2", series, x="epsilon", y="HR@10", levels={"pop": 0.2})
    for text in ("k = 1", "k = 50", "epsilon", "HR@10", "pop", f"{places[1]:g}"):
        assert text in drawn
    assert drawn == plots.lines(
        "Figure 2", series, x="epsilon", y="HR@10", levels={"pop": 0.2}
    )
