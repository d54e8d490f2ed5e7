"""What to use on a table, in sentences that intervals carry.

A contender is called better only if all intervals of a comparison together, at 95 %,
say so. Others are ties, which are said as ties with the number of test users that would
tell, and a tie goes to the simpler, the more private or the cheaper one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from tacit.reporting.pairs import Paired, doubt, figures, rounded_users, sentence


class Reason(StrEnum):
    """Why a contender was chosen."""

    ONLY = "it is the only one"
    BEST = "it is better than every other one"
    SIMPLER = "ties go to the simpler one"
    MORE_PRIVATE = "ties go to the smaller epsilon"
    PROVABLE = "ties go to the one with a proven epsilon"
    FEDERATED = "ties go to the one that needs nobody's history on a server"
    CHEAPER = "ties go to the one whose clients send less"
    UNBEATEN = "something else here is better than those"
    LARGER_MEAN = "of equals, the larger mean is taken"


@dataclass(frozen=True)
class Choice:
    """What to use within a budget; without an epsilon nothing need be proven."""

    epsilon: float | None
    method: str
    label: str
    mean: float
    is_popularity: bool  # ranks everyone's list by noisy counts
    reason: Reason
    # it and each other line, those with the largest mean first
    rivals: tuple[Paired, ...] = ()

    @property
    def ties(self) -> list[Paired]:
        """The lines that it is not told apart from, those ahead of it first."""
        found = [pair for pair in self.rivals if not pair.is_told_apart]
        return sorted(found, key=lambda pair: pair.seen_from(self.label).mean)


@dataclass(frozen=True)
class Price:
    """A method at an epsilon beside itself without privacy."""

    method: str
    epsilon: float
    pair: Paired


@dataclass(frozen=True)
class Promises:
    """What a line promises to whom, where that is not the same for all groups."""

    label: str
    epsilons: Mapping[str, float | None]  # of those who are asked; None: no promise
    not_asked: tuple[str, ...] = ()


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
    promises: tuple[Promises, ...] = ()  # of lines that do not promise the same to all
    chosen: Mapping[str, str] = field(default_factory=dict)  # label -> its settings


def sentences(verdict: Verdict) -> list[str]:
    """The verdict in plain words, the advice first."""
    return [
        *_headline(verdict),
        *(_of_choice(choice, verdict) for choice in verdict.choices),
        *_of_prices(verdict),
        *_of_unproven(verdict.unproven),
        *map(_of_promises, verdict.promises),
        *(f"{label} has no figures: {how}." for label, how in verdict.diverged.items()),
        *map(chosen_settings, verdict.chosen.items()),
        _caveat(verdict),
    ]


def chosen_settings(line: tuple[str, str]) -> str:
    """What was set on validation users, from a label and its settings."""
    label, settings = line
    return f"Chosen on validation users for {label}: {settings}."


def _headline(verdict: Verdict) -> Iterator[str]:
    """What to use at which epsilon, and where the test users are too few to tell."""
    within = [choice for choice in verdict.choices if choice.epsilon is not None]
    told = [
        f"{_levels([*same])} {advice}" for advice, same in groupby(within, key=_use)
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
    if not choice.is_popularity or choice.reason is Reason.ONLY:
        return f"use {choice.method}"
    ahead = [pair for pair in choice.ties if pair.method != choice.label]
    if not ahead or not _could_be_told(ahead[0]):
        return "use a noisy popularity list"
    return (
        f"use a noisy popularity list for now: {ahead[0].method} is ahead of it, by a "
        f"difference that {doubt(ahead[0])}"
    )


def _could_be_told(pair: Paired) -> bool:
    """Whether more users or seeds would tell the two apart."""
    return pair.users_to_tell is not None or pair.excludes_zero


def _of_choice(choice: Choice, verdict: Verdict) -> str:
    budget = "No privacy" if choice.epsilon is None else f"Epsilon {choice.epsilon:g}"
    said = f"{budget}: {choice.label} has {verdict.metric} {choice.mean:.4f}"
    if choice.reason is Reason.ONLY:
        return f"{said}; nothing else was measured within this budget."
    parts, beaten = [said], [pair for pair in choice.rivals if pair.is_told_apart]
    if choice.ties:
        ties = ", ".join(_tie(pair) for pair in choice.ties)
        parts.append(f"not told apart: {ties}; {choice.reason}")
    if beaten:
        others = len(beaten) - 1
        more = f" and than {others} other{'s' * (others > 1)}" if others else ""
        first = beaten[0]
        parts.append(f"it is better than {first.against} by {figures(first)}{more}")
    return "; ".join(parts) + "."


def _tie(pair: Paired) -> str:
    """A pair that is not told apart, and what would tell it."""
    would = (
        f"; {rounded_users(pair.users_to_tell)} test users would tell"
        if pair.users_to_tell is not None
        else "; the seeds disagree" * pair.excludes_zero
    )
    between = f"{pair.low:.4f} to {pair.high:.4f}{would}"
    if pair.is_beyond_users:
        both = f"{pair.method} and {pair.against} are as good as equal"
        return f"{both}: {pair.mean:.4f} ({between})"
    return f"{pair.method} is ahead of {pair.against} by {pair.mean:.4f} ({between})"


def _of_prices(verdict: Verdict) -> Iterator[str]:
    """One sentence per method: itself without privacy beside each epsilon."""
    for _, group in groupby(verdict.prices, key=lambda price: price.method):
        told = "; ".join(sentence(price.pair) for price in group)
        yield f"What privacy costs: {told}."


def _of_unproven(labels: Sequence[str]) -> Iterator[str]:
    if labels:
        yield (
            f"Nothing is proven about {', '.join(labels)}, so that no budget of "
            "privacy is kept by it."
        )


def _of_promises(promises: Promises) -> str:
    """To whom a line promises what, and of whom it asks nothing."""
    parts = [
        f"promises {'nothing' if e is None else f'epsilon {e:.2f}'} to '{group}'"
        for group, e in promises.epsilons.items()
    ]
    parts += [f"asks nothing of '{group}'" for group in promises.not_asked]
    return f"{promises.label} {', and '.join(parts)}."


def _caveat(verdict: Verdict) -> str:
    seeds = (
        "each was trained once, so that other noise may say otherwise: three seeds tell"
        if verdict.n_seeds == 1
        else f"a difference must have the same sign in all {verdict.n_seeds} seeds"
    )
    told = (
        f"Intervals are of {verdict.n_users:,} users of {verdict.source} and hold "
        f"together with 95 % for all {verdict.n_pairs:,} pairs; {seeds}."
    )
    is_open = any(choice.ties for choice in verdict.choices)
    if not is_open:
        return told
    return (
        f"{told} So many test users would tell a difference as large as the measured "
        "one, with the same confidence and a power of 80 %."
    )
