"""What left a client, as tables and as a page for the user it speaks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.accounting.serialization import event_in_short
from tacit.codes import sentences
from tacit.ledger.budget import Cap
from tacit.ledger.records import GIVEN_UP, Entry
from tacit.release import Adjacency, Release, Standing, Unit, View
from tacit.reporting import elements, tables
from tacit.reporting.html import epsilon_lead
from tacit.reporting.plain_words import (
    capital,
    observers,
    promise,
    rounded_up,
    sentence,
    without_figure,
)
from tacit.reporting.promises import promises
from tacit.reporting.report_data import Lead
from tacit.statement import Statement
from tacit.text import nth_round

_LATEST = 10  # entries that a page shows unfolded
_SHORT_RUN = 12  # characters of a run's name that a terminal shows
_TITLE = "What left this device, and how much it says about me"


@dataclass(frozen=True)
class Told:
    """The content of a client's ledger, as plain data."""

    entries: tuple[Entry, ...]
    totals: tuple[Statement, ...]
    caps: tuple[Cap, ...] = ()
    refusals: tuple[tuple[str, str, int, str], ...] = ()  # run, reason, times, last
    waiting: int = 0  # reports not known to have arrived
    doubt: str | None = None  # why nothing of it is relied on, if so
    name: str | None = None  # of the file


def entries_table(entries: Sequence[Entry]) -> tables.Table:
    """Every release with its events, for readers who know the field."""
    header = ("when", "run", "round", "what", "to whom", "event for a user", "arrived")
    rows = tuple(
        (
            entry.at,
            entry.run[:_SHORT_RUN],
            str(entry.round + 1),  # as a plan counts them
            entry.what,
            entry.release.seen_by,
            _events(entry.release),
            entry.sent or "not yet known",
        )
        for entry in entries
    )
    return tables.Table("What left this device", header, rows, frozenset({2}))


def caps_table(caps: Sequence[Cap], totals: Sequence[Statement]) -> tables.Table:
    """The caps that the owner set, each with what is spent of it."""
    header = ("unit", "view", "cap", "delta", "spent")
    rows = tuple(
        (cap.unit, cap.view, f"{cap.epsilon:g}", f"{cap.delta:g}", _spent(cap, totals))
        for cap in caps
    )
    return tables.Table("Caps", header, rows, frozenset({2, 3}))


def refusals_table(told: Told) -> tables.Table:
    """The reasons for which the client refused, and how often."""
    header = ("reason", "how often", "last")
    rows = tuple((why, str(n), _day(last)) for _, why, n, last in told.refusals)
    return tables.Table("What this client refused", header, rows, frozenset({1}))


def in_doubt(doubt: str) -> str:
    """A warning that the ledger is in doubt, with the reason and what to do."""
    return (
        f"This ledger is not relied on: {doubt}. Its entries are unverified, no figure "
        "is proven, and the client refuses every round until its owner decides: tacit "
        "ledger accept FILE."
    )


def render(told: Told) -> str:
    """The whole page, for someone who has never seen an epsilon."""
    parts = (
        elements.head(_TITLE, lead=_leads(told), notes=_names(told)),
        elements.notice(in_doubt(told.doubt)) if told.doubt else "",
        elements.section("meaning", "How much it says about me", _meaning(told)),
        elements.section("limit", "My limit", _limits(told)),
        elements.section("list", "What left", _list(told)),
        _refused(told) if told.refusals else "",
        elements.section("choices", "What I can do", elements.listing(_CHOICES)),
    )
    return elements.page(" – ".join((*_names(told), _TITLE)), "".join(parts))


_CHOICES = (
    "Set a limit: tacit ledger cap FILE --epsilon 2. From then on this device says no "
    "before the limit is passed.",
    "Leave: tacit ledger forget FILE --keep-ledger. Private state and reports on this "
    "client are erased; this list stays.",
    "Erase everything: tacit ledger forget FILE. This list goes too.",
    "A message that has left cannot be called back. The figures above bound how much "
    "it can reveal, and it does not reveal more with time.",
)


def _names(told: Told) -> tuple[str, ...]:
    return () if told.name is None else (f"Ledger {told.name}",)


def _leads(told: Told) -> tuple[Lead, ...]:
    rounds = {(entry.run, entry.round) for entry in told.entries}
    first = told.entries[0].at[:10] if told.entries else None
    refused = sum(times for _, _, times, _ in told.refusals)
    detail = f"{told.waiting:,} waiting to be sent, {refused:,} requests refused."
    if first is not None:
        detail = f"The first on {first}; {detail}"
    left = Lead("messages that left", f"{len(rounds):,}", detail)
    return (
        (epsilon_lead(told.totals, is_of_a_release=False), left)
        if told.entries
        else (left,)
    )


def _meaning(told: Told) -> str:
    if not told.entries and told.doubt is None:
        return elements.notice("Nothing has left this device.", good=True)
    opening = elements.paragraph(
        "My history never leaves this device; only the messages listed below left. "
        "This is the most that all of them together can reveal to each observer:"
    )
    mine = [line for line in told.totals if line.unit is Unit.USER]
    return opening + elements.promises(promises(mine))


def _limits(told: Told) -> str:
    if not told.caps:
        return elements.notice("I have set no limit: this client answers as agreed.")
    return elements.listing(_limit(cap, told.totals) for cap in told.caps)


def _limit(cap: Cap, totals: Sequence[Statement]) -> str:
    whole = "everything about me" if cap.unit is Unit.USER else "any single thing I did"
    said = _total(cap, totals)
    so_far = (
        without_figure(said.standing)
        if said.epsilon is None
        else f"epsilon {rounded_up(said.epsilon)}"
    )
    return (
        f"{capital(observers([cap.view], said))}, for {whole}: epsilon {cap.epsilon:g} "
        f"({promise(cap.epsilon, cap.delta, 'about me')}); so far: {so_far}"
        f"{_condition(said)}."
    )


def _list(told: Told) -> str:
    header = ("when", "what", "seen by", "arrived")
    rows = tuple(
        (
            _day(entry.at),
            f"{nth_round(entry.round)}: {entry.what}",
            entry.release.seen_by,
            _arrived(entry),
        )
        for entry in reversed(told.entries)
    )
    recent = elements.table(tables.Table("The latest first", header, rows[:_LATEST]))
    recent += _protections(told)
    if len(rows) <= _LATEST:
        return recent
    older = elements.table(tables.Table("The older ones", header, rows[_LATEST:]))
    return recent + elements.folded(
        older, summary=f"{len(rows) - _LATEST:,} older ones"
    )


def _protections(told: Told) -> str:
    """What protects the messages, once for all that are protected alike."""
    each = (f"{one.release.what}: {_hidden(one.release)}" for one in told.entries)
    lines = [sentence(line) for line in dict.fromkeys(each)]
    if not lines:
        return ""
    lead = elements.paragraph("The protection of these messages:")
    return lead + elements.listing(lines)


def _arrived(entry: Entry) -> str:
    if entry.sent == GIVEN_UP:
        return "no, and it is not sent again"
    return "yes" if entry.sent else "not yet known"


def _refused(told: Told) -> str:
    note = elements.paragraph(
        "These requests were answered with silence; nothing left for them."
    )
    body = note + elements.table(refusals_table(told), heads=1)
    return elements.section("refused", "What this client refused", body)


def _hidden(release: Release) -> str:
    cell = release.guarantee((Unit.USER, View.SERVER))
    if not cell.has_epsilon:
        return f"none against the server: {cell.reason}"
    assumed = f" (assumes: {sentences(cell.assumes)})" if cell.assumes else ""
    return cell.reason + assumed


def _events(release: Release) -> str:
    """The events for a whole user; views with the same event are named together."""
    views: dict[str, list[str]] = {}
    for view in View:
        cell = release.cells[Unit.USER, view]
        covers_run = cell.has_epsilon and cell.each is None
        event = (cell.each or cell.event) if cell.has_epsilon else None
        over = ", the whole run" if covers_run else ""
        exchange = Adjacency.REPLACE_ONE
        kind = f", {exchange}" if cell.adjacency is exchange else ""
        views.setdefault(event_in_short(event) + kind + over, []).append(view)
    if len(views) == 1:
        return next(iter(views))
    return "; ".join(f"{', '.join(some)}: {event}" for event, some in views.items())


def _spent(cap: Cap, totals: Sequence[Statement]) -> str:
    said = _total(cap, totals)
    return tables.epsilon(said) + _condition(said)


def _condition(said: Statement) -> str:
    """The condition of a figure that no program checks; nothing if it has none."""
    return f"; ASSUMED: {said.assumes}" if said.standing is Standing.ASSUMED else ""


def _total(cap: Cap, totals: Sequence[Statement]) -> Statement:
    return next(line for line in totals if (line.unit, line.view) == cap.cell)


def _day(at: str) -> str:
    return at[:16].replace("T", " ")
