"""The page of leaks: what an attack finds with a mechanism off and on.

It is made from the documents of findings, as `Finding.to_json` gives them and as they
stand in a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import BadValue
from tacit.reporting import charts, elements, tables
from tacit.reporting.charts import Kind
from tacit.reporting.plain_words import is_reassuring
from tacit.reporting.promises import promises
from tacit.reporting.report_data import Estimate, Lead
from tacit.statement import Statement
from tacit.text import in_html

Json = Mapping[str, Any]

TITLE = "What leaks, and what stops it"
_NOTES = (
    "Each attack ran twice on the same invented or public data: with the mechanism off "
    "and with it on.",
    "An attack that succeeds shows that something is not protected. One that fails "
    "shows nothing: what holds against every attack is the guarantee beside it.",
)


def render(findings: Sequence[Json]) -> str:
    """The page as HTML, without scripts, fetching nothing."""
    if not findings:
        raise BadValue("no findings to show; run at least one attack")
    parts = "".join(_finding(finding) for finding in findings)
    head = elements.head(TITLE, lead=_leads(findings), notes=_NOTES, simulation=True)
    return elements.page(TITLE, head + parts)


def _leads(findings: Sequence[Json]) -> tuple[Lead, ...]:
    proven = {
        said.epsilon
        for finding in findings
        for attempt in finding["attempts"]
        for said in [Statement.from_json(attempt["statement"])]
        if said.standing.has_epsilon and said.epsilon is not None
    }
    figures = ", ".join(f"{epsilon:g}" for epsilon in sorted(proven)) or "none"
    users = max(finding["users"] for finding in findings)
    return (
        Lead("epsilons tried", figures, "Beside attempts without any promise."),
        Lead("users attacked", f"{users:,}", "Of invented or public data."),
    )


def table(finding: Json) -> tables.Table:
    """A table with one row per mechanism: what is promised, and what was found."""
    measures = [*_measures(finding)]
    header = ("mechanism", "unit", "view", "epsilon", "standing", *measures)
    rows = tuple(
        (attempt["mechanism"], *_promised(attempt), *_found(attempt, measures))
        for attempt in finding["attempts"]
    )
    guesses = ", ".join(f"{m} {c:.4f}" for m, c in _measures(finding).items())
    # A score means nothing without what guessing gets.
    caption = f"{finding['name']}; by guessing alone: {guesses}"
    # The measures are figures; the five columns before them are words.
    return tables.Table(caption, header, rows, frozenset(range(5, len(header))))


def _finding(finding: Json) -> str:
    world = (
        f"{finding['users']:,} users and {finding['items']:,} items of "
        f"{finding['source']}, seed {finding['seed']}."
    )
    figures = "".join(
        f"<h3>{in_html(measure)}</h3>\n"
        + elements.figure(
            # Scores end at 1, which every attack of a list finds without protection.
            charts.bars(_bars(finding, measure), end=1.0, mark=chance),
            f"{measure}, with one standard error, the most successful first. Amber: no "
            "guarantee. Green: a proven one of epsilon 8 or less. Dashed: guessing "
            f"alone, {chance:.4f}. A solid tick, where there is one: what no attack "
            "can pass.",
        )
        for measure, chance in _measures(finding).items()
    )
    full = elements.table(table(finding), heads=1)
    body = (
        elements.paragraph(finding["question"])
        + elements.paragraph(world, quiet=True)
        + figures
        + elements.folded(full, summary="Every figure, with the terms of its promise")
    )
    name = finding["name"].replace("_", " ")
    return elements.section(finding["name"], f"{name[:1].upper()}{name[1:]}", body)


def _measures(finding: Json) -> dict[str, float]:
    """The measures of a finding, each with the score of pure guessing."""
    # Every attempt of a finding has the same measures.
    scores = finding["attempts"][0]["scores"]
    return {name: score["chance"] for name, score in scores.items()}


def _bars(finding: Json, measure: str) -> list[charts.Bar]:
    bars = (_bar(one, one["scores"][measure]) for one in finding["attempts"])
    return sorted(bars, key=lambda bar: -bar.value.mean)


def _bar(attempt: Json, score: Json) -> charts.Bar:
    said = Statement.from_json(attempt["statement"])
    covered: Kind = "private" if is_reassuring([said]) else "open"
    return charts.Bar(
        charts.without_epsilon(attempt["mechanism"]),
        _estimate(score),
        note=next(promises([said])).figure,
        kind=covered if attempt["is_protected"] else "warning",
        most=score["most"],
    )


def _promised(attempt: Json) -> tuple[str, ...]:
    said = Statement.from_json(attempt["statement"])
    standing = f"{said.standing}: {tables.why(said)}"
    return said.unit, said.view, tables.epsilon(said), standing


def _found(attempt: Json, measures: Sequence[str]) -> list[str]:
    return [str(_estimate(attempt["scores"][measure])) for measure in measures]


def _estimate(score: Json) -> Estimate:
    return Estimate(score["mean"], score["se"])
