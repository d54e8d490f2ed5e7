"""No protection: reports leave as they are, and every cell says NONE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.aggregation.mean import Aggregator, Mean
from tacit.codes import Code
from tacit.keys import Keys
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.guarantees import unprotected
from tacit.privacy.privacy import Codes, Privacy, release
from tacit.release import Release
from tacit.transport.channels import Each, Sum, Unlinked
from tacit.tree import Arrays, Tree
from tacit.wire_names import register


@register("unprotected")
@dataclass(frozen=True)
class Unprotected(Privacy):
    """Protects nothing: reports leave as they were computed."""

    is_private = False

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """What the clients computed, unchanged."""
        return tree

    def aggregator(self, wanted: Aggregator) -> Aggregator:
        """A plain sum over any channel; the others need to see single reports."""
        return Mean((Each, Unlinked, Sum)) if wanted == Mean() else wanted

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One release per phase, without any promise."""
        is_each = len(phases) > 1 and not is_chosen
        return tuple(
            release(
                plan,
                f"{phase.what}, without noise",
                unprotected("bare_reports", _reason(phase)),
                phase=phase if is_each else None,
            )
            for phase in phases
        )


def _reason(phase: Phase) -> str:
    """Why nothing is promised, with what leaks more than one would expect."""
    bare = str(Code("bare_reports"))
    return f"{bare}; {phase.leak}" if phase.leak else bare


UNPROTECTED = Unprotected()
