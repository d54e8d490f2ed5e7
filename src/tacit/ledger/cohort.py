"""The array form: how often each simulated client took part, and how often it may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from jaxtyping import Bool, Float64, Int64

from tacit import arrays
from tacit.errors import BadValue
from tacit.ledger.budget import Cap, allowed_rounds, is_within
from tacit.ledger.terms import Terms


@dataclass(frozen=True)
class CohortLedger:
    """One count per client; a client's number is its row.

    The counts belong to the state of a run: a round that is played again from the same
    state is permitted again, says the same bytes and is counted once.
    """

    taken: Int64[np.ndarray, "clients"]  # rounds each has taken part in
    limits: Int64[np.ndarray, "clients"]  # rounds each may take part in
    rounds: int  # planned; none after the last
    spent: Float64[np.ndarray, "clients"] | None = None  # sums of 1/z², if it is chosen
    budgets: Float64[np.ndarray, "clients"] | None = None  # and the most they may be

    def __post_init__(self) -> None:
        if len(self.taken) != len(self.limits):
            raise BadValue(
                f"counts of {len(self.taken)} clients and limits of "
                f"{len(self.limits)}; they must agree"
            )

    def permits(
        self,
        clients: Int64[np.ndarray, "asked"],
        *,
        round: int,
        multipliers: Float64[np.ndarray, "asked"] | None = None,
    ) -> Bool[np.ndarray, "asked"]:
        """Which of these clients stay within their caps if they take part once more.

        Where a method chooses the noise of its rounds, `multipliers` are those of this
        one, and what each client has left of the run's budget must cover them.
        """
        rows = arrays.integers(clients, "clients", below=len(self.taken))
        held = (self.taken[rows] < self.limits[rows]) & (round < self.rounds)
        if self.budgets is None or self.spent is None:
            return held
        if multipliers is None:
            return np.zeros(len(rows), bool)  # nobody can say what the round costs
        after = self.spent[rows] + multipliers**-2.0
        return held & is_within(after, self.budgets[rows])


@dataclass(frozen=True, eq=False)
class Limits:
    """How often each client may take part in each part of a run, by its caps.

    The parts follow each other: what a client may in one depends on how often it took
    part in those before.
    """

    terms: Sequence[Terms]  # of each public group
    groups: Int64[np.ndarray, "clients"]  # the index of each client's group there
    caps: Sequence[tuple[Cap, ...]]  # of each public group
    parts: tuple[range, ...]
    known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def within(
        self, part: int, taken: Int64[np.ndarray, "clients parts"]
    ) -> Int64[np.ndarray, "clients"]:
        """In how many rounds of a part each client may take part."""
        alike = self.groups
        for before, counts in zip(self.parts[:part], taken.T, strict=False):
            alike = alike * (len(before) + 1) + np.minimum(counts, len(before))
        _, first, which = np.unique(alike, return_index=True, return_inverse=True)
        rows = zip(self.groups[first].tolist(), taken[first, :part], strict=True)
        found = [self._limit(group, *earlier.tolist()) for group, earlier in rows]
        return np.array(found, np.int64)[which]

    def _limit(self, group: int, *earlier: int) -> int:
        """The limit of a client that took part `earlier` times in each part before."""
        where = group, *earlier
        if where not in self.known:
            done = [part[:n] for part, n in zip(self.parts, earlier, strict=False)]
            self.known[where] = allowed_rounds(
                self.terms[group],
                self.caps[group],
                part=self.parts[len(earlier)],
                earlier=[*chain.from_iterable(done)],
            )
        return self.known[where]
