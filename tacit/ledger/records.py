"""What stands in a device's ledger, as its owner and its device read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tacit.ledger.terms import Terms
from tacit.release import Release


class Refusal(StrEnum):
    """Why a device said no."""

    OTHER_PLAN = "a plan that this device did not agree to"
    OTHER_PHASE = "a phase that the plan does not have in that round"
    OTHER_QUESTION = "a second, different question for a round that was answered"
    TOO_LATE = "a round after the last one agreed to"
    TOO_OFTEN = "more rounds than agreed to"
    TARGET = "the target of the plan would be passed"
    CAP = "the cap of the owner would be passed"
    BUDGET = "a round with less noise than the run's budget has left"
    LEFT = "a run whose key and state were forgotten"


@dataclass(frozen=True)
class Joined:
    """A run, as the device has it; key and state are None once forgotten."""

    terms: Terms
    key: bytes | None
    state: bytes | None


@dataclass(frozen=True)
class Answer:
    """What was said in a round, and to which question; `sent` is when it arrived."""

    run: str
    round: int
    asked: bytes  # a digest of the question
    report: bytes | None  # None once forgotten
    sent: str | None
    multiplier: float | None = None  # the round's noise, where a method chooses it


@dataclass(frozen=True)
class Entry:
    """One release, as the owner sees it."""

    at: str
    run: str
    round: int
    release: Release
    sent: str | None
