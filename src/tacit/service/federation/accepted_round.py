"""A round that a client has nothing against, and the envelope of its report.

    invitation   what the client agreed to
    manifest     what both operators signed for this round
    broadcast    the bytes that everybody is sent, named by the manifest

The three are compared before a history is touched, so a refusal says nothing about it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import BadMessage, Refused
from tacit.service.federation.envelope import envelope, sealed_row
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.manifest import Manifest, check_manifest
from tacit.text import nth_round
from tacit.transport.codec import decode_broadcast
from tacit.transport.messages import Broadcast, Reports
from tacit.transport.shared_sum import SharedSum
from tacit.tree import Array, Tree


@dataclass(frozen=True, eq=False)
class AcceptedRound:
    """What was compared, and the whole numbers of the round that follow from it."""

    manifest: Manifest
    message: bytes
    broadcast: Broadcast
    shared: SharedSum

    @property
    def question(self) -> bytes:
        """The round_id: another manifest for the same broadcast asks something else."""
        return self.manifest.round_id

    def seal(self, broadcast: Broadcast, reports: Reports) -> bytes:
        """One client's report in two halves, each sealed to one operator."""
        return envelope(reports, self.shared, self.manifest)

    @property
    def numbers(self) -> int:
        """How many numbers one client's report has."""
        return self.shared.size

    def rows(self, tree: Tree) -> Array:
        """The reports of several clients in whole steps, one row per client."""
        return self.shared.encoded(tree)

    def sealed(self, row: Array) -> bytes:
        """The two sealed halves of one client's row."""
        return sealed_row(row, self.manifest)


def checked_broadcast(
    invitation: Invitation, message: bytes, digest: bytes, *, round: int
) -> Broadcast:
    """The broadcast of a round, if it is the signed one and as agreed."""
    if hashlib.sha256(message).digest() != digest:
        raise BadMessage(
            "the broadcast has not the digest that both operators signed; it was "
            "damaged on the way, or exchanged"
        )
    broadcast = decode_broadcast(message)
    invitation.agreement.check(broadcast)
    if broadcast.round != round:
        raise Refused(
            f"a manifest of {nth_round(round)} with the broadcast of "
            f"{nth_round(broadcast.round)}"
        )
    if not invitation.method.agrees(broadcast, invitation.plan):
        raise Refused(
            f"phase {broadcast.phase} is none that the plan has in round "
            f"{broadcast.round}"
        )
    return broadcast


def refuse_below(least: int | None, found: int) -> None:
    """Refuse a round with a lower minimum than the client's owner has asked for."""
    if least is not None and found < least:
        raise Refused(
            f"the round is used with {found:,} reports, and this client joined with "
            f"--least-uploads {least}"
        )


def accepted(
    invitation: Invitation,
    manifest: Manifest,
    message: bytes,
    *,
    now: int,
    known: Mapping[int, bytes],
    least: int | None = None,
) -> AcceptedRound:
    """The round, if it is as agreed; `known` as in `check_manifest`.

    The manifest was read with the keys of both operators. `least` is the client's own
    floor for the minimum of a round, if it has one.
    """
    refuse_below(least, manifest.least_reports)
    broadcast = checked_broadcast(
        invitation, message, manifest.broadcast, round=manifest.round
    )
    if manifest.least_reports < invitation.least_reports:
        raise Refused(
            f"the round would be published with {manifest.least_reports:,} reports, "
            f"agreed are {invitation.least_reports:,} at least"
        )
    agreed = invitation.agreed(broadcast.phase)
    check_manifest(manifest, agreed, now=now, known=known)
    shared = invitation.shared(broadcast.phase)
    return AcceptedRound(manifest, message, broadcast, shared)
