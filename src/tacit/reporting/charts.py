"""Charts for pages, as HTML: bars, and lines over an axis.

A chart fills the width it is given, and its words keep the size of the page's text:
nothing is scaled down on a phone. Lines are drawn in an SVG that stretches; all words
stand outside of it. Colors are names of the style sheet, so dark pages have their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tacit.errors import BadValue
from tacit.reporting.report_data import Curve, Estimate, Tradeoff
from tacit.text import in_html

Kind = Literal["private", "open", "warning"]
Scale = Literal["linear", "log"]
Point = tuple[float, float, float]  # x, mean, standard error

_N_COLORS = 6  # of series in the style sheet; a seventh has the first's
_LABEL = 7.5  # percent of the height of a plot that one line of text takes
_TICK = 9.0  # percent of the width of a phone's plot that one figure takes


@dataclass(frozen=True)
class Bar:
    """One bar: its label, a quiet note below it, its value and what limits it.

    `kind` is its color: `private` for what a proven promise covers, `open` for what
    none does, `warning` for what an attack gets where there is none.
    """

    label: str
    value: Estimate
    note: str = ""
    kind: Kind = "open"
    is_marked: bool = False  # the one that the page is about
    most: float | None = None  # no value can pass it, where that is known


def without_epsilon(label: str) -> str:
    """The name of a line without the epsilon at its end, which stands in a note.

    >>> without_epsilon("gram, epsilon 0.5"), without_epsilon("gram, no privacy")
    ('gram', 'gram')
    """
    return re.sub(r", (?:epsilon [\d.e+-]+|no privacy)$", "", label)


def bars(rows: Sequence[Bar], *, end: float | None = None, mark: float = 0.0) -> str:
    """A list with one bar per row from zero to `end`, and a line at `mark` if any."""
    if not rows:
        raise BadValue("no bar to draw; give at least one")
    full = end or max(_reach(row.value) for row in rows) or 1.0
    return f'<ul class="bars">\n{"".join(_bar(row, full, mark) for row in rows)}</ul>\n'


def learning_curve(curve: Curve) -> str:
    """A metric against the round, with a band of one standard error."""
    rounds = [float(round_) for round_ in curve.rounds]
    points = [
        (x, v.mean, v.se or 0.0) for x, v in zip(rounds, curve.values, strict=True)
    ]
    first, last = int(min(rounds)), int(max(rounds))
    step = max(1, math.ceil((last - first) / 8))
    ticks = [*range(first, last + 1, step)]
    axes = _Axes.around(points, scale="linear", x_ticks=ticks)
    return _plot(axes, _drawn(axes, points, 0, is_band=True), x="round", y=curve.metric)


def tradeoff(drawn: Tradeoff) -> str:
    """The metric of each method by its epsilon, above what promises nothing."""
    series = {
        name: [(epsilon, v.mean, v.se or 0.0) for epsilon, v in points]
        for name, points in drawn.series.items()
    }
    return lines(
        series,
        x="epsilon of a user's whole history; smaller is more private",
        y=drawn.metric,
        levels={name: value.mean for name, value in drawn.references.items()},
    )


def lines(
    series: Mapping[str, Sequence[Point]],
    *,
    x: str,
    y: str,
    levels: Mapping[str, float] | None = None,
) -> str:
    """One line per series with standard errors; levels are dashed lines across.

    Each has its name at the right, and below the plot where the page is narrow. The x
    axis is logarithmic if its values span more than a factor of four.
    """
    levels = levels or {}
    every = [point for points in series.values() for point in points]
    if not every:
        raise BadValue("no point to draw; give at least one")
    places = sorted({place for place, _, _ in every})
    scale: Scale = "linear"
    if places[0] > 0 and places[-1] > 4 * places[0]:
        scale = "log"
    flat = [(places[0], value, 0.0) for value in levels.values()]
    axes = _Axes.around([*every, *flat], scale=scale, x_ticks=places)
    across = "".join(
        f'<path class="level" d="M0 {axes.down(value)}H100"/>\n'
        for value in levels.values()
    )
    drawn = "".join(
        _drawn(axes, sorted(points), number)
        for number, points in enumerate(series.values())
    )
    ends = [
        _End(name, max(points)[1], f"s{number % _N_COLORS}")
        for number, (name, points) in enumerate(series.items())
    ]
    ends += [_End(name, value, "level") for name, value in levels.items()]
    return _plot(axes, across + drawn, x=x, y=y, ends=ends)


# --- Details -------------------------------------------------------------------------


@dataclass(frozen=True)
class _End:
    """Where a line ends at the right, and what it is called there."""

    name: str
    value: float
    kind: str


@dataclass(frozen=True)
class _Axes:
    """Both axes: from figures to percent of the plot's width and height."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_ticks: tuple[float, ...]
    y_ticks: tuple[float, ...]
    scale: Scale

    @classmethod
    def around(
        cls, points: Iterable[Point], *, scale: Scale, x_ticks: Sequence[float]
    ) -> _Axes:
        """Axes that hold all points with their errors."""
        points = [*points]
        low = min(mean - error for _, mean, error in points)
        high = max(mean + error for _, mean, error in points)
        ticks = _round_figures(low, high)
        y_range = min(low, ticks[0]), max(high, ticks[-1])
        x_range = min(x for x, _, _ in points), max(x for x, _, _ in points)
        return cls(x_range, y_range, tuple(x_ticks), tuple(ticks), scale)

    def along(self, x: float) -> float:
        """Percent of the width; single places stand in the middle."""
        low, high = self.x_range
        if low == high:
            return 50.0
        if self.scale == "log":
            x, low, high = math.log(x), math.log(low), math.log(high)
        # Some room at both ends, for dots.
        return round(3 + 94 * (x - low) / (high - low), 2)

    def down(self, y: float) -> float:
        """Percent of the height, from the top."""
        low, high = self.y_range
        return round(100 * (high - y) / (high - low), 2)

    def shown_x_ticks(self) -> list[float]:
        """The places that can be labelled without overprinting, the ends first."""
        ticks = [*self.x_ticks]
        kept = [ticks[0]]
        for tick in ticks[1:-1]:
            near = (kept[-1], ticks[-1])
            if all(abs(self.along(tick) - self.along(n)) >= _TICK for n in near):
                kept.append(tick)
        return kept if len(ticks) == 1 else [*kept, ticks[-1]]


def _bar(row: Bar, full: float, mark: float) -> str:
    low = max(0.0, row.value.mean - (row.value.se or 0.0))
    error = ""
    if row.value.se:
        error = _piece("error", _share(low, full), _share(_reach(row.value), full))
    limit = "" if row.most is None else _line("most", _share(row.most, full))
    guess = _line("mark", _share(mark, full)) if mark else ""
    note = f" <small>{in_html(row.note)}</small>" if row.note else ""
    marked = " marked" if row.is_marked else ""
    return (
        f'<li class="{row.kind}{marked}"><span class="name">{in_html(row.label)}{note}'
        f'</span><span class="track">{_piece("bar", 0, _share(row.value.mean, full))}'
        f'{error}{limit}{guess}</span><span class="value">{row.value.mean:.4f}</span>'
        "</li>\n"
    )


def _piece(kind: str, start: float, end: float) -> str:
    width = round(max(0.0, end - start), 2)
    return f'<i class="{kind}" style="left:{start:g}%;width:{width:g}%"></i>'


def _line(kind: str, place: float) -> str:
    return f'<i class="{kind}" style="left:{place:g}%"></i>'


def _share(value: float, full: float) -> float:
    return round(min(100.0, max(0.0, 100 * value / full)), 2)


def _reach(value: Estimate) -> float:
    return max(0.0, value.mean) + (value.se or 0.0)


def _drawn(
    axes: _Axes, points: Sequence[Point], number: int, *, is_band: bool = False
) -> str:
    """A line through the points, their errors, and a dot on each."""
    kind = f"s{number % _N_COLORS}"
    at = [(axes.along(x), axes.down(mean)) for x, mean, _ in points]
    path = "L".join(f"{x:g} {y:g}" for x, y in at)
    if is_band:
        above = [f"{axes.along(x):g} {axes.down(m + e):g}" for x, m, e in points]
        below = [f"{axes.along(x):g} {axes.down(m - e):g}" for x, m, e in points]
        spread = f'<path class="band" d="M{"L".join([*above, *below[::-1]])}Z"/>\n'
    else:
        bars = "".join(
            f"M{axes.along(x):g} {axes.down(m - e):g}V{axes.down(m + e):g}"
            for x, m, e in points
            if e
        )
        spread = f'<path class="error" d="{bars}"/>\n' if bars else ""
    # A dot is a line without length: its round ends do not stretch with the plot.
    dots = "".join(f"M{x:g} {y:g}h0" for x, y in at)
    return (
        f'<g class="{kind}">{spread}<path class="line" d="M{path}"/>\n'
        f'<path class="dot" d="{dots}"/></g>\n'
    )


def _plot(axes: _Axes, drawn: str, *, x: str, y: str, ends: Sequence[_End] = ()) -> str:
    grid = "".join(f"M0 {axes.down(tick):g}H100" for tick in axes.y_ticks)
    places = _decimals(axes.y_ticks)
    y_ticks = "".join(
        f'<span class="y" style="top:{axes.down(tick):g}%">{tick:.{places}f}</span>'
        for tick in axes.y_ticks
    )
    x_ticks = "".join(
        f'<span class="x" style="left:{axes.along(tick):g}%">{tick:g}</span>'
        for tick in axes.shown_x_ticks()
    )
    ordered = sorted(ends, key=lambda end: -end.value)
    tops = _apart([axes.down(end.value) for end in ordered])
    names = "".join(
        f'<span class="end {end.kind}" style="top:{top:g}%"><i>{number}</i>'
        f"<span>{in_html(end.name)}</span></span>"
        for number, (end, top) in enumerate(zip(ordered, tops, strict=True), start=1)
    )
    legend = "".join(
        f'<li class="{end.kind}">{in_html(end.name)} <small>{end.value:.4f}</small>'
        "</li>\n"
        for end in ordered
    )
    wide = " named" if ends else ""
    return (
        f'<div class="plot{wide}">\n<p class="y-name">{in_html(y)}</p>\n'
        f'<div class="area"><svg viewBox="0 0 100 100" preserveAspectRatio="none" '
        f'aria-hidden="true"><path class="grid" d="{grid}"/>\n{drawn}</svg>'
        f"{y_ticks}{x_ticks}{names}</div>\n"
        f'<p class="x-name">{in_html(x)}</p>\n'
        + (f'<ol class="legend">\n{legend}</ol>\n' if legend else "")
        + "</div>\n"
    )


def _apart(tops: Sequence[float]) -> list[float]:
    """Places from the top, moved as little as needed so that labels do not overlap.

    They come in order. Labels that would overlap form a block around their middle.

    >>> _apart([10.0, 12.0, 50.0])
    [7.25, 14.75, 50.0]
    """
    blocks: list[list[float]] = []  # [sum of wanted middles, number of labels]
    for top in tops:
        blocks.append([top, 1])
        while len(blocks) > 1 and _bottom(blocks[-2]) > _top(blocks[-1]):
            middle, n = blocks.pop()
            blocks[-1][0] += middle
            blocks[-1][1] += n
    return [
        round(_top(block) + _LABEL * (place + 0.5), 2)
        for block in blocks
        for place in range(int(block[1]))
    ]


def _top(block: Sequence[float]) -> float:
    total, n = block
    return total / n - _LABEL * n / 2


def _bottom(block: Sequence[float]) -> float:
    return _top(block) + _LABEL * block[1]


def _round_figures(low: float, high: float) -> list[float]:
    """About five round figures from below `low` to above `high`.

    >>> _round_figures(0.11, 0.5)
    [0.1, 0.2, 0.3, 0.4, 0.5]
    """
    if low == high:
        low, high = low - 0.5 * abs(low or 1), high + 0.5 * abs(high or 1)
    rough = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= 0.999 * rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * n, 12) for n in range(first, last + 1)]


def _decimals(ticks: Sequence[float]) -> int:
    """The decimals that tell neighbouring ticks apart."""
    step = ticks[1] - ticks[0]
    return max(0, -math.floor(math.log10(step) + 1e-9))
