"""Uploads have one size, open in one epoch only, and nothing else is read as one."""

import pytest
from service.relay.places import a_manifest

from tacit.errors import BadMessage, BadValue
from tacit.service import hpke
from tacit.service.relay.uploads import (
    Upload,
    epoch_of,
    seal_info,
    upload,
)

PRIVATE = bytes([9]) * 32
MANIFEST = a_manifest(collector_key=hpke.public_key(PRIVATE))
MESSAGES = [bytes([n]) * 8 for n in range(3)]


def test_every_message_has_an_envelope_of_its_own():
    body = upload(MESSAGES, MANIFEST)
    assert len(body) == MANIFEST.fields.body_bytes == 4 + 32 + 2 + 3 * (8 + 48) + 2
    found = Upload.read(body, MANIFEST)
    info = seal_info(MANIFEST.round_id)
    opened = [hpke.opened(one, PRIVATE, info) for one in found.sealed]
    assert sorted(opened) == MESSAGES
    assert info == b"tacit/report/v1\0" + MANIFEST.round_id
    assert epoch_of(body) == MANIFEST.round_id


def test_two_uploads_of_one_client_have_nothing_in_common():
    """Neither bytes nor a digest tells that they are of one client."""
    one, two = (Upload.read(upload(MESSAGES, MANIFEST), MANIFEST) for _ in range(2))
    assert not {*one.sealed} & {*two.sealed}
    assert one.digest != two.digest


def test_messages_are_sealed_in_random_order():
    """False alarm 6^-39: forty uploads in the same order."""
    info, seen = seal_info(MANIFEST.round_id), set()
    for _ in range(40):
        sealed = Upload.read(upload(MESSAGES, MANIFEST), MANIFEST).sealed
        seen.add(tuple(hpke.opened(one, PRIVATE, info) for one in sealed))
    assert len(seen) > 1


def test_a_seal_opens_in_no_other_epoch():
    sealed = Upload.read(upload(MESSAGES, MANIFEST), MANIFEST).sealed[0]
    other = a_manifest(collector_key=MANIFEST.keys["collector"], least_reports=4)
    with pytest.raises(BadMessage, match="sealed otherwise"):
        hpke.opened(sealed, PRIVATE, seal_info(other.round_id))


def changed(place: int, value: bytes) -> bytes:
    body = upload(MESSAGES, MANIFEST)
    return body[:place] + value + body[place + len(value) :]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (upload(MESSAGES, MANIFEST)[:-1], "bytes"),
        (upload(MESSAGES, MANIFEST) + b"\0", "bytes"),
        (b"", "bytes"),
        (changed(0, b"FR2\0"), "begin"),
        (changed(4, bytes(32)), "another epoch"),
        (changed(36, b"\2\0"), "3 messages"),
        (changed(len(upload(MESSAGES, MANIFEST)) - 2, b"\1\0"), "no token"),
    ],
)
def test_nothing_else_is_an_upload(body, said):
    with pytest.raises(BadMessage, match=said):
        Upload.read(body, MANIFEST)


def test_a_message_twice_is_refused():
    body = upload(MESSAGES, MANIFEST)
    size = MANIFEST.fields.sealed_bytes
    twice = body[:38] + body[38 : 38 + size] * 2 + body[38 + 2 * size :]
    with pytest.raises(BadMessage, match="twice"):
        Upload.read(twice, MANIFEST)


@pytest.mark.parametrize("messages", [MESSAGES[:2], [*MESSAGES, bytes(8)], [b"1"] * 3])
def test_an_upload_has_what_the_manifest_says(messages):
    with pytest.raises(BadValue, match="this epoch has 3 of 8"):
        upload(messages, MANIFEST)
