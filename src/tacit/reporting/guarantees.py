"""The account as lines for a terminal: a head for each observer, and what it rests on.

    server, and everyone through the model    epsilon 4.00  PROVEN
        a whole history, delta 1e-06, each round, 3 rounds planned
        ...

No line is wider than asked for, and no word is broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from tacit.release import EVERYONE, Adjacency, Standing, Unit, View
from tacit.reporting.plain_words import meaning, paper_claim, without_figure
from tacit.reporting.tables import Table, merged
from tacit.reporting.terminal import wrapped
from tacit.statement import Statement
from tacit.text import shown

WIDTH = 79
_HEAD = 46  # of the observer; then the figure and the standing
_INDENT = "    "

_SEEN_BY = {
    (View.RELEASE, View.SERVER): "server, and everyone through the model",
    (View.RELEASE,): "everyone through the model",
    (View.SERVER,): "server",
    (View.COLLUSION,): "server together with whoever relays or adds",
    (View.SERVER, View.COLLUSION): "server, also together with whoever relays",
    (View.RELEASE, View.SERVER, View.COLLUSION): "everyone, whoever works together",
}
_UNITS = {
    (Unit.USER,): "a whole history",
    (Unit.ITEM,): "one item of a history",
    (Unit.USER, Unit.ITEM): "a whole history",  # and so also any item of it
}
_NEIGHBOURS = {
    Adjacency.ZERO_OUT: "there or not",
    Adjacency.REPLACE_ONE: "this or any other",
}


def in_short(statements: Iterable[Statement], width: int = WIDTH) -> list[str]:
    """One block for each group of observers: figure, standing, and what it means."""
    return [line for block in blocks(statements) for line in _lines(block, width)]


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
            "published": _exact(said.published_epsilon),
        }
        for name, value in fields.items():
            start, value = f"    {name:<11} ", shown(value, longest=None)
            lines += wrapped(value, width, first=start, later=" " * len(start))
    return lines


@dataclass(frozen=True)
class Block:
    """What a group of observers learns at most: the figure, and what it rests on."""

    observers: str
    figure: str
    standing: Standing
    below: tuple[str, ...]


def blocks(statements: Iterable[Statement]) -> list[Block]:
    """One block for each group of observers."""
    return [_block(*said) for said in merged([*statements])]


def as_table(statements: Iterable[Statement]) -> Table:
    """The same blocks as a table, one row for each group of observers."""
    rows = tuple(
        (one.observers, one.figure, str(one.standing), _sentences(one.below))
        for one in blocks(statements)
    )
    header = ("seen by", "promise", "standing", "what it rests on, and means")
    return Table("Who sees what, under which guarantee", header, rows)


def _sentences(texts: Iterable[str]) -> str:
    return " ".join(map(sentence, texts))


def sentence(text: str) -> str:
    """A line of a block as a sentence.

    >>> sentence("noise on two sums")
    'Noise on two sums.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def terms(said: Statement, unit: str) -> str:
    """What a proven figure is about: the unit, its neighbours, delta and horizon."""
    delta = f"delta {said.delta:g}" if said.delta else "delta 0"
    return f"{unit} ({_NEIGHBOURS[said.adjacency]}), {delta}, {said.horizon}"


def _block(said: Statement, units: list[str], views: list[str]) -> Block:
    observers = _SEEN_BY.get(tuple(View(v) for v in views), ", ".join(views))
    if said.group != EVERYONE:
        observers += f", group '{shown(said.group)}'"
    figure, below = without_figure(said.standing), [said.reason]
    if said.standing.has_epsilon and said.epsilon is not None:
        figure, below = f"epsilon {rounded_up(said.epsilon)}", [*_below(said, units)]
    below += filter(None, [paper_claim(said)])
    return Block(observers, figure, said.standing, tuple(below))


def _lines(block: Block, width: int) -> Iterable[str]:
    yield from _head(block.observers, f"{block.figure:<13} {block.standing}", width)
    for text in block.below:
        shown_text = shown(text, longest=None)
        yield from wrapped(shown_text, width, first=_INDENT, later=_INDENT)


def _below(said: Statement, units: list[str]) -> Iterable[str]:
    """What stands below a figure: its terms, its proof and its meaning."""
    unit = _UNITS.get(tuple(Unit(u) for u in units), ", ".join(units))
    yield terms(said, unit)
    assumes = "" if said.assumes == "nothing" else f"; assumes {said.assumes}"
    yield f"{said.reason}{assumes}"
    yield meaning(said)


def _head(observers: str, figure: str, width: int) -> list[str]:
    """The observers on the left, the figure on the right, on two lines if need be."""
    left = min(_HEAD, width - len(figure))
    if len(observers) < left:
        return [f"{observers:<{left}}{figure}"]
    return [*wrapped(observers, width), f"{'':<{left}}{figure}"]


def rounded_up(figure: float) -> str:
    """An epsilon with two decimals, rounded up: rounded down it would not hold.

    >>> rounded_up(3.999999), rounded_up(0.501)
    ('4.00', '0.51')
    """
    return str(Decimal(figure).quantize(Decimal("0.01"), ROUND_CEILING))


def _exact(figure: float | None) -> str:
    return "none" if figure is None else repr(figure)
