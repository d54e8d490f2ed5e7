"""New signing keys of both operators, which both of the old ones sign.

    rotation    sig_leader 64, sig_helper 64, JSON
    rotations   of each its length in 4 bytes, the lowest first, and the rotation

The JSON has one form, like that of a manifest: sorted keys and no spaces. Rotations of
a run are numbered from 1. A client follows them one by one from the keys that it has,
so it may have been away for several, and one operator alone can replace no key.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tacit import check
from tacit.errors import BadMessage, BadValue, Refused
from tacit.service.signed_document import KEY_BYTES, SIGNATURE_BYTES

VERSION = 1
MOST_BYTES = 1 << 20
_MOST_NUMBER = 1 << 31
_LENGTH = 4
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


@dataclass(frozen=True)
class SigningKeys:
    """The public keys by which both operators sign, and after how many rotations."""

    leader: bytes
    helper: bytes
    number: int = 0

    def __post_init__(self) -> None:
        check.not_negative(remedy="", number=self.number)
        for name, key in (("leader", self.leader), ("helper", self.helper)):
            if len(key) != KEY_BYTES:
                raise BadValue(f"{name} has {len(key)} bytes; needed are {KEY_BYTES}")
        if self.leader == self.helper:
            raise BadValue("both operators have one signing key: they are one operator")

    def by_name(self, names: Sequence[str]) -> dict[str, bytes]:
        """The keys by the names that a channel has for its two operators."""
        return dict(zip(names, (self.leader, self.helper), strict=True))

    def document(self, run: bytes) -> bytes:
        """What the operators sign with their old keys to hand over to these."""
        made = {
            "v": VERSION,
            "run": run.hex(),
            "leader": b64encode(self.leader).decode(),
            "helper": b64encode(self.helper).decode(),
            "number": self.number,
        }
        return json.dumps(made, sort_keys=True, separators=(",", ":")).encode()

    def after(self, rotation: bytes, *, run: bytes) -> SigningKeys:
        """The keys that this rotation hands over to; refuses one that is not sound."""
        signed = rotation[2 * SIGNATURE_BYTES :]
        leader = rotation[:SIGNATURE_BYTES]
        helper = rotation[SIGNATURE_BYTES : 2 * SIGNATURE_BYTES]
        _check(leader, signed, self.leader, "leader")
        _check(helper, signed, self.helper, "helper")
        found = _read(signed, run=run)
        if found.number != self.number + 1:
            raise Refused(
                f"rotation {found.number} of the signing keys, and {self.number + 1} "
                "comes next"
            )
        return found


def sign_rotation(keys: SigningKeys, signing_key: bytes, *, run: bytes) -> bytes:
    """One operator's signature under new keys, by its old private key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    return key.sign(keys.document(run))


def rotation(keys: SigningKeys, *, run: bytes, leader: bytes, helper: bytes) -> bytes:
    """The rotation to these keys, with the signatures of both old ones."""
    return leader + helper + keys.document(run)


def write_rotations(rotations: Iterable[bytes]) -> bytes:
    """All rotations of a run, the first one first, as `GET /v1/rotation` serves them.

    >>> write_rotations([b"ab"]).hex()
    '020000006162'
    """
    return b"".join(len(one).to_bytes(_LENGTH, "little") + one for one in rotations)


def append_rotation(
    first: SigningKeys,
    rotations: bytes,
    *,
    run: bytes,
    make: Callable[[int], bytes],
) -> tuple[int, bytes]:
    """The number of one more rotation, and all of them with it.

    `make` gives the rotation of this number. Refuses what clients with the first keys
    would refuse.
    """
    number = followed(first, rotations, run=run).number + 1
    content = rotations + write_rotations([make(number)])
    return followed(first, content, run=run).number, content


def followed(keys: SigningKeys, rotations: bytes, *, run: bytes) -> SigningKeys:
    """The newest keys, from those that a client has; nothing older is looked at."""
    for number, one in enumerate(_parts(rotations), start=1):
        if number > keys.number:
            keys = keys.after(one, run=run)
    return keys


def _parts(rotations: bytes) -> list[bytes]:
    found, place = [], 0
    while place < len(rotations):
        length = int.from_bytes(rotations[place : place + _LENGTH], "little")
        place += _LENGTH + length
        if place > len(rotations) or not length:
            raise BadMessage("the rotations of signing keys are cut off")
        found.append(rotations[place - length : place])
    return found


def _check(signature: bytes, document: bytes, key: bytes, who: str) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, document)
    except InvalidSignature:
        raise BadMessage(f"the {who} has not signed this rotation of keys") from None


def _read(document: bytes, *, run: bytes) -> SigningKeys:
    try:
        made = json.loads(document)
        number = made["number"]
        if type(number) is not int or not 0 < number < _MOST_NUMBER:
            raise BadValue(f"number {number!r}")
        found = SigningKeys(
            b64decode(made["leader"], validate=True),
            b64decode(made["helper"], validate=True),
            number,
        )
    except (*_UNREADABLE, BadValue) as error:
        raise BadMessage(f"a rotation of keys cannot be read: {error}") from error
    if made.get("run") != run.hex():
        raise Refused("a rotation of the signing keys of another run")
    if found.document(run) != document:
        raise BadMessage("a rotation of keys is not in the one form that it may have")
    return found
