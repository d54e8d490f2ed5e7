"""What a run is going to do, fixed before anything is trained.

Every client agrees to a plan at enrolment, by its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit import check
from tacit.accounting.serialization import release_to_json
from tacit.errors import BadValue
from tacit.release import EVERYONE, Release
from tacit.sampling import Everyone, Groups, Sampler


@dataclass(frozen=True)
class Plan:
    """Population, sampler, rounds and channel of a run."""

    population: int
    rounds: int = 1
    sampler: Sampler = field(default_factory=Everyone)
    channel: str = "direct"
    delta: float | None = None  # None: nothing in the plan needs one
    target_epsilon: float | Mapping[str, float] | None = None  # of all, or by group
    groups: Groups = field(default_factory=dict)  # public groups and their sizes
    min_contributors: int = 1  # a shuffler delivers nothing below this
    before: tuple[Release, ...] = ()  # made once, before the first round

    def __post_init__(self) -> None:
        check.count(population=self.population, rounds=self.rounds)
        if not self.groups:
            object.__setattr__(self, "groups", {EVERYONE: self.population})
        for group, size in self.groups.items():
            check.not_negative(remedy="", **{f"groups[{group}]": size})
        if EVERYONE in self.groups and len(self.groups) > 1:
            raise BadValue(
                f"groups: one of {[*self.groups]} is '{EVERYONE}', the word for all of "
                "them together; give that group another label"
            )
        if sum(self.groups.values()) != self.population:
            raise BadValue(
                f"groups {dict(self.groups)} must add up to "
                f"population={self.population}"
            )
        check.at_least(1, min_contributors=self.min_contributors)
        if self.delta is not None:
            check.fraction(delta=self.delta)
        self._check_targets()
        self.sampler.expected(self)  # refuses what does not fit the population

    def _check_targets(self) -> None:
        remedy = "leave it out to train without a target"
        if not isinstance(self.target_epsilon, Mapping):
            if self.target_epsilon is not None:
                check.positive(target_epsilon=self.target_epsilon, remedy=remedy)
            return
        for group, target in self.target_epsilon.items():
            check.positive(remedy=remedy, **{f"target_epsilon[{group}]": target})
        if self.target_epsilon.keys() != self.groups.keys():
            raise BadValue(
                f"target_epsilon names the groups {sorted(self.target_epsilon)}; the "
                f"plan has {sorted(self.groups)}: give each of them a target"
            )

    def target_of(self, group: str) -> float | None:
        """The epsilon that a member of this group may spend; None: there is none."""
        if isinstance(self.target_epsilon, Mapping):
            return self.target_epsilon[group]
        return self.target_epsilon

    def over(self, rounds: int) -> Plan:
        """The same plan with this number of rounds."""
        return replace(self, rounds=rounds)

    @property
    def cohort_size(self) -> float:
        """The planned cohort size; sums are divided by it, whoever turns up."""
        return self.sampler.expected(self)

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that change with any field; clients compare it with theirs."""
        fields: dict[str, Any] = asdict(replace(self, before=())) | {
            "sampler": [type(self.sampler).__name__, self.sampler],
            "groups": [*self.groups.items()],  # their order is what codes refer to
            "before": [release_to_json(release) for release in self.before],
        }
        if not self.before:  # as earlier versions had it: runs of theirs go on
            del fields["before"]
        text = json.dumps(fields, sort_keys=True, default=_plain)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else vars(value)
