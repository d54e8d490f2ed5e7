"""What a round over two servers is: one document that both operators sign.

    sig_leader 64, sig_helper 64, JSON

The JSON has sorted keys, no spaces, and strings and whole numbers alone, so equal
manifests have equal bytes; its SHA-256 is the `round_id` that every seal is bound to.
Signatures are Ed25519, by keys that clients know beforehand. A client compares what is
signed with what it agreed to (`Agreed`) before it touches its data, so that a refusal
says nothing about them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.service.signed_document import (
    KEY_BYTES,
    MOST_BYTES,
    SIGNATURE_BYTES,
    canonical,
    check_chain,
    check_sizes,
    from_base64,
    parsed,
    signature,
    signed_by,
    signing_public_key,
    text,
    to_base64,
    whole,
    with_signatures,
)

__all__ = [
    "KEY_BYTES",
    "MOST_BYTES",
    "SIGNATURE_BYTES",
    "Agreed",
    "Manifest",
    "check_manifest",
    "read_document",
    "read_manifest",
    "signature",
    "signed",
    "signing_public_key",
]

VERSION = 1
_RUN_BYTES, _DIGEST_BYTES = 16, 32
_ROUNDING = 1e-9  # relative: what double precision may lose of σ / √L


@dataclass(frozen=True)
class Manifest:
    """One round: the numbers of its sum, its window, and where to send reports."""

    run: bytes  # the digest of the agreement
    round: int
    leaf: str
    numbers: int  # d, of a report
    steps: int  # r, per unit
    limit: int  # L, of the sum of squares of a report in steps
    sigma: int  # the deviation of each operator's noise, in steps
    least_reports: int  # below which nothing is published
    most_reports: int
    opens: int  # seconds since 1970
    closes: int
    broadcast: bytes  # SHA-256 of what clients are sent
    leader_url: str
    leader_key: bytes  # X25519, for this round
    helper_key: bytes
    previous: bytes = b""  # round_id of the round before; empty in the first

    def __post_init__(self) -> None:
        check.not_negative(remedy="", round=self.round)
        check.count(
            remedy="",
            numbers=self.numbers,
            steps=self.steps,
            limit=self.limit,
            sigma=self.sigma,
            least_reports=self.least_reports,
            most_reports=self.most_reports,
        )
        sizes = {
            "run": (self.run, _RUN_BYTES),
            "broadcast": (self.broadcast, _DIGEST_BYTES),
            "leader_key": (self.leader_key, KEY_BYTES),
            "helper_key": (self.helper_key, KEY_BYTES),
        }
        if self.previous:
            sizes["previous"] = (self.previous, _DIGEST_BYTES)
        check_sizes(sizes)
        if self.most_reports < self.least_reports:
            raise BadValue(
                f"most_reports={self.most_reports} must not be below least_reports="
                f"{self.least_reports}: no round could have both"
            )
        if not 0 <= self.opens < self.closes:
            raise BadValue(
                f"opens={self.opens} must be before closes={self.closes}, in seconds "
                "since 1970"
            )
        if self.leader_key == self.helper_key:
            raise BadValue("both operators have one key, and so open both halves")

    def document(self) -> bytes:
        """The JSON that is signed; equal manifests have equal bytes."""
        made = {
            "v": VERSION,
            "run": self.run.hex(),
            "round": self.round,
            "leaf": self.leaf,
            "d": self.numbers,
            "r": self.steps,
            "limit": self.limit,
            "sigma": self.sigma,
            "n_min": self.least_reports,
            "n_max": self.most_reports,
            "opens": self.opens,
            "closes": self.closes,
            "broadcast": self.broadcast.hex(),
            "leader": {"url": self.leader_url, "key": to_base64(self.leader_key)},
            "helper": {"key": to_base64(self.helper_key)},
            "prev": self.previous.hex(),
        }
        return canonical(made)

    @cached_property
    def round_id(self) -> bytes:
        """SHA-256 of the document: the name of the round."""
        return hashlib.sha256(self.document()).digest()

    @property
    def send_to(self) -> str:
        """The beginning of the URL that clients send to."""
        return self.leader_url

    @property
    def multiplier(self) -> float:
        """σ / √L: the noise of one operator over the longest report."""
        return self.sigma / math.sqrt(self.limit)


# --- Signatures -----------------------------------------------------------------------


def signed(manifest: Manifest, *, leader: bytes, helper: bytes) -> bytes:
    """The manifest as it is sent, with the signatures of both operators."""
    return with_signatures(manifest, leader=leader, helper=helper)


def read_manifest(sent: bytes, *, leader: bytes, helper: bytes) -> Manifest:
    """The manifest that both operators signed; refuses every other.

    `leader` and `helper` are their public signing keys. Nothing is parsed before both
    signatures hold.
    """
    return read_document(signed_by(sent, "manifest", leader=leader, helper=helper))


def read_document(document: bytes) -> Manifest:
    """The manifest of a document, whoever signed it; refuses another form."""
    return parsed(document, _manifest, what="manifest")


def _manifest(made: Mapping[str, Any]) -> Manifest:
    if made["v"] != VERSION:
        raise BadValue(f"version {made['v']!r} of a manifest; known: {VERSION}")
    return Manifest(
        run=bytes.fromhex(made["run"]),
        round=whole(made["round"]),
        leaf=text(made["leaf"]),
        numbers=whole(made["d"]),
        steps=whole(made["r"]),
        limit=whole(made["limit"]),
        sigma=whole(made["sigma"]),
        least_reports=whole(made["n_min"]),
        most_reports=whole(made["n_max"]),
        opens=whole(made["opens"]),
        closes=whole(made["closes"]),
        broadcast=bytes.fromhex(made["broadcast"]),
        leader_url=text(made["leader"]["url"]),
        leader_key=from_base64(made["leader"]["key"]),
        helper_key=from_base64(made["helper"]["key"]),
        previous=bytes.fromhex(made["prev"]),
    )


# --- What a client compares -----------------------------------------------------------


@dataclass(frozen=True)
class Agreed:
    """What a client knows of a round by itself, from what it agreed to."""

    run: bytes
    leaf: str
    numbers: int
    steps: int
    limit: int
    least_multiplier: float  # σ / √L that its remaining budget allows


def check_manifest(
    manifest: Manifest, agreed: Agreed, *, now: int, known: Mapping[int, bytes]
) -> None:
    """Refuse a round that is not as agreed; nothing private is read for it.

    `known` has the round_id of every round of the run that the client has seen, by its
    number. Two manifests for one round, or one that does not follow from a known one,
    are a fork: somebody may be showing this client rounds of its own.
    """
    for name in ("run", "leaf", "numbers", "steps", "limit"):
        found, own = getattr(manifest, name), getattr(agreed, name)
        if found != own:
            raise Refused(f"{name} of the manifest is {found!r}, agreed is {own!r}")
    if manifest.multiplier < agreed.least_multiplier * (1 - _ROUNDING):
        raise Refused(
            f"the noise of one operator is {manifest.multiplier:.6g} times the longest "
            f"report, agreed is {agreed.least_multiplier:.6g} at least"
        )
    if not manifest.opens <= now < manifest.closes:
        raise Refused(
            f"the window is from {manifest.opens} to {manifest.closes}, now is {now}"
        )
    check_chain(manifest, known)
