"""One HTML file for one run: no scripts, nothing fetched, light and dark.

Every text that came from outside is escaped; the page forbids itself the network. Each
plot has a caption and, below it, its numbers as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tacit.release import Standing
from tacit.reporting import plots, tables
from tacit.reporting.report import (
    Contender,
    Curve,
    Groups,
    Paired,
    Person,
    Report,
    Tradeoff,
)
from tacit.reporting.style import CSS
from tacit.statement import Statement
from tacit.version import __version__

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(report: Report) -> str:
    """The whole page; parts of the report that are empty are left out."""
    parts = (
        _head(report),
        _privacy(report.statements) if report.statements else "",
        _comparison(report.comparison) if report.comparison else "",
        _tradeoff(report.tradeoff) if report.tradeoff else "",
        _differences(report.differences) if report.differences else "",
        _curve(report.curve) if report.curve else "",
        _groups(report.groups) if report.groups else "",
        _person(report.person) if report.person else "",
        _origin(report),
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(report.title)} – Tacit</title>
<style>{CSS}</style>
</head>
<body>
<main>
{"".join(parts)}</main>
</body>
</html>
"""


def _head(report: Report) -> str:
    badge = ' <span class="badge">simulation</span>' if report.simulation else ""
    facts = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>\n"
        for label, value in report.facts
    )
    return (
        f'<header>\n<p class="brand">Tacit</p>\n'
        f"<h1>{escape(report.title)}{badge}</h1>\n{_simulated(report)}</header>\n"
        + (f'<dl class="facts">\n{facts}</dl>\n' if facts else "")
    )


def _simulated(report: Report) -> str:
    if not report.simulation:
        return ""
    return (
        '<p class="quiet">All devices ran on one machine with seeded randomness: '
        "these figures describe a simulation, not a release to real people.</p>\n"
    )


def _privacy(statements: tuple[Statement, ...]) -> str:
    table = _table(tables.privacy(statements), heads=1)
    return _section("privacy", "Who sees what", _verdict(statements) + table)


def _verdict(statements: tuple[Statement, ...]) -> str:
    proven = sum(said.standing is Standing.PROVEN for said in statements)
    if proven == len(statements):
        return _notice("Every line below is proven, under what it assumes.", good=True)
    if proven:
        return _notice(
            f"{proven} of {len(statements)} statements are proven; the rest promise "
            "nothing. A guarantee holds only for the unit and view it names."
        )
    return _notice("This run gives no privacy guarantee to anyone.")


def _comparison(contenders: tuple[Contender, ...]) -> str:
    metric = next(iter(contenders[0].metrics))
    table = tables.comparison(contenders)
    ours = {place for place, c in enumerate(contenders) if c.is_this_run}
    figure = _figure(
        plots.comparison(contenders, metric),
        f"{metric} of each method, with one standard error where there is one. "
        "This run is in color.",
    )
    body = figure + _table(table, heads=1, marked=ours)
    return _section("comparison", "Compared with others", body)


def _tradeoff(tradeoff: Tradeoff) -> str:
    caption = (
        f"{tradeoff.metric} at each epsilon, with one standard error. Dashed: methods "
        "that promise nothing, or saw every history."
    )
    body = _figure(plots.tradeoff(tradeoff), caption)
    return _section("tradeoff", "What privacy costs", body)


def _differences(pairs: tuple[Paired, ...]) -> str:
    note = (
        '<p class="quiet">People are drawn with replacement, each with all of their '
        "differences; the interval speaks of other people, not of other seeds.</p>\n"
    )
    metrics = dict.fromkeys(pair.metric for pair in pairs)
    by_metric = ([p for p in pairs if p.metric == metric] for metric in metrics)
    shown = "".join(_table(tables.differences(some), heads=1) for some in by_metric)
    return _section("differences", "How sure the differences are", note + shown)


def _curve(curve: Curve) -> str:
    caption = f"{curve.metric} after each round; the band is one standard error."
    numbers = _folded(_table(tables.curve(curve)))
    body = _figure(plots.learning_curve(curve), caption) + numbers
    return _section("learning", "How it learned", body)


def _groups(groups: Groups) -> str:
    metrics = list(dict.fromkeys(name for group in groups.values() for name in group))
    first = _figure(
        plots.by_group(groups, metrics[0]),
        f"{metrics[0]} for groups of people by activity, with one standard error.",
    )
    numbers = (_table(tables.by_group(groups, name), heads=1) for name in metrics)
    body = first + _folded("".join(numbers))
    return _section("groups", "For whom it works", body)


def _person(person: Person) -> str:
    history = "".join(f"<li>{escape(title)}</li>\n" for title in person.history)
    body = (
        f'<div class="two">\n<div>\n<h3>What {escape(person.name)} has</h3>\n'
        f'<ul class="history">\n{history}</ul>\n</div>\n'
        f"<div>\n{_table(tables.recommendations(person))}</div>\n</div>\n"
    )
    return _section("person", "One person's list", body)


def _origin(report: Report) -> str:
    body = (
        f"<pre><code>{escape(report.command)}</code></pre>\n"
        f'<p class="quiet">Tacit {escape(__version__)}</p>\n'
    )
    return _section("origin", "How this page was made", body)


# --- Elements ------------------------------------------------------------------------


def _section(name: str, heading: str, body: str) -> str:
    title = f'<h2 id="{name}-heading">{escape(heading)}</h2>'
    return f'<section aria-labelledby="{name}-heading">\n{title}\n{body}</section>\n'


def _notice(text: str, *, good: bool = False) -> str:
    kind = "notice good" if good else "notice"
    return f'<div class="{kind}" role="note"><p>{escape(text)}</p></div>\n'


def _figure(svg: str, caption: str) -> str:
    label = f'<svg role="img" aria-label="{escape(caption)}"'
    drawn = svg.replace("<svg", label, 1)
    return f"<figure>\n{drawn}\n<figcaption>{escape(caption)}</figcaption>\n</figure>\n"


def _folded(table: str) -> str:
    return f"<details>\n<summary>The numbers</summary>\n{table}</details>\n"


def _table(table: tables.Table, *, heads: int = 0, marked: Iterable[int] = ()) -> str:
    """A table; its first `heads` columns name the rows, rows in `marked` stand out."""
    emphasis = dict.fromkeys(marked, ' class="ours"')
    header = "".join(
        f'<th scope="col"{_aligned(table, place)}>{escape(name)}</th>'
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
        f"<caption>{escape(table.caption)}</caption>\n"
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )


def _cell(table: tables.Table, place: int, text: str, heads: int) -> str:
    aligned = _aligned(table, place)
    if place < heads:
        return f'<th scope="row"{aligned}>{escape(text)}</th>'
    return f"<td{aligned}>{escape(text)}</td>"


def _aligned(table: tables.Table, place: int) -> str:
    return ' class="number"' if place in table.numeric else ""
