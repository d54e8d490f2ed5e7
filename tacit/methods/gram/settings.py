"""Gram's settings, and the numbers that follow from them and a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tacit import check
from tacit.data.catalog import Catalog
from tacit.errors import BadValue
from tacit.methods.gram.protection import Bare, Central, Local, Protection
from tacit.methods.gram.refresh import Refresh
from tacit.methods.gram.rule import Evidence
from tacit.models.histories import Weighting
from tacit.phases import CountFirst
from tacit.plan import Plan
from tacit.release import given


@dataclass(frozen=True)
class Settings:
    """The fields of `Gram`; `Gram` itself has the protocol."""

    privacy: Literal["none", "central", "local"] = "none"
    head: int | None = None  # H
    max_head: int = 3000  # H² numbers are held and decomposed
    reach: int | None = None  # items related; beyond H they share rows
    rank: int = 512  # the most directions kept
    weight_exponent: float = 0.3  # a
    count_share: float | None = None  # of the budget, for the counting
    ridge: float | None = None  # lambda; by a rule
    count_rounds: int = 1  # the first so many rounds count, the others relate
    refresh: Refresh = "relations"  # what a run does that refreshes an earlier one
    weighting: Weighting = "once"  # how often an item counts: see models.histories
    half_life: float | None = None  # days after which an event counts half
    content: tuple[str, ...] = ()  # public features of items that say who is alike
    content_scale: float = 7.0  # of numbers among them, such as years
    content_smoothing: float = 0.4  # g
    content_weight: float = 0.07  # b
    count_noise: float | None = None  # central: noise over sensitivity, a round
    relate_noise: float | None = None
    epsilon: float | None = None  # local: of one report

    def __post_init__(self) -> None:
        check.one_of(("none", "central", "local"), privacy=self.privacy)
        check.at_least(1, max_head=self.max_head, rank=self.rank)
        check.at_least(0, count_rounds=self.count_rounds)
        check.one_of(get_args(Refresh), refresh=self.refresh)
        check.not_negative(weight_exponent=self.weight_exponent)
        check.positive(content_scale=self.content_scale)
        if self.ridge is not None:
            check.positive(ridge=self.ridge)
        check.not_negative(content_weight=self.content_weight)
        check.rate(content_smoothing=self.content_smoothing)
        if self.count_share is not None:
            check.fraction(count_share=self.count_share)
        if self.head is not None:
            check.at_least(1, head=self.head)
        self._check_reach()
        self._check_owner(count_noise=self.count_noise, owner="central")
        self._check_owner(relate_noise=self.relate_noise, owner="central")
        self._check_owner(epsilon=self.epsilon, owner="local")

    def _check_reach(self) -> None:
        if self.reach is None:
            return
        check.at_least(1, reach=self.reach)
        if not self.content:
            raise BadValue(
                f"reach={self.reach} needs public content: items share rows with those "
                "alike to them; name features in `content`, or leave reach out"
            )

    def _check_owner(self, *, owner: str, **given: float | None) -> None:
        for name, value in given.items():
            if value is not None and self.privacy != owner:
                raise BadValue(f"{name} belongs to privacy='{owner}' only")
            if value is not None and not value > 0:
                raise BadValue(f"{name}={value} must be > 0")

    # what follows

    @property
    def _protection(self) -> Protection:
        if self.privacy == "none":
            return Bare()
        if self.privacy == "local":
            return Local(given(self.epsilon, "epsilon"))
        count = None
        if self.count_rounds:
            count = given(self.count_noise, "count_noise")
        return Central.of(count, given(self.relate_noise, "relate_noise"))

    def _leaf(self, round: int) -> str:
        return "counts" if round < self.count_rounds else "relations"

    def _side(self, catalog: Catalog) -> int:
        """How many rows are related: H."""
        return min(int(given(self.head, "head")), len(catalog))

    def _width(self, catalog: Catalog) -> int:
        """How many items are related: the head's, or as far as the reach goes."""
        return min(max(self.reach or 0, self._side(catalog)), len(catalog))

    def edge(self, plan: Plan, *, side: int) -> float:
        """The largest eigenvalue that noise makes, over the number of people."""
        return self.planned(plan, size=side * (side + 1) // 2).edge(side)

    def planned(self, plan: Plan, *, size: int) -> Evidence:
        """What all relating rounds amount to; a report stands for `size` numbers."""
        return self._a_round(plan, size=size).rounds(self.relating(plan).rounds)

    def _a_round(self, plan: Plan, *, size: int) -> Evidence:
        people = plan.cohort_size
        return Evidence(people, self._protection.variance(people, size=size))

    def relating(self, plan: Plan) -> Plan:
        """The part of the plan that relates."""
        phases = CountFirst(self.count_rounds, self.count_share or 0.0)
        return phases.others(plan, what="Gram counts first, then relates")
