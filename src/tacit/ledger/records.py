"""What stands in a client's ledger, as its owner and its client read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tacit.ledger.terms import Terms
from tacit.release import Release

GIVEN_UP = "given up"  # instead of the time at which a report arrived


class Refusal(StrEnum):
    """The reasons for which a client refuses to answer."""

    OTHER_PLAN = "a plan, method or noise that this client did not agree to"
    OTHER_LAYOUT = "a broadcast that does not look as was agreed"
    OTHER_PHASE = "a phase that the plan does not have in that round"
    OTHER_QUESTION = "a second, different question for a round that was answered"
    TOO_LATE = "a round after the last one agreed to"
    TOO_OFTEN = "more rounds than agreed to"
    TARGET = "the target of the plan would be passed"
    CAP = "the cap of the owner would be passed"
    BUDGET = "a round with less noise than the run's budget has left"
    LEFT = "a run that was forgotten or closed"
    ENDED = "a round whose report was delivered or given up, and is not kept"
    DOUBT = "a ledger that is not known to be the last one; its owner has to decide"


class Doubt(StrEnum):
    """Why a ledger cannot be relied on until its owner decides."""

    OLD = "it has an older format, which cannot show whether it was changed"
    NO_ANCHOR = "its anchor is not on this machine: it was copied, or the anchor lost"
    BAD_ANCHOR = "its anchor cannot be read"
    ALTERED = "its rows are not those that were written"
    DISPLACED = "another ledger was kept here, and this one was put in its place"
    OTHER_COPY = "it is not the last one: an older copy, or one that was used elsewhere"


@dataclass(frozen=True)
class Joined:
    """A run, as the client has it; state is None once it is forgotten or closed."""

    terms: Terms
    state: bytes | None


@dataclass(frozen=True)
class Answer:
    """What was said in a round, and to which question.

    `sent` is when it arrived, or `GIVEN_UP`.
    """

    run: str
    round: int
    asked: bytes  # a digest of the question
    report: bytes | None  # None until it is computed, and once it is erased
    sent: str | None
    multiplier: float | None = None  # the round's noise, where a method chooses it


@dataclass(frozen=True)
class Entry:
    """One release, as the owner sees it."""

    at: str
    run: str
    round: int
    what: str  # left in that round
    release: Release
    sent: str | None
