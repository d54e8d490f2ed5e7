"""Documents that two operators sign: one form of JSON, and two signatures before it.

    first signature 64, second signature 64, JSON

The JSON has sorted keys, no spaces, and strings and whole numbers alone, so equal
documents have equal bytes; its SHA-256 names it. Signatures are Ed25519, by keys that
whoever reads it knows beforehand.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from tacit.errors import BadMessage, BadValue, Refused
from tacit.text import nth_round

MOST_BYTES = 64 * 1024
SIGNATURE_BYTES, KEY_BYTES = 64, 32
_MOST_WHOLE = 2**53  # what every reader of JSON has exactly
_UNREADABLE = (
    *(LookupError, TypeError, ValueError, AttributeError),
    *(RecursionError, BadValue),
)


class Document(Protocol):
    """Something that has one form in bytes."""

    def document(self) -> bytes:
        """The JSON that is signed; equal documents have equal bytes."""
        ...


class Chained(Document, Protocol):
    """The document of one round, which names the document of the round before."""

    @property
    def round(self) -> int: ...  # noqa: D102
    @property
    def round_id(self) -> bytes: ...  # noqa: D102
    @property
    def previous(self) -> bytes: ...  # noqa: D102


Read = TypeVar("Read", bound=Document)


# --- Signatures -----------------------------------------------------------------------


def signature(document: Document, signing_key: bytes) -> bytes:
    """One operator's signature, by its private Ed25519 key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    return key.sign(document.document())


def signing_public_key(signing_key: bytes) -> bytes:
    """The public key of an operator, which clients know beforehand."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    return key.public_key().public_bytes_raw()


def with_signatures(document: Document, **signatures: bytes) -> bytes:
    """The document as it is sent, with the signatures of both operators, by role."""
    for name, one in signatures.items():
        if len(one) != SIGNATURE_BYTES:
            raise BadValue(
                f"the {name}'s signature has {len(one)} bytes; needed are "
                f"{SIGNATURE_BYTES}"
            )
    return b"".join(signatures.values()) + document.document()


def signed_by(sent: bytes, what: str, **keys: bytes) -> bytes:
    """The JSON that both operators signed, by role; refuses every other.

    Nothing is parsed before both signatures hold.
    """
    if len({*keys.values()}) < len(keys):
        raise BadValue("both operators have one signing key: they are one operator")
    if len(sent) > MOST_BYTES:
        raise BadMessage(f"a {what} of {len(sent):,} bytes; at most {MOST_BYTES:,}")
    document = sent[SIGNATURE_BYTES * len(keys) :]
    for place, (who, key) in enumerate(keys.items()):
        start = SIGNATURE_BYTES * place
        one = sent[start : start + SIGNATURE_BYTES]
        _check_signature(one, document, key, f"the {who} has not signed this {what}")
    return document


def _check_signature(signature: bytes, document: bytes, key: bytes, said: str) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, document)
    except InvalidSignature:
        raise BadMessage(said) from None


# --- One form -------------------------------------------------------------------------


def parsed(
    document: bytes, read: Callable[[Mapping[str, Any]], Read], *, what: str
) -> Read:
    """What `read` makes of a document, whoever signed it; refuses another form."""
    try:
        found = read(json.loads(document))
    except _UNREADABLE as error:
        raise BadMessage(f"a {what} cannot be read: {error}") from error
    # One document has one form: no other key, order, space or way to write a number.
    if found.document() != document:
        raise BadMessage(f"a {what} is not in the one form that it may have")
    return found


def canonical(made: Mapping[str, Any]) -> bytes:
    """The one form of a table as JSON."""
    return json.dumps(made, sort_keys=True, separators=(",", ":")).encode()


def whole(value: object) -> int:
    """A whole number of a document; refuses everything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadValue(f"{value!r} must be a whole number")
    if not 0 <= value < _MOST_WHOLE:
        raise BadValue(f"{value!r} must be from 0 to 2**53")
    return value


def flag(value: object) -> bool:
    """A flag of a document; refuses everything else."""
    if not isinstance(value, bool):
        raise BadValue(f"{value!r} must be true or false")
    return value


def text(value: object) -> str:
    """A text of a document; refuses everything else."""
    if not isinstance(value, str):
        raise BadValue(f"{value!r} must be a text")
    return value


def to_base64(value: bytes) -> str:
    """The text of some bytes in a document."""
    return b64encode(value).decode()


def from_base64(value: str) -> bytes:
    """The bytes of a text in a document."""
    try:
        return b64decode(value, validate=True)
    except NotBase64:
        raise BadValue(f"{value!r} is not base64") from None


def check_sizes(sizes: Mapping[str, tuple[bytes, int]]) -> None:
    """Refuse values of other lengths than these."""
    for name, (value, n) in sizes.items():
        if len(value) != n:
            raise BadValue(f"{name} has {len(value)} bytes; needed are {n}")


# --- Chains ---------------------------------------------------------------------------


def check_chain(document: Chained, known: Mapping[int, bytes]) -> None:
    """Refuse a second document for a round, or one that follows none that is known.

    `known` has the round_id of every round of the run that a client has seen, by its
    number. Anything else is a fork: somebody may be showing this client rounds of its
    own.
    """
    number = document.round
    seen = known.get(number)
    if seen is not None and seen != document.round_id:
        raise Refused(f"{nth_round(number)} has two manifests: a fork")
    earlier = [one for n, one in known.items() if n < number]
    if number == 0 and document.previous:
        raise Refused("the first round of a run follows another one: a fork")
    if number and not document.previous:
        raise Refused(f"{nth_round(number)} follows no other: a fork")
    if earlier and document.previous not in earlier:
        raise Refused(f"{nth_round(number)} follows a round that is not known")
