"""A round that a client has nothing against, and the envelope of its report.

    invitation   what the client agreed to
    manifest     what all operators signed for this round
    broadcast    the bytes that all clients are sent, named by the manifest

The three are compared before a history is touched, so a refusal says nothing about it.
A minimum below the agreed one is refused, because the statement that the client agreed
to is for that many contributors; so is one below the client's own floor, if it has one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import BadMessage, BadValue, Refused
from tacit.service.federation.invitation import Invitation
from tacit.service.form import Form
from tacit.service.manifest import AnyManifest
from tacit.text import nth_round
from tacit.transport.codec import decode_broadcast
from tacit.transport.messages import Broadcast, Reports


@dataclass(frozen=True, eq=False)
class AcceptedRound:
    """A manifest and a broadcast as agreed, and the form of reports that follows."""

    manifest: AnyManifest
    broadcast: Broadcast
    form: Form

    @property
    def question(self) -> bytes:
        """The round_id: another manifest for the same broadcast asks something else."""
        round_id: bytes = self.manifest.round_id
        return round_id

    def seal(self, broadcast: Broadcast, reports: Reports) -> bytes:
        """The body that one client sends, with fresh randomness."""
        if len(reports) != 1:
            raise BadValue(f"{len(reports)} reports; a body has that of one client")
        [row] = self.form.rows(reports.tree)
        return self.form.seal(row, self.manifest)


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


def accept(
    invitation: Invitation,
    manifest: AnyManifest,
    message: bytes,
    *,
    now: int,
    known: Mapping[int, bytes],
    least: int | None = None,
) -> AcceptedRound:
    """The round, if it is as agreed; `known` as in `Manifest.check`.

    The manifest was read with the keys of all operators. `least` is the client's own
    floor for the minimum of a round, if it has one.
    """
    refuse_below(least, manifest.least_reports)
    broadcast = checked_broadcast(
        invitation, message, manifest.broadcast, round=manifest.round
    )
    form = invitation.form(broadcast.phase)
    manifest.check(
        run=invitation.run,
        least_reports=invitation.least_reports,
        agreed=form.fields,
        now=now,
        known=known,
    )
    return AcceptedRound(manifest, broadcast, form)
