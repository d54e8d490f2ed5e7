"""The section [privacy] of an experiment, as far as every protection shares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tacit import check
from tacit.errors import BadValue
from tacit.transport.channels import channel


@dataclass(frozen=True)
class PrivacySettings:
    """The channel of the reports, and the privacy budget of the run."""

    mechanism: str = "none"  # what protects reports; its fields stand beside it
    channel: str = "direct"
    delta: float | None = None
    # of all, or by group; a group at "none" accepts that nothing is promised to it
    target_epsilon: float | Mapping[str, float | Literal["none"]] | None = None
    # whose eyes the target is for, over the channel "two_servers"; by default server
    target_view: Literal["server", "release"] | None = None
    # a category of the profiles that is public; or, in a simulation, how many users
    # choose each group: { strict = 54, balanced = 37, open = 9 }, drawn by the seed
    groups: str | Mapping[str, float] | None = None
    budgets: Literal["scale", "sample"] = "scale"  # how groups get budgets of their own
    # below it a shuffler delivers nothing; all: everybody whom the plan speaks of
    min_contributors: int | Literal["all"] = 1
    # of them, how many may be one attacker's: the shuffler's line is for the others
    assumed_sybils: int = 0
    # what a real relay counts: uploads of anybody, or tickets that it gave one per user
    counted_by: Literal["tickets", "uploads"] = "tickets"
    # the groups whose members train; the others are asked nothing, and only rank
    asks: tuple[str, ...] | None = None
    contact: str | None = None  # who answers questions; stands on the privacy card

    def __post_init__(self) -> None:
        check.one_of(("scale", "sample"), budgets=self.budgets)
        channel(self.channel)
        if self.min_contributors != "all":
            check.at_least(1, min_contributors=self.min_contributors)
        check.not_negative(assumed_sybils=self.assumed_sybils)
        check.one_of(("uploads", "tickets"), counted_by=self.counted_by)
        if self.delta is not None:
            check.fraction(delta=self.delta)
        self._check_groups()
        self._check_targets()

    def _check_groups(self) -> None:
        if self.asks is not None and (not self.asks or self.groups is None):
            raise BadValue(
                f"asks={[*self.asks]} must name some of the public groups, and "
                "privacy.groups says which there are"
            )
        if not isinstance(self.groups, Mapping):
            return
        if not self.groups:
            raise BadValue("groups={} must name at least one group and its share")
        for group in self.asks or ():
            if group not in self.groups:
                raise BadValue(f"asks: group {check.unknown(group, self.groups)}")
        for group, share in self.groups.items():
            check.positive(remedy="", **{f"groups.{group}": share})

    @property
    def planned_targets(self) -> float | Mapping[str, float | None] | None:
        """The targets as a plan has them: a group without a promise at None."""
        targets = self.target_epsilon
        if not isinstance(targets, Mapping):
            return targets
        return {group: None if t == "none" else t for group, t in targets.items()}

    def _check_targets(self) -> None:
        if not isinstance(self.target_epsilon, Mapping):
            if self.target_epsilon is not None:
                check.positive(target_epsilon=self.target_epsilon)
            return
        for group, target in self.target_epsilon.items():
            if target != "none":
                check.positive(remedy="", **{f"target_epsilon.{group}": target})
        if self.groups is None:
            raise BadValue(
                "a target_epsilon for each group needs groups: name a category of the "
                "profiles that is public, such as groups = 'gender'"
            )
