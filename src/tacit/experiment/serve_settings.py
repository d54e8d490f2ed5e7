"""How users of a trained model will be served: the section [serve] of an experiment.

mode            on_device (default), krr, dpa, vdp
noise           sound (default), or paper: as printed, beside what is proven of it
epsilon, …      the settings of a query (`tacit.serving.settings`)
refresh_days    how many days a query is used before a fresh one leaves
list_for        any (default), session, or visit: what the user is about to do

It changes no training. It is there so that card and plan can add up what somebody
spends who takes part *and* is served: one user, one account.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, get_args

from tacit import check
from tacit.errors import BadValue
from tacit.ledger.snapshot import dearest_rounds
from tacit.ledger.terms import Terms
from tacit.method import ListFor, Method, ranking_for
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
    noise: Literal["sound", "paper"] = "sound"
    theta: float | None = None
    list_for: ListFor = "any"

    def __post_init__(self) -> None:
        check.count(refresh_days=self.refresh_days)
        check.one_of(get_args(ListFor), list_for=self.list_for)
        if self.epsilon is not None:
            check.positive(epsilon=self.epsilon)
        own = {f.name: f.default for f in fields(self)}
        free = ("mode", "refresh_days", "list_for")
        given = [n for n in own if n not in free and getattr(self, n) != own[n]]
        if self.mode == "on_device" and given:
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
            noise=self.noise,
            theta=self.theta,
        )

    @property
    def ranked_for(self) -> ListFor:
        """What lists are for; any where queries are padded: that drops order and times.

        Metrics are those of such lists.
        """
        return "any" if self.padding else self.list_for

    @property
    def note(self) -> str | None:
        """What to know of the lists, where they are not what was asked for."""
        if self.ranked_for == self.list_for:
            return None
        return (
            f"lists are for any, not for a {self.list_for}: padding={self.padding:g} "
            "drops the order and the times of a history"
        )

    def check_method(self, method: Method) -> None:
        """Refuse a method that cannot rank as these settings say."""
        self.queries_of(method)
        ranking_for(method, self.list_for)

    def queries_of(self, method: Method) -> ServingSettings | None:
        """The same for a model of this method, with its own basis if it trains one."""
        return None if self.queries is None else self.queries.of_method(method)

    def releases(self, days: int) -> int:
        """How many fresh queries leave in so many days."""
        return -(-days // self.refresh_days)

    def statements(
        self, terms: Iterable[Terms], *, method: Method | None = None, runs: int = 1
    ) -> dict[int, tuple[Statement, ...]]:
        """Training and being served, by number of days: a line per group and cell.

        `terms` are those of each public group. The lines are for a user who takes part
        in training as often as one can, `runs` times. Of a `method` that trains a basis
        queries are over that one.
        """
        queries = self.queries if method is None else self.queries_of(method)
        if queries is None:
            return {}
        trained = [[(one, dearest_rounds(one))] * runs for one in terms]
        return {
            days: tuple(
                line
                for before in trained
                for line in outlook(
                    queries, before=before, horizons=(self.releases(days),)
                )
            )
            for days in HORIZONS
        }
