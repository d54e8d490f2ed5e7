"""Two kinds of chart on a drawing: lines over epsilon, and bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log

from documentation.drawing import Drawing

COLORS = ("good", "third", "fifth", "fourth", "warn")  # one per line of a frontier
Name = tuple[float, str, str]  # the height of a line's end, its name, its color


@dataclass(frozen=True)
class Area:
    """The rectangle of a drawing that a chart may use, and the size of its letters."""

    x: float
    y: float
    width: float
    height: float
    size: float = 13


@dataclass(frozen=True)
class Frontier:
    """A line per method over what it is given, named at its end; dashed lines across.

    That is epsilon, or people, by the logarithm.
    """

    given: Sequence[float]
    series: Mapping[str, Sequence[float]]
    levels: Mapping[str, float]
    low: float
    top: float
    unit: str = "ε "  # before each value below the axis
    ends: tuple[str, str] = ("← more private", "less private →")

    def draw(self, drawing: Drawing, area: Area) -> None:
        """Axes, dashed lines, the lines of the methods, and all their names."""
        self._draw_axes(drawing, area)
        names = [*self._draw_levels(drawing, area), *self._draw_lines(drawing, area)]
        size, (_, right) = area.size, self._sides(area)
        for y, name, color in _apart(names, 1.2 * size):
            style = {"size": size, "color": color, "bold": color == "good"}
            drawing.text(right + 6, y + 0.35 * size, name, **style)

    def _sides(self, area: Area) -> tuple[float, float]:
        """Where the lines begin and end; beside them stand figures and names."""
        return area.x + 2.4 * area.size, area.x + area.width - 9.6 * area.size

    def _at(self, area: Area, number: int, value: float) -> tuple[float, float]:
        """The place of a value at the epsilon of this number."""
        size, (left, right) = area.size, self._sides(area)
        given = [log(one) for one in self.given]
        along = (given[number] - given[0]) / (given[-1] - given[0])
        bottom = area.y + area.height - 3.1 * size
        share = (value - self.low) / (self.top - self.low)
        x = left + size + along * (right - left - 2 * size)
        return x, bottom - (bottom - area.y) * share

    def _draw_axes(self, drawing: Drawing, area: Area) -> None:
        size, (left, right) = area.size, self._sides(area)
        quiet = {"size": size, "color": "quiet"}
        for tick in range(ceil(self.low * 20), int(self.top * 20) + 1):
            y = self._at(area, 0, tick / 20)[1]
            drawing.line([(left, y), (right, y)], color="line", weight=0.7)
            label = f"{tick / 20:.2f}".lstrip("0")
            drawing.text(left - 6, y + 0.35 * size, label, anchor="end", **quiet)
        bottom = self._at(area, 0, self.low)[1]
        for number, value in enumerate(self.given):
            x, told = self._at(area, number, self.low)[0], f"{self.unit}{value:,g}"
            drawing.text(x, bottom + 1.3 * size, told, anchor="middle", **quiet)
        below = bottom + 2.75 * size
        drawing.text(left, below, self.ends[0], **quiet)
        drawing.text(right, below, self.ends[1], anchor="end", **quiet)

    def _draw_levels(self, drawing: Drawing, area: Area) -> list[Name]:
        names, (left, right) = list[Name](), self._sides(area)
        for name, level in self.levels.items():
            y = self._at(area, 0, level)[1]
            points = [(left, y), (right, y)]
            drawing.line(points, color="quiet", dashed=True, weight=1.3)
            names.append((y, name, "quiet"))
        return names

    def _draw_lines(self, drawing: Drawing, area: Area) -> list[Name]:
        names = list[Name]()
        colored = [*zip(COLORS, self.series.items(), strict=False)]
        for color, (name, values) in reversed(colored):  # the first lies on top
            points = [self._at(area, n, value) for n, value in enumerate(values)]
            drawing.line(points, color=color, weight=2.8 if color == "good" else 1.8)
            for x, y in points:
                drawing.dot(x, y, radius=4 if color == "good" else 3, fill=color)
            names.append((points[-1][1], name, color))
        return names


def _apart(names: list[Name], least: float) -> list[Name]:
    """The names from top to bottom, moved so that none stands upon another."""
    placed: list[Name] = []
    for y, name, color in sorted(names):
        at = max(y, placed[-1][0] + least) if placed else y
        placed.append((at, name, color))
    return placed


@dataclass(frozen=True)
class Bar:
    """One bar: what it is of, how long, and whether something is promised."""

    label: str
    value: float
    is_protected: bool


def bars(
    drawing: Drawing, area: Area, rows: Sequence[Bar], *, chance: float, said: str
) -> None:
    """Bars from 0 to 1 with their labels above them, and a line at pure guessing."""
    size = area.size
    scale = area.width - 4.2 * size
    step = (area.height - 2.2 * size) / len(rows)
    for number, bar in enumerate(rows):
        y = area.y + number * step
        color = "good" if bar.is_protected else "warn"
        drawing.text(area.x, y + size, bar.label, size=size)
        top = y + 1.5 * size
        drawing.box(
            area.x, top, scale * bar.value, size, fill=color, stroke=color, radius=2
        )
        drawing.text(
            area.x + scale * bar.value + 6,
            top + 0.85 * size,
            f"{bar.value:.0%}",
            size=size,
            bold=True,
            color=color,
        )
        guess = area.x + scale * chance
        drawing.line([(guess, top), (guess, top + size + 5)], color="ink", dashed=True)
    end = area.y + len(rows) * step
    drawing.text(area.x, end + 1.2 * size, said, size=size, color="quiet")
