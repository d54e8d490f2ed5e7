"""Manifests of every channel: one form, all signatures, and what a client refuses.

Bytes and verdicts are those that were pinned with the code that had one manifest per
channel.

PYTHONPATH=tests python tests/service/test_manifest.py      writes the digests anew
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service.manifests import CHANNELS, canonical, changed, compared, damaged, tables

from tacit.errors import BadMessage, BadValue, Refused
from tacit.service.federation.sealing import SumFields
from tacit.service.manifest import (
    AnyManifest,
    Fields,
    Manifest,
    attach_signatures,
    read_document,
    read_manifest,
)
from tacit.service.relay.uploads import MessageFields
from tacit.service.signed_document import MOST_BYTES, signature, signing_public_key

PINNED = Path(__file__).parents[1] / "vectors" / "manifests.json"
SOUND, DAMAGED, COMPARED = 4_000, 20_000, 4_000  # of each channel
KINDS: Mapping[str, type[Fields]] = {
    "two_servers": SumFields,
    "shuffle": MessageFields,
}
SIGNING = (bytes([3]) * 32, bytes([4]) * 32)


# --- Pinned bytes and verdicts --------------------------------------------------------


def read(channel: str, document: bytes) -> AnyManifest:
    return read_document(document, KINDS[channel])


def sound_pin(channel: str) -> dict[str, Any]:
    """Digests of the documents and round ids of sound manifests."""
    documents, names = sha256(), sha256()
    for table in tables(channel, 1, SOUND):
        manifest = read(channel, canonical(table))
        documents.update(manifest.document())
        names.update(manifest.round_id)
    return {"documents": documents.hexdigest(), "names": names.hexdigest()}


def verdicts(channel: str) -> Iterator[bytes]:
    """The name of each damaged document that is read, or that it is refused."""
    for document in damaged(channel, 2, DAMAGED):
        try:
            yield read(channel, document).round_id
        except BadMessage:
            yield b"refused"


def verdict_pin(channel: str) -> dict[str, Any]:
    found = [*verdicts(channel)]
    digest = sha256(b"\0".join(found)).hexdigest()
    return {"verdicts": digest, "read": sum(one != b"refused" for one in found)}


def is_answered(channel: str, agreed, shown, now: int, known) -> bool:
    """Whether a client takes part in the round of a manifest."""
    own, other = (read(channel, canonical(one)) for one in (agreed, shown))
    try:
        look(other, own, now=now, known=known)
    except Refused:
        return False
    return True


def comparison_pin(channel: str) -> dict[str, Any]:
    found = [is_answered(channel, *one) for one in compared(channel, 3, COMPARED)]
    return {
        "comparisons": sha256(bytes(found)).hexdigest(),
        "answered": sum(found),
    }


PINS = (sound_pin, verdict_pin, comparison_pin)


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("channel", CHANNELS)
def test_bytes_verdicts_and_comparisons_are_the_pinned_ones(channel, pin):
    pinned, found = json.loads(PINNED.read_text())[channel], pin(channel)
    assert found == {name: pinned[name] for name in found}


# --- One contract ---------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """Two manifests of a channel in a row."""

    first: AnyManifest
    second: AnyManifest

    @property
    def names(self) -> tuple[str, ...]:
        return self.first.fields.spelling.names

    @property
    def keys(self) -> dict[str, bytes]:
        public = map(signing_public_key, SIGNING)
        return dict(zip(self.names, public, strict=True))

    def sent(self, manifest: AnyManifest | None = None, signing=SIGNING) -> bytes:
        one = manifest or self.first
        made = (signature(one, key) for key in signing)
        return attach_signatures(one, dict(zip(self.names, made, strict=True)))

    def read(self, sent: bytes) -> AnyManifest:
        return read_manifest(sent, type(self.first.fields), self.keys)

    def read_document(self, document: bytes) -> AnyManifest:
        return read_document(document, type(self.first.fields))


def subject_of(own: Fields, keys: Mapping[str, bytes]) -> Subject:
    first = Manifest(
        run=bytes(range(16)),
        round=0,
        fields=own,
        least_reports=1000,
        most_reports=6000,
        opens=1_000,
        closes=2_000,
        broadcast=bytes(32),
        url="https://leader.example",
        keys=keys,
    )
    chain = {"round": 1, "opens": 3_000, "closes": 4_000, "previous": first.round_id}
    return Subject(first, replace(first, **chain))


SUBJECTS = {
    "two_servers": subject_of(
        SumFields("counts", 3533, 65536, 4295033744, 135318),
        {"leader": bytes([1]) * 32, "helper": bytes([2]) * 32},
    ),
    "shuffle": subject_of(MessageFields(8, 50), {"collector": bytes([1]) * 32}),
}


@pytest.fixture(params=CHANNELS)
def subject(request) -> Subject:
    return SUBJECTS[request.param]


def look(manifest: AnyManifest, own: AnyManifest, *, now: int = 1_500, known=None):
    """What a client does that agreed to all that `own` says."""
    manifest.check(
        run=own.run,
        least_reports=own.least_reports,
        agreed=own.fields,
        now=now,
        known=known or {},
    )


def resigned(document: bytes) -> bytes:
    """Other bytes that both operators have signed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    keys = (Ed25519PrivateKey.from_private_bytes(one) for one in SIGNING)
    return b"".join(key.sign(document) for key in keys) + document


def written(manifest: AnyManifest, **values: Any) -> bytes:
    """The document with other entries."""
    return canonical(json.loads(manifest.document()) | values)


def test_the_document_is_sorted_json_of_whole_numbers_and_texts(subject):
    made = json.loads(subject.first.document())
    assert [*made] == sorted(made)
    assert b" " not in subject.first.document()
    assert made["prev"] == ""
    name = hashlib.sha256(subject.first.document()).digest()
    assert subject.first.round_id == name


def test_the_words_of_both_channels():
    made = json.loads(SUBJECTS["two_servers"].first.document())
    assert (made["d"], made["r"], made["limit"]) == (3533, 65536, 4295033744)
    assert b64decode(made["leader"]["key"]) == bytes([1]) * 32
    made = json.loads(SUBJECTS["shuffle"].first.document())
    assert (made["task"], made["epoch"], made["tickets"]) == ("reports", 0, False)
    assert made["relay"] == {"url": "https://leader.example"}


def test_what_is_read_is_what_was_signed(subject):
    for manifest in (subject.first, subject.second):
        assert subject.read(subject.sent(manifest)) == manifest


def test_every_field_has_a_part_in_the_name_of_a_round(subject):
    one = subject.second
    names = [f.name for f in fields(one)] + [f.name for f in fields(one.fields)]
    values = {n: getattr(one, n, getattr(one.fields, n, None)) for n in names}
    del values["fields"], values["keys"]
    values |= {f"{name}_key": key for name, key in one.keys.items()}
    for name, value in values.items():
        if isinstance(value, bytes):
            other: Any = bytes([value[0] ^ 4]) + value[1:]
        elif isinstance(value, bool):
            other = not value
        else:
            other = value + 1 if isinstance(value, int) else f"{value}!"
        assert changed(one, **{name: other}).round_id != one.round_id, name


def test_signed_or_not_a_document_has_one_form(subject):
    first = subject.first
    document, number = first.document(), first.fields.spelling.number
    broken = [
        *(written(first, **one) for one in _BROKEN),
        *(written(first, **{number: one}) for one in (True, -1, "0")),
        *(written(first, **{name: one}) for name in subject.names for one in _NO_ONE),
        document.replace(b",", b", "),
        document.replace(b'"n_min":', b'"n_min":1,"n_min":'),
        *(b"[]", b"", b"[" * 50_000, b"\xff\xfe", b"{}"),
    ]
    for one in broken:
        with pytest.raises(BadMessage, match="manifest"):
            subject.read(resigned(one))


_BROKEN: tuple[dict[str, Any], ...] = (
    *({"more": 1}, {"v": 2}, {"n_min": 5.0}, {"n_min": "5"}, {"n_min": 0}),
    *({"n_max": 999}, {"n_max": 2**60}, {"run": "00" * 15}, {"prev": "00"}),
    *({"run": bytes(range(240, 256)).hex().upper()}, {"task": ""}, {"task": "sum"}),
    *({"tickets": 0}, {"sigma": 1.0}, {"d": "3533"}, {"reports_per_user": 2**16}),
)
_NO_ONE: tuple[Any, ...] = ([], {}, {"url": 1}, {"key": "?", "url": "x"})


def test_a_channel_reads_no_manifest_of_another():
    one, other = SUBJECTS.values()
    for reader, written_by in ((one, other), (other, one)):
        with pytest.raises(BadMessage):
            reader.read_document(written_by.first.document())


def test_a_manifest_has_a_largest_size(subject):
    long = replace(subject.first, url="x" * MOST_BYTES)
    with pytest.raises(BadMessage, match="at most 65,536"):
        subject.read(subject.sent(long))


def test_all_operators_must_have_signed(subject):
    for place, name in enumerate(subject.names):
        twice = (SIGNING[1 - place],) * 2
        with pytest.raises(BadMessage, match=f"the {name} has not signed"):
            subject.read(subject.sent(signing=twice))
    exchanged = subject.sent()[:128] + subject.second.document()
    for sent in (exchanged, subject.sent(signing=SIGNING[::-1]), subject.sent()[:-1]):
        with pytest.raises(BadMessage, match="has not signed"):
            subject.read(sent)


@given(st.sampled_from(CHANNELS), st.integers(0, 2**32))
def test_no_bit_can_be_changed(channel, place):
    subject = SUBJECTS[channel]
    harmed = bytearray(subject.sent())
    harmed[place // 8 % len(harmed)] ^= 1 << place % 8
    with pytest.raises(BadMessage, match="has not signed"):
        subject.read(bytes(harmed))


@given(st.sampled_from(CHANNELS), st.binary(max_size=200))
def test_anything_else_is_refused(channel, noise):
    with pytest.raises(BadMessage):
        SUBJECTS[channel].read(noise)


def test_one_operator_is_not_two(subject):
    keys = dict.fromkeys(subject.names, signing_public_key(SIGNING[0]))
    with pytest.raises(BadValue, match="they are one operator"):
        read_manifest(subject.sent(), type(subject.first.fields), keys)
    keys = dict.fromkeys(subject.first.keys, bytes(32))
    if len(keys) > 1:
        with pytest.raises(BadValue, match="open both halves"):
            replace(subject.first, keys=keys)


def test_a_signature_has_64_bytes(subject):
    name, other = subject.names
    with pytest.raises(BadValue, match=f"{name}'s signature has 3 bytes"):
        attach_signatures(subject.first, {name: b"abc", other: bytes(64)})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"run": b"short"}, "run has 5 bytes"),
        ({"previous": b"x"}, "previous has 1 bytes"),
        ({"closes": 1_000}, "must be before closes=1000"),
        ({"least_reports": 0}, "least_reports=0 must be >= 1"),
        ({"least_reports": 6_001}, "most_reports=6000 must not be below"),
        ({"keys": {}}, "needed are"),
        ({"keys": {"stranger": bytes(32)}}, "needed are"),
    ],
)
def test_a_round_that_cannot_be_is_refused(subject, changes, said):
    with pytest.raises(BadValue, match=said):
        replace(subject.first, **changes)


@pytest.mark.parametrize(
    ("channel", "changes"),
    [
        ("two_servers", {"sigma": 0}),
        ("two_servers", {"leader_key": b""}),
        ("shuffle", {"reports_per_user": 2**16}),
        ("shuffle", {"collector_key": bytes(31)}),
    ],
)
def test_fields_that_cannot_be_are_refused(channel, changes):
    with pytest.raises(BadValue):
        changed(SUBJECTS[channel].first, **changes)


# --- What a client refuses ------------------------------------------------------------


def test_a_client_takes_part_in_what_it_agreed_to(subject):
    first, second = subject.first, subject.second
    look(first, first, now=1_000)
    look(first, first, now=1_999, known={0: first.round_id})
    look(second, first, now=3_500, known={0: first.round_id})
    look(second, first, now=3_500)  # it joins late
    look(replace(first, least_reports=1_001), first)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": bytes(16)}, "run of the manifest"),
        ({"least_reports": 999}, "agreed are 1,000 at least"),
        ({"opens": 1_501}, "the window is from 1501"),
        ({"closes": 1_500}, "now is 1500"),
        ({"previous": bytes(32)}, "follows another one: a fork"),
    ],
)
def test_what_was_not_agreed_is_refused(subject, changes, reason):
    with pytest.raises(Refused, match=reason):
        look(replace(subject.first, **changes), subject.first)


@pytest.mark.parametrize(
    ("channel", "changes", "reason"),
    [
        ("two_servers", {"leaf": "relations"}, "leaf of the manifest is 'relations'"),
        ("two_servers", {"numbers": 3534}, "numbers of the manifest is 3534"),
        ("two_servers", {"steps": 32768}, "steps of the manifest"),
        ("two_servers", {"limit": 4295033745}, "limit of the manifest"),
        ("two_servers", {"sigma": 135308}, "the noise of one operator"),
        ("shuffle", {"report_bytes": 16}, "report_bytes of the manifest is 16"),
        ("shuffle", {"reports_per_user": 49}, "reports_per_user of the manifest"),
    ],
)
def test_fields_that_were_not_agreed_are_refused(channel, changes, reason):
    first = SUBJECTS[channel].first
    with pytest.raises(Refused, match=reason):
        look(changed(first, **changes), first)


def test_more_noise_and_tickets_are_welcome():
    quiet, bare = (SUBJECTS[one].first for one in CHANNELS)
    loud = changed(quiet, sigma=2 * quiet.fields.sigma)
    look(loud, quiet)
    assert loud.fields.multiplier == pytest.approx(2 * quiet.fields.multiplier)
    counted = changed(bare, needs_tickets=True)
    look(counted, bare)
    with pytest.raises(Refused, match="one ticket per user"):
        look(bare, counted)


def test_a_fork_is_refused(subject):
    first, second = subject.first, subject.second
    forks = [
        (first, {0: bytes(32)}, "round 1 has two manifests"),
        (second, {0: bytes(32)}, "follows a round that is not known"),
        (replace(second, previous=b""), {}, "round 2 follows no other"),
    ]
    for manifest, known, reason in forks:
        with pytest.raises(Refused, match=reason):
            look(manifest, first, now=manifest.opens, known=known)


if __name__ == "__main__":
    made = {one: {k: v for p in PINS for k, v in p(one).items()} for one in CHANNELS}
    PINNED.write_text(json.dumps(made, indent=1) + "\n")
