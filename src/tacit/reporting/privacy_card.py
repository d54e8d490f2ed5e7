"""The privacy card as a page, in plain words, for a data-protection officer.

It is made from the document in `privacy-card.json`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit.errors import BadValue, TacitError
from tacit.release import EVERYONE, Unit
from tacit.reporting import elements, plain_words, tables
from tacit.reporting.audit import scope
from tacit.reporting.html import SOME_PROVEN, epsilon_lead
from tacit.reporting.plain_words import sentence
from tacit.reporting.promises import promises
from tacit.reporting.report_data import Lead
from tacit.statement import Statement

Json = Mapping[str, Any]

_NOTES = (
    "The data behind this model, the messages that left users' devices, the parties "
    "that see them, and the promise to each user.",
)
_SIMULATED = (
    "This was a simulation: randomness came from a seed, so no promise below holds for "
    "real users. A release draws its randomness from the operating system.",
)
_RELEASED = (
    "This is a release: randomness came from the operating system and is forgotten, "
    "sums and noise are whole numbers, and the model may be published.",
)
_EPSILON = (
    "Epsilon bounds how much an observer can learn about one user. Each promise says "
    "how far an observer's belief of 50 %, and of 1 %, can grow; the table below has "
    "the probability with which a belief can grow further. Smaller is better: 0 would "
    "be nothing at all, and an epsilon above 8 hardly promises anything. A promise "
    "holds for the unit (a user, or one interaction), the view (the observer) and the "
    "horizon (the rounds) that it names, and for no other."
)
_SAMPLERS = {  # by the name in the card's data
    "Everyone": "every client is asked in every round",
    "Once": "every client is asked in one round only",
    "Poisson": "every client is drawn or not, by chance, in each round",
    "PoissonByGroup": "every client is drawn or not in each round, with the chance of "
    "its public group",
    "FixedSize": "a fixed number of clients is drawn in each round",
}
_LOW_BITS = (
    "the low bits of noise in floating point (Mironov 2012); a release sums whole "
    "numbers",
)
_NOT_COVERED = (
    "that a client took part, when, and how long it computed",
    "hyper-parameters chosen by looking at private users",
    "all data that the operator collects outside this system",
    "facts that are true of users with or without their taking part",
)


def render(card: Json) -> str:
    """The page as HTML, without scripts, fetching nothing; refuses a damaged card."""
    try:
        return _rendered(card)
    except TacitError:
        raise
    except Exception as error:  # of whatever kind: the card may come from a file
        raise BadValue(f"the privacy card is damaged: {error!r}") from error


def _rendered(card: Json) -> str:
    notes: tuple[str, ...] = _NOTES + (_SIMULATED if card["simulation"] else _RELEASED)
    if not card.get("could_be_released", True):
        notes += (sentence(plain_words.NO_RELEASE),)
    head = elements.head(
        f"Privacy card: {card['title']}",
        lead=_leads(card),
        notes=notes,
        simulation=card["simulation"],
    )
    totals = _lines(card["totals"])
    parts = (
        head,
        elements.section("short", "Who can learn what about a user", _short(totals)),
        elements.section("data", "What data there is", _data(card)),
        elements.section("who", "What leaves a device, and who sees it", _who(card)),
        elements.section("cells", "The promises in full", _cells(card)),
        elements.section("assumed", "What has to be true", _assumed(card)),
        elements.section("budget", "The budget", _budget(card)),
        elements.section("serving", "What being served costs", _serving(card)),
        elements.section("audit", "Has it been tested?", _audit(card)),
        elements.section("beyond", "What is not covered", _beyond(card)),
        elements.section("contact", "Whom to ask", _contact(card)),
    )
    return elements.page(f"Privacy card: {card['title']}", "".join(parts))


def _lines(told: list[Json]) -> list[Statement]:
    return [Statement.from_json(line) for line in told]


def _leads(card: Json) -> tuple[Lead, ...]:
    data, begun = card["data"], card["rounds_begun"]
    could = card["simulation"] and card.get("could_be_released", True)
    return (
        epsilon_lead(_lines(card["totals"]), is_of_a_release=could),
        Lead(
            "users who may take part",
            f"{data['people']:,}",
            f"{data['items']:,} items of {data['source']}; {begun} of "
            f"{card['budget']['rounds']} rounds begun.",
        ),
    )


def _facts(card: Json) -> str:
    return elements.facts(
        (
            ("method", card["method"]["name"]),
            ("data", card["data"]["source"]),
            ("made with", f"Tacit {card['tacit']}"),
        )
    )


def _short(totals: list[Statement]) -> str:
    # A promise about one interaction says little about a whole history.
    mine = [line for line in totals if line.unit is Unit.USER]
    kept = sum(line.standing.has_epsilon for line in mine)
    if kept == len(mine):
        verdict = elements.notice(
            plain_words.unchecked(mine)
            or "A proven promise covers every observer, under the conditions that it "
            "names.",
            good=plain_words.is_reassuring(mine),
        )
    elif kept:
        verdict = elements.notice(plain_words.unchecked(mine) or SOME_PROVEN)
    else:
        verdict = elements.notice("This run makes no promise.")
    return verdict + elements.promises(promises(mine))


def _data(card: Json) -> str:
    rows = tuple(
        (kind["what"], "yes" if kind["personal"] else "no", kind["held_by"])
        for kind in card["data"]["kinds"]
    )
    header = ("kind of data", "personal", "kept by")
    table = tables.Table("Data that exists for this run", header, rows)
    note = (
        "The server holds no history. Only the messages of the next table leave a "
        "device."
    )
    return elements.table(table, heads=1) + elements.paragraph(note, quiet=True)


def _who(card: Json) -> str:
    rows = tuple(
        (line["when"], line["what"], line["seen_by"], _group(line["group"]))
        for line in card["leaves"]
    )
    header = ("when", "what leaves", "seen by", "from")
    return elements.table(tables.Table("Releases", header, rows), heads=1)


def _group(name: str) -> str:
    return "every client" if name == EVERYONE else f"group '{name}'"


def _cells(card: Json) -> str:
    each = tables.privacy(_lines(card["releases"]), caption="Each release by itself")
    total = tables.privacy(_lines(card["totals"]), caption="Everything together")
    every = elements.table(total, heads=1) + elements.table(each, heads=1)
    return (
        elements.paragraph(_EPSILON)
        + elements.folded(every, summary="Every promise with all its terms")
        + _refreshed(card)
    )


def _refreshed(card: Json) -> str:
    """What a run that goes on from others promises to users who were in those."""
    if not card.get("both"):
        return ""
    lead = (
        "This run adds to the models of earlier runs. The promises above are to a user "
        "of this run only. The first promise below is to a user of the earlier runs "
        "only, the second to a user of all of them."
    )
    past = tables.privacy(_lines(card["earlier"]), caption="The earlier runs alone")
    both = tables.privacy(_lines(card["both"]), caption="The earlier runs and this one")
    return (
        elements.paragraph(lead)
        + elements.table(past, heads=1)
        + elements.table(both, heads=1)
    )


def _assumed(card: Json) -> str:
    proven = [s for s in _lines(card["totals"]) if s.standing.has_epsilon]
    # Only proven lines promise anything, so only theirs is assumed; each once.
    said = dict.fromkeys(part for line in proven for part in line.assumes.split("; "))
    trusts = [sentence(part) for part in said if part != "nothing"]
    if not proven:
        return elements.paragraph("There is no promise, so nothing is assumed.")
    if not trusts:
        return elements.paragraph("The promises rest on mathematics alone.")
    lead = "The promises hold while all of this is true, and are void if it is not."
    return elements.paragraph(lead) + elements.listing(trusts)


def _budget(card: Json) -> str:
    budget = card["budget"]
    target, delta = budget["target_epsilon"], budget["delta"]
    facts = (
        f"Target: {plain_words.targets(target)}"
        f"{'' if delta is None else f' at delta {delta}'}. "
        "A run whose account would pass its target is refused before it begins.",
        f"Rounds: {budget['rounds']} planned, {card['rounds_begun']} begun; about "
        f"{budget['cohort_size']:,.0f} clients in each. {_sampler(budget['sampler'])} "
        f"No client takes part more than {_often(budget['most_participations'])}.",
        f"Reports travel over the channel '{budget['channel']}'.",
        *_groups(budget),
        "Each further training on the same users costs them more:",
    )
    again = [
        (str(line["runs"]), str(said.view), said.group, tables.epsilon(said))
        for line in budget["retraining"]
        # A statement has no such entry; the card adds it for this table.
        for said in _lines([{k: v for k, v in line.items() if k != "runs"}])
    ]
    header = ("trainings", "view", "group", "epsilon of a user")
    caption = "All trainings together"
    table = tables.Table(caption, header, tuple(again))
    return elements.listing(facts) + elements.table(table)


def _sampler(name: str) -> str:
    return sentence(_SAMPLERS.get(name, f"clients are chosen by {name}"))


def _often(times: int) -> str:
    """How often, in words.

    >>> _often(1), _often(3)
    ('once', '3 times')
    """
    return "once" if times == 1 else f"{times:,} times"


def _serving(card: Json) -> str:
    """Taking part and being served, in one account; cards of before have none."""
    serving = card.get("serving")
    if serving is None:
        return ""
    if not serving["statements"]:
        return elements.paragraph(
            "Lists are ranked on the device from public candidates: being served sends "
            "nothing and costs nothing."
        )
    is_claimed = serving.get("noise") == "paper"
    lead = (
        f"A server ranks, from a query in mode '{serving['mode']}' of "
        f"{'a claimed ' if is_claimed else ''}epsilon {serving['epsilon']:g}"
        f"{_what_leaves(serving)}. A fresh query leaves every "
        f"{serving['refresh_days']} days at most, and is used until the next. Queries "
        "add to the cost of taking part. Only the server that ranks sees them; for "
        "readers of the model the figure is an upper bound."
    )
    if card.get("both"):
        lead += " For a user of the earlier runs their cost comes on top."
    return elements.paragraph(lead) + elements.table(tables.served(serving))


def _what_leaves(serving: Json) -> str:
    """What noise a query has, and on what; cards of before do not say."""
    return f": {serving['query']}" if "query" in serving else ""


def _groups(budget: Json) -> tuple[str, ...]:
    """Who has which budget; nothing where all have the same, as on older cards."""
    one, weight = budget.get("as_one_epsilon"), budget.get("consent_weight")
    if one is not None:
        who = f"Public g{plain_words.groups_as_one(budget['groups'], one)[1:]}"
    elif weight is not None:
        words = plain_words.consenting(budget["groups"], budget["consenting"], weight)
        who = f"Of the public groups, {words}"
    else:
        return ()
    return (
        f"{who}. A group is chosen by its users or follows from public facts, never "
        "from their data; a user's membership in a group is not protected.",
    )


def _audit(card: Json) -> str:
    audit = card["audit"]
    if audit is None:
        return elements.notice("Not audited. To test it: tacit audit RUN")
    if not audit["checks"]:
        return elements.notice("The audit made no check.")
    rows = tuple(
        (_named(c), _claim(c["claimed"]), _figure(c["measured"]), _outcome(c["ok"]))
        for c in audit["checks"]
    )
    header = ("check", "claimed", "measured", "outcome")
    table = tables.Table("Measured against what is claimed", header, rows)
    failed = sum(not check["ok"] for check in audit["checks"])
    verdict = elements.notice(
        f"{failed} of {len(rows)} checks failed: do not rely on the promises above."
        if failed
        else f"All {len(rows)} checks passed. Audits find faults; they prove nothing.",
        good=not failed,
    )
    # Cards of an earlier version do not say what was looked at.
    lines = scope(audit.get("scope", {}))
    listed = elements.listing((*lines,)) if lines else ""
    return verdict + elements.table(table, heads=1) + listed


def _beyond(card: Json) -> str:
    # A release sums whole numbers, so there are no low bits to look at.
    return elements.listing((*_NOT_COVERED, *_LOW_BITS * card["simulation"]))


def _contact(card: Json) -> str:
    given = card["contact"]
    return elements.paragraph(
        given or "No contact was given; set privacy.contact in the experiment."
    ) + _facts(card)


def _outcome(ok: bool) -> str:
    return "passed" if ok else "FAILED"


def _named(check: Json) -> str:
    subject = check["subject"]
    return check["name"] if subject is None else f"{subject}: {check['name']}"


def _claim(value: float | None) -> str:
    """A claim, rounded up: one that is rounded down does not hold."""
    return tables.MISSING if value is None else f"{math.ceil(value * 1e4) / 1e4:.4f}"


def _figure(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4f}"
