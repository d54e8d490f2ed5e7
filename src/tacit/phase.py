"""A phase: rounds whose reports have one shape, one bound and one guarantee.

A method declares its phases; what protects them (`tacit.privacy`), the layout of their
reports, their noise and their account follow from that declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.wire_names import PROSE, register


@register("phase")
@dataclass(frozen=True)
class Phase:
    """Rounds whose reports have one shape, one bound and one guarantee."""

    name: str  # "counts", "gradients": names the phase's noise in the privacy settings
    rounds: range  # planned, one after the other
    what: str = field(metadata=PROSE)  # what the reports are: "histories"
    bound: float = 1.0  # the largest L2 norm of an honest report: the sensitivity
    is_clipped: bool = False  # the bound is a choice: the privacy's clip replaces it
    share: float = 1.0  # of the budget, where phases divide it
    # why the bound holds; a theorem or a page
    proof: str = field(default="", metadata=PROSE)
    step: float = 1.0  # what the server multiplies the mean by, if noise depends on it
    # a sentence on what reports without noise give away, if it is a surprise
    leak: str = field(default="", metadata=PROSE)

    def __post_init__(self) -> None:
        check.positive(bound=self.bound, step=self.step)
        check.rate(share=self.share)
        if self.rounds.step != 1 or not len(self.rounds) or self.rounds.start < 0:
            raise BadValue(f"rounds={self.rounds} must be one or more, in a row")

    def bounded_by(self, clip: float | None) -> float:
        """The bound of its reports: the clip, if one is given and the phase has one."""
        return clip if self.is_clipped and clip is not None else self.bound


def in_turn(*phases: tuple[str, int, str], total: int) -> list[range]:
    """The rounds of phases that follow each other; the last one gets what is left.

    A phase is given as its name, its number of rounds and what it is for.

    >>> in_turn(("counts", 2, "Gram counts"), ("relations", 0, "relates"), total=5)
    [range(0, 2), range(2, 5)]
    """
    start, made = 0, []
    for _, length, _ in phases[:-1]:
        made.append(range(start, start + length))
        start += length
    if start >= total:
        steps = ", then ".join(what for _, _, what in phases)
        raise Refused(
            f"rounds={total} must be more than the {start} that come before the last "
            f"phase: {steps}; use rounds = {start + 1} or more"
        )
    return [*made, range(start, total)]


def check_phases(phases: Sequence[Phase], *, rounds: int | None) -> None:
    """Refuse phases that share a name, or that are not these rounds one by one.

    `rounds` is None where a method chooses among phases that may overlap.
    """
    for label in ("name", "what"):
        words = [getattr(phase, label) for phase in phases]
        if len(set(words)) < len(words):
            raise BadValue(
                f"two phases have the same `{label}`: {', '.join(words)}; noise and "
                "releases go by it, so give each phase its own"
            )
    begin = [*(phase.rounds.start for phase in phases), rounds]
    end = [0, *(phase.rounds.stop for phase in phases)]
    if rounds is not None and begin != end:
        raise BadValue(
            f"the phases {named(phases)} must be the {rounds} rounds of the plan, one "
            "after the other, without gap or overlap; `in_turn` lays them so"
        )


def check_clip(phases: Sequence[Phase], **settings: float | None) -> None:
    """Refuse settings of a clip that no phase has: they would change nothing."""
    if any(phase.is_clipped for phase in phases):
        return
    for name, value in settings.items():
        if value is not None:
            raise BadValue(
                f"{name}={value} would change nothing: the bounds of the phases "
                f"{named(phases)} are proven, and none is a clip; leave {name} out"
            )


def phase_of(phases: Sequence[Phase], round: int) -> int:
    """The index of the phase that a round belongs to."""
    for number, phase in enumerate(phases):
        if round in phase.rounds:
            return number
    raise Refused(f"round {round} belongs to none of the phases {named(phases)}")


def named(phases: Sequence[Phase]) -> str:
    """The names of phases, and their rounds, for a message."""
    return ", ".join(
        f"{phase.name} ({phase.rounds.start} to {phase.rounds.stop - 1})"
        for phase in phases
    )
