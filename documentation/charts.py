"""Two kinds of chart on a drawing: lines over epsilon, and bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from documentation.drawing import Drawing

COLORS = ("good", "third", "fifth", "fourth", "warn")


@dataclass(frozen=True)
class Area:
    """The rectangle of a drawing that a chart may use, and the size of its letters."""

    x: float
    y: float
    width: float
    height: float
    size: float = 13


def frontier(
    drawing: Drawing,
    area: Area,
    *,
    epsilons: Sequence[float],
    series: Mapping[str, Sequence[float]],
    levels: Mapping[str, float],
    low: float,
    top: float,
) -> None:
    """A line per method over epsilon, named at its end; dashed lines across.

    Epsilons stand at equal distances: each is twice the one before.
    """
    size = area.size
    left, right = area.x + 2.4 * size, area.x + area.width - 9.6 * size
    bottom, high = area.y + area.height - 3.1 * size, area.y

    def at(number: int, value: float) -> tuple[float, float]:
        step = (right - left - 2 * size) / (len(epsilons) - 1)
        return left + size + number * step, bottom - (bottom - high) * (value - low) / (
            top - low
        )

    for tick in range(ceil(low * 20), int(top * 20) + 1):
        y = at(0, tick / 20)[1]
        drawing.line([(left, y), (right, y)], color="line", weight=0.7)
        label = f"{tick / 20:.2f}".lstrip("0")
        drawing.text(
            left - 6, y + 0.35 * size, label, size=size, color="quiet", anchor="end"
        )
    for number, epsilon in enumerate(epsilons):
        x = at(number, low)[0]
        drawing.text(
            x,
            bottom + 1.3 * size,
            f"ε {epsilon:g}",
            size=size,
            color="quiet",
            anchor="middle",
        )
    names: list[tuple[float, str, str]] = []
    for name, level in levels.items():
        y = at(0, level)[1]
        drawing.line([(left, y), (right, y)], color="quiet", dashed=True, weight=1.3)
        names.append((y, name, "quiet"))
    for color, (name, values) in reversed([*zip(COLORS, series.items(), strict=False)]):
        points = [at(number, value) for number, value in enumerate(values)]
        drawing.line(points, color=color, weight=2.8 if color == "good" else 1.8)
        for x, y in points:
            drawing.dot(x, y, radius=4 if color == "good" else 3, fill=color)
        names.append((points[-1][1], name, color))
    for y, name, color in _apart(names, 1.2 * size):
        drawing.text(
            right + 6,
            y + 0.35 * size,
            name,
            size=size,
            color=color,
            bold=color == "good",
        )
    drawing.text(
        left,
        bottom + 2.75 * size,
        "← more private",
        size=size,
        color="quiet",
    )
    drawing.text(
        right,
        bottom + 2.75 * size,
        "less private →",
        size=size,
        color="quiet",
        anchor="end",
    )


def _apart(
    names: list[tuple[float, str, str]], least: float
) -> list[tuple[float, str, str]]:
    """The names from top to bottom, moved so that none stands upon another."""
    placed: list[tuple[float, str, str]] = []
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
