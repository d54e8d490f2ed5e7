"""What to use on a table, in sentences that intervals carry.

A contender is called better only if all intervals of a comparison together, at 95 %,
say so. Others are ties, which are said as ties, and a tie goes to the simpler, the more
private or the cheaper one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby


class Reason(StrEnum):
    """Why a contender was chosen."""

    ONLY = "it is the only one"
    BEST = "it is better than every other one"
    SIMPLER = "ties go to the simpler one"
    MORE_PRIVATE = "ties go to the smaller epsilon"
    PROVABLE = "ties go to the one with a proven epsilon"
    CHEAPER = "ties go to the one whose clients send less"
    UNBEATEN = "something else here is better than those"
    LARGER_MEAN = "of equals, the larger mean is taken"


@dataclass(frozen=True)
class Rival:
    """A contender that was not chosen; the difference is the chosen one minus it."""

    label: str
    mean: float
    difference: float
    low: float
    high: float
    is_told_apart: bool


@dataclass(frozen=True)
class Choice:
    """What to use within a budget; without an epsilon nothing need be proven."""

    epsilon: float | None
    method: str
    label: str
    mean: float
    is_popularity: bool  # ranks everyone's list by noisy counts
    reason: Reason
    rivals: tuple[Rival, ...] = ()  # the largest mean first


@dataclass(frozen=True)
class Price:
    """What a method loses at an epsilon, against itself without privacy."""

    label: str
    epsilon: float
    lost: float
    low: float
    high: float
    is_told_apart: bool


@dataclass(frozen=True)
class Verdict:
    """What a comparison says, as data; `sentences` are its words."""

    source: str
    metric: str
    n_users: int
    n_seeds: int
    n_pairs: int  # intervals that hold together
    choices: tuple[Choice, ...]  # the smallest epsilon first, then without one
    prices: tuple[Price, ...] = ()
    unproven: tuple[str, ...] = ()  # with noise of which nothing is proven
    diverged: Mapping[str, str] = field(default_factory=dict)  # label -> how


def sentences(verdict: Verdict) -> list[str]:
    """The verdict in plain words, the advice first."""
    return [
        *_headline(verdict),
        *(_of_choice(choice, verdict.metric) for choice in verdict.choices),
        *_of_prices(verdict),
        *_of_unproven(verdict.unproven),
        *(f"{label} has no figures: {how}." for label, how in verdict.diverged.items()),
        _caveat(verdict),
    ]


def _headline(verdict: Verdict) -> Iterator[str]:
    """What to use at which epsilon, and up to where a noisy popularity list will do."""
    within = [choice for choice in verdict.choices if choice.epsilon is not None]
    told = [
        f"{_levels(same)} {_use(same[0])}"
        for _, group in groupby(within, key=lambda one: (one.is_popularity, one.method))
        for same in [[*group]]
    ]
    if told:
        first, *others = reversed(told)  # the weakest promise first: most is possible
        yield "; ".join([f"On this table, {first}", *others]) + "."


def _levels(choices: Sequence[Choice]) -> str:
    figures = [f"{choice.epsilon:g}" for choice in choices]
    *before, last = figures
    return (
        f"at epsilon {', '.join(before)} and {last}" if before else f"at epsilon {last}"
    )


def _use(choice: Choice) -> str:
    if choice.is_popularity and choice.reason is not Reason.ONLY:
        return "nothing is shown to be better than a noisy popularity list"
    return f"use {choice.method}"


def _of_choice(choice: Choice, metric: str) -> str:
    budget = "No privacy" if choice.epsilon is None else f"Epsilon {choice.epsilon:g}"
    said = f"{budget}: {choice.label} has {metric} {choice.mean:.4f}"
    if choice.reason is Reason.ONLY:
        return f"{said}; nothing else was measured within this budget."
    ties = [rival for rival in choice.rivals if not rival.is_told_apart]
    beaten = [rival for rival in choice.rivals if rival.is_told_apart]
    parts = [said]
    if ties:
        parts.append(f"not told apart from it: {_listed(ties)}; {choice.reason}")
    if beaten:
        others = len(beaten) - 1
        more = f" and than {others} other{'s' * (others > 1)}" if others else ""
        parts.append(f"better than {_listed(beaten[:1])}{more}")
    return "; ".join(parts) + "."


def _listed(rivals: Sequence[Rival]) -> str:
    return ", ".join(
        f"{one.label} ({one.difference:+.4f}, {one.low:+.4f} to {one.high:+.4f})"
        for one in rivals
    )


def _of_prices(verdict: Verdict) -> Iterator[str]:
    """One sentence per method: what it loses at each epsilon against no privacy."""
    for label, group in groupby(verdict.prices, key=lambda price: price.label):
        lost = ", ".join(
            f"{price.lost:.4f} ({price.low:.4f} to {price.high:.4f}"
            f"{'' if price.is_told_apart else ', a tie'}) at epsilon {price.epsilon:g}"
            for price in group
        )
        yield f"Against no privacy {label} loses {lost}."


def _of_unproven(labels: Sequence[str]) -> Iterator[str]:
    if labels:
        yield (
            f"Nothing is proven about {', '.join(labels)}, so that no budget of "
            "privacy is kept by it."
        )


def _caveat(verdict: Verdict) -> str:
    seeds = (
        "each was trained once, so that other noise may say otherwise: three seeds tell"
        if verdict.n_seeds == 1
        else f"a difference must have the same sign in all {verdict.n_seeds} seeds"
    )
    return (
        f"Intervals are of {verdict.n_users:,} users of {verdict.source} and hold "
        f"together with 95 % for all {verdict.n_pairs:,} pairs; {seeds}."
    )
