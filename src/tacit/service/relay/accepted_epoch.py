"""An epoch that a client has nothing against, and the envelope of its messages.

    invitation   what the client agreed to
    manifest     what relay and collector signed for this epoch
    broadcast    the bytes that everybody is sent, named by the manifest

The three are compared before a history is touched, so a refusal says nothing about it.
A minimum below the agreed one is refused: the statement that the client agreed to is
for so many contributors. So is one below the floor of the client's own, if it has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.plans import TICKETS
from tacit.service.federation.accepted_round import checked_broadcast, refuse_below
from tacit.service.federation.invitation import Invitation
from tacit.service.relay.manifest import Agreed, EpochManifest, check_manifest
from tacit.service.relay.messages import MessageForm, Rows
from tacit.service.relay.uploads import upload
from tacit.transport.messages import Broadcast, Reports
from tacit.tree import Array, Tree


@dataclass(frozen=True, eq=False)
class AcceptedEpoch:
    """What was compared, and the form of the messages that follows from it."""

    manifest: EpochManifest
    message: bytes
    broadcast: Broadcast
    form: MessageForm

    @property
    def question(self) -> bytes:
        """The round_id: another manifest for the same broadcast asks something else."""
        return self.manifest.round_id

    @property
    def numbers(self) -> int:
        """About how many numbers one client's messages take in the memory."""
        return self.form.count * self.form.message_bytes

    def seal(self, broadcast: Broadcast, reports: Reports) -> bytes:
        """One client's messages, each sealed by itself to the collector."""
        return upload(self.form.messages(reports), self.manifest)

    def rows(self, tree: Tree) -> Array:
        """The messages of several clients: client, message, byte."""
        shape = (len(tree), self.form.count, self.form.message_bytes)
        return self.form.rows(tree).reshape(shape)

    def sealed(self, row: Rows) -> bytes:
        """The upload of one client's messages."""
        return upload([one.tobytes() for one in row], self.manifest)


def accepted(
    invitation: Invitation,
    manifest: EpochManifest,
    message: bytes,
    *,
    now: int,
    known: Mapping[int, bytes],
    least: int | None = None,
) -> AcceptedEpoch:
    """The epoch, if it is as agreed; `known` as in `check_manifest`.

    The manifest was read with the keys of both operators. `least` is the client's own
    floor for the minimum of an epoch, if it has one.
    """
    refuse_below(least, manifest.least_uploads)
    broadcast = checked_broadcast(
        invitation, message, manifest.broadcast, round=manifest.round
    )
    form = invitation.message_form(broadcast.phase)
    agreed = Agreed(
        invitation.run,
        form.message_bytes,
        form.count,
        invitation.least_reports,
        needs_tickets=invitation.plan.counted_by == TICKETS,
    )
    check_manifest(manifest, agreed, now=now, known=known)
    return AcceptedEpoch(manifest, message, broadcast, form)
