"""How users of a trained model will be served: the section [serve] of an experiment.

mode            on_device (default), krr, dpa, vdp
epsilon, …      the settings of a query (`tacit.serving.settings`)
refresh_days    how many days a query is used before a fresh one leaves

It changes no training. It is there so that card and plan can add up what somebody
spends who takes part *and* is served: one user, one account.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tacit import check
from tacit.errors import BadValue
from tacit.ledger.snapshot import dearest_rounds
from tacit.ledger.terms import Terms
from tacit.serving.query import Mode
from tacit.serving.serving_account import outlook
from tacit.serving.settings import ServingSettings
from tacit.statement import Statement

HORIZONS = (30, 365)  # days


@dataclass(frozen=True)
class ServeSettings:
    """Where lists are ranked, and what a query may cost where a server ranks."""

    mode: Literal["on_device", "krr", "dpa", "vdp"] = "on_device"
    epsilon: float | None = None
    interests: int | None = None
    delta: float = 0.0
    padding: float = 0.0
    axes: int | None = None
    refresh_days: int = 1

    def __post_init__(self) -> None:
        check.count(refresh_days=self.refresh_days)
        given = (self.epsilon, self.interests, self.delta, self.padding, self.axes)
        if self.mode == "on_device" and any(given):
            raise BadValue(
                "mode='on_device' sends nothing, so that it has no epsilon and no "
                "other setting; leave them out, or choose krr, dpa or vdp"
            )
        if self.mode != "on_device" and self.epsilon is None:
            raise BadValue(f"mode='{self.mode}' needs epsilon: what one query may cost")
        _ = self.queries  # refuses settings that do not fit the mode

    @property
    def queries(self) -> ServingSettings | None:
        """The settings of a query; None on the device, where none leaves."""
        if self.epsilon is None:
            return None
        return ServingSettings(
            Mode(self.mode),
            self.epsilon,
            interests=self.interests,
            delta=self.delta,
            padding=self.padding,
            axes=self.axes,
        )

    def releases(self, days: int) -> int:
        """How many fresh queries leave in so many days."""
        return -(-days // self.refresh_days)

    def statements(
        self, terms: Iterable[Terms], *, runs: int = 1
    ) -> dict[int, tuple[Statement, ...]]:
        """Training and being served, by number of days: a line per group and cell.

        `terms` are those of each public group. The lines are for a user who takes part
        in training as often as one can, `runs` times.
        """
        if self.queries is None:
            return {}
        trained = [[(one, dearest_rounds(one))] * runs for one in terms]
        return {
            days: tuple(
                line
                for before in trained
                for line in outlook(
                    self.queries, before=before, horizons=(self.releases(days),)
                )
            )
            for days in HORIZONS
        }
