"""The account in plain words, for people who have never seen an epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.release import Adjacency, Standing, Unit, View
from tacit.statement import Statement
from tacit.text import shown

_LARGEST = 20.0  # epsilon whose factor, half a billion, is still written out

WHO = {
    View.RELEASE: "Other users, who see what is published",
    View.SERVER: "The server",
    View.COLLUSION: "The server together with whoever relays or adds reports",
}


def purpose(*, is_release: bool) -> str:
    """What a run is for, said before its figures."""
    if is_release:
        return (
            "release: randomness comes from the operating system, sums are whole "
            "numbers, and the model may be published"
        )
    return (
        "simulation: randomness comes from a seed, and whoever knows it can subtract "
        "the noise; what follows holds for a release (tacit release)"
    )


def released(metric: Mapping[str, Any]) -> str:
    """A metric that was released, with what its noise leaves open."""
    name, value, n_users = metric["name"], metric["value"], metric["people"]
    return (
        f"{name} {value:.4f}, between {metric['low']:.4f} and {metric['high']:.4f} by "
        f"95 % of the noise: the last item of about {n_users:,} users who trained was "
        "held out"
    )


def in_words(totals: Sequence[Statement]) -> list[str]:
    """One sentence per observer, about a user's whole history.

    A guarantee says: whatever somebody believed about a user before, the odds change at
    most by the factor e^epsilon, except with probability delta.
    """
    # The user is what readers ask about; lines about one interaction are left out.
    mine = [line for line in totals if line.unit is Unit.USER]
    groups = dict.fromkeys(line.group for line in mine)
    return [
        f"{WHO[line.view]}{_of(line.group, len(groups))}: {_verdict(line)}"
        for line in mine
    ]


def _of(group: str, n_groups: int) -> str:
    return "" if n_groups == 1 else f", about a user of group '{shown(group)}'"


def groups_as_one(sizes: Mapping[str, int], epsilon: float) -> str:
    """How many users each group has, and what their budgets are worth together.

    >>> groups_as_one({"strict": 60, "open": 40}, 2.5)
    "groups: 60 'strict', 40 'open'; sums are as clear as with everyone at epsilon 2.5"
    """
    who = ", ".join(f"{size:,} '{shown(group)}'" for group, size in sizes.items())
    one = f"{epsilon:.3g}"
    return f"groups: {who}; sums are as clear as with everyone at epsilon {one}"


def targets(target: float | Mapping[str, float] | None) -> str:
    """The target of all, or that of each group.

    >>> targets({"strict": 1.0, "open": 8.0}), targets(2.0), targets(None)
    ("epsilon 1.0 for 'strict', 8.0 for 'open'", 'epsilon 2.0', 'none')
    """
    if target is None:
        return "none"
    if not isinstance(target, Mapping):
        return f"epsilon {target}"
    each = ", ".join(f"{e} for '{shown(group)}'" for group, e in target.items())
    return f"epsilon {each}"


def _verdict(line: Statement) -> str:
    if line.standing is not Standing.PROVEN or line.epsilon is None:
        return f"no promise; {line.reason}."
    without = (
        "if that user had not taken part"
        if line.adjacency is Adjacency.ZERO_OUT
        else "if that user had any other history"
    )
    assumed = "" if line.assumes == "nothing" else f" This assumes: {line.assumes}."
    return (
        f"whatever they guess about one user from this, they would guess almost as "
        f"well {without}: odds change at most {times(line.epsilon)}"
        f"{_except(line.delta)}.{assumed}"
    )


def times(epsilon: float) -> str:
    """The factor on the odds, rounded up.

    >>> times(1.0), times(8.0)
    ('2.72 times', '2,981 times, which is a weak promise')
    >>> times(5000.0)
    'e^5,000 times, which is a weak promise'
    """
    if epsilon > _LARGEST:
        return f"e^{math.ceil(epsilon):,} times, which is a weak promise"
    factor = math.exp(epsilon)
    # From epsilon 6.9 on no decimals are shown, and the sentence says what it is worth.
    if factor >= 1000:
        return f"{math.ceil(factor):,} times, which is a weak promise"
    return f"{math.ceil(factor * 100) / 100:g} times"


def _except(delta: float | None) -> str:
    return f", except with probability {delta:g}" if delta else ""
