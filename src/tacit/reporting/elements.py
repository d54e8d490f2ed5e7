"""What pages are made of: the shell, headings, notices, figures and tables.

Every text that came from outside is cleaned and escaped here; a page fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tacit.reporting import tables
from tacit.reporting.style import CSS
from tacit.text import in_html

# No script, image, font or request, whatever text from outside might try to embed.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, body: str) -> str:
    """A whole document around HTML that is safe already."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{in_html(title)} – Tacit</title>
<style>{CSS}</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""


def head(
    title: str,
    *,
    facts: Iterable[tuple[str, str]] = (),
    notes: Iterable[str] = (),
    simulation: bool = False,
) -> str:
    """The title, quiet notes below it, and facts in boxes."""
    badge = ' <span class="badge">simulation</span>' if simulation else ""
    said = "".join(f'<p class="quiet">{in_html(note)}</p>\n' for note in notes)
    boxes = "".join(
        f"<div><dt>{in_html(label)}</dt><dd>{in_html(value)}</dd></div>\n"
        for label, value in facts
    )
    return (
        f'<header>\n<p class="brand">Tacit</p>\n'
        f"<h1>{in_html(title)}{badge}</h1>\n{said}</header>\n"
        + (f'<dl class="facts">\n{boxes}</dl>\n' if boxes else "")
    )


def paragraph(text: str, *, quiet: bool = False) -> str:
    """A paragraph of escaped text; `quiet` ones are smaller and gray."""
    kind = ' class="quiet"' if quiet else ""
    return f"<p{kind}>{in_html(text)}</p>\n"


def listing(lines: Iterable[str]) -> str:
    """A bulleted list with one escaped sentence per line."""
    items = "".join(f"<li>{in_html(line)}</li>\n" for line in lines)
    return f"<ul>\n{items}</ul>\n"


def section(name: str, heading: str, body: str) -> str:
    """A section of the page under a heading; `name` is unique on the page."""
    name = in_html(name)
    title = f'<h2 id="{name}-heading">{in_html(heading)}</h2>'
    return f'<section aria-labelledby="{name}-heading">\n{title}\n{body}</section>\n'


def notice(text: str, *, good: bool = False) -> str:
    """A sentence in a box: a warning, or good news."""
    kind = "notice good" if good else "notice"
    return f'<div class="{kind}" role="note"><p>{in_html(text)}</p></div>\n'


def figure(svg: str, caption: str) -> str:
    """A plot with its caption, which is also what a screen reader says."""
    # The plot is our own SVG and is put in as it is; only the caption is escaped.
    label = f'<svg role="img" aria-label="{in_html(caption)}"'
    drawn = svg.replace("<svg", label, 1)
    return (
        f"<figure>\n{drawn}\n<figcaption>{in_html(caption)}</figcaption>\n</figure>\n"
    )


def folded(table: str) -> str:
    """A table of figures that is folded until the reader opens it."""
    return f"<details>\n<summary>The numbers</summary>\n{table}</details>\n"


def table(table: tables.Table, *, heads: int = 0, marked: Iterable[int] = ()) -> str:
    """A table; its first `heads` columns name the rows, rows in `marked` stand out."""
    emphasis = dict.fromkeys(marked, ' class="ours"')
    header = "".join(
        f'<th scope="col"{_aligned(table, place)}>{in_html(name)}</th>'
        for place, name in enumerate(table.header)
    )
    rows = "".join(
        f"<tr{emphasis.get(number, '')}>"
        + "".join(_cell(table, place, cell, heads) for place, cell in enumerate(row))
        + "</tr>\n"
        for number, row in enumerate(table.rows)
    )
    return (
        f'<div class="scroll" tabindex="0">\n<table>\n'
        f"<caption>{in_html(table.caption)}</caption>\n"
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )


def _cell(table: tables.Table, place: int, text: str, heads: int) -> str:
    aligned = _aligned(table, place)
    if place < heads:
        return f'<th scope="row"{aligned}>{in_html(text)}</th>'
    return f"<td{aligned}>{in_html(text)}</td>"


def _aligned(table: tables.Table, place: int) -> str:
    return ' class="number"' if place in table.numeric else ""
