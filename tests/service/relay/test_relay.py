"""What a relay takes, refuses, forwards and destroys; without HTTP."""

import os
import sqlite3
from contextlib import closing

import pytest
from service.relay.places import QUICK, a_manifest

from tacit.service import hpke
from tacit.service.federation.aggregator import ticket_digest
from tacit.service.http import Failure
from tacit.service.relay import relay
from tacit.service.relay.batches import batch_messages
from tacit.service.relay.manifest import signed
from tacit.service.relay.relay import Arrived, EpochSigner, Relay, RelayLimits
from tacit.service.relay.relay_store import (
    FILE_NAME,
    LEAST_TOGETHER,
    OF_AN_EPOCH,
    TAG_BYTES,
    RelayStore,
)
from tacit.service.relay.uploads import Upload, sealed_size, upload, upload_size
from tacit.service.signed_document import signature, signing_public_key

KEYS = {"relay": bytes([1]) * 32, "collector": bytes([2]) * 32}
PUBLIC = {name: signing_public_key(key) for name, key in KEYS.items()}
SIGNER = EpochSigner(KEYS["relay"], PUBLIC["relay"], PUBLIC["collector"])
PRIVATE = bytes([9]) * 32


class World:
    """A relay with one open epoch, and a clock that the test sets."""

    def __init__(self, folder, *, limits=QUICK, full=32_768, **changes):
        self.folder = folder
        self.manifest = a_manifest(collector_key=hpke.public_key(PRIVATE), **changes)
        self.now = float(self.manifest.opens + 1)
        self.limits, self.full = limits, full
        self.start()
        self.open(self.manifest)

    def start(self, **kwargs):
        store = RelayStore(self.folder, full=self.full, **kwargs)
        self.relay = Relay(
            store,
            SIGNER,
            self.limits,
            url="https://relay.invalid",
            clock=lambda: self.now,
        )

    def again(self, **kwargs):
        self.relay.store.close()
        self.start(**kwargs)

    def open(self, manifest):
        own = self.relay.sign(manifest.document())
        other = signature(manifest, KEYS["collector"])
        return self.relay.open(signed(manifest, relay=own, collector=other))

    def upload(self, user=0, ticket=b""):
        size = self.manifest.report_bytes
        messages = [
            user.to_bytes(4, "little") + bytes([n]) + bytes(size - 5)
            for n in range(self.manifest.reports_per_user)
        ]
        body = upload(messages, self.manifest)
        return Arrived(Upload.read(body, self.manifest), ticket)

    def admit(self, *arrived):
        found = self.relay.admit(self.manifest.round_id, arrived)
        return [one if isinstance(one, int) else one.status for one in found]

    def forwarded(self):
        """All batches of the epoch, once its window is over."""
        self.now = self.manifest.closes + 1.0
        assert self.relay.decide() == [self.manifest.round_id]
        row = self.relay.forwarding(self.manifest.round_id)
        return [*self.relay.batches(row)]

    def messages(self, batches):
        size = sealed_size(self.manifest)
        return [
            one
            for _, body in batches
            for one in batch_messages(body, sealed_bytes=size)
        ]

    def rows(self, table):
        with closing(sqlite3.connect(self.folder / FILE_NAME)) as file:
            return [*file.execute(f"SELECT * FROM {table}")]


@pytest.fixture
def world(tmp_path):
    found = World(tmp_path)
    yield found
    found.relay.store.close()


def test_an_upload_is_kept_once_and_acknowledged_again(world):
    one = world.upload()
    assert world.admit(one) == [202]
    assert world.admit(one) == [200]
    assert world.admit(one, one) == [200, 200]
    two = world.upload(2)
    assert world.admit(two, two) == [202, 202]
    assert len(world.rows("uploads")) == 2
    [(_, _, is_full, uploads, body)] = world.rows("segments")
    assert (is_full, uploads) == (0, 2)
    assert len(body) == 6 * (TAG_BYTES + len(one.upload.sealed[0]))


def test_what_was_acknowledged_is_there_after_a_restart(world):
    kept = [world.upload(user) for user in range(6)]
    assert world.admit(*kept) == [202] * 6
    world.again()
    assert world.admit(kept[3]) == [200]
    sent = world.messages(world.forwarded())
    assert sorted(sent) == sorted(m for one in kept for m in one.upload.sealed)


def test_below_the_minimum_nothing_is_forwarded_and_all_is_destroyed(world):
    """Also a batch of one victim: four others are not enough for anybody."""
    kept = [world.upload(user) for user in range(4)]
    world.admit(*kept)
    assert world.admit(*kept) == [200] * 4  # sent again, they count once
    world.now = world.manifest.closes + 1.0
    assert world.relay.decide() == []
    assert world.relay.status(world.manifest.round_id).state == "destroyed"
    for table in OF_AN_EPOCH:
        assert world.rows(table) == []
    held = (world.folder / FILE_NAME).read_bytes()
    assert not any(one in held for upload in kept for one in upload.upload.sealed)
    assert world.admit(kept[0]) == [410]
    assert world.admit(world.upload(9)) == [410]


def test_nothing_is_forwarded_before_the_window_is_over(world):
    world.admit(*(world.upload(user) for user in range(20)))
    assert world.relay.decide() == []
    assert world.relay.status(world.manifest.round_id).uploads is None
    world.now = world.manifest.closes - 0.01
    assert world.relay.decide() == []
    world.now = world.manifest.closes
    assert world.relay.decide() == [world.manifest.round_id]


def test_after_the_window_a_random_delay_passes(tmp_path):
    limits = RelayLimits(most_delay=1000.0, free_bytes=0)
    world = World(tmp_path, limits=limits)
    world.admit(*(world.upload(user) for user in range(6)))
    delay = world.relay.store.epochs()[0].delay
    assert 0 < delay < 1000
    world.now = world.manifest.closes + delay - 1e-3
    assert world.relay.decide() == []
    world.now = world.manifest.closes + delay
    assert world.relay.decide()
    world.relay.store.close()


def test_when_everybody_has_reported_there_is_nothing_to_wait_for(tmp_path):
    world = World(tmp_path, most_uploads=6)
    world.admit(*(world.upload(user) for user in range(6)))
    assert world.admit(world.upload(7)) == [409]
    assert world.relay.decide() == [world.manifest.round_id]
    world.relay.store.close()


def test_late_uploads_are_refused_unless_they_are_in(world):
    one = world.upload()
    world.admit(one)
    world.now = world.manifest.closes + 0.0
    assert world.admit(one, world.upload(2)) == [200, 409]


def test_a_ticket_is_for_one_upload_of_an_epoch(tmp_path):
    limits = RelayLimits(most_delay=0.0, free_bytes=0, needs_tickets=True)
    world = World(tmp_path, limits=limits, needs_tickets=True)
    world.relay.store.add_tickets(
        [ticket_digest(b"00" * 16), ticket_digest(b"11" * 16)]
    )
    assert world.admit(world.upload(0)) == [401]
    assert world.admit(world.upload(0, b"ff" * 16)) == [401]
    first = world.upload(0, b"00" * 16)
    assert world.admit(first, world.upload(1, b"00" * 16)) == [202, 401]
    assert world.admit(first) == [200]  # the same bytes again
    assert world.admit(world.upload(2, b"00" * 16)) == [401]
    assert world.admit(world.upload(3, b"11" * 16)) == [202]
    assert len(world.rows("uploads")) == 2
    world.relay.store.close()


def test_a_full_disk_keeps_nothing(tmp_path):
    limits = RelayLimits(most_delay=0.0, free_bytes=2**62)
    world = World(tmp_path, limits=limits)
    assert world.admit(world.upload()) == [503]
    assert not any(world.rows(table) for table in OF_AN_EPOCH)
    world.relay.store.close()


class TestShuffle:
    def test_batches_hold_every_message_once_and_are_always_the_same(self, tmp_path):
        world = World(tmp_path, full=40, report_bytes=64)
        kept = [world.upload(user) for user in range(100)]
        for some in [kept[i : i + 8] for i in range(0, 100, 8)]:
            world.admit(*some)
        sizes = {is_full for _, _, is_full, *_ in world.rows("segments")}
        assert sizes == {0, 1}
        batches = world.forwarded()
        sent = world.messages(batches)
        assert sorted(sent) == sorted(m for one in kept for m in one.upload.sealed)
        row = world.relay.forwarding(world.manifest.round_id)
        assert [*world.relay.batches(row)] == batches
        assert sorted(id_ for id_, _ in batches) == [*world.relay.closing(row).batches]
        world.again()
        row = world.relay.forwarding(world.manifest.round_id)
        assert [*world.relay.batches(row)] == batches
        world.relay.store.close()

    def test_the_order_says_neither_who_came_first_nor_what_came_together(
        self, tmp_path
    ):
        """False alarm below 1e-9: four million pairs, 6.5 deviations of the mean.

        Of 400 uploads of 3 messages, the places of two messages of one upload are as
        far apart as any two, and places do not grow with arrival.
        """
        world = World(tmp_path, full=300, most_uploads=400)
        kept = [world.upload(user) for user in range(400)]
        for i in range(0, 400, 5):
            world.admit(*kept[i : i + 5])
        order = {seal: n for n, seal in enumerate(world.messages(world.forwarded()))}
        places = [[order[m] for m in one.upload.sealed] for one in kept]
        n = len(order)
        apart = [abs(a - b) for a, b, _ in places]
        # |a - b| of two random places has mean n / 3 and deviation n / √18.
        mean, deviation = n / 3, n / 18**0.5
        assert abs(sum(apart) / 400 - mean) < 6.5 * deviation / 400**0.5
        early = [p for one in places[:200] for p in one]
        assert abs(sum(early) / 600 - n / 2) < 6.5 * n / (12 * 600) ** 0.5
        world.relay.store.close()

    def test_what_is_on_the_disk_has_no_time_address_or_arrival(self, world):
        """Messages lie by random tags, and no column could hold more."""
        kept = [world.upload(user) for user in range(9)]
        for one in kept:
            world.admit(one)
        [(*_, body)] = world.rows("segments")
        size = len(body) // 27
        rows = [body[i : i + size] for i in range(0, len(body), size)]
        assert rows == sorted(rows)
        seals = [one for each in kept for one in each.upload.sealed]
        assert sorted(one[TAG_BYTES:] for one in rows) == sorted(seals)
        with closing(sqlite3.connect(world.folder / FILE_NAME)) as file:
            columns = {
                table: [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
                for table in OF_AN_EPOCH
            }
        assert columns == {
            "uploads": ["epoch", "digest"],
            "segments": ["number", "epoch", "is_full", "uploads", "body"],
            "messages": ["epoch", "tag", "sealed"],
            "used": ["epoch", "ticket"],
        }

    def test_an_upload_of_many_messages_has_no_segment_of_its_own(self, tmp_path):
        world = World(tmp_path, full=4, reports_per_user=8)
        for user in range(LEAST_TOGETHER + 3):
            world.admit(world.upload(user))
        found = sorted(uploads for _, _, _, uploads, _ in world.rows("segments"))
        assert found == [3, LEAST_TOGETHER]
        world.relay.store.close()

    def test_what_came_together_does_not_stay_in_the_log_of_writes(self, tmp_path):
        """Of messages that are short or long; a reader is not waited for."""
        for size in (8, 5000):
            world = World(tmp_path / str(size), report_bytes=size, reports_per_user=1)
            one = world.upload()
            [seal] = one.upload.sealed
            log = world.folder / f"{FILE_NAME}-wal"
            world.admit(one)
            assert seal[-64:] in log.read_bytes()
            with closing(world.relay.store.reading()) as file:
                rows = file.execute("SELECT number FROM epochs")
                world.admit(world.upload(1))
                assert not world.relay.store.settle()
                rows.fetchall()
            assert world.relay.store.settle()
            assert log.read_bytes() == b""
            world.admit(world.upload(2))
            assert log.read_bytes() != b""
            world.relay.store.close()

    def test_an_upload_cannot_be_computed_from_its_messages(self, tmp_path):
        """Nor does a ticket name one: a copy of the table says who took part."""
        limits = RelayLimits(most_delay=0.0, free_bytes=0, needs_tickets=True)
        world = World(tmp_path, limits=limits, reports_per_user=1, needs_tickets=True)
        world.relay.store.add_tickets([ticket_digest(b"00" * 16)])
        one = world.upload(0, b"00" * 16)
        world.admit(one)
        [(_, digest)] = world.rows("uploads")
        [(_, ticket)] = world.rows("used")
        assert ticket == ticket_digest(b"00" * 16)
        assert not one.upload.digest.startswith(digest[:4])
        world.again()
        assert world.admit(one) == [200]
        world.relay.store.close()

    def test_large_messages_are_forwarded_as_they_are(self, tmp_path):
        world = World(tmp_path, report_bytes=5000, reports_per_user=1, full=2)
        kept = [world.upload(user) for user in range(6)]
        world.admit(*kept)
        assert world.rows("segments") == []
        sent = world.messages(world.forwarded())
        assert sorted(sent) == sorted(one.upload.sealed[0] for one in kept)
        world.relay.store.close()

    def test_a_transaction_that_fails_leaves_the_segment_as_it_was(
        self, world, monkeypatch
    ):
        """What was not committed is neither on the disk nor remembered."""
        first, second = world.upload(1), world.upload(2)
        world.admit(first)
        before = world.rows("segments")

        def fails(point):
            if point == "in_transaction":
                raise OSError(28, "no room")

        with monkeypatch.context() as patch:
            patch.setattr(world.relay, "passing", fails)
            with pytest.raises(OSError, match="no room"):
                world.admit(second)
        assert world.rows("segments") == before
        others = [world.upload(user) for user in range(3, 7)]
        assert world.admit(*others) == [202] * 4
        sent = world.messages(world.forwarded())
        kept = [m for one in (first, *others) for m in one.upload.sealed]
        assert sorted(sent) == sorted(kept)


class TestEpochs:
    @pytest.mark.parametrize("restarts", [False, True])
    def test_a_full_epoch_is_forwarded_after_its_delay_and_not_at_once(
        self, tmp_path, monkeypatch, restarts
    ):
        """When the last upload came would be told by forwarding at once."""
        monkeypatch.setattr(relay._chance, "uniform", lambda low, high: high)
        limits = RelayLimits(most_delay=30.0, free_bytes=0)
        world = World(tmp_path, limits=limits, most_uploads=6)
        epoch = world.manifest.round_id
        world.admit(*(world.upload(user) for user in range(6)))
        if restarts:
            world.again()
        world.now += 29.0
        assert world.relay.decide() == []
        world.now += 1.0
        assert world.relay.decide() == [epoch]
        world.relay.store.close()

    def test_what_is_forwarded_is_forgotten(self, world):
        kept = [world.upload(user) for user in range(6)]
        world.admit(*kept)
        world.forwarded()
        world.relay.forwarded(world.manifest.round_id)
        for table in OF_AN_EPOCH:
            assert world.rows(table) == []
        held = (world.folder / FILE_NAME).read_bytes()
        assert not any(one in held for upload in kept for one in upload.upload.sealed)
        with pytest.raises(Failure, match="forwarded") as caught:
            world.relay.known(world.manifest.round_id)
        assert caught.value.status == 410

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"least_uploads": 1}, "n_min is 1, at least 2"),
            ({"most_uploads": 10**9}, "n_max"),
            ({"report_bytes": 2**24}, "an upload"),
            ({"needs_tickets": True}, "tickets is asked for, and this relay has not"),
        ],
    )
    def test_an_operator_signs_only_what_its_limits_allow(self, world, changes, said):
        made = a_manifest(round=1, previous=world.manifest.round_id, **changes)
        with pytest.raises(Failure, match=said) as caught:
            world.relay.sign(made.document())
        assert caught.value.status == 403

    def test_an_epoch_has_one_manifest(self, world):
        other = a_manifest(least_uploads=6)
        with pytest.raises(Failure, match="has another manifest") as caught:
            world.relay.sign(other.document())
        assert caught.value.status == 403

    def test_another_url_or_a_window_that_is_over_is_not_signed(self, world):
        for changes, said in (
            ({"relay_url": "http://b.invalid"}, "sends uploads to"),
            ({"closes": world.manifest.opens - 5, "opens": 1}, "window is over"),
        ):
            with pytest.raises(Failure, match=said):
                world.relay.sign(a_manifest(round=1, **changes).document())

    def test_it_opens_only_with_both_signatures(self, world):
        made = a_manifest(round=1, previous=world.manifest.round_id)
        own = world.relay.sign(made.document())
        for sent in (
            signed(made, relay=own, collector=own),
            signed(made, relay=bytes(64), collector=signature(made, KEYS["collector"])),
        ):
            with pytest.raises(Failure, match="has not signed") as caught:
                world.relay.open(sent)
            assert caught.value.status == 403

    def test_unknown_epochs_are_told_so(self, world):
        with pytest.raises(Failure) as caught:
            world.relay.known(os.urandom(32))
        assert caught.value.status == 404
        with pytest.raises(Failure) as caught:
            world.relay.admit(os.urandom(32), [world.upload()])
        assert caught.value.status == 404

    def test_after_a_backup_was_put_back_open_epochs_are_void(self, world):
        """What was acknowledged since the backup is not in it."""
        one = world.upload()
        world.admit(one)
        world.again(is_restored=True)
        assert world.relay.status(world.manifest.round_id).state == "void"
        assert world.admit(one) == [410]
        assert not any(world.rows(table) for table in OF_AN_EPOCH)

    def test_the_largest_upload_is_that_of_the_open_epochs(self, world):
        size = upload_size(world.manifest)
        assert world.relay.largest == size
        larger = a_manifest(
            round=1, previous=world.manifest.round_id, reports_per_user=9
        )
        world.open(larger)
        assert world.relay.largest == upload_size(larger) > size
        world.again()
        assert world.relay.largest == upload_size(larger)
        world.relay.void(larger.round_id)
        assert world.relay.largest == size
        world.relay.void(world.manifest.round_id)
        assert world.relay.largest == 0

    def test_the_collector_hears_nothing_while_an_epoch_is_open(self, world):
        world.admit(*(world.upload(user) for user in range(8)))
        found = world.relay.status(world.manifest.round_id)
        assert (found.state, found.uploads) == ("open", None)
