"""Manifests: one form, two signatures, and what a client refuses before it looks."""

import hashlib
import json
import math
from base64 import b64decode
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadMessage, BadValue, Refused
from tacit.mechanisms.gaussian import GaussianSum
from tacit.service.federation.manifest import (
    MOST_BYTES,
    Agreed,
    Manifest,
    check_manifest,
    read_manifest,
    signature,
    signed,
    signing_public_key,
)
from tacit.service.federation.sealing import public_key
from tacit.transport.messages import Layout, Slot
from tacit.transport.shared_sum import SharedSum

LEADER, HELPER = bytes([3]) * 32, bytes([4]) * 32  # private signing keys
KEYS = {"leader": signing_public_key(LEADER), "helper": signing_public_key(HELPER)}
COUNTS = Layout({"counts": Slot("float64", (3533,))})
SUM = SharedSum.of(GaussianSum(1.0, 2.92), COUNTS, most_reports=6000)
FIRST = Manifest(
    run=bytes(range(16)),
    round=0,
    leaf=SUM.leaf,
    numbers=SUM.size,
    steps=int(SUM.steps),
    limit=SUM.limit,
    sigma=SUM.sigma,
    least_reports=1000,
    most_reports=SUM.most_reports,
    opens=1_000,
    closes=2_000,
    broadcast=bytes(32),
    leader_url="https://leader.example",
    leader_key=public_key(bytes([1]) * 32),
    helper_key=public_key(bytes([2]) * 32),
)
SECOND = replace(FIRST, round=1, opens=3_000, closes=4_000, previous=FIRST.round_id)
AGREED = Agreed(
    FIRST.run, SUM.leaf, SUM.size, int(SUM.steps), SUM.limit, 2.92 / math.sqrt(2)
)


def sent(manifest=FIRST, *, leader=LEADER, helper=HELPER) -> bytes:
    return signed(
        manifest,
        leader=signature(manifest, leader),
        helper=signature(manifest, helper),
    )


def resigned(document: bytes) -> bytes:
    """Other bytes that both operators have signed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    keys = (Ed25519PrivateKey.from_private_bytes(one) for one in (LEADER, HELPER))
    return b"".join(key.sign(document) for key in keys) + document


def changed(**values) -> bytes:
    document = json.loads(FIRST.document()) | values
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


# --- Form -----------------------------------------------------------------------------


def test_the_document_is_sorted_json_of_whole_numbers_and_texts():
    made = json.loads(FIRST.document())
    assert [*made] == sorted(made)
    assert b" " not in FIRST.document()
    assert (made["d"], made["r"], made["limit"]) == (3533, 65536, 4295033744)
    assert b64decode(made["leader"]["key"]) == FIRST.leader_key
    assert made["prev"] == ""
    assert FIRST.round_id == hashlib.sha256(FIRST.document()).digest()


def test_what_is_read_is_what_was_signed():
    for manifest in (FIRST, SECOND):
        assert read_manifest(sent(manifest), **KEYS) == manifest


@pytest.mark.parametrize("name", [field.name for field in fields(Manifest)])
def test_every_field_has_a_part_in_the_name_of_a_round(name):
    value = getattr(SECOND, name)
    if isinstance(value, bytes):
        other = bytes([value[0] ^ 1]) + value[1:]
    else:
        other = value + 1 if isinstance(value, int) else f"{value}!"
    assert replace(SECOND, **{name: other}).round_id != SECOND.round_id


@pytest.mark.parametrize(
    "document",
    [
        changed(more=1),
        changed(sigma=float(FIRST.sigma)),
        changed(sigma=str(FIRST.sigma)),
        changed(v=2),
        changed(round=True),
        changed(round=-1),
        changed(limit=2**60),
        changed(run=FIRST.run.hex().upper()),
        changed(prev="00"),
        changed(leader={"url": "x"}),
        changed(leader=[]),
        changed(helper={"key": "?"}),
        FIRST.document().replace(b",", b", "),
        FIRST.document().replace(b'"d":', b'"d":1,"d":'),
        b"[]",
        b"",
        b"[" * 50_000,
        b"\xff\xfe",
    ],
    ids=range(18),
)
def test_signed_or_not_a_document_has_one_form(document):
    with pytest.raises(BadMessage, match="manifest"):
        read_manifest(resigned(document), **KEYS)


def test_a_manifest_has_a_largest_size():
    long = replace(FIRST, leader_url="x" * MOST_BYTES)
    with pytest.raises(BadMessage, match="at most 65,536"):
        read_manifest(sent(long), **KEYS)


# --- Signatures -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "who"),
    [({"leader": HELPER}, "leader"), ({"helper": LEADER}, "helper")],
    ids=["the helper twice", "the leader twice"],
)
def test_both_operators_must_have_signed(keys, who):
    with pytest.raises(BadMessage, match=f"the {who} has not signed"):
        read_manifest(sent(**keys), **KEYS)


@given(st.integers(0, 8 * len(sent()) - 1))
def test_no_bit_can_be_changed(place):
    harmed = bytearray(sent())
    harmed[place // 8] ^= 1 << place % 8
    with pytest.raises(BadMessage, match="has not signed"):
        read_manifest(bytes(harmed), **KEYS)


@given(st.binary(max_size=200))
def test_anything_else_is_refused(noise):
    with pytest.raises(BadMessage):
        read_manifest(noise, **KEYS)


def test_one_operator_is_not_two():
    with pytest.raises(BadValue, match="they are one operator"):
        read_manifest(sent(), leader=KEYS["leader"], helper=KEYS["leader"])
    with pytest.raises(BadValue, match="open both halves"):
        replace(FIRST, helper_key=FIRST.leader_key)


def test_a_signature_has_64_bytes():
    with pytest.raises(BadValue, match="leader's signature has 3 bytes"):
        signed(FIRST, leader=b"abc", helper=bytes(64))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": b"short"}, "run has 5 bytes"),
        ({"leader_key": b""}, "leader_key has 0 bytes"),
        ({"previous": b"x"}, "previous has 1 bytes"),
        ({"sigma": 0}, "sigma=0 must be >= 1"),
        ({"closes": 1_000}, "must be before closes=1000"),
        ({"least_reports": 6_001}, "most_reports=6000 must not be below"),
    ],
)
def test_a_round_that_cannot_be_is_refused(changes, said):
    with pytest.raises(BadValue, match=said):
        replace(FIRST, **changes)


# --- What a client refuses ------------------------------------------------------------


def test_a_client_takes_part_in_what_it_agreed_to():
    check_manifest(FIRST, AGREED, now=1_000, known={})
    check_manifest(FIRST, AGREED, now=1_999, known={0: FIRST.round_id})
    check_manifest(SECOND, AGREED, now=3_500, known={0: FIRST.round_id})
    check_manifest(SECOND, AGREED, now=3_500, known={})  # it joins late


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": bytes(16)}, "run of the manifest"),
        ({"leaf": "relations"}, "leaf of the manifest is 'relations'"),
        ({"numbers": 3534}, "numbers of the manifest is 3534"),
        ({"steps": 32768}, "steps of the manifest"),
        ({"limit": FIRST.limit + 1}, "limit of the manifest"),
        ({"sigma": FIRST.sigma - 10}, "the noise of one operator"),
        ({"opens": 1_501}, "the window is from 1501"),
        ({"closes": 1_500}, "now is 1500"),
        ({"previous": bytes(32)}, "follows another one: a fork"),
    ],
)
def test_what_was_not_agreed_is_refused(changes, reason):
    with pytest.raises(Refused, match=reason):
        check_manifest(replace(FIRST, **changes), AGREED, now=1_500, known={})


@pytest.mark.parametrize(
    ("manifest", "known", "reason"),
    [
        (FIRST, {0: bytes(32)}, "round 1 has two manifests"),
        (SECOND, {0: bytes(32)}, "follows a round that is not known"),
        (replace(SECOND, previous=b""), {}, "round 2 follows no other"),
    ],
)
def test_a_fork_is_refused(manifest, known, reason):
    with pytest.raises(Refused, match=reason):
        check_manifest(manifest, AGREED, now=manifest.opens, known=known)


def test_more_noise_than_agreed_is_welcome():
    loud = replace(FIRST, sigma=2 * FIRST.sigma)
    check_manifest(loud, AGREED, now=1_500, known={})
    assert loud.multiplier == pytest.approx(2 * FIRST.multiplier)
