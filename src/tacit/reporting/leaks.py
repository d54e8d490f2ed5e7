"""The page of leaks: what an attack finds with a mechanism off and on.

It is made from the documents of findings, as `Finding.to_json` gives them and as they
stand in a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import BadValue
from tacit.reporting import elements, plots, tables
from tacit.reporting.report_data import Attacked, Estimate
from tacit.statement import Statement

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
    head = elements.head(TITLE, notes=_NOTES, simulation=True)
    return elements.page(TITLE, head + parts)


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
        elements.figure(
            plots.attacks(_bars(finding, measure), metric=measure, chance=chance),
            f"{measure}, with one standard error. Orange: no guarantee. Dashed: "
            "guessing alone. A tick, where there is one: what no attack can pass. The "
            "terms of every epsilon stand in the table.",
        )
        for measure, chance in _measures(finding).items()
    )
    body = (
        elements.paragraph(finding["question"])
        + elements.paragraph(world, quiet=True)
        + figures
        + elements.table(table(finding), heads=1)
    )
    return elements.section(finding["name"], finding["name"].replace("_", " "), body)


def _measures(finding: Json) -> dict[str, float]:
    """The measures of a finding, each with the score of pure guessing."""
    # Every attempt of a finding has the same measures.
    scores = finding["attempts"][0]["scores"]
    return {name: score["chance"] for name, score in scores.items()}


def _bars(finding: Json, measure: str) -> list[Attacked]:
    return [
        Attacked(
            attempt["mechanism"],
            _estimate(attempt["scores"][measure]),
            bool(attempt["is_protected"]),
            attempt["scores"][measure]["most"],
        )
        for attempt in finding["attempts"]
    ]


def _promised(attempt: Json) -> tuple[str, ...]:
    said = Statement.from_json(attempt["statement"])
    standing = f"{said.standing}: {tables.why(said)}"
    return said.unit, said.view, tables.epsilon(said), standing


def _found(attempt: Json, measures: Sequence[str]) -> list[str]:
    return [str(_estimate(attempt["scores"][measure])) for measure in measures]


def _estimate(score: Json) -> Estimate:
    return Estimate(score["mean"], score["se"])
