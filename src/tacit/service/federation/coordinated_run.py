"""What a coordinator computes: broadcasts, sums, the model. It holds no event.

    after(sums)   the server after so many rounds, from what was published; None stands
                  for a void round
    next(sum)     the server one round later

The server is a function of what both aggregators published: a coordinator that starts
again computes it anew and keeps nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import Refused
from tacit.experiment.assemble import Assembled
from tacit.experiment.training import (
    refuse_past_target,
    refuse_unproven,
)
from tacit.method import Server, SumMethod
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.invited_run import InvitedRun, refuse_unreached
from tacit.service.federation.sealing import SumFields


@dataclass(frozen=True)
class PublishedSum:
    """What both aggregators published of one round, and how many reports are in it."""

    leader: bytes
    helper: bytes
    reports: int


@dataclass(frozen=True, eq=False)
class CoordinatedRun(InvitedRun):
    """A run over real aggregators, without anybody's data."""

    @classmethod
    def of(
        cls,
        assembled: Assembled,
        *,
        leader: bytes,
        helper: bytes,
        title: str = "",
        contact: str = "",
        edition: str = "",
        one_machine: bool = False,
    ) -> CoordinatedRun:
        """The run of an assembled experiment, with the operators' public signing keys.

        Refuses one without a guarantee, that passes its target, or whose minimum is
        never reached.
        """
        refuse_past_target(assembled)
        refuse_unproven(assembled)
        if not isinstance(assembled.method, SumMethod):
            raise Refused(
                f"{type(assembled.method).__name__} does not learn from sums, which is "
                "all that two servers can add up"
            )
        refuse_unreached(assembled.plan)
        invitation = Invitation(
            assembled.experiment.method_name,
            assembled.method,
            assembled.plan,
            assembled.split.catalog,
            leader,
            helper,
            title,
            contact,
            edition,
            one_machine,
        )
        return cls(assembled, invitation)

    # rounds

    def sum_fields(self, phase: int) -> SumFields:
        """The numbers of the sum of a phase."""
        found = self.invitation.form(phase).fields
        assert isinstance(found, SumFields)  # of the one channel with a leader
        return found

    def after(self, sums: Sequence[PublishedSum | None]) -> Server:
        """The server after these rounds, from the sums that were published."""
        server = self.start
        for one in sums:
            server = self.without(server) if one is None else self.next(server, one)
        return server

    def next(self, server: Server, published: PublishedSum) -> Server:
        """The server one round later; refuses a sum that no honest clients make."""
        parts = published.leader, published.helper
        delivery = self.form(server).delivery(parts, reports=published.reports)
        return self._aggregated(server, delivery)
