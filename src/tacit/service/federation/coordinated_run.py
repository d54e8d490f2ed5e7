"""What a coordinator computes: broadcasts, sums, the model. It holds no event.

    after(sums)   the server after so many rounds, from what was published; None stands
                  for a void round
    next(sum)     the server one round later

The server is a function of what both aggregators published: a coordinator that starts
again computes it anew and keeps nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from tacit.errors import BadMessage, Refused
from tacit.experiment.assemble import Assembled
from tacit.experiment.training import (
    refuse_past_target,
    refuse_unproven,
)
from tacit.keys import Key
from tacit.method import Server, SumMethod
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.invited_run import InvitedRun, refuse_unreached
from tacit.transport.channels import Sum
from tacit.transport.messages import Layout
from tacit.transport.shared_sum import SharedSum, from_bytes, signed
from tacit.tree.symmetric import diagonal

_TAILS = 12  # deviations that no honest number of a sum ever passes
_TRACE_TAILS = 6  # and those of one sum of numbers


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

    def shared(self, server: Server) -> SharedSum:
        """The whole numbers of the next round."""
        return self.invitation.shared(self._phase(server))

    def leaf_name(self, server: Server) -> str:
        """The name of what the next round adds up."""
        return self.shared(server).leaf

    def after(self, sums: Sequence[PublishedSum | None]) -> Server:
        """The server after these rounds, from the sums that were published."""
        server = self.start
        for one in sums:
            server = self.without(server) if one is None else self.next(server, one)
        return server

    def next(self, server: Server, published: PublishedSum) -> Server:
        """The server one round later; refuses a sum that no honest clients make."""
        shared = self.shared(server)
        arrays = [from_bytes(one, shared.size) for one in _both(published)]
        layout = self.invitation.agreement.reports[self._phase(server)]
        check_total(signed(arrays[0] + arrays[1]), shared, layout, published.reports)
        return self._aggregated(server, Sum(shared.decoded(arrays), published.reports))

    def without(self, server: Server) -> Server:
        """The server one round later, after a void round: a sum of zeros."""
        shared = self.shared(server)
        zeros = [np.zeros(shared.size, np.uint32)] * 2
        return self._aggregated(server, Sum(shared.decoded(zeros)))

    def _aggregated(self, server: Server, delivery: Sum) -> Server:
        method = self.invitation.method
        broadcast = method.broadcast(server)
        # The key draws nothing: the aggregators have added their noise.
        key = Key.from_secret(self.invitation.digest).at("round", server.round)
        context = method.context(server, broadcast, key)
        return method.aggregate(server, delivery, context)

    def _phase(self, server: Server) -> int:
        return self.invitation.method.broadcast(server).phase


def check_total(
    total: Int64[np.ndarray, "numbers"],
    shared: SharedSum,
    layout: Layout,
    reports: int,
) -> None:
    """Refuse a sum that so many honest reports and the noise do not make.

    A client that lies can spoil a sum, and nobody can look into a report. These checks
    cost no privacy, because they read what is released. They find garbage, which is
    anywhere modulo 2³², and large lies of one sign; they do not find a modest lie.
    """
    noise = math.sqrt(2.0) * shared.sigma
    longest = math.sqrt(shared.limit)
    most = reports * longest + _TAILS * noise
    far = int((np.abs(total) > most).sum())
    if far:
        raise BadMessage(
            f"{far:,} of {shared.size:,} numbers of the sum of '{shared.leaf}' are "
            f"larger than {reports:,} honest reports and the noise make: a client has "
            "lied, or an aggregator"
        )
    norm = float(np.linalg.norm(total.astype(np.float64)))
    if norm > reports * longest + noise * (math.sqrt(shared.size) + _TAILS):
        raise BadMessage(
            f"the sum of '{shared.leaf}' is longer than {reports:,} honest reports and "
            "the noise make: a client has lied, or an aggregator"
        )
    side = layout.slots[shared.leaf].side
    if side is not None:
        trace = float(total[diagonal(side)].sum())
        spread = _TRACE_TAILS * noise * math.sqrt(side)
        # The half of z zᵀ has |z|² / √2 on its diagonal, the bound of a report; each
        # number of it is rounded by half a step at the most.
        off = reports * side / 2
        if not -spread - off <= trace <= reports * longest + off + spread:
            raise BadMessage(
                f"the trace of '{shared.leaf}' is not between 0 and that of "
                f"{reports:,} honest reports: a client has lied, or an aggregator"
            )


def _both(published: PublishedSum) -> tuple[bytes, bytes]:
    return published.leader, published.helper
