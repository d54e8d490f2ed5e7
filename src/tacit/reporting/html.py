"""One HTML file for one run: no scripts, nothing fetched, light and dark.

Every text that came from outside is escaped; the page forbids itself the network. Each
plot has a caption and, below it, its numbers as a table.
"""

from __future__ import annotations

from tacit.release import Standing
from tacit.reporting import elements, plots, tables
from tacit.reporting.report_data import (
    Contender,
    Curve,
    Groups,
    Paired,
    Report,
    Tradeoff,
    User,
)
from tacit.statement import Statement
from tacit.text import in_html
from tacit.version import __version__

SIMULATED = (
    "All clients ran on one machine with seeded randomness: these figures describe a "
    "simulation, not a release to real users."
)
RELEASED = (
    "This is a release: its randomness came from the operating system and is "
    "forgotten. No figure here was measured on users but with noise, under what is "
    "promised to them below."
)


def render(report: Report) -> str:
    """The whole page; sections without content are left out."""
    parts = (
        _head(report),
        _privacy(report.statements) if report.statements else "",
        _released(report.released) if report.released else "",
        _comparison(report.comparison) if report.comparison else "",
        _tradeoff(report.tradeoff) if report.tradeoff else "",
        _differences(report.differences) if report.differences else "",
        _curve(report.curve) if report.curve else "",
        _groups(report.groups) if report.groups else "",
        _budgets(report.budgets) if report.budgets else "",
        _user(report.user) if report.user else "",
        _origin(report),
    )
    return elements.page(report.title, "".join(parts))


def _head(report: Report) -> str:
    notes = (SIMULATED if report.simulation else RELEASED,)
    title, facts = report.title, report.facts
    return elements.head(title, facts=facts, notes=notes, simulation=report.simulation)


def _privacy(statements: tuple[Statement, ...]) -> str:
    table = elements.table(tables.privacy(statements), heads=1)
    return elements.section("privacy", "Who sees what", _verdict(statements) + table)


def _verdict(statements: tuple[Statement, ...]) -> str:
    proven = sum(said.standing is Standing.PROVEN for said in statements)
    if proven == len(statements):
        return elements.notice(
            "Every line below is proven, under what it assumes.", good=True
        )
    if proven:
        return elements.notice(
            f"{proven} of {len(statements)} statements are proven; the rest promise "
            "nothing. A guarantee holds only for the unit and view it names."
        )
    return elements.notice("This run gives no privacy guarantee to anyone.")


def _released(sentences: tuple[str, ...]) -> str:
    body = elements.listing(sentences)
    return elements.section("released", "How well it works, with noise", body)


def _comparison(contenders: tuple[Contender, ...]) -> str:
    # The experiment names its most important metric first; the table has the others.
    metric = next(iter(contenders[0].metrics))
    table = tables.comparison(contenders)
    ours = {place for place, c in enumerate(contenders) if c.is_this_run}
    figure = elements.figure(
        plots.comparison(contenders, metric),
        f"{metric} of each method, with one standard error where there is one. "
        "This run is in color.",
    )
    body = figure + elements.table(table, heads=1, marked=ours)
    return elements.section("comparison", "Compared with others", body)


def _tradeoff(tradeoff: Tradeoff) -> str:
    caption = (
        f"{tradeoff.metric} at each epsilon, with one standard error. Dashed: methods "
        "that promise nothing, or saw every history."
    )
    body = elements.figure(plots.tradeoff(tradeoff), caption)
    return elements.section("tradeoff", "What privacy costs", body)


def _differences(pairs: tuple[Paired, ...]) -> str:
    note = (
        '<p class="quiet">Users are drawn with replacement, each with all of their '
        "differences; the interval speaks of other users, not of other seeds.</p>\n"
    )
    metrics = dict.fromkeys(pair.metric for pair in pairs)
    # One table per metric: means of different metrics do not compare.
    by_metric = ([p for p in pairs if p.metric == metric] for metric in metrics)
    shown = "".join(
        elements.table(tables.differences(some), heads=1) for some in by_metric
    )
    return elements.section("differences", "How sure the differences are", note + shown)


def _curve(curve: Curve) -> str:
    caption = f"{curve.metric} after each round; the band is one standard error."
    # Folded: a run may have thousands of rounds.
    numbers = elements.folded(elements.table(tables.curve(curve)))
    body = elements.figure(plots.learning_curve(curve), caption) + numbers
    return elements.section("learning", "How it learned", body)


def _groups(groups: Groups) -> str:
    metrics = list(dict.fromkeys(name for group in groups.values() for name in group))
    first = elements.figure(
        plots.by_group(groups, metrics[0]),
        f"{metrics[0]} for groups of users by activity, with one standard error.",
    )
    numbers = (
        elements.table(tables.by_group(groups, name), heads=1) for name in metrics
    )
    body = first + elements.folded("".join(numbers))
    return elements.section("groups", "For whom it works", body)


def _budgets(groups: Groups) -> str:
    metrics = list(dict.fromkeys(name for group in groups.values() for name in group))
    lead = elements.paragraph(
        "Held-out users by their public group. All have the same model: groups differ "
        "in who is in them, and in how much the model heard of users like them."
    )
    numbers = "".join(
        elements.table(tables.by_group(groups, name, of="public group"), heads=1)
        for name in metrics
    )
    return elements.section("budgets", "For those of each budget", lead + numbers)


def _user(user: User) -> str:
    history = "".join(f"<li>{in_html(title)}</li>\n" for title in user.history)
    body = (
        f'<div class="two">\n<div>\n'
        f"<h3>What <bdi>{in_html(user.name)}</bdi> has</h3>\n"
        f'<ul class="history">\n{history}</ul>\n</div>\n'
        f"<div>\n{elements.table(tables.recommendations(user))}</div>\n</div>\n"
    )
    return elements.section("user", "One user's list", body)


def _origin(report: Report) -> str:
    body = (
        f"<pre><code>{in_html(report.command)}</code></pre>\n"
        f'<p class="quiet">Tacit {in_html(__version__)}</p>\n'
    )
    return elements.section("origin", "How this page was made", body)
