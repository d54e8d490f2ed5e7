"""One HTML file for one run or comparison: no scripts, nothing fetched, light and dark.

The epsilon and the users stand first. Every text that came from outside is escaped; the
page forbids itself the network. Each chart has a caption, and its numbers as a table
that is folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tacit.release import Standing, Unit
from tacit.reporting import charts, elements, tables
from tacit.reporting.pairs import Paired
from tacit.reporting.plain_words import (
    NO_RELEASE,
    is_a_promise,
    is_reassuring,
    rounded_up,
    sentence,
    unchecked,
    without_figure,
)
from tacit.reporting.promises import largest, promises
from tacit.reporting.report_data import (
    Contender,
    Costs,
    Curve,
    Estimate,
    Groups,
    Lead,
    Report,
    Tradeoff,
    User,
)
from tacit.reporting.verdict import Verdict, sentences
from tacit.statement import Statement
from tacit.text import in_html
from tacit.version import __version__

SIMULATED = (
    "All clients ran on one machine with seeded randomness: these figures describe a "
    "simulation, not a release to real users."
)
RELEASED = (
    "This is a release: its randomness came from the operating system and is "
    "forgotten. All figures here that were measured on users carry noise, which the "
    "promises below cover."
)
SOME_PROVEN = "A proven promise covers some observers, and none covers the others."
_BARE = ", no privacy"  # ends the name of a private method that was trained without
_BARS = (
    "with one standard error where there is one. Green: a proven epsilon of 8 or less "
    "covers a person's whole history. Gray: no promise, or hardly one."
)


def render(report: Report) -> str:
    """The whole page; sections without content are left out."""
    parts = (
        _head(report),
        _advice(report.verdict) if report.verdict else "",
        _privacy(report.statements) if report.statements else "",
        _released(report.released) if report.released else "",
        _comparison(report.comparison) if report.comparison else "",
        _tradeoff(report.tradeoff) if report.tradeoff else "",
        _differences(report) if report.differences else "",
        _costs(report.costs) if report.costs else "",
        _curve(report.curve) if report.curve else "",
        _groups(report.groups, report.comparison) if report.groups else "",
        _budgets(report.budgets) if report.budgets else "",
        _user(report.user) if report.user else "",
        _origin(report),
    )
    return elements.page(report.title, "".join(parts))


def _head(report: Report) -> str:
    notes: tuple[str, ...] = (SIMULATED if report.simulation else RELEASED,)
    if not report.could_be_released:
        notes += (sentence(NO_RELEASE),)
    said, could = report.statements, report.simulation and report.could_be_released
    first = (epsilon_lead(said, is_of_a_release=could),) if said else ()
    return elements.head(
        report.title,
        lead=(*first, *report.lead),
        notes=notes,
        simulation=report.simulation,
    )


def epsilon_lead(statements: Sequence[Statement], *, is_of_a_release: bool) -> Lead:
    """The epsilon of a user's whole history, with whom it covers and whom it does not.

    With several figures the largest is said to be that: it holds in any case. A
    simulation promises nothing itself; its figure `is_of_a_release` like it, if one
    could follow.
    """
    label = "epsilon of a release" if is_of_a_release else "epsilon"
    mine = [said for said in statements if said.unit is Unit.USER]
    found = largest(mine)
    if mine and all(said.standing is Standing.NOTHING for said in mine):
        return Lead(label, without_figure(Standing.NOTHING), "Nothing was released.")
    if found is None or found.epsilon is None:
        some = any(said.standing.has_epsilon for said in statements)
        items = ", but only for single items; see below" * some
        return Lead(label, "none", f"No promise for a person's whole history{items}.")
    figures = {said.epsilon for said in mine if said.standing.has_epsilon}
    open_to = [one.observers for one in promises(mine) if one.epsilon is None]
    worth = found.standing.capitalize()
    detail = f"{worth} against {found.observers}."
    if len(figures) > 1:
        detail = f"{worth}; the largest of several, which stand below."
    if open_to:
        detail += f" No promise against {'; '.join(open_to)}."
    is_proven = found.standing is Standing.PROVEN and is_a_promise(found.epsilon)
    return Lead(label, rounded_up(found.epsilon), detail, is_proven)


def _advice(verdict: Verdict) -> str:
    """What to use, in a sentence that stands out; what carries it; and its limits."""
    *told, caveat = sentences(verdict)
    headline, reasons = told[:1], told[1:]
    body = (
        "".join(f'<p class="advice">{in_html(line)}</p>\n' for line in headline)
        + (elements.listing(reasons) if reasons else "")
        + elements.paragraph(caveat, quiet=True)
    )
    return elements.section("advice", "What to use", body)


def _privacy(statements: tuple[Statement, ...]) -> str:
    full = elements.table(tables.privacy(statements), heads=1)
    body = (
        _verdict(statements)
        + elements.promises(promises(statements))
        + elements.folded(full, summary="Every promise with all its terms")
    )
    return elements.section("privacy", "Who can learn what about a user", body)


def _verdict(statements: tuple[Statement, ...]) -> str:
    promised = sum(said.standing.has_epsilon for said in statements)
    if promised == len(statements):
        words = "Every promise below is proven, under the conditions that it names."
        return elements.notice(
            unchecked(statements) or words, good=is_reassuring(statements)
        )
    if promised:
        return elements.notice(
            f"{unchecked(statements) or SOME_PROVEN} A promise holds only against the "
            "observers that it names."
        )
    return elements.notice("This run makes no promise.")


def _released(sentences: tuple[str, ...]) -> str:
    body = elements.listing(sentences)
    return elements.section("released", "How well it works, with noise", body)


def _comparison(contenders: tuple[Contender, ...]) -> str:
    # The experiment names its most important metric first; the table has the others.
    metric = next(iter(contenders[0].metrics))
    measured = [c for c in contenders if metric in c.metrics]
    ordered = sorted(measured, key=lambda c: -c.metrics[metric].mean)
    bars = [_bar(c, c.metrics[metric]) for c in ordered]
    figure = elements.figure(charts.bars(bars), f"{metric}, best first, {_BARS}")
    ours = {place for place, c in enumerate(ordered) if c.is_this_run}
    others = [c for c in contenders if metric not in c.metrics]
    table = tables.comparison((*ordered, *others))
    numbers = elements.folded(
        elements.table(table, heads=1, marked=ours if len(ours) == 1 else ()),
        summary="All metrics",
    )
    return elements.section("comparison", "How well it works", figure + numbers)


def _bar(contender: Contender, value: Estimate) -> charts.Bar:
    epsilon = contender.epsilon
    note = "no privacy" if contender.method.endswith(_BARE) else "no promise"
    return charts.Bar(
        charts.without_epsilon(contender.method),
        value,
        note=note if epsilon is None else f"ε {rounded_up(epsilon)}",
        kind="private" if is_a_promise(epsilon) else "open",
        is_marked=contender.is_this_run,
    )


def _tradeoff(tradeoff: Tradeoff) -> str:
    caption = (
        f"{tradeoff.metric} at each epsilon, with one standard error. Dashed: methods "
        "that promise nothing."
    )
    body = elements.figure(charts.tradeoff(tradeoff), caption)
    body += elements.folded(_points(tradeoff))
    return elements.section("tradeoff", "What privacy costs", body)


def _points(tradeoff: Tradeoff) -> str:
    rows = tuple(
        (name, f"{epsilon:g}", str(value))
        for name, points in tradeoff.series.items()
        for epsilon, value in points
    )
    flat = tuple((n, tables.MISSING, str(v)) for n, v in tradeoff.references.items())
    header = ("method", "epsilon", tradeoff.metric)
    caption = f"{tradeoff.metric} by epsilon"
    table = tables.Table(caption, header, rows + flat, frozenset({1, 2}))
    return elements.table(table, heads=1)


def _differences(report: Report) -> str:
    note = (
        "Each pair stands once, the larger mean first: how far it is ahead on the same "
        "users. The intervals hold together with 95 % and speak of other users, not of "
        "other training runs. Where two are not told apart, the last column says how "
        "many test users would tell such a difference, with a power of 80 %."
    )
    by_metric: dict[str, list[Paired]] = {}
    for pair in report.differences:
        by_metric.setdefault(pair.metric, []).append(pair)
    first, *others = (
        elements.table(tables.differences(some), heads=1) for some in by_metric.values()
    )
    body = elements.paragraph(note, quiet=True) + first
    if others:
        body += elements.folded("".join(others), summary="The other metrics")
    return elements.section("differences", "How sure the differences are", body)


def _costs(costs: tuple[Costs, ...]) -> str:
    note = elements.paragraph(
        "What one client sends, receives and computes in a whole training, and what "
        "all of it took on one machine: warm, and the memory of that training alone, "
        "without libraries and data. Baselines read every history in one place.",
        quiet=True,
    )
    body = note + elements.table(tables.costs(costs), heads=1)
    return elements.section("costs", "What it costs to run", body)


def _curve(curve: Curve) -> str:
    caption = f"{curve.metric} after each round; the band is one standard error."
    # Folded: a run may have thousands of rounds.
    numbers = elements.folded(elements.table(tables.curve(curve)))
    body = elements.figure(charts.learning_curve(curve), caption) + numbers
    return elements.section("learning", "How it learned", body)


def _groups(groups: Groups, contenders: Sequence[Contender]) -> str:
    metrics = list(dict.fromkeys(name for group in groups.values() for name in group))
    known = {contender.method: contender for contender in contenders}
    every = (v for group in groups.values() for v in group[metrics[0]].values())
    most = max(value.mean + (value.se or 0.0) for value in every)
    drawn = "".join(
        f"<h3>{in_html(label)}</h3>\n"
        + charts.bars(_group_bars(by_metric[metrics[0]], known), end=most)
        for label, by_metric in groups.items()
    )
    caption = (
        f"{metrics[0]} for groups of users, by the number of items they have or by "
        f"the time until what they took next, {_BARS}"
    )
    numbers = (
        elements.table(tables.by_group(groups, name), heads=1) for name in metrics
    )
    body = elements.figure(drawn, caption) + elements.folded("".join(numbers))
    return elements.section("groups", "For whom it works", body)


def _group_bars(
    row: Mapping[str, Estimate], known: Mapping[str, Contender]
) -> list[charts.Bar]:
    ordered = sorted(row.items(), key=lambda one: -one[1].mean)
    return [_bar(known.get(m) or Contender(m, {}), value) for m, value in ordered]


def _budgets(groups: Groups) -> str:
    metrics = list(dict.fromkeys(name for group in groups.values() for name in group))
    lead = elements.paragraph(
        "Held-out users by their public group. All have the same model: groups differ "
        "in their users, and in the number of similar users behind the model."
    )
    numbers = "".join(
        elements.table(tables.by_group(groups, name, of="public group"), heads=1)
        for name in metrics
    )
    return elements.section("budgets", "For those of each budget", lead + numbers)


def _user(user: User) -> str:
    note = elements.paragraph(
        "The list is made on the user's own device from the published model; the "
        "history stays there.",
        quiet=True,
    )
    reasons = user.reasons or ((),) * len(user.recommended)
    lines = "".join(
        f"<li><bdi>{in_html(title)}</bdi>{_because(why)}</li>\n"
        for (title, _), why in zip(user.recommended, reasons, strict=True)
    )
    has = "".join(f"<li><bdi>{in_html(title)}</bdi></li>\n" for title in user.history)
    history = elements.folded(
        f'<ul class="history">\n{has}</ul>\n',
        summary=f"What this user has: {len(user.history):,} items",
    )
    scores = elements.folded(
        elements.table(tables.recommendations(user)), summary="Scores"
    )
    body = f'{note}<ol class="list">\n{lines}</ol>\n{history}{scores}'
    return elements.section("user", f"The list of user {user.name}", body)


def _because(why: Sequence[str]) -> str:
    if not why:
        return ""
    titles = ", ".join(f"<bdi>{in_html(title)}</bdi>" for title in why)
    return f" <small>because of {titles}</small>"


def _origin(report: Report) -> str:
    body = (
        elements.facts(report.facts)
        + f"<pre><code>{in_html(report.command)}</code></pre>\n"
        + elements.paragraph(f"Tacit {__version__}", quiet=True)
    )
    return elements.section("origin", "How this page was made", body)
