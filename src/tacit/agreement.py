"""What a client agrees to before it answers: one digest of all that must not change.

    plan        population, sampler, rounds, channel, delta, target
    method      its registered name and every setting
    mechanism   the protection, its noise and the bound of every phase
    releases    their events, and the codes of what each guarantee assumes
    layouts     what broadcasts and reports look like, with the range of every value

Sentences for readers are in none of it, and neither is where a class stands.

A broadcast carries the digest of the server's agreement, and a client answers only its
own. So a server that trains with another noise, another clip or another layout than it
declared is not answered. What it does with the reports afterwards no digest can show:
that is what the channel is trusted for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.errors import BadMessage
from tacit.transport.messages import (
    NO_PHASE,
    Broadcast,
    BroadcastLayout,
    Layout,
    Slot,
)
from tacit.wire_names import digest_of

FORMAT = 2  # changes with what the digest covers


@dataclass(frozen=True, eq=False)
class Agreement:
    """What a client must know of a run to answer a broadcast or to refuse it."""

    digest: bytes
    broadcasts: tuple[BroadcastLayout, ...]  # of each phase, then of the finished model
    updates: tuple[Mapping[str, Slot], ...]  # what clients compute in each phase, raw
    reports: tuple[Layout, ...]  # what leaves them in each phase

    @classmethod
    def of(
        cls,
        terms: Mapping[str, object],
        *,
        broadcasts: Sequence[BroadcastLayout],
        updates: Sequence[Mapping[str, Slot]],
        reports: Sequence[Layout],
    ) -> Agreement:
        """The agreement that covers these terms and layouts, with its digest."""
        covered = {
            "format": FORMAT,
            "terms": terms,
            "broadcasts": [layout.slots for layout in broadcasts],
            "updates": updates,
            "reports": reports,
        }
        parts = tuple(broadcasts), tuple(updates), tuple(reports)
        return cls(digest_of(covered), *parts)

    def check(self, broadcast: Broadcast) -> None:
        """Refuse a broadcast of another agreement, phase or layout."""
        if self.digest in broadcast.admitted:
            return
        if broadcast.agreement != self.digest:
            raise BadMessage(
                f"a broadcast of agreement {broadcast.agreement.hex()}; agreed is "
                f"{self.digest.hex()}: its plan, method, noise or layout is another"
            )
        last = len(self.broadcasts) - 1
        # The finished model belongs to no phase; its layout is the last.
        number = last if broadcast.phase == NO_PHASE else broadcast.phase
        if number > last or (number == last) != (broadcast.phase == NO_PHASE):
            raise BadMessage(f"a broadcast of phase {broadcast.phase} of {last}")
        self.broadcasts[number].check(broadcast.weights)
        broadcast.admitted.add(self.digest)  # in a simulation thousands ask the same

    def admits(self, broadcast: Broadcast) -> bool:
        """Whether `check` has nothing against a broadcast."""
        try:
            self.check(broadcast)
        except BadMessage:
            return False
        return True

    @property
    def most_bytes(self) -> int:
        """A bound on the bytes of any broadcast; longer ones need not be read."""
        return max(layout.most_bytes for layout in self.broadcasts)
