"""Plots as SVG text, readable on a light and on a dark page.

Text, axes and grid are drawn in `currentColor`, so they take the color of the page
around them; the colors of the series stand out from white and from near-black. Figures
are built without pyplot and leave no state behind.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tacit.errors import BadValue
from tacit.reporting.report_data import (
    Attacked,
    Contender,
    Curve,
    Estimate,
    Groups,
    Tradeoff,
)
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


def learning_curve(curve: Curve) -> str:
    """A metric against the round, with a band of one standard error."""
    figure, axes = _canvas(2.6, grid="y")
    mean, error = _means(curve.values), _errors(curve.values)
    low = [m - e for m, e in zip(mean, error, strict=True)]
    high = [m + e for m, e in zip(mean, error, strict=True)]
    axes.fill_between(curve.rounds, low, high, color=PALETTE[0], alpha=0.25, lw=0)
    axes.plot(curve.rounds, mean, color=PALETTE[0], lw=2, marker="o", ms=3.5)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("round")
    axes.set_ylabel(_label(curve.metric))
    return _svg(figure, f"curve {curve.metric}")


def comparison(contenders: Sequence[Contender], metric: str) -> str:
    """One bar per method with one standard error; this run's is in color."""
    shown = [c for c in contenders if metric in c.metrics]
    if not shown:
        raise BadValue(f"no method has the metric '{metric}'; nothing to compare")
    figure, axes = _canvas(0.75 + 0.36 * len(shown), grid="x")  # bars of equal height
    values, places = [c.metrics[metric] for c in shown], range(len(shown))
    colors = [PALETTE[0] if c.is_this_run else QUIET for c in shown]
    mean, error = _means(values), _errors(values)
    axes.barh(places, mean, height=0.6, color=colors)
    axes.errorbar(mean, places, xerr=error, fmt="none", ecolor=_INK, lw=1)
    _write_beside(axes, values)
    axes.set_yticks(places, [_label(c.method) for c in shown])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.margins(x=0.12)  # room for the figures beside the bars
    axes.set_xlabel(_label(metric))
    return _svg(figure, f"comparison {metric}")


def tradeoff(shown: Tradeoff) -> str:
    """One line per method over epsilon; methods without privacy are lines across."""
    figure, axes = _canvas(3.4, grid="y")
    for number, (method, points) in enumerate(shown.series.items()):
        color = PALETTE[number % len(PALETTE)]
        ordered = sorted(points, key=lambda point: point[0])
        values = [value for _, value in ordered]
        axes.errorbar(
            [epsilon for epsilon, _ in ordered],
            _means(values),
            _errors(values),
            color=color,
            lw=2,
            marker="o",
            ms=4,
            label=_label(method),
        )
    for name, value in shown.references.items():
        axes.axhline(value.mean, color=QUIET, lw=1, ls="--")
        axes.annotate(
            _label(name),
            (1, value.mean),
            xycoords=("axes fraction", "data"),
            xytext=(-4, 3),
            textcoords="offset points",
            ha="right",
            color=_INK,
        )
    epsilons = sorted({e for points in shown.series.values() for e, _ in points})
    axes.set_xscale("log", base=2)  # targets are usually 0.5, 1, 2, 4, 8
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("epsilon (a user's whole history; smaller is more private)")
    axes.set_ylabel(_label(shown.metric))
    _legend(figure, len(shown.series))
    return _svg(figure, f"tradeoff {shown.metric}")


def by_group(groups: Groups, metric: str) -> str:
    """One bar per method for each group of users, with standard errors."""
    cells = [metrics.get(metric, {}) for metrics in groups.values()]
    methods = list(dict.fromkeys(method for row in cells for method in row))
    if not methods:
        raise BadValue(f"no group has the metric '{metric}'; nothing to draw")
    figure, axes = _canvas(2.9, grid="y")
    width = 0.8 / len(methods)  # the rest is the gap between groups
    for number, method in enumerate(methods):
        shift = (number - (len(methods) - 1) / 2) * width
        values = {
            p + shift: row[method] for p, row in enumerate(cells) if method in row
        }
        color = PALETTE[number % len(PALETTE)]
        _bars(axes, values, width=0.9 * width, color=color, label=_label(method))
    axes.set_xticks(range(len(cells)), [_label(label) for label in groups])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel(_label(metric))
    _legend(figure, len(methods))
    return _svg(figure, f"groups {metric}")


def attacks(bars: Sequence[Attacked], *, metric: str, chance: float) -> str:
    """One bar per mechanism, unprotected ones in orange, and a line at pure guessing.

    A tick shows the score that no attack can pass.
    """
    figure, axes = _canvas(0.85 + 0.36 * len(bars), grid="x")
    values, places = [bar.value for bar in bars], range(len(bars))
    colors = [PALETTE[0] if bar.is_protected else PALETTE[1] for bar in bars]
    mean, error = _means(values), _errors(values)
    axes.barh(places, mean, height=0.6, color=colors)
    axes.errorbar(mean, places, xerr=error, fmt="none", ecolor=_INK, lw=1)
    for place, bar in enumerate(bars):
        if bar.most is not None:
            axes.vlines(bar.most, place - 0.4, place + 0.4, color=_INK, lw=2)
    _write_beside(axes, values)
    axes.axvline(chance, color=_INK, lw=1, ls="--")
    axes.set_yticks(places, [_label(bar.mechanism, longest=52) for bar in bars])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12)  # scores end at 1; beyond it stand the figures
    axes.set_xlabel(_label(metric, longest=80))
    return _svg(figure, f"attacks {metric}")


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


def _bars(
    axes: Axes,
    values: Mapping[float, Estimate],
    *,
    width: float,
    color: str,
    label: str,
) -> None:
    places, mean = list(values), _means(values.values())
    axes.bar(places, mean, width, color=color, label=label)
    error = _errors(values.values())
    axes.errorbar(places, mean, error, fmt="none", ecolor=_INK, lw=1)


def _write_beside(axes: Axes, values: Sequence[Estimate]) -> None:
    """The figures themselves, to the right of bars and whiskers."""
    ends = [max(v.mean, 0) + (v.se or 0) for v in values]
    for place, (end, value) in enumerate(zip(ends, values, strict=True)):
        axes.annotate(
            f"{value.mean:.4f}",
            (end, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=_INK,
        )


def _means(values: Iterable[Estimate]) -> list[float]:
    return [value.mean for value in values]


def _errors(values: Iterable[Estimate]) -> list[float]:
    return [value.se or 0.0 for value in values]


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
