"""Every sentence that a statement can have, read for words that readers stumble over.

All methods with all mechanisms, over each channel, with each sampler, with groups, one
machine in two roles, nodes, and an earlier run; in the terminal, as fields and tables,
on a card, in a client's ledger and page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from html import unescape

import pytest
from reporting.test_privacy_card import card
from test_wire_names import PLAN, SETTINGS, method_of

from tacit import codes
from tacit.accounting.epsilon import Epsilon
from tacit.audits.claims import read_claims
from tacit.errors import BadValue, Refused
from tacit.ledger.budget import Cap
from tacit.ledger.records import Doubt, Entry, Refusal
from tacit.method import Method
from tacit.methods.gram import Gram
from tacit.plans import Plan
from tacit.privacy import CentralGaussian
from tacit.release import Release, View, of_one_operator
from tacit.reporting import guarantees, ledger, plain_words, privacy_card, tables
from tacit.reporting.ledger import Told
from tacit.runtime.federation import seen_by_server
from tacit.runtime.ledger import run_statements, terms_of
from tacit.sampling import Everyone, FixedSize, Once, Sampler
from tacit.serving.query import Mode
from tacit.serving.serving_account import outlook
from tacit.serving.settings import ServingSettings
from tacit.statement import Account, Past, account
from tacit.transport.channels import CHANNELS

SAMPLERS: dict[str, Sampler] = {
    "everyone": Everyone(),
    "once": Once(),
    "fixed": FixedSize(20),
}
TARGETS = {"strict": 1.0, "open": 4.0}
ONE_MACHINE = {"two_servers": "one_machine", "shuffle": "one_machine_relay"}
# Words of our own dialect, and forms that nobody can take for the sentence they are.
DIALECT = {
    "nobody": r"(?i)\b(whoever|whatever|(every|no|some|any)body|(some|any)one)\b",
    "neighbors": r"there or not|\bthis or any other\b",
    "horizon": r"rounds planned|\bfirst 1\b|\b(\d+) to \1\b|participations in",
    "observers": r"through the model|relays or adds|works together\b|who colludes",
    "twice": r"no promise +NONE|nothing yet +NOTHING",
    "sampler": r"chosen by [A-Z]",
    "exception": r"except with probability",
    "trusted": r"(?<!the )trusted aggregator|sides? with the server",
    "bare": r"\bbare\b|sent as they are",
    "class": r"\b(Everyone|Once|Poisson|FixedSize)\b(?! (who|client))",
}
A_CLAUSE = r"(?:^|[.;:] )(?:[Ww]hat|[Ww]ho) \w+"  # as the subject of a sentence
MOST_WORDS = 13  # in the words for one phase


@dataclass(frozen=True)
class Way:
    """One way to run a method, and what it releases."""

    name: str
    method: Method
    plan: Plan
    releases: tuple[Release, ...]
    code: str = ""  # of one machine in two roles


def plans(mechanism: str) -> Iterator[tuple[str, Plan]]:
    for channel in CHANNELS:
        for name, sampler in SAMPLERS.items():
            # Who is drawn is in no sentence about a channel: one channel is enough.
            if name == "everyone" or channel == "secure_sum":
                drawn = replace(PLAN, channel=channel, sampler=sampler)
                yield f"{channel}/{name}", drawn
        if mechanism == "central":
            groups = {"strict": 10, "open": 30}
            plan = replace(PLAN, channel=channel, groups=groups, target_epsilon=TARGETS)
            yield f"{channel}/groups", plan


def ways(case: str) -> Iterator[Way]:
    mechanism = case.partition("/")[2]
    for name, plan in plans(mechanism):
        method = method_of(case)
        if plan.groups.keys() != PLAN.groups.keys():
            blank = replace(method.privacy, noise_multiplier=None)
            method = replace(method, privacy=blank)
        try:
            method = method.calibrated(plan)
            releases = method.releases(plan)
        except (BadValue, Refused):
            continue
        yield Way(name, method, plan, releases)
        if (code := ONE_MACHINE.get(plan.channel)) and name.endswith("everyone"):
            yield Way(name, method, plan, of_one_operator(releases, code), code)
        if plan.channel in ("direct", "secure_sum") and name.endswith("everyone"):
            yield Way(name, method, plan, tuple(map(seen_by_server, releases)))


def chosen() -> Iterator[Way]:
    """Gram with a budget: it chooses its phases as it goes."""
    for channel in ("secure_sum", "two_servers"):
        plan = Plan(1000, 3, delta=1e-6, min_contributors=5, channel=channel)
        plan = replace(plan, target_epsilon=4.0)  # enough users for all phases
        method = Gram(head=4, privacy=CentralGaussian()).calibrated(plan)
        yield Way(channel, method, plan, method.releases(plan))


@pytest.fixture(autouse=True)
def _one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences do not depend on figures, and composing takes seconds."""

    def compose(cells, *, delta):
        cells = [*cells]
        return Epsilon(1.0, "PLD", cells[0].adjacency)

    monkeypatch.setattr("tacit.accounting.proven.compose_cells", compose)


def texts_of(way: Way) -> Iterator[str]:
    """All texts in all places."""
    earlier = (Past(way.plan.population, way.releases),)
    told = account(way.plan, way.releases, runs=2, earlier=earlier)
    yield from texts_of_account(told)
    yield from texts_of_card(way)
    with suppress(Refused):  # no audit of cohorts that are drawn
        yield from read_claims(way.method, way.plan).others
    yield from texts_of_ledger(way)


def texts_of_account(told: Account) -> Iterator[str]:
    for lines in (told.releases, told.totals, told.earlier, told.both):
        yield from guarantees.in_short(lines)
        yield " ".join(guarantees.in_short(lines, 10_000))
        yield from guarantees.in_full(lines, 10_000)
        yield from plain_words.in_words(lines)
        for table in (guarantees.as_table(lines), tables.privacy(lines)):
            yield from (cell for row in table.rows for cell in row)


def texts_of_card(way: Way) -> Iterator[str]:
    [first, *_] = way.releases
    made = card(dict(first.cells), way.plan)
    made["leaves"] = [
        vars(part) | {"seen_by": one.seen_by, "group": one.group}
        for one in way.releases
        for part in one.leaving()
    ]
    made["title"] = made["contact"] = made["data"]["source"] = "films"
    made["data"]["kinds"] = []
    made["budget"] |= {"sampler": type(way.plan.sampler).__name__}
    made["both"] = made["earlier"] = made["totals"]
    yield from paragraphs(privacy_card.render(made | {"simulation": True}))


def texts_of_ledger(way: Way) -> Iterator[str]:
    group = next(iter(way.plan.groups))
    terms = terms_of(way.method, way.plan, group=group, releases=way.releases)
    for rounds in ((), (0,)):
        totals = (*run_statements(terms, rounds, delta=1e-6),)
        entries = tuple(
            Entry("2026-05-04", "run", round_, release.named(0), release, None)
            for round_ in rounds
            for release in terms.releases
        )
        told = Told(entries, totals, (Cap(99.0), Cap(9.0, view=View.COLLUSION)))
        yield from guarantees.in_short(totals)
        yield from paragraphs(ledger.render(told))
        caps = ledger.caps_table(told.caps, totals)
        for table in (ledger.entries_table(entries), caps):
            yield from (cell for row in table.rows for cell in row)


def paragraphs(page: str) -> Iterator[str]:
    """The texts of a page, one for each element."""
    body = page.partition("<main>")[2]
    yield from filter(None, map(str.strip, re.split(r"<[^>]*>", unescape(body))))


def stumbles(text: str) -> list[str]:
    return [
        f"{name}: {text}" for name, form in DIALECT.items() if re.search(form, text)
    ]


@pytest.mark.parametrize("case", [*SETTINGS, "gram/chosen"])
def test_each_sentence_of_a_statement_reads_at_the_first_go(case: str) -> None:
    found = [*(chosen() if case == "gram/chosen" else ways(case))]
    assert found, case
    texts = {text: None for way in found for text in texts_of(way)}
    assert len(texts) > 20
    assert [line for text in texts for line in stumbles(text)] == []
    for way in found:
        check_phases_and_reasons(way)


def check_phases_and_reasons(way: Way) -> None:
    """A phase has a line of its own, and no reason says a thing twice."""
    phases = getattr(way.method, "phases", lambda _: ())(way.plan)
    lines = [part for one in way.releases for part in one.leaving()]
    assert len(lines) >= len(phases)
    for part in lines:
        assert len(part.what.split()) <= MOST_WORDS, part
    for line in account(way.plan, way.releases).totals:
        said = f"{line.reason}; {line.assumes}".split("; ")
        assert len(said) == len({*said})
        assert not re.search(A_CLAUSE, "; ".join(said))


def test_codes_and_doubts_are_sentences_too() -> None:
    texts = [kind.sentence for kind in codes._KINDS.values()] + [*Doubt, *Refusal]
    assert [line for text in texts for line in stumbles(text)] == []
    for kind in codes._KINDS.values():
        assert ";" not in kind.sentence  # one stands between two sentences
        assert not re.search(A_CLAUSE, kind.sentence)


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.ON_DEVICE])
def test_a_query_has_the_same_words(mode: Mode) -> None:
    way = next(chosen())
    before = [(terms_of(way.method, way.plan), range(3))]
    for past in ([], before):
        lines = outlook(ServingSettings(mode=mode, epsilon=2.0), before=past)
        told = Account((), lines)
        assert [one for text in texts_of_account(told) for one in stumbles(text)] == []
