"""One round, as all operators of a channel sign it.

    signatures  64 bytes of each operator, in the order of the channel's spelling
    JSON        sorted keys, no spaces, texts, whole numbers and flags

Equal manifests have equal bytes. The SHA-256 of the JSON is the `round_id`, to which
every seal is bound: run, round, broadcast, keys and minimum cannot be exchanged under a
report. Signatures are Ed25519, by keys that clients know beforehand.

What differs between channels are the `Fields`: the numbers of a sum over two servers,
the messages of an upload to a relay. A client compares all of it with what it agreed to
(`Manifest.check`) before it touches its data, so a refusal says nothing about them.
"""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

from tacit import check
from tacit.errors import BadValue, Refused
from tacit.service.signed_document import (
    KEY_BYTES,
    canonical,
    check_chain,
    check_sizes,
    flag,
    from_base64,
    parsed,
    signed_by,
    text,
    to_base64,
    whole,
    with_signatures,
)

VERSION = 1
_RUN_BYTES, _DIGEST_BYTES = 16, 32
_READERS = {"int": whole, "bool": flag, "str": text}


@dataclass(frozen=True)
class Signatory:
    """An operator that signs the manifests of a channel."""

    name: str
    takes_reports: bool = False  # clients send to it
    has_key: bool = True  # an X25519 key for each round, to which clients seal


@dataclass(frozen=True)
class Spelling:
    """The names by which the manifests of one channel are written."""

    signatories: tuple[Signatory, ...]  # in the order of their signatures
    fields: Mapping[str, str]  # by attribute
    number: str = "round"
    task: str = ""  # tells a channel's manifests from those of others

    @property
    def names(self) -> tuple[str, ...]:
        """The operators in the order of their signatures."""
        return tuple(one.name for one in self.signatories)


@dataclass(frozen=True)
class Fields(abc.ABC):
    """What a manifest says of the reports of one round; whole numbers, texts, flags."""

    spelling: ClassVar[Spelling]

    @property
    @abc.abstractmethod
    def body_bytes(self) -> int:
        """The one length that the sealed reports of all clients have."""

    @abc.abstractmethod
    def check(self, agreed: Self) -> None:
        """Refuse what differs from what a client agreed to."""

    def check_equal(self, agreed: Self, *names: str) -> None:
        """Refuse another value of one of these fields."""
        for name in names:
            refuse_other(name, getattr(self, name), getattr(agreed, name))


F = TypeVar("F", bound=Fields)


@dataclass(frozen=True)
class Manifest(Generic[F]):
    """One round: its reports, its minimum, its window, and where to send reports."""

    run: bytes  # the digest of the agreement
    round: int
    fields: F
    least_reports: int  # below which nothing is used
    most_reports: int
    opens: int  # seconds since 1970
    closes: int
    broadcast: bytes  # SHA-256 of what clients are sent
    url: str  # of the operator that takes reports
    keys: Mapping[str, bytes]  # X25519, by operator, for this round
    previous: bytes = b""  # round_id of the round before; empty in the first

    def __post_init__(self) -> None:
        check.not_negative(remedy="", round=self.round)
        check.count(
            remedy="", least_reports=self.least_reports, most_reports=self.most_reports
        )
        expected = [one.name for one in self._spelling.signatories if one.has_key]
        if sorted(self.keys) != sorted(expected):
            raise BadValue(f"keys of {sorted(self.keys)}; needed are {expected}")
        sizes = {
            "run": (self.run, _RUN_BYTES),
            "broadcast": (self.broadcast, _DIGEST_BYTES),
            **{f"key of {who}": (key, KEY_BYTES) for who, key in self.keys.items()},
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
        if len({*self.keys.values()}) < len(self.keys):
            raise BadValue("both operators have one key, and so open both halves")

    @property
    def _spelling(self) -> Spelling:
        return self.fields.spelling

    def document(self) -> bytes:
        """The JSON that is signed; equal manifests have equal bytes."""
        spelling = self._spelling
        table: dict[str, Any] = {
            "v": VERSION,
            "run": self.run.hex(),
            spelling.number: self.round,
            "n_min": self.least_reports,
            "n_max": self.most_reports,
            "opens": self.opens,
            "closes": self.closes,
            "broadcast": self.broadcast.hex(),
            "prev": self.previous.hex(),
        }
        if spelling.task:
            table["task"] = spelling.task
        for name, spelled in spelling.fields.items():
            table[spelled] = getattr(self.fields, name)
        for role in spelling.signatories:
            table[role.name] = {"url": self.url} if role.takes_reports else {}
            if role.has_key:
                table[role.name]["key"] = to_base64(self.keys[role.name])
        return canonical(table)

    @cached_property
    def round_id(self) -> bytes:
        """SHA-256 of the document: the name of the round."""
        return hashlib.sha256(self.document()).digest()

    def check(
        self,
        *,
        run: bytes,
        least_reports: int,
        agreed: F,
        now: int,
        known: Mapping[int, bytes],
    ) -> None:
        """Refuse a round that is not as agreed; nothing private is read for it.

        `known` has the round_id of every round of the run that the client has seen, by
        its number. Two manifests for one round, or one that does not follow from a
        known one, are a fork: an operator may be showing this client other rounds.
        """
        refuse_other("run", self.run, run)
        if self.least_reports < least_reports:
            raise Refused(
                f"the round would be used with {self.least_reports:,} reports, agreed "
                f"are {least_reports:,} at least"
            )
        self.fields.check(agreed)
        if not self.opens <= now < self.closes:
            raise Refused(
                f"the window is from {self.opens} to {self.closes}, now is {now}"
            )
        check_chain(self, known)


AnyManifest = Manifest[Any]


def refuse_other(name: str, value: object, agreed: object) -> None:
    """Refuse a value of a manifest that is not the agreed one."""
    if value != agreed:
        raise Refused(f"{name} of the manifest is {value!r}, agreed is {agreed!r}")


# --- Signatures -----------------------------------------------------------------------


def attach_signatures(manifest: AnyManifest, signatures: Mapping[str, bytes]) -> bytes:
    """The manifest as it is sent, with the signatures of all operators."""
    names = manifest.fields.spelling.names
    return with_signatures(manifest, **{name: signatures[name] for name in names})


def read_manifest(sent: bytes, kind: type[F], keys: Mapping[str, bytes]) -> Manifest[F]:
    """The manifest that all operators have signed; refuses every other.

    `keys` are their public signing keys by name. Nothing is parsed before all
    signatures hold.
    """
    own = {name: keys[name] for name in kind.spelling.names}
    return read_document(signed_by(sent, "manifest", **own), kind)


def read_document(document: bytes, kind: type[F]) -> Manifest[F]:
    """The manifest of a document, whoever signed it; refuses another form."""
    return parsed(document, lambda table: _manifest(table, kind), what="manifest")


def _manifest(table: Mapping[str, Any], kind: type[F]) -> Manifest[F]:
    spelling = kind.spelling
    if table["v"] != VERSION or table.get("task", "") != spelling.task:
        raise BadValue(
            f"version {table['v']!r} of a manifest for {table.get('task')!r}; known: "
            f"{VERSION} for '{spelling.task}'"
        )
    [receiver] = (one.name for one in spelling.signatories if one.takes_reports)
    return Manifest(
        run=bytes.fromhex(table["run"]),
        round=whole(table[spelling.number]),
        fields=kind(
            **{
                one.name: _READERS[str(one.type)](table[spelling.fields[one.name]])
                for one in fields(kind)
            }
        ),
        least_reports=whole(table["n_min"]),
        most_reports=whole(table["n_max"]),
        opens=whole(table["opens"]),
        closes=whole(table["closes"]),
        broadcast=bytes.fromhex(table["broadcast"]),
        url=text(table[receiver]["url"]),
        keys={
            one.name: from_base64(table[one.name]["key"])
            for one in spelling.signatories
            if one.has_key
        },
        previous=bytes.fromhex(table["prev"]),
    )
