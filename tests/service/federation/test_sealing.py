"""Sealed reports: the published vector, and halves that open nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadMessage, BadValue
from tacit.service.federation.sealing import (
    Role,
    SealedReport,
    body_size,
    new_private_key,
    open_half,
    public_key,
    seal_info,
    sealed_report,
)
from tacit.transport.shared_sum import explicit, from_bytes, signed, stream, to_bytes

LEADER, HELPER = bytes([1]) * 32, bytes([2]) * 32  # private keys
ROUND, OTHER_ROUND = bytes(range(32)), bytes(32)
SEED, REPORT = bytes(range(32)), np.array([16683, -25166, 18874])


def sealed(report=REPORT, **changes) -> SealedReport:
    given = {"round_id": ROUND, "report_id": bytes(16)}
    keys = {"leader": public_key(LEADER), "helper": public_key(HELPER)}
    half = to_bytes(explicit(report, SEED))
    return sealed_report(SEED, half, **{**given, **keys, **changes})


# The published report


def test_the_published_report_opens(federation_vectors):
    wanted = federation_vectors["report"]
    numbers = len(federation_vectors["explicit"]["q"])
    found = SealedReport.read(bytes.fromhex(wanted["body"]), numbers=numbers)
    assert found.round_id.hex() == wanted["round_id"]
    assert found.report_id.hex() == wanted["report_id"]
    for role, name, private in (
        (Role.LEADER, "explicit", "leader_private"),
        (Role.HELPER, "seed", "helper_private"),
    ):
        half = found.opened(role, bytes.fromhex(wanted[private]))
        assert half.hex() == wanted["opens_to"][name]
    assert found.body().hex() == wanted["body"]


def test_the_published_bindings(federation_vectors):
    wanted = federation_vectors["report"]
    ids = (bytes.fromhex(wanted[name]) for name in ("round_id", "report_id"))
    round_id, report_id = ids
    for role, name in ((Role.LEADER, "info_leader"), (Role.HELPER, "info_helper")):
        assert seal_info(role, round_id, report_id).hex() == wanted[name]


# Halves


def test_both_halves_are_the_report():
    found = SealedReport.read(sealed().body(), numbers=len(REPORT))
    half = from_bytes(found.opened(Role.LEADER, LEADER), len(REPORT))
    seed = found.opened(Role.HELPER, HELPER)
    assert signed(half + stream(seed, len(REPORT))).tolist() == REPORT.tolist()


@given(st.integers(0, 300))
def test_every_report_of_a_round_has_one_length(numbers):
    bodies = [sealed(np.full(numbers, v)).body() for v in (0, -(2**16))]
    assert {len(body) for body in bodies} == {body_size(numbers)}
    assert bodies[0] != bodies[1]


def test_a_seal_is_fresh_though_the_report_is_the_same():
    one, other = sealed(), sealed()
    assert one.for_leader[:32] != other.for_leader[:32]  # the encapsulated key
    assert one.for_helper != other.for_helper


def test_an_id_is_random_unless_it_is_given():
    assert sealed(report_id=None).report_id != sealed(report_id=None).report_id


@pytest.mark.parametrize(
    ("role", "key", "round_id", "report_id"),
    [
        (Role.LEADER, HELPER, ROUND, bytes(16)),
        (Role.HELPER, HELPER, ROUND, bytes(16)),
        (Role.LEADER, LEADER, OTHER_ROUND, bytes(16)),
        (Role.LEADER, LEADER, ROUND, bytes([1]) * 16),
    ],
    ids=["the helper's key", "the helper's half", "another round", "another report"],
)
def test_a_half_opens_nowhere_else(role, key, round_id, report_id):
    half = sealed().for_leader
    assert open_half(half, LEADER, seal_info(Role.LEADER, ROUND, bytes(16)))
    with pytest.raises(BadMessage, match="does not open"):
        open_half(half, key, seal_info(role, round_id, report_id))


@given(st.integers(0, 8 * body_size(3) - 1))
def test_a_flipped_bit_is_found_by_somebody(place):
    body = bytearray(sealed().body())
    body[place // 8] ^= 1 << place % 8
    changed = SealedReport.read(bytes(body), numbers=3)
    broken = 0
    for role, key in ((Role.LEADER, LEADER), (Role.HELPER, HELPER)):
        try:
            changed.opened(role, key)
        except BadMessage:
            broken += 1
    assert broken == (2 if place < 8 * 48 else 1)  # ids are bound to both seals


@pytest.mark.parametrize("off", [-1, 1, -176])
def test_a_report_of_another_length_is_refused(off):
    body = (sealed().body() + b"\0")[: body_size(3) + off]
    with pytest.raises(BadMessage, match="has 188 bytes"):
        SealedReport.read(body, numbers=3)


def test_a_seal_too_short_to_be_one_is_refused():
    with pytest.raises(BadMessage, match="does not open"):
        open_half(bytes(20), LEADER, seal_info(Role.LEADER, ROUND, bytes(16)))


@pytest.mark.parametrize("changes", [{"round_id": bytes(31)}, {"report_id": bytes(15)}])
def test_names_have_their_lengths(changes):
    [name] = changes
    with pytest.raises(BadValue, match=f"{name} has"):
        sealed(**changes)


def test_a_seed_has_32_bytes():
    keys = {"leader": public_key(LEADER), "helper": public_key(HELPER)}
    with pytest.raises(BadValue, match="seed of 16 bytes"):
        sealed_report(bytes(16), b"", round_id=ROUND, **keys)


@pytest.mark.parametrize("key", [bytes(32), bytes(31)], ids=["zeros", "short"])
def test_what_is_no_key_is_not_sealed_to(key):
    with pytest.raises(BadValue, match="no public key"):
        sealed(leader=key)


def test_keys_are_new_each_time():
    assert new_private_key() != new_private_key()
    assert len(public_key(new_private_key())) == 32
