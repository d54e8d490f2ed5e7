"""What a run is going to do, fixed before anything is trained.

Every client agrees to a plan at enrolment, by its digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tacit import check
from tacit.accounting.serialization import agreed_release
from tacit.errors import BadValue
from tacit.release import EVERYONE, Release, View
from tacit.sampling import Everyone, Groups, Sampler
from tacit.transport.channels import channel
from tacit.wire_names import digest_of, register

UPLOADS, TICKETS = "uploads", "tickets"
_APART = 2  # operators with noise of their own, so that one may be the server's


@register("plan")
@dataclass(frozen=True)
class Plan:
    """Population, sampler, rounds and channel of a run."""

    population: int
    rounds: int = 1
    sampler: Sampler = field(default_factory=Everyone)
    channel: str = "direct"
    delta: float | None = None  # None: nothing in the plan needs one
    # Of all, or by group. A group at None accepts that nothing is promised to it.
    target_epsilon: float | Mapping[str, float | None] | None = None
    target_view: str | None = None  # whose eyes the target is for, over two servers
    groups: Groups = field(default_factory=dict)  # public groups and their sizes
    # below this a shuffler delivers nothing, and no two aggregators publish anything
    min_contributors: int = 1
    before: tuple[Release, ...] = ()  # made once, before the first round
    # of those contributors, how many may be one attacker's inventions
    assumed_sybils: int = 0
    # what a relay counts as contributors: one ticket per user, or uploads of anybody
    counted_by: str = TICKETS

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
        check.one_of([UPLOADS, TICKETS], counted_by=self.counted_by)
        check.not_negative(assumed_sybils=self.assumed_sybils)
        if self.assumed_sybils and self.assumed_sybils >= self.min_contributors:
            raise BadValue(
                f"assumed_sybils={self.assumed_sybils} must be below min_contributors="
                f"{self.min_contributors}: nobody honest would be left among them"
            )
        if self.delta is not None:
            check.fraction(delta=self.delta)
        self._check_targets()
        self.sampler.expected(self)  # refuses what does not fit the population

    def _check_targets(self) -> None:
        if self.target_view is not None:
            check.one_of([View.SERVER, View.RELEASE], target_view=self.target_view)
            if self.noise_shares < _APART:
                raise BadValue(
                    f"target_view={self.target_view} is for channel 'two_servers'; "
                    f"over '{self.channel}' a target is for the release view: leave "
                    "target_view out"
                )
        remedy = "leave it out to train without a target"
        if not isinstance(self.target_epsilon, Mapping):
            if self.target_epsilon is not None:
                check.positive(target_epsilon=self.target_epsilon, remedy=remedy)
            return
        for group, target in self.target_epsilon.items():
            if target is not None:
                check.positive(remedy=remedy, **{f"target_epsilon[{group}]": target})
        if not any(self.target_epsilon.values()):
            raise BadValue(
                "target_epsilon promises nothing to any group: use mechanism = 'none' "
                "without targets, or give one group a number"
            )
        if self.target_epsilon.keys() != self.groups.keys():
            raise BadValue(
                f"target_epsilon names the groups {sorted(self.target_epsilon)}; the "
                f"plan has {sorted(self.groups)}: give each of them a target"
            )
        ordered = {group: self.target_epsilon[group] for group in self.groups}
        object.__setattr__(self, "target_epsilon", ordered)  # of one digest

    def target_of(self, group: str) -> float | None:
        """The epsilon that a member of this group may spend; None: there is none."""
        if isinstance(self.target_epsilon, Mapping):
            return self.target_epsilon[group]
        return self.target_epsilon

    @property
    def consenting(self) -> tuple[str, ...]:
        """The groups whose members accept that nothing is promised to them."""
        if not isinstance(self.target_epsilon, Mapping):
            return ()
        return tuple(g for g, target in self.target_epsilon.items() if target is None)

    @property
    def least_honest(self) -> int:
        """The honest contributors that a round has at the least, if it is delivered."""
        return self.min_contributors - self.assumed_sybils

    @property
    def noise_shares(self) -> int:
        """How many operators add noise to a sum, each its own; 0: the server does."""
        return channel(self.channel).noise_shares

    @property
    def is_mixed(self) -> bool:
        """Whether a relay promises to hide every message among those of others."""
        return channel(self.channel).mixes and self.least_honest > 1

    @property
    def is_masked(self) -> bool:
        """Whether clients add up under masks and add the noise themselves."""
        return channel(self.channel).masks

    @property
    def calibrated_view(self) -> View:
        """The view in which the target holds: by default the server's, of two."""
        if self.target_view is not None:
            return View(self.target_view)
        return View.SERVER if self.noise_shares >= _APART else View.RELEASE

    def over(self, rounds: int) -> Plan:
        """The same plan with this number of rounds."""
        return replace(self, rounds=rounds)

    def with_present(self, contributors: int) -> Plan:
        """The same plan for as many users as contributed, where that may be known.

        With several groups it stays as it is: nobody says who of which came.
        """
        if not contributors or len(self.groups) > 1:
            return self
        [group] = self.groups
        return replace(
            self,
            population=contributors,
            groups={group: contributors},
            min_contributors=1,
            assumed_sybils=0,
        )

    @property
    def cohort_size(self) -> float:
        """The planned cohort size; sums are divided by it, whoever turns up."""
        return self.sampler.expected(self)

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that change with any field; clients compare it with theirs."""
        before = [agreed_release(release) for release in self.before]
        return digest_of([replace(self, before=()), before])
