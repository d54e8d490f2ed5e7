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
import json
import math
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit import check
from tacit.errors import BadMessage, BadValue, Refused

VERSION = 1
MOST_BYTES = 64 * 1024
SIGNATURE_BYTES, KEY_BYTES = 64, 32
_RUN_BYTES, _DIGEST_BYTES = 16, 32
_MOST_WHOLE = 2**53  # what every reader of JSON has exactly
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
        for name, (value, n) in sizes.items():
            if len(value) != n:
                raise BadValue(f"{name} has {len(value)} bytes; needed are {n}")
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
            "leader": {"url": self.leader_url, "key": _base64(self.leader_key)},
            "helper": {"key": _base64(self.helper_key)},
            "prev": self.previous.hex(),
        }
        return _canonical(made)

    @property
    def round_id(self) -> bytes:
        """SHA-256 of the document: the name of the round."""
        return hashlib.sha256(self.document()).digest()

    @property
    def multiplier(self) -> float:
        """σ / √L: the noise of one operator over the longest report."""
        return self.sigma / math.sqrt(self.limit)


# --- Signatures -----------------------------------------------------------------------


def signature(manifest: Manifest, signing_key: bytes) -> bytes:
    """One operator's signature, by its private Ed25519 key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    return key.sign(manifest.document())


def signing_public_key(signing_key: bytes) -> bytes:
    """The public key of an operator, which clients know beforehand."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    return key.public_key().public_bytes_raw()


def signed(manifest: Manifest, *, leader: bytes, helper: bytes) -> bytes:
    """The manifest as it is sent, with the signatures of both operators."""
    for name, one in (("leader", leader), ("helper", helper)):
        if len(one) != SIGNATURE_BYTES:
            raise BadValue(
                f"the {name}'s signature has {len(one)} bytes; needed are "
                f"{SIGNATURE_BYTES}"
            )
    return leader + helper + manifest.document()


def read_manifest(sent: bytes, *, leader: bytes, helper: bytes) -> Manifest:
    """The manifest that both operators signed; refuses every other.

    `leader` and `helper` are their public signing keys. Nothing is parsed before both
    signatures hold.
    """
    if leader == helper:
        raise BadValue("both operators have one signing key: they are one operator")
    if len(sent) > MOST_BYTES:
        raise BadMessage(f"a manifest of {len(sent):,} bytes; at most {MOST_BYTES:,}")
    document = sent[2 * SIGNATURE_BYTES :]
    _check_signature(sent[:SIGNATURE_BYTES], document, leader, "leader")
    second = sent[SIGNATURE_BYTES : 2 * SIGNATURE_BYTES]
    _check_signature(second, document, helper, "helper")
    return _parsed(document)


def _check_signature(signature: bytes, document: bytes, key: bytes, who: str) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, document)
    except InvalidSignature:
        raise BadMessage(f"the {who} has not signed this manifest") from None


def _parsed(document: bytes) -> Manifest:
    try:
        made = json.loads(document)
        found = _manifest(made)
    except (
        *(LookupError, TypeError, ValueError, AttributeError),
        *(RecursionError, BadValue),
    ) as error:
        raise BadMessage(f"a manifest cannot be read: {error}") from error
    # One manifest has one form: no other key, order, space or way to write a number.
    if found.document() != document:
        raise BadMessage("a manifest is not in the one form that it may have")
    return found


def _manifest(made: Mapping[str, Any]) -> Manifest:
    if made["v"] != VERSION:
        raise BadValue(f"version {made['v']!r} of a manifest; known: {VERSION}")
    return Manifest(
        run=bytes.fromhex(made["run"]),
        round=_whole(made["round"]),
        leaf=_text(made["leaf"]),
        numbers=_whole(made["d"]),
        steps=_whole(made["r"]),
        limit=_whole(made["limit"]),
        sigma=_whole(made["sigma"]),
        least_reports=_whole(made["n_min"]),
        most_reports=_whole(made["n_max"]),
        opens=_whole(made["opens"]),
        closes=_whole(made["closes"]),
        broadcast=bytes.fromhex(made["broadcast"]),
        leader_url=_text(made["leader"]["url"]),
        leader_key=_from_base64(made["leader"]["key"]),
        helper_key=_from_base64(made["helper"]["key"]),
        previous=bytes.fromhex(made["prev"]),
    )


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadValue(f"{value!r} must be a whole number")
    if not 0 <= value < _MOST_WHOLE:
        raise BadValue(f"{value!r} must be from 0 to 2**53")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BadValue(f"{value!r} must be a text")
    return value


def _canonical(made: Mapping[str, Any]) -> bytes:
    return json.dumps(made, sort_keys=True, separators=(",", ":")).encode()


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _from_base64(value: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except NotBase64:
        raise BadValue(f"{value!r} is not base64") from None


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
    _check_chain(manifest, known)


def _check_chain(manifest: Manifest, known: Mapping[int, bytes]) -> None:
    seen = known.get(manifest.round)
    if seen is not None and seen != manifest.round_id:
        raise Refused(f"round {manifest.round} has two manifests: a fork")
    earlier = [one for number, one in known.items() if number < manifest.round]
    if manifest.round == 0 and manifest.previous:
        raise Refused("the first round of a run follows another one: a fork")
    if manifest.round and not manifest.previous:
        raise Refused(f"round {manifest.round} follows no other: a fork")
    if earlier and manifest.previous not in earlier:
        raise Refused(f"round {manifest.round} follows a round that is not known")
