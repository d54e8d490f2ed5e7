"""What a run is going to do, fixed before anything is trained.

Every device agrees to a plan at enrolment, by its digest.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field

import numpy as np

from tacit import check
from tacit.errors import BadValue
from tacit.sampling import EVERYONE, Everyone, Groups, Sampler


@dataclass(frozen=True)
class Plan:
    """Population, sampler, rounds and channel of a run."""

    population: int
    rounds: int = 1
    sampler: Sampler = field(default_factory=Everyone)
    channel: str = "direct"
    delta: float | None = None  # None: nothing in the plan needs one
    target_epsilon: float | None = None
    groups: Groups = field(default_factory=dict)  # public groups and their sizes
    min_contributors: int = 1  # a shuffler delivers nothing below this

    def __post_init__(self) -> None:
        check.count(population=self.population, rounds=self.rounds)
        if not self.groups:
            object.__setattr__(self, "groups", {EVERYONE: self.population})
        for group, size in self.groups.items():
            check.not_negative(remedy="", **{f"groups[{group}]": size})
        if sum(self.groups.values()) != self.population:
            raise BadValue(
                f"groups {dict(self.groups)} must add up to "
                f"population={self.population}"
            )
        check.at_least(1, min_contributors=self.min_contributors)
        if self.delta is not None:
            check.fraction(delta=self.delta)
        if self.target_epsilon is not None:
            check.positive(
                target_epsilon=self.target_epsilon,
                remedy="leave it out to train without a target",
            )
        self.sampler.expected(self)  # refuses what does not fit the population

    @property
    def cohort_size(self) -> float:
        """The planned cohort size; sums are divided by it, whoever turns up."""
        return self.sampler.expected(self)

    @property
    def digest(self) -> bytes:
        """16 bytes that change with any field; devices compare it with theirs."""
        fields = asdict(self) | {
            "sampler": [type(self.sampler).__name__, self.sampler],
            "groups": [*self.groups.items()],  # their order is what codes refer to
        }
        text = json.dumps(fields, sort_keys=True, default=_plain)
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else vars(value)
