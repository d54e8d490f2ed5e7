"""Rotations: both old keys sign, one after the other, and nothing else is followed."""

import json

import pytest

from tacit.errors import BadMessage, BadValue, Refused
from tacit.service.federation.rotation import (
    SigningKeys,
    followed,
    rotation,
    sign_rotation,
    write_rotations,
)
from tacit.service.signed_document import signing_public_key

RUN = bytes(range(16))
PRIVATE = [(bytes([2 * n + 1]) * 32, bytes([2 * n + 2]) * 32) for n in range(4)]


def keys(n: int, *, number: int | None = None) -> SigningKeys:
    leader, helper = map(signing_public_key, PRIVATE[n])
    return SigningKeys(leader, helper, n if number is None else number)


def turned(n: int, *, by=None, run=RUN, number: int | None = None) -> bytes:
    """The rotation to the keys of this number, signed by those before."""
    to, signers = keys(n, number=number), by or PRIVATE[n - 1]
    leader, helper = (sign_rotation(to, one, run=run) for one in signers)
    return rotation(to, run=run, leader=leader, helper=helper)


def test_keys_are_followed_one_by_one_from_wherever_a_client_stands():
    body = write_rotations(turned(n) for n in (1, 2, 3))
    for start in range(4):
        assert followed(keys(start), body, run=RUN) == keys(3)
    assert followed(keys(1), b"", run=RUN) == keys(1)


def test_one_old_key_alone_replaces_nothing():
    stolen, other = PRIVATE[0][0], bytes([9]) * 32
    for by, who in (((stolen, other), "helper"), ((other, PRIVATE[0][1]), "leader")):
        with pytest.raises(BadMessage, match=f"the {who} has not signed"):
            keys(0).after(turned(1, by=by), run=RUN)
    with pytest.raises(BadMessage, match="the helper has not signed"):
        keys(0).after(turned(1, by=(stolen, stolen)), run=RUN)


@pytest.mark.parametrize("number", [2, 3])
def test_numbers_follow_each_other(number):
    with pytest.raises(Refused, match="1 comes next"):
        keys(0).after(turned(1, number=number), run=RUN)


def test_a_rotation_of_another_run_is_refused():
    with pytest.raises(Refused, match="another run"):
        keys(0).after(turned(1, run=bytes(16)), run=RUN)


def test_a_rotation_has_one_form():
    document = json.dumps(json.loads(keys(1).document(RUN))).encode()  # with spaces

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signatures = [
        Ed25519PrivateKey.from_private_bytes(one).sign(document) for one in PRIVATE[0]
    ]
    with pytest.raises(BadMessage, match="one form"):
        keys(0).after(b"".join(signatures) + document, run=RUN)


@pytest.mark.parametrize("n", [1, 4, 50, -1])
def test_what_is_cut_off_is_refused(n):
    with pytest.raises(BadMessage):
        followed(keys(0), write_rotations([turned(1)])[:n], run=RUN)


def test_operators_keep_two_keys():
    with pytest.raises(BadValue, match="one operator"):
        SigningKeys(bytes(32), bytes(32))
    with pytest.raises(BadValue, match="needed are 32"):
        SigningKeys(bytes(31), bytes(32))
