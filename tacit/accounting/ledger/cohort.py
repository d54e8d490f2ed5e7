"""The array form: how often each simulated device took part, and how often it may."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from tacit import arrays
from tacit.errors import BadValue


@dataclass(frozen=True)
class CohortLedger:
    """One count a device; a device's number is its place.

    The counts belong to the state of a run: a round that is played again from the same
    state is permitted again, says the same bytes and is counted once.
    """

    taken: Int64[np.ndarray, "clients"]  # rounds each has taken part in
    limits: Int64[np.ndarray, "clients"]  # rounds each may take part in
    rounds: int  # planned; none after the last

    def __post_init__(self) -> None:
        if len(self.taken) != len(self.limits):
            raise BadValue(
                f"counts of {len(self.taken)} devices and limits of "
                f"{len(self.limits)}; they must agree"
            )

    def permits(
        self, clients: Int64[np.ndarray, "asked"], *, round: int
    ) -> Bool[np.ndarray, "asked"]:
        """Which of these devices stay within their caps if they take part once more."""
        rows = arrays.integers(clients, "clients", below=len(self.taken))
        return (self.taken[rows] < self.limits[rows]) & (round < self.rounds)
