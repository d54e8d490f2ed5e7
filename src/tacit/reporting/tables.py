"""Tables as rows of text, and four ways to write them: Rich, plain, CSV, Markdown.

comparison, privacy, by_group, curve, recommendations   what -> Table
to_rich, to_plain, to_csv, to_markdown                  Table -> what one sees
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import BadValue
from tacit.memory import in_words
from tacit.release import EVERYONE, Standing, Unit, View
from tacit.reporting.pairs import Paired, told_apart
from tacit.reporting.plain_words import exception, paper_claim, without_figure
from tacit.reporting.report_data import (
    Contender,
    Costs,
    Curve,
    Estimate,
    Groups,
    User,
)
from tacit.reporting.terminal import table_lines, wrapped
from tacit.statement import Statement
from tacit.text import in_csv, shown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

MISSING = "–"
PRIVACY = "Who sees what, under which guarantee"

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Table:
    """A caption, a header and rows of text; `numeric` columns line up on the right."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows} - {len(self.header)}
        if widths:
            raise BadValue(
                f"table '{self.caption}' has {len(self.header)} columns, "
                f"but rows of {sorted(widths)}"
            )


# --- What the tables say -------------------------------------------------------------


def comparison(contenders: Sequence[Contender]) -> Table:
    """A table with one row per method and one column per metric."""
    metrics = _distinct(name for c in contenders for name in c.metrics)
    rows = tuple(
        (c.method, *(_shown(c.metrics.get(metric)) for metric in metrics))
        for c in contenders
    )
    return _measured("Methods compared", ("method", *metrics), rows)


def costs(each: Sequence[Costs]) -> Table:
    """Bytes and time of one client, then the time and memory of the whole training."""
    rows = tuple(
        (
            one.method,
            _or_missing(one.bytes_up, in_words),
            _or_missing(one.bytes_down, in_words),
            _or_missing(one.client_seconds, _duration),
            _or_missing(one.seconds, _duration),
            _or_missing(one.memory_bytes, in_words),
        )
        for one in each
    )
    header = ("contender", "sends", "receives", "computes", "training", "memory")
    caption = (
        "What a client sends, receives and computes, and what a warm training took "
        "here, in time and in memory of its own"
    )
    return _measured(caption, header, rows)


def differences(pairs: Sequence[Paired]) -> Table:
    """Pairs for one metric, the larger mean first; their intervals hold together."""
    rows = tuple(
        (
            p.method,
            p.against,
            f"{p.mean:.4f}",
            f"{p.low:.4f} to {p.high:.4f}",
            told_apart(p),
        )
        for p in (pair.best_first for pair in pairs)
    )
    header = ("ahead", "of", "by", "95 % together", "told apart")
    return Table(f"{pairs[0].metric} in pairs", header, rows, frozenset({2, 3}))


def cells(measured: Sequence[Mapping[str, Any]]) -> Table:
    """Every measured cell in full, one per row, for machines."""
    header = tuple(measured[0])
    rows = tuple(
        tuple("" if cell[name] is None else str(cell[name]) for name in header)
        for cell in measured
    )
    return Table("Cells", header, rows)


def by_group(groups: Groups, metric: str, *, of: str = "group of users") -> Table:
    """One metric, with one row per group and one column per method."""
    cells = {label: metrics.get(metric, {}) for label, metrics in groups.items()}
    methods = _distinct(method for row in cells.values() for method in row)
    rows = tuple(
        (label, *(_shown(row.get(method)) for method in methods))
        for label, row in cells.items()
    )
    return _measured(f"{metric} by {of}", ("group", *methods), rows)


def by_budget(measured: Sequence[Mapping[str, Any]], metric: str) -> Table:
    """One metric of the held-out users of each public group, and their epsilon."""
    rows = tuple(
        (
            one["label"],
            one["group"],
            _promised(one),
            _shown(Estimate(one["mean"], one["se"])),
        )
        for one in measured
    )
    header = ("line", "group", "epsilon", metric)
    return Table(f"{metric} by public group", header, rows, frozenset({2, 3}))


def _promised(measured: Mapping[str, Any]) -> str:
    """What a line promises to a group; comparisons of before asked everybody."""
    if not measured.get("is_asked", True):
        return "not asked"
    epsilon = measured["epsilon"]
    return "no promise" if epsilon is None else _rounded_up(epsilon)


def curve(shown: Curve) -> Table:
    """One metric, with one row per round."""
    rows = tuple(
        (str(r), str(v)) for r, v in zip(shown.rounds, shown.values, strict=True)
    )
    caption = f"{shown.metric} by round"
    return Table(caption, ("round", shown.metric), rows, frozenset({0, 1}))


def recommendations(user: User) -> Table:
    """A user's list: rank, title and score of each item."""
    rows = tuple(
        (str(rank), title, f"{score:.4f}")
        for rank, (title, score) in enumerate(user.recommended, start=1)
    )
    caption = f"Recommended for {user.name}"
    return Table(caption, ("rank", "title", "score"), rows, frozenset({0, 2}))


def privacy(statements: Sequence[Statement], *, caption: str = PRIVACY) -> Table:
    """Who sees what, under which guarantee; lines that say the same are one line.

    An epsilon is shown with all that qualifies it, and only if it is proven.
    """
    header = ("what", "seen by", "unit", "view", "epsilon", "standing", "why")
    rows = tuple(
        (
            said.what if said.group == EVERYONE else f"{said.what} ({said.group})",
            said.seen_by,
            _named(units, of=Unit),
            _named(views, of=View),
            epsilon(said),
            str(said.standing),
            why(said),
        )
        for said, units, views in merged(statements)
    )
    return Table(caption, header, rows)


def served(serving: Mapping[str, Any]) -> Table:
    """Taking part and being served in one account, as cards and plans have it.

    With several groups each line names the group that it is for.
    """
    found = by_days(serving)
    groups = {said.group for lines in found.values() for said in lines}
    rows = tuple(
        (
            str(days),
            *([said.group] if len(groups) > 1 else []),
            said.what,
            _named(units, of=Unit),
            _named(views, of=View),
            epsilon(said),
        )
        for days, lines in found.items()
        for said, units, views in merged(lines)
    )
    grouped = ["group"] if len(groups) > 1 else []
    header = ("days", *grouped, "what", "unit", "view", "epsilon")
    return Table("Taking part and being served, together", header, rows)


def by_days(serving: Mapping[str, Any]) -> dict[int, list[Statement]]:
    """What taking part and being served for so many days costs; empty on the device."""
    found: dict[int, list[Statement]] = {}
    for line in serving["statements"]:
        own = {name: value for name, value in line.items() if name != "days"}
        found.setdefault(line["days"], []).append(Statement.from_json(own))
    return found


def epsilon(said: Statement) -> str:
    """The figure with its terms, or "none": a claimed figure is not an epsilon.

    It is rounded up, since a guarantee that is rounded down does not hold.
    """
    if said.standing is Standing.NOTHING:
        return without_figure(said.standing)
    if not said.standing.has_epsilon:
        return "none"
    if said.epsilon is None or said.delta is None:
        raise BadValue(
            f"'{said.what}' is {said.standing} with epsilon={said.epsilon}, "
            f"delta={said.delta}; such a statement has both (delta=0.0: pure privacy)"
        )
    terms = f"{said.adjacency}, delta {said.delta}; {said.horizon}; {said.accountant}"
    return f"{_rounded_up(said.epsilon)} ({terms})"


def _rounded_up(figure: float) -> str:
    # From the exact value of the float, so that rounding up can never fall below it.
    return str(Decimal(figure).quantize(Decimal("0.0001"), ROUND_CEILING))


def why(said: Statement) -> str:
    """The grounds of a figure, or the reason for none; and a paper's own figure."""
    claim = paper_claim(said)
    grounds = said.reason
    if said.standing not in (Standing.NONE, Standing.NOTHING):
        grounds += f"; assumes: {said.assumes}"
    if said.standing.has_epsilon and said.delta:
        grounds += f"; {exception(said)}"
    return f"{grounds}; {claim}" if claim else grounds


# --- How they are written ------------------------------------------------------------


def to_rich(table: Table) -> InTerminal:
    """The table for a terminal. Cells are text, never markup, whatever they contain."""
    return InTerminal(table)


@dataclass(frozen=True)
class InTerminal:
    """A table that Rich asks how to print: within the width, and no word is broken."""

    table: Table

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        from rich.text import Text

        caption = wrapped(shown(self.table.caption, longest=None), options.max_width)
        lines = "\n".join(self.lines(options.max_width))
        yield Text("\n".join(caption), style="bold", no_wrap=True, overflow="ignore")
        yield Text(f"{lines}\n", no_wrap=True, overflow="ignore")

    def lines(self, width: int) -> list[str]:
        """The header, a rule and the rows."""
        header, *rows = (
            [shown(cell, longest=None) for cell in row] for row in _lines(self.table)
        )
        return table_lines(header, rows, {*self.table.numeric}, width)


def to_plain(table: Table) -> str:
    """The table as text, its columns lined up with spaces."""
    lines = [tuple(shown(cell, longest=None) for cell in row) for row in _lines(table)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(
            cell.rjust(width) if place in table.numeric else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )
    return "\n".join((shown(table.caption, longest=None), *padded)) + "\n"


def to_csv(table: Table) -> str:
    """Header and rows as CSV, quoted where needed, without the caption.

    Cells that a spreadsheet would take for formulas are written as text.
    """
    out = io.StringIO()
    rows = ([in_csv(cell) for cell in row] for row in _lines(table))
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def to_markdown(table: Table) -> str:
    """A pipe table under its caption."""
    rule = ["--:" if i in table.numeric else ":--" for i in range(len(table.header))]
    header, *rows = ([_quoted(cell) for cell in row] for row in _lines(table))
    body = "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))
    return f"{_quoted(table.caption)}\n\n{body}\n"


# --- Details -------------------------------------------------------------------------


def merged(
    statements: Sequence[Statement],
) -> Iterator[tuple[Statement, list[str], list[str]]]:
    """Statements that differ in unit and view only, with the units and views they hold.

    Units are put together only if they hold for the same views, so every pair that a
    line names was stated.
    """
    alike: dict[Statement, dict[str, list[str]]] = {}
    for said in statements:
        views = alike.setdefault(replace(said, unit=Unit.USER, view=View.RELEASE), {})
        views.setdefault(said.unit, []).append(said.view)
    for said, views in alike.items():
        for held in _distinct(tuple(v) for v in views.values()):
            units = [unit for unit, mine in views.items() if tuple(mine) == held]
            # What holds for a user holds for each item, and is said of the user.
            unit = Unit.USER if Unit.USER in units else Unit.ITEM
            yield replace(said, unit=unit), units, list(held)


def _named(some: Sequence[str], *, of: type[StrEnum]) -> str:
    return "all" if len(some) == len(of) else ", ".join(some)


def _measured(
    caption: str, header: tuple[str, ...], rows: tuple[tuple[str, ...], ...]
) -> Table:
    return Table(caption, header, rows, frozenset(range(1, len(header))))


def _lines(table: Table) -> Iterator[tuple[str, ...]]:
    yield table.header
    yield from table.rows


def _shown(value: Estimate | None) -> str:
    return MISSING if value is None else str(value)


def _or_missing(figure: float | None, write: Callable[[float], str]) -> str:
    return MISSING if figure is None else write(figure)


def _duration(seconds: float) -> str:
    """A time for readers.

    >>> _duration(0.0004), _duration(0.12), _duration(3.21), _duration(700)
    ('0.4 ms', '120 ms', '3.2 s', '11.7 min')
    """
    if seconds < 1:
        return (
            f"{1000 * seconds:.1f} ms" if seconds < 0.01 else f"{1000 * seconds:.0f} ms"
        )
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _distinct(values: Iterable[T]) -> list[T]:
    """The distinct values, in the order of their first occurrence."""
    return list(dict.fromkeys(values))


def _quoted(text: str) -> str:
    for character in "\\|<*_`[":  # the backslash first, or it would be escaped twice
        text = text.replace(character, "\\" + character)
    return shown(text, longest=None)
