"""Figures of benchmarks as SVG files, readable on a light and on a dark page.

The pages of commands have charts of their own (`tacit.reporting.charts`), which need no
matplotlib and fit a phone; a figure of a benchmark is a file by itself.

Text, axes and grid are drawn in `currentColor`, so they take the color of the page
around them; the colors of the series stand out from white and from near-black. Figures
are built without pyplot and leave no state behind.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tacit.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Six hues with a contrast of at least 3 to white and to near-black (WCAG 2.1).
PALETTE = ("#0d8f78", "#c9701a", "#7a70c8", "#d0457f", "#3d86c6", "#82803a")
QUIET = "#7f8792"  # gray, for the methods that a run is compared with

_INK = "#010203"  # stands for the color of the page's text; replaced on the way out
_WIDTH = 8.8  # inches at 72 points; pages scale it
_LONGEST = 32  # characters of a label; longer ones squeeze the plot itself


def lines(
    name: str,
    series: Mapping[str, Sequence[tuple[float, float, float]]],
    *,
    x: str,
    y: str,
    levels: Mapping[str, float] | None = None,
) -> str:
    """One line per series through (x, mean, standard error); levels as lines across.

    The x axis is logarithmic if its values span more than a factor of ten.
    """
    figure, axes = _canvas(3.4, grid="y")
    for number, (label, points) in enumerate(series.items()):
        at, means, errors = zip(*sorted(points), strict=True)
        style: dict[str, Any] = {"lw": 2, "marker": "o", "ms": 4}
        color = PALETTE[number % len(PALETTE)]
        axes.errorbar(at, means, errors, color=color, label=_label(label), **style)
    for label, level in (levels or {}).items():
        axes.axhline(level, color=QUIET, lw=1, ls="--")
        axes.annotate(
            _label(label),
            (1, level),
            xycoords=("axes fraction", "data"),
            xytext=(-4, 3),
            textcoords="offset points",
            ha="right",
            color=_INK,
        )
    places = sorted({place for points in series.values() for place, _, _ in points})
    if places[0] > 0 and places[-1] > 10 * places[0]:
        axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.set_xlabel(_label(x))
    axes.set_ylabel(_label(y))
    _legend(figure, len(series))
    return _svg(figure, name)


# --- Details -------------------------------------------------------------------------


def _canvas(height: float, *, grid: Literal["x", "y"]) -> tuple[Figure, Axes]:
    """An empty figure: no frame, a faint grid, everything else in ink."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    axes.spines[:].set_visible(False)
    axes.spines["left" if grid == "x" else "bottom"].set(visible=True, color=_INK)
    axes.grid(axis=grid, color=_INK, alpha=0.15, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK, width=0.8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(_INK)
    return figure, axes


def _legend(figure: Figure, n_entries: int) -> None:
    columns = min(n_entries, 4)
    legend = figure.legend(loc="outside upper left", ncols=columns, frameon=False)
    for text in legend.get_texts():
        text.set_color(_INK)


def _label(text: str, *, longest: int = _LONGEST) -> str:
    """A short label that matplotlib reads neither as mathematics nor as hidden."""
    literal = shown(text, longest=longest).replace("$", r"\$")
    return f" {literal}" if literal.startswith("_") else literal


def _svg(figure: Figure, name: str) -> str:
    """The figure as an <svg> element: the same bytes each time, ids of its own."""
    from matplotlib import rc_context

    out, name = io.StringIO(), shown(name, longest=None)
    # Text stays text, for screen readers; ids follow from the name, not from chance.
    style: dict[Any, str] = {"svg.fonttype": "none", "svg.hashsalt": name}
    with rc_context(style):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing)
    head, body = out.getvalue().partition("<svg")[2].split(">", maxsplit=1)
    scalable = re.sub(r' (?:width|height)="[^"]*"', "", head)  # the page sets the size
    own = re.sub(r"\W+", "-", name)
    # Several plots share one page, so their ids must not meet.
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{own}-", body)
    body = re.sub(r'font-family: [^;"]*', "font-family: system-ui, sans-serif", body)
    return f"<svg{scalable}>{body}".replace(_INK, "currentColor")
