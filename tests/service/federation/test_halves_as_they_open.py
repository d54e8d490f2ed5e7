"""The leader adds a half as soon as it opens; the sum is that of whole batches."""

import os
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.service.federation.aggregator import Aggregator, Limits, Upload
from tacit.service.federation.sealing import (
    Opener,
    Role,
    SealedReport,
    SumFields,
    new_private_key,
    open_half,
    public_key,
    seal_info,
    sealed_report,
)
from tacit.service.federation.seed_batches import SeedBatch
from tacit.service.federation.store import AggregatorStore
from tacit.service.manifest import Manifest, attach_signatures
from tacit.service.signed_document import signature, signing_public_key
from tacit.service.signing import Signer
from tacit.transport.shared_sum import explicit, from_bytes, modulo, to_bytes

NUMBERS, ROOM = 5, 6
NAMES = ("leader", "helper")
SIGNING = [bytes([n]) * 32 for n in (1, 2)]
FATES = ("counted", "wrong at the leader", "wrong at the helper")


@pytest.fixture
def leader(tmp_path, monkeypatch):
    """A leader whose helper refuses what a test names."""
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "state"))
    keys = [signing_public_key(one) for one in SIGNING]
    refused: set[bytes] = set()

    def pass_on(round_id, batch, body):
        seeds = SeedBatch.read(body)
        return seeds.answer(seeds.seeds.keys() - refused)

    store = AggregatorStore(tmp_path / "leader", "leader")
    limits = Limits(1e-3, free_bytes=0)
    made = Aggregator(
        Role.LEADER,
        store,
        Signer(SIGNING[0], dict(zip(NAMES, keys, strict=True))),
        limits,
        url="x",
        pass_on=pass_on,
    )
    yield made, refused
    store.close()


def opened_round(leader: Aggregator) -> Manifest:
    run, now = os.urandom(16), int(time.time())
    manifest = Manifest(
        run=run,
        round=0,
        fields=SumFields("numbers", NUMBERS, 65536, 2**32, 40_000),
        least_reports=1,
        most_reports=ROOM,
        opens=now - 1,
        closes=now + 600,
        broadcast=bytes(32),
        url="x",
        keys={
            "leader": leader.round_key(run, 0),
            "helper": public_key(new_private_key()),
        },
    )
    leader.sign(manifest.document())
    both = [signature(manifest, one) for one in SIGNING]
    leader.open(attach_signatures(manifest, dict(zip(NAMES, both, strict=True))))
    return manifest


def an_upload(manifest: Manifest, numbers: list[int]) -> Upload:
    seed = os.urandom(32)
    half = to_bytes(explicit(np.array(numbers, np.int64), seed))
    report = sealed_report(
        seed,
        half,
        round_id=manifest.round_id,
        leader=manifest.keys["leader"],
        helper=manifest.keys["helper"],
    )
    return Upload(SealedReport.read(bytearray(report.body()), numbers=NUMBERS))


def broken(upload: Upload) -> Upload:
    body = bytearray(upload.report.body())
    body[-1] ^= 1
    return Upload(SealedReport.read(body, numbers=NUMBERS))


def test_the_sum_is_that_of_the_halves_that_both_have_opened(leader):
    aggregator, refused = leader

    @given(st.lists(st.sampled_from(FATES), min_size=1, max_size=9))
    def equals_the_slow_sum(fates):
        manifest = opened_round(aggregator)
        key = aggregator.store.private_key(manifest.run, 0)
        made = [
            an_upload(manifest, [n, -n, 7, 2**31 - 1, 0]) for n in range(len(fates))
        ]
        room, expected, told = ROOM, np.zeros(NUMBERS, np.uint32), []
        for i, fate in enumerate(fates):
            if fate == FATES[1]:
                made[i] = broken(made[i])
                told.append(400)
                continue
            if fate == FATES[2] and room:
                refused.add(made[i].id)
            told.append({0: 409}.get(room, 200 if fate == FATES[0] else 400))
            if told[-1] == 200:
                half = made[i].report.opened(Role.LEADER, key)
                expected = expected + from_bytes(half, NUMBERS)
            room -= room > 0
        verdicts = aggregator.admit(manifest.round_id, made)
        assert [200 if one is None else one.status for one in verdicts] == told
        query = "SELECT halves, reports FROM totals WHERE round = ?"
        [(halves, n)] = aggregator.store.file.execute(query, (manifest.round_id,))
        assert n == told.count(200)
        np.testing.assert_array_equal(from_bytes(halves, NUMBERS), expected)

    equals_the_slow_sum()


def test_an_opener_opens_what_the_key_opens():
    private, round_id, own = new_private_key(), bytes(32), os.urandom(16)
    made = sealed_report(
        bytes(32),
        to_bytes(modulo(np.arange(NUMBERS))),
        round_id=round_id,
        leader=public_key(private),
        helper=public_key(private),
        report_id=own,
    )
    for role, sealed in (
        (Role.LEADER, made.for_leader),
        (Role.HELPER, made.for_helper),
    ):
        slow = open_half(sealed, private, seal_info(role, round_id, own))
        assert Opener(role, round_id, private)(memoryview(sealed), own) == slow
