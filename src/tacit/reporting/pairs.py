"""Two contenders on the same users: which is ahead, by how much, and how surely.

The one place that decides what the sign of a difference says:

    A is better than B by d (low to high)              where they are told apart
    A is ahead of B by d (low to high), which 300 test users do not tell apart from
    chance; about 1,900 would                          where they are not
    A and B are not told apart: d (low to high), and a thousand times the 300 test
    users would not tell it                            where they are as good as equal
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True)
class Paired:
    """`method` is better than `against` by `mean`; if that is negative, it is worse.

    The interval is from `low` to `high`. `users_to_tell`: where zero is inside, how
    many test users would tell such a difference apart from it, with the confidence of
    the interval and a power of 80 %; None where a thousand times as many would not.
    """

    method: str
    against: str
    metric: str
    mean: float
    low: float
    high: float
    p_value: float
    n_users: int
    is_told_apart: bool
    users_to_tell: int | None = None

    @property
    def reversed(self) -> Self:
        """The same pair from the other side."""
        return replace(
            self,
            method=self.against,
            against=self.method,
            mean=-self.mean,
            low=-self.high,
            high=-self.low,
        )

    @property
    def best_first(self) -> Self:
        """The pair with the larger mean first, as all pages and tables have it."""
        return self.reversed if self.mean < 0 else self

    @property
    def is_beyond_users(self) -> bool:
        """Whether no difference was found that more users could plausibly tell."""
        return (
            not self.is_told_apart
            and not self.excludes_zero
            and math.isfinite(self.low)  # else there is one user, who tells nothing
            and self.users_to_tell is None
        )

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval does; without being told apart, the seeds disagree."""
        return self.low > 0 or self.high < 0

    def has(self, label: str) -> bool:
        """Whether one of both has this label."""
        return label in (self.method, self.against)

    def seen_from(self, label: str) -> Self:
        """The pair with this contender first, ahead or not."""
        return self if self.method == label else self.reversed


def each_once(pairs: Iterable[Paired]) -> tuple[Paired, ...]:
    """Every pair and metric once, the larger mean first."""
    found: dict[tuple[frozenset[str], str], Paired] = {}
    for pair in pairs:
        found.setdefault((frozenset((pair.method, pair.against)), pair.metric), pair)
    return tuple(pair.best_first for pair in found.values())


def sentence(pair: Paired) -> str:
    """What a pair says, without a full stop; the larger mean comes first."""
    first = pair.best_first
    if first.is_told_apart:
        return f"{first.method} is better than {first.against} by {figures(first)}"
    if first.is_beyond_users:
        return (
            f"{first.method} and {first.against} are not told apart: "
            f"{figures(first)}, {doubt(first)}"
        )
    return (
        f"{first.method} is ahead of {first.against} by {figures(first)}, which "
        f"{doubt(first)}"
    )


def figures(pair: Paired) -> str:
    """The difference and its interval, such as 0.0483 (0.0252 to 0.0713)."""
    return f"{pair.mean:.4f} ({pair.low:.4f} to {pair.high:.4f})"


def doubt(pair: Paired) -> str:
    """Why a difference is not told apart from chance, and what would tell it."""
    if pair.excludes_zero:
        return "has not the same sign in all seeds; more seeds would tell"
    if pair.is_beyond_users:
        return f"which a thousand times the {pair.n_users:,} test users would not tell"
    here = f"{pair.n_users:,} test users do not tell apart from chance"
    if pair.users_to_tell is None:
        return here
    return f"{here}; about {rounded_users(pair.users_to_tell)} would"


def told_apart(pair: Paired) -> str:
    """Whether the two are told apart; if not, what would tell them, for a table."""
    if pair.is_told_apart:
        return "yes"
    if pair.excludes_zero:
        return "no: the seeds disagree"
    if pair.users_to_tell is None:
        return "no: as good as equal" if pair.is_beyond_users else "no"
    return f"no: {rounded_users(pair.users_to_tell)} users would"


def rounded_users(users: int) -> str:
    """A number of users with two digits, rounded up.

    >>> rounded_users(1843), rounded_users(97), rounded_users(100_001)
    ('1,900', '97', '110,000')
    """
    step = 10 ** max(0, len(str(users)) - 2)
    return f"{math.ceil(users / step) * step:,}"
