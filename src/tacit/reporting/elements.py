"""What pages are made of: the shell, headings, notices, figures and tables.

Every text that came from outside is cleaned and escaped here; a page fetches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tacit.release import Standing
from tacit.reporting import tables
from tacit.reporting.plain_words import capital, is_a_promise, sentence
from tacit.reporting.promises import Promise
from tacit.reporting.report_data import Lead
from tacit.reporting.style import CSS
from tacit.text import in_html

# No script, image, font or request, whatever text from outside might try to embed.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")  # of a command

_PHONE = 44  # characters of a table's text on a phone's line
_GAP = 2  # between columns, in characters
_RIBBON = 18  # a column of longer texts is at least this wide


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
    lead: Iterable[Lead] = (),
    notes: Iterable[str] = (),
    simulation: bool = False,
) -> str:
    """The title, quiet notes below it, and what the reader should see first."""
    badge = ' <span class="badge">simulation</span>' if simulation else ""
    said = "".join(f'<p class="quiet">{in_html(note)}</p>\n' for note in notes)
    return (
        f'<header>\n<p class="brand">Tacit</p>\n'
        f"<h1>{in_html(title)}{badge}</h1>\n{said}</header>\n{leads(lead)}"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Facts in small boxes, each with its label."""
    boxes = "".join(
        f"<div><dt>{in_html(label)}</dt><dd>{in_html(value)}</dd></div>\n"
        for label, value in pairs
    )
    return f'<dl class="facts">\n{boxes}</dl>\n' if boxes else ""


def leads(facts: Iterable[Lead]) -> str:
    """What the reader should see first: large values, each with what it covers."""
    boxes = "".join(
        f"<div{_classed('proven' if fact.is_promise else '')}>"
        f"<dt>{in_html(fact.label)}</dt><dd>{in_html(fact.value)}</dd>"
        + (f"<dd>{in_html(fact.detail)}</dd>" if fact.detail else "")
        + "</div>\n"
        for fact in facts
    )
    return f'<dl class="facts lead">\n{boxes}</dl>\n' if boxes else ""


def promises(cards: Iterable[Promise]) -> str:
    """One card per group of observers: the figure first, then who, then what it means.

    A figure that is proven, and small enough to be a promise, stands in color.
    """
    items = "".join(_card(promise) for promise in cards)
    return f'<ul class="promises">\n{items}</ul>\n'


def _card(promise: Promise) -> str:
    is_proven = promise.standing is Standing.PROVEN and is_a_promise(promise.epsilon)
    kind = _classed("proven" if is_proven else "")
    each = (in_html(sentence(text)) for text in promise.terms)
    terms = "".join(f'<p class="quiet">{text}</p>\n' for text in each)
    worth = f" <small>{promise.worth}</small>" if promise.worth else ""
    return (
        f'<li{kind}><p class="figure">{in_html(promise.figure)}{worth}</p>\n'
        f'<div><p class="who">{in_html(capital(promise.observers))}</p>\n'
        f"<p>{_unbroken(sentence(promise.meaning))}</p>\n{terms}</div></li>\n"
    )


def _unbroken(text: str) -> str:
    """Escaped text in which a line never ends between a figure and its percent."""
    return in_html(text).replace(" %", "&nbsp;%")


def _with_whole_options(text: str) -> str:
    """Escaped text in which no line ends within an option of a command."""
    return _OPTION.sub(r'<span class="whole">\g<0></span>', in_html(text))


def paragraph(text: str, *, quiet: bool = False) -> str:
    """A paragraph of escaped text; `quiet` ones are smaller and gray."""
    kind = ' class="quiet"' if quiet else ""
    return f"<p{kind}>{in_html(text)}</p>\n"


def listing(lines: Iterable[str]) -> str:
    """A bulleted list with one escaped sentence per line."""
    items = "".join(f"<li>{_with_whole_options(line)}</li>\n" for line in lines)
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


def figure(chart: str, caption: str) -> str:
    """A chart of `charts`, which is put in as it is, with its caption."""
    return f"<figure>\n{chart}<figcaption>{in_html(caption)}</figcaption>\n</figure>\n"


def folded(body: str, *, summary: str = "The numbers") -> str:
    """What is folded until the reader opens it."""
    return f"<details>\n<summary>{in_html(summary)}</summary>\n{body}</details>\n"


def table(table: tables.Table, *, heads: int = 0, marked: Iterable[int] = ()) -> str:
    """A table; its first `heads` columns name the rows, rows in `marked` stand out.

    Where a phone is too narrow for it, each row becomes a record with a label before
    every value. Roles are written out, because a table that is laid out otherwise
    loses them in browsers.
    """
    emphasis = dict.fromkeys(marked, ' class="ours"')
    header = "".join(
        f'<th scope="col" role="columnheader"{_aligned(table, place)}>{in_html(name)}'
        "</th>"
        for place, name in enumerate(table.header)
    )
    rows = "".join(
        f'<tr role="row"{emphasis.get(number, "")}>'
        + "".join(_cell(table, place, cell, heads) for place, cell in enumerate(row))
        + "</tr>\n"
        for number, row in enumerate(table.rows)
    )
    kind = "" if _fits_a_phone(table) else ' class="records"'
    return (
        f'<table role="table"{kind}>\n<caption>{in_html(table.caption)}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{header}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{rows}</tbody>\n</table>\n'
    )


def _fits_a_phone(table: tables.Table) -> bool:
    """Whether all columns have room side by side at a width of 390 pixels."""
    columns = zip(table.header, *table.rows, strict=True)
    widths = (_width(cells, i in table.numeric) for i, cells in enumerate(columns))
    return sum(widths) + _GAP * len(table.header) <= _PHONE


def _width(cells: Sequence[str], is_numeric: bool) -> int:
    """Characters that a column needs; words may wrap, but not into a narrow ribbon."""
    longest = max((len(word) for cell in cells for word in cell.split()), default=0)
    whole = max((len(value) for value in cells[1:]), default=0)  # the first is the head
    return max(longest, whole if is_numeric else min(whole, _RIBBON))


def _cell(table: tables.Table, place: int, text: str, heads: int) -> str:
    aligned = _aligned(table, place)
    if place < heads:
        return f'<th scope="row" role="rowheader"{aligned}>{in_html(text)}</th>'
    if text == tables.MISSING:  # a record on a phone leaves it out
        aligned = _classed("number missing" if aligned else "missing")
    label = in_html(table.header[place])
    return f'<td role="cell" data-label="{label}"{aligned}>{in_html(text)}</td>'


def _classed(name: str) -> str:
    return f' class="{name}"' if name else ""


def _aligned(table: tables.Table, place: int) -> str:
    return ' class="number"' if place in table.numeric else ""
