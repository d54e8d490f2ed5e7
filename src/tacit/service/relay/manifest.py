"""What an epoch is: one document that relay and collector sign.

    sig_relay 64, sig_collector 64, JSON

Its SHA-256 is the `round_id` that every seal is bound to: run, round, broadcast, key
and minimum cannot be exchanged under a report. The relay forwards nothing of an epoch
with fewer than `least_uploads` uploads, and what it may sign is limited by its own
operator; a client refuses a minimum below the one that it agreed to. `needs_tickets`
says whether that is a number of users, each with one ticket of the relay, or of uploads
that anybody can make; a client that agreed to the first refuses the second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.service.signed_document import (
    KEY_BYTES,
    canonical,
    check_chain,
    check_sizes,
    from_base64,
    parsed,
    signed_by,
    text,
    to_base64,
    whole,
    with_signatures,
)

VERSION = 1
TASK = "reports"  # what tells it from the manifest of a sum over two servers
_RUN_BYTES, _DIGEST_BYTES = 16, 32


@dataclass(frozen=True)
class EpochManifest:
    """One epoch: its messages, its minimum, its window, and where to send uploads."""

    run: bytes  # the digest of the agreement
    round: int
    report_bytes: int  # of one message, before it is sealed
    reports_per_user: int  # k, messages of one upload
    least_uploads: int  # below which nothing is forwarded
    most_uploads: int
    opens: int  # seconds since 1970
    closes: int
    broadcast: bytes  # SHA-256 of what clients are sent
    relay_url: str
    collector_key: bytes  # X25519, for this epoch
    needs_tickets: bool = False  # an upload counts with a ticket of the relay alone
    previous: bytes = b""  # round_id of the epoch before; empty in the first

    def __post_init__(self) -> None:
        check.not_negative(remedy="", round=self.round)
        check.count(
            remedy="",
            report_bytes=self.report_bytes,
            reports_per_user=self.reports_per_user,
            least_uploads=self.least_uploads,
            most_uploads=self.most_uploads,
        )
        sizes = {
            "run": (self.run, _RUN_BYTES),
            "broadcast": (self.broadcast, _DIGEST_BYTES),
            "collector_key": (self.collector_key, KEY_BYTES),
        }
        if self.previous:
            sizes["previous"] = (self.previous, _DIGEST_BYTES)
        check_sizes(sizes)
        if self.most_uploads < self.least_uploads:
            raise BadValue(
                f"most_uploads={self.most_uploads} must not be below least_uploads="
                f"{self.least_uploads}: no epoch could have both"
            )
        if not 0 <= self.opens < self.closes:
            raise BadValue(
                f"opens={self.opens} must be before closes={self.closes}, in seconds "
                "since 1970"
            )
        if self.reports_per_user >= 2**16:
            raise BadValue(
                f"reports_per_user={self.reports_per_user} must be below 65,536"
            )

    def document(self) -> bytes:
        """The JSON that is signed; equal manifests have equal bytes."""
        return canonical(
            {
                "v": VERSION,
                "task": TASK,
                "run": self.run.hex(),
                "epoch": self.round,
                "report_len": self.report_bytes,
                "reports_per_user": self.reports_per_user,
                "n_min": self.least_uploads,
                "n_max": self.most_uploads,
                "tickets": self.needs_tickets,
                "opens": self.opens,
                "closes": self.closes,
                "broadcast": self.broadcast.hex(),
                "relay": {"url": self.relay_url},
                "collector": {"key": to_base64(self.collector_key)},
                "prev": self.previous.hex(),
            }
        )

    @property
    def round_id(self) -> bytes:
        """SHA-256 of the document: the name of the epoch."""
        return hashlib.sha256(self.document()).digest()

    @property
    def send_to(self) -> str:
        """The beginning of the URL that clients send to."""
        return self.relay_url


def signed(manifest: EpochManifest, *, relay: bytes, collector: bytes) -> bytes:
    """The manifest as it is sent, with the signatures of both operators."""
    return with_signatures(manifest, relay=relay, collector=collector)


def read_manifest(sent: bytes, *, relay: bytes, collector: bytes) -> EpochManifest:
    """The manifest that both operators signed; refuses every other.

    `relay` and `collector` are their public signing keys. Nothing is parsed before both
    signatures hold.
    """
    return read_document(signed_by(sent, "manifest", relay=relay, collector=collector))


def read_document(document: bytes) -> EpochManifest:
    """The manifest of a document, whoever signed it; refuses another form."""
    return parsed(document, _manifest, what="manifest")


def _manifest(made: Mapping[str, Any]) -> EpochManifest:
    if (made["v"], made["task"]) != (VERSION, TASK):
        raise BadValue(
            f"version {made['v']!r} of a manifest for {made['task']!r}; known: "
            f"{VERSION} for '{TASK}'"
        )
    return EpochManifest(
        run=bytes.fromhex(made["run"]),
        round=whole(made["epoch"]),
        report_bytes=whole(made["report_len"]),
        reports_per_user=whole(made["reports_per_user"]),
        least_uploads=whole(made["n_min"]),
        most_uploads=whole(made["n_max"]),
        needs_tickets=_flag(made["tickets"]),
        opens=whole(made["opens"]),
        closes=whole(made["closes"]),
        broadcast=bytes.fromhex(made["broadcast"]),
        relay_url=text(made["relay"]["url"]),
        collector_key=from_base64(made["collector"]["key"]),
        previous=bytes.fromhex(made["prev"]),
    )


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadValue(f"{value!r} must be true or false")
    return value


# --- What a client compares -----------------------------------------------------------


@dataclass(frozen=True)
class Agreed:
    """What a client knows of an epoch by itself, from what it agreed to."""

    run: bytes
    report_bytes: int
    reports_per_user: int
    least_uploads: int  # its floor: the statement that it agreed to relies on it
    needs_tickets: bool = False  # the statement is for as many users, not uploads


def check_manifest(
    manifest: EpochManifest, agreed: Agreed, *, now: int, known: Mapping[int, bytes]
) -> None:
    """Refuse an epoch that is not as agreed; nothing private is read for it.

    `known` as in `check_chain`.
    """
    for name in ("run", "report_bytes", "reports_per_user"):
        found, own = getattr(manifest, name), getattr(agreed, name)
        if found != own:
            raise Refused(f"{name} of the manifest is {found!r}, agreed is {own!r}")
    if manifest.least_uploads < agreed.least_uploads:
        raise Refused(
            f"the relay would forward {manifest.least_uploads:,} uploads, agreed are "
            f"{agreed.least_uploads:,} at least"
        )
    if agreed.needs_tickets and not manifest.needs_tickets:
        raise Refused(
            "the relay would count uploads without a ticket, agreed is one ticket per "
            "user: anybody could be all of them"
        )
    if not manifest.opens <= now < manifest.closes:
        raise Refused(
            f"the window is from {manifest.opens} to {manifest.closes}, now is {now}"
        )
    check_chain(manifest, known)
