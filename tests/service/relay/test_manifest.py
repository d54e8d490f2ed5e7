"""Manifests of epochs: both sign, one form, and what a client holds against them."""

import dataclasses

import pytest
from service.relay.places import a_manifest

from tacit.errors import BadMessage, BadValue, Refused
from tacit.service.relay.manifest import (
    Agreed,
    check_manifest,
    read_document,
    read_manifest,
    signed,
)
from tacit.service.signed_document import signature, signing_public_key

KEYS = [bytes([n]) * 32 for n in (1, 2)]
RELAY, COLLECTOR = (signing_public_key(key) for key in KEYS)
MADE = a_manifest()
AGREED = Agreed(MADE.run, 8, 3, 5)


def sent(manifest=MADE, keys=KEYS):
    one, two = (signature(manifest, key) for key in keys)
    return signed(manifest, relay=one, collector=two)


def test_a_manifest_comes_back_as_it_was_signed():
    assert read_manifest(sent(), relay=RELAY, collector=COLLECTOR) == MADE
    assert read_document(MADE.document()) == MADE


@pytest.mark.parametrize(
    "broken",
    [
        sent(keys=[KEYS[0], KEYS[0]]),
        sent(keys=[KEYS[1], KEYS[0]]),
        sent()[:-1],
        bytes(128) + MADE.document(),
        sent()[:128] + a_manifest(least_uploads=2).document(),
    ],
)
def test_without_both_signatures_nothing_is_read(broken):
    with pytest.raises(BadMessage, match="has not signed"):
        read_manifest(broken, relay=RELAY, collector=COLLECTOR)


def test_one_operator_is_not_two():
    with pytest.raises(BadValue, match="one operator"):
        read_manifest(sent(), relay=RELAY, collector=RELAY)


@pytest.mark.parametrize(
    "document",
    [
        b"{}",
        MADE.document().replace(b'"task":"reports"', b'"task":"sum"'),
        MADE.document().replace(b'"v":1', b'"v":2'),
        MADE.document().replace(b'"n_min":5', b'"n_min":5.0'),
        MADE.document().replace(b'"n_min":5', b'"n_min":0'),
        MADE.document().replace(b'"n_min":5', b'"n_min": 5'),
        MADE.document().replace(b'"tickets":false', b'"tickets":0'),
        MADE.document()[:-1] + b',"x":1}',
    ],
)
def test_a_manifest_has_one_form(document):
    with pytest.raises(BadMessage):
        read_document(document)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"least_uploads": 4}, "agreed are 5 at least"),
        ({"report_bytes": 16}, "report_bytes"),
        ({"reports_per_user": 4}, "reports_per_user"),
        ({"run": bytes(16)}, "run"),
        ({"opens": MADE.opens - 60, "closes": MADE.opens + 11}, "window"),
        ({"round": 1}, "follows no other"),
        ({"previous": bytes(32)}, "follows another"),
    ],
)
def test_a_client_refuses_what_it_did_not_agree_to(changes, said):
    made = dataclasses.replace(MADE, **changes)
    with pytest.raises(Refused, match=said):
        check_manifest(made, AGREED, now=MADE.opens + 30, known={})


def test_a_client_accepts_a_larger_minimum():
    made = a_manifest(least_uploads=50)
    check_manifest(made, AGREED, now=made.opens + 1, known={})


def test_a_client_that_agreed_to_tickets_refuses_a_relay_without_them():
    agreed = dataclasses.replace(AGREED, needs_tickets=True)
    with pytest.raises(Refused, match="one ticket per user"):
        check_manifest(MADE, agreed, now=MADE.opens + 1, known={})
    made = a_manifest(needs_tickets=True)
    for one in (agreed, AGREED):
        check_manifest(made, one, now=made.opens + 1, known={})


def test_two_manifests_for_an_epoch_are_a_fork():
    with pytest.raises(Refused, match="a fork"):
        check_manifest(MADE, AGREED, now=MADE.opens + 1, known={0: bytes(32)})


@pytest.mark.parametrize(
    "changes",
    [
        {"run": bytes(15)},
        {"collector_key": bytes(31)},
        {"closes": 1, "opens": 2},
        {"reports_per_user": 2**16},
        {"least_uploads": 0},
        {"least_uploads": 101},  # and 100 at the most
    ],
)
def test_what_is_no_epoch_is_refused(changes):
    with pytest.raises(BadValue):
        a_manifest(**changes)
