"""The account as lines for a terminal: a head for each observer, and what it rests on.

    the server's operator, and everyone who sees the model  epsilon 4.00  PROVEN
        one person's whole history, compared with that person absent; delta 1e-06; ...
        ...

No line is wider than asked for, and no word is broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tacit.reporting.plain_words import exception, meaning, sentence
from tacit.reporting.promises import Promise, promises
from tacit.reporting.tables import MISSING, Table, merged
from tacit.reporting.terminal import wrapped
from tacit.statement import Statement
from tacit.text import shown

WIDTH = 79
_HEAD = 56  # of the observer; then the figure and the standing
_INDENT = "    "


def in_short(statements: Iterable[Statement], width: int = WIDTH) -> list[str]:
    """One block for each group of observers: figure, standing, and what it means."""
    each = promises([*statements])
    return [line for promise in each for line in _lines(promise, width)]


def in_full(statements: Sequence[Statement], width: int = WIDTH) -> list[str]:
    """Every field of every statement, one below the other."""
    lines: list[str] = []
    for said, units, views in merged(statements):
        lines += wrapped(shown(said.what, longest=None), width, later="  ")
        fields = {
            "seen by": said.seen_by,
            "group": said.group,
            "unit": ", ".join(units),
            "view": ", ".join(views),
            "epsilon": _exact(said.epsilon),
            "standing": str(said.standing),
            "delta": "none" if said.delta is None else f"{said.delta:g}",
            "adjacency": str(said.adjacency),
            "horizon": said.horizon,
            "accountant": said.accountant,
            "assumes": said.assumes,
            "reason": said.reason,
            **_in_words(said),
            "channel": said.channel or "unknown",
            "published": _exact(said.published_epsilon),
        }
        for name, value in fields.items():
            start, value = f"    {name:<11} ", shown(value, longest=None)
            lines += wrapped(value, width, first=start, later=" " * len(start))
    return lines


def _in_words(line: Statement) -> dict[str, str]:
    """What a figure means, and how often a belief can grow further."""
    if not line.standing.has_epsilon or line.epsilon is None:
        return {}
    return {"means": meaning(line), "except": exception(line)}


def as_table(statements: Iterable[Statement]) -> Table:
    """The same blocks as a table, one row for each group of observers."""
    rows = tuple(
        (
            one.observers,
            one.figure,
            one.worth or MISSING,
            " ".join(map(sentence, _below(one))),
        )
        for one in promises([*statements])
    )
    header = ("seen by", "promise", "standing", "what it rests on, and means")
    return Table("Who sees what, under which guarantee", header, rows)


def _lines(promise: Promise, width: int) -> Iterable[str]:
    figure = f"{promise.figure:<13} {promise.worth}".rstrip()
    yield from _head(promise.observers, figure, width)
    for text in _below(promise):
        shown_text = shown(text, longest=None)
        yield from wrapped(shown_text, width, first=_INDENT, later=_INDENT)


def _below(promise: Promise) -> tuple[str, ...]:
    """The terms and then the meaning; without a figure the reason first."""
    if promise.epsilon is None:
        return promise.meaning, *promise.terms
    return *promise.terms, promise.meaning


def _head(observers: str, figure: str, width: int) -> list[str]:
    """The observers on the left, the figure on the right, on two lines if need be."""
    left = min(_HEAD, width - len(figure))
    if len(observers) < left:
        return [f"{observers:<{left}}{figure}"]
    return [*wrapped(observers, width), f"{'':<{left}}{figure}"]


def _exact(figure: float | None) -> str:
    return "none" if figure is None else repr(figure)
