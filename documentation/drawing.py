"""Drawings as SVG text: boxes, arrows and lines of text on a card of their own.

A drawing brings its background, so it is readable wherever it stands: on a light page,
on a dark page, and where the page and the reader's system disagree. Colors follow the
reader's system (`prefers-color-scheme`).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

LIGHT = {
    "page": "#ffffff",
    "fill": "#f3f6f7",
    "line": "#c3ccd2",
    "ink": "#1b2126",
    "quiet": "#55606a",
    "good": "#0b7a67",
    "good-fill": "#e3f4ef",
    "warn": "#ad4e00",
    "warn-fill": "#fdf0e1",
    "third": "#5d52b5",
    "fourth": "#b3306a",
    "fifth": "#2c6da8",
}
DARK = {
    "page": "#171c22",
    "fill": "#212830",
    "line": "#4a5661",
    "ink": "#e8ecef",
    "quiet": "#a9b4be",
    "good": "#45c9ae",
    "good-fill": "#12352e",
    "warn": "#ffae62",
    "warn-fill": "#392612",
    "third": "#a69cf0",
    "fourth": "#f07ba9",
    "fifth": "#76b5ee",
}
MARGIN = 16  # between the card's edge and what is drawn
LEADING = 1.35  # height of a line over the size of its letters


class Drawing:
    """A card of a fixed size to draw on; coordinates are those of its pixels."""

    def __init__(self, width: float, height: float, *, title: str, said: str) -> None:
        self.width, self.height = width, height
        self.title, self.said = title, said
        self.parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "fill",
        stroke: str = "line",
        dashed: bool = False,
        radius: float = 8,
    ) -> None:
        """A rectangle with round corners."""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'rx="{radius:g}" class="f-{fill} s-{stroke}"{dashes}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        said: str | Sequence[str],
        *,
        size: float = 14,
        color: str = "ink",
        bold: bool = False,
        anchor: str = "start",
        mono: bool = False,
    ) -> None:
        """One line of text, or several below each other; `y` is the first baseline."""
        style = "".join([" bold" if bold else "", " mono" if mono else ""])
        for number, line in enumerate([said] if isinstance(said, str) else said):
            at = y + number * size * LEADING
            self.parts.append(
                f'<text x="{x:g}" y="{at:g}" font-size="{size:g}" '
                f'text-anchor="{anchor}" class="f-{color}{style}">'
                f"{escape(line)}</text>"
            )

    def line(
        self,
        points: Sequence[tuple[float, float]],
        *,
        color: str = "quiet",
        arrow: bool = False,
        dashed: bool = False,
        weight: float = 1.6,
    ) -> None:
        """A line through points, with a head at its end if it is an arrow."""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        head = f' marker-end="url(#head-{color})"' if arrow else ""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" class="line s-{color}" '
            f'stroke-width="{weight:g}"{dashes}{head}/>'
        )

    def dot(
        self,
        x: float,
        y: float,
        *,
        radius: float = 4,
        fill: str = "good",
        stroke: str | None = None,
    ) -> None:
        """A filled circle."""
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" '
            f'class="f-{fill} s-{stroke or fill}"/>'
        )

    def svg(self) -> str:
        """The whole file; the same drawing gives the same bytes."""
        heads = "".join(_head(color) for color in ("quiet", "good", "warn"))
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" '
                f'viewBox="0 0 {self.width:g} {self.height:g}" '
                f'width="{self.width:g}" height="{self.height:g}" role="img" '
                f'aria-labelledby="title said">',
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="said">{escape(self.said)}</desc>',
                f"<style>{_css()}</style>",
                f"<defs>{heads}</defs>",
                f'<rect width="{self.width:g}" height="{self.height:g}" rx="10" '
                f'class="f-page"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def _css() -> str:
    dark = "".join(_rules(DARK))
    return "".join(
        [
            "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}",
            ".mono{font-family:ui-monospace,'SF Mono',Menlo,Consolas,monospace}",
            ".bold{font-weight:650}.line{fill:none;stroke-linejoin:round}",
            *_rules(LIGHT),
            f"@media (prefers-color-scheme:dark){{{dark}}}",
        ]
    )


def _rules(colors: dict[str, str]) -> list[str]:
    return [
        f".f-{name}{{fill:{value}}}.s-{name}{{stroke:{value}}}"
        for name, value in colors.items()
    ]


def _head(color: str) -> str:
    return (
        f'<marker id="head-{color}" viewBox="0 0 8 8" refX="7" refY="4" '
        f'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0 0 L8 4 L0 8 z" class="f-{color}"/></marker>'
    )
