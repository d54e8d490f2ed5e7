"""What a relay takes, refuses, forwards and destroys; without HTTP."""

import os
import shutil
import sqlite3
import time
from contextlib import closing

import pytest
from service.relay.places import QUICK, a_manifest

from tacit.service import hpke
from tacit.service.federation.tickets import ticket_digest
from tacit.service.http import Failure
from tacit.service.manifest import attach_signatures
from tacit.service.relay import batches, relay
from tacit.service.relay.batches import batch_messages
from tacit.service.relay.relay import Arrived, Relay, RelayLimits
from tacit.service.relay.relay_store import (
    FILE_NAME,
    FOLDER_NAME,
    OF_AN_EPOCH,
    RelayStore,
    upload_counts,
)
from tacit.service.relay.uploads import Upload, upload
from tacit.service.signed_document import signature, signing_public_key
from tacit.service.signing import Signer

KEYS = {"relay": bytes([1]) * 32, "collector": bytes([2]) * 32}
PUBLIC = {name: signing_public_key(key) for name, key in KEYS.items()}
SIGNER = Signer(KEYS["relay"], PUBLIC)
PRIVATE = bytes([9]) * 32


class World:
    """A relay with one open epoch, and a clock that the test sets."""

    def __init__(self, folder, *, limits=QUICK, **changes):
        self.folder = folder
        self.manifest = a_manifest(collector_key=hpke.public_key(PRIVATE), **changes)
        self.now = float(self.manifest.opens + 1)
        self.limits = limits
        self.start()
        self.open(self.manifest)

    def start(self, **kwargs):
        store = RelayStore(self.folder, **kwargs)
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
        return self.relay.open(
            attach_signatures(manifest, {"relay": own, "collector": other})
        )

    def upload(self, user=0, ticket=b""):
        size = self.manifest.fields.report_bytes
        messages = [
            user.to_bytes(4, "little") + bytes([n]) + bytes(size - 5)
            for n in range(self.manifest.fields.reports_per_user)
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
        size = self.manifest.fields.sealed_bytes
        return [
            one
            for _, body in batches
            for one in batch_messages(body, sealed_bytes=size)
        ]

    def scatter(self):
        """Give all messages their places, as the relay does every few seconds."""
        self.relay.scatter(self.manifest.round_id)

    def counted(self):
        """How many uploads were acknowledged, by what is on the disk."""
        with closing(self.relay.store.reading()) as file:
            return upload_counts(file)[self.manifest.round_id]

    def held(self):
        """Everything that is on the disk, in one string."""
        files = [one for one in self.folder.rglob("*") if one.is_file()]
        return b"".join(one.read_bytes() for one in sorted(files))

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
    assert world.counted() == 2
    kept = sum(len(messages) for _, _, messages, *_ in world.rows("staged"))
    assert kept == 6 * len(one.upload.sealed[0])
    world.scatter()
    assert world.admit(one, two) == [200, 200]
    assert world.counted() == 2


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
    held = world.held()
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
    limits = RelayLimits(most_delay=1000.0, free_bytes=0, needs_tickets=False)
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
    world = World(tmp_path, most_reports=6)
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
    assert world.admit(first, world.upload(1, b"00" * 16)) == [202, 403]
    assert world.admit(first) == [200]  # the same bytes again
    assert world.admit(world.upload(2, b"00" * 16)) == [403]
    assert world.admit(world.upload(3, b"11" * 16)) == [202]
    assert world.counted() == 2
    world.scatter()
    assert world.admit(first) == [200]
    assert world.admit(world.upload(4, b"11" * 16)) == [403]
    world.relay.store.close()


def test_a_full_disk_keeps_nothing(tmp_path):
    world = World(tmp_path)
    world.relay.limits = RelayLimits(
        most_delay=0.0, free_bytes=2**62, needs_tickets=False
    )
    assert world.admit(world.upload()) == [503]
    assert world.counted() == 0
    world.relay.store.close()


def test_an_epoch_that_the_disk_cannot_hold_is_not_signed(world):
    """So that no upload of an epoch that was opened finds the room used up."""
    made = a_manifest(round=1, previous=world.manifest.round_id)
    world.relay.limits = RelayLimits(free_bytes=2**62, needs_tickets=False)
    with pytest.raises(Failure, match="has room for 0") as caught:
        world.relay.sign(made.document())
    assert caught.value.status == 503


class TestShuffle:
    def test_batches_hold_every_message_once_and_are_always_the_same(self, tmp_path):
        world = World(tmp_path, report_bytes=64)
        kept = [world.upload(user) for user in range(100)]
        for some in [kept[i : i + 8] for i in range(0, 100, 8)]:
            world.admit(*some)
            if len(some) % 3:
                world.scatter()
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

    @pytest.mark.parametrize("scatters", [False, True])
    def test_the_order_says_neither_who_came_first_nor_what_came_together(
        self, tmp_path, scatters
    ):
        """False alarm below 1e-9: four million pairs, 6.5 deviations of the mean.

        Of 400 uploads of 3 messages, the places of two messages of one upload are as
        far apart as any two, and places do not grow with arrival.
        """
        world = World(tmp_path, most_reports=400)
        kept = [world.upload(user) for user in range(400)]
        for i in range(0, 400, 5):
            world.admit(*kept[i : i + 5])
            if scatters:
                world.scatter()
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
        """Every message has a place in one file, and no column could hold more."""
        kept = [world.upload(user) for user in range(9)]
        for one in kept:
            world.admit(one)
        world.scatter()
        assert world.rows("staged") == []
        world.relay.store.settle()
        seals = [seal for one in kept for seal in one.upload.sealed]
        path = world.folder / FOLDER_NAME / world.manifest.round_id.hex()
        content = path.read_bytes()
        assert all(content.count(seal) == 1 for seal in seals)
        elsewhere = world.held().replace(content, b"")
        assert not any(seal in elsewhere for seal in seals)
        with closing(sqlite3.connect(world.folder / FILE_NAME)) as file:
            columns = {
                table: [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
                for table in OF_AN_EPOCH
            }
        assert columns == {
            "staged": ["number", "epoch", "messages", "uploads", "used"],
            "scattered": [
                *("epoch", "places", "size", "taken", "uploads", "used"),
                "is_written",
            ],
        }

    def test_digests_and_tickets_lie_in_an_order_of_their_own(self, tmp_path):
        """Rows of a table would lie in the order in which they came."""
        limits = RelayLimits(most_delay=0.0, free_bytes=0, needs_tickets=True)
        world = World(tmp_path, limits=limits, needs_tickets=True)
        tickets = [bytes([n]).hex().encode() * 16 for n in range(12)]
        world.relay.store.add_tickets(map(ticket_digest, tickets))
        for user, ticket in enumerate(tickets):
            assert world.admit(world.upload(user, ticket)) == [202]
            if user % 5 == 0:
                world.scatter()
        world.scatter()
        [(*_, uploads, used, _)] = world.rows("scattered")
        for content, width in ((uploads, 16), (used, 32)):
            rows = [content[i : i + width] for i in range(0, len(content), width)]
            assert len(rows) == 12
            assert rows == sorted(rows)
        world.relay.store.close()

    def test_messages_of_a_group_are_staged_in_random_order(self, world):
        """27 messages stay in the order in which they came once in 27! times."""
        kept = [world.upload(user) for user in range(9)]
        world.admit(*kept)
        [(_, _, body, _, _)] = world.rows("staged")
        seals = [seal for one in kept for seal in one.upload.sealed]
        assert body != b"".join(seals)
        assert sorted(body) == sorted(b"".join(seals))

    def test_messages_get_their_places_every_few_seconds_or_when_many_wait(
        self, world, monkeypatch
    ):
        world.admit(world.upload(0))
        assert world.relay.unscattered() == [world.manifest.round_id]
        world.scatter()
        world.admit(world.upload(1))
        assert world.relay.unscattered() == []
        monkeypatch.setattr(relay, "_MOST_STAGED", 1)
        assert world.relay.unscattered() == [world.manifest.round_id]
        monkeypatch.setattr(relay, "_SCATTER", 0.0)
        world.scatter()
        assert world.relay.unscattered() == []  # nothing waits

    @pytest.mark.parametrize("restarts", [True, False])
    @pytest.mark.parametrize("point", ["scattering", "scattered"])
    def test_stopped_while_it_scatters_it_keeps_every_message_once(
        self, world, monkeypatch, point, restarts
    ):
        """Copies that were written and not noted are overwritten before anything."""
        kept = [world.upload(user) for user in range(6)]
        seals = [seal for one in kept for seal in one.upload.sealed]

        def dies(passed):
            if passed == point:
                raise KeyboardInterrupt

        world.admit(*kept)
        with monkeypatch.context() as patch:
            patch.setattr(world.relay, "passing", dies)
            with pytest.raises(KeyboardInterrupt):
                world.scatter()
        path = world.folder / FOLDER_NAME / world.manifest.round_id.hex()
        is_written = any(seal in path.read_bytes() for seal in seals)
        assert is_written == (point == "scattered")
        if restarts:
            world.again()
            assert not any(seal in path.read_bytes() for seal in seals)
        assert sorted(world.messages(world.forwarded())) == sorted(seals)
        assert all(path.read_bytes().count(seal) == 1 for seal in seals)

    def test_an_epoch_whose_messages_are_gone_is_void(self, world):
        world.admit(*(world.upload(user) for user in range(6)))
        world.scatter()
        (world.folder / FOLDER_NAME / world.manifest.round_id.hex()).unlink()
        world.again()
        assert world.relay.status(world.manifest.round_id).state == "void"

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
        world.scatter()
        [(*_, digest, ticket, _)] = world.rows("scattered")
        assert ticket == ticket_digest(b"00" * 16)
        assert not one.upload.digest.startswith(digest[:4])
        world.again()
        assert world.admit(one) == [200]
        world.relay.store.close()

    def test_large_messages_are_forwarded_as_they_are(self, tmp_path):
        world = World(tmp_path, report_bytes=5000, reports_per_user=1)
        kept = [world.upload(user) for user in range(6)]
        world.admit(*kept)
        sent = world.messages(world.forwarded())
        assert sorted(sent) == sorted(one.upload.sealed[0] for one in kept)
        world.relay.store.close()

    def test_a_transaction_that_fails_leaves_everything_as_it_was(
        self, world, monkeypatch
    ):
        """What was not committed is neither on the disk nor remembered."""
        first, second = world.upload(1), world.upload(2)
        world.admit(first)
        before = world.rows("staged")

        def fails(point):
            if point == "in_transaction":
                raise OSError(28, "no room")

        with monkeypatch.context() as patch:
            patch.setattr(world.relay, "passing", fails)
            with pytest.raises(OSError, match="no room"):
                world.admit(second)
        assert world.rows("staged") == before
        others = [world.upload(user) for user in range(3, 7)]
        assert world.admit(*others) == [202] * 4
        sent = world.messages(world.forwarded())
        kept = [m for one in (first, *others) for m in one.upload.sealed]
        assert sorted(sent) == sorted(kept)


def test_an_epoch_of_several_batches_has_every_message_once(world, monkeypatch):
    """Interrupted between two of them, it goes on with the same ones."""
    monkeypatch.setattr(batches, "_BYTES_AT_ONCE", 300)
    kept = [world.upload(user) for user in range(9)]
    world.admit(*kept[:4])
    world.scatter()
    world.admit(*kept[4:])
    found = world.forwarded()
    assert [len(world.messages([one])) for one in found] == [5, 5, 5, 5, 5, 2]
    world.again()
    row = world.relay.forwarding(world.manifest.round_id)
    assert [*world.relay.batches(row)] == found
    assert sorted(world.relay.closing(row).batches) == sorted(id_ for id_, _ in found)
    seals = [seal for one in kept for seal in one.upload.sealed]
    assert sorted(world.messages(found)) == sorted(seals)


class TestEpochs:
    @pytest.mark.parametrize("restarts", [False, True])
    def test_a_full_epoch_is_forwarded_after_its_delay_and_not_at_once(
        self, tmp_path, monkeypatch, restarts
    ):
        """When the last upload came would be told by forwarding at once."""
        monkeypatch.setattr(relay._chance, "uniform", lambda low, high: high)
        limits = RelayLimits(most_delay=30.0, free_bytes=0, needs_tickets=False)
        world = World(tmp_path, limits=limits, most_reports=6)
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
        held = world.held()
        assert not any(one in held for upload in kept for one in upload.upload.sealed)
        with pytest.raises(Failure, match="forwarded") as caught:
            world.relay.known(world.manifest.round_id)
        assert caught.value.status == 410

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"least_reports": 1}, "n_min is 1, at least 2"),
            ({"most_reports": 10**9}, "n_max"),
            ({"report_bytes": 2**24}, "an upload"),
            ({"needs_tickets": True}, "tickets is asked for, and this relay has not"),
        ],
    )
    def test_an_operator_signs_only_what_its_limits_allow(self, world, changes, said):
        made = a_manifest(round=1, previous=world.manifest.round_id, **changes)
        with pytest.raises(Failure, match=said) as caught:
            world.relay.sign(made.document())
        assert caught.value.status == 403

    def test_it_opens_only_with_both_signatures(self, world):
        made = a_manifest(round=1, previous=world.manifest.round_id)
        own = world.relay.sign(made.document())
        for sent in (
            attach_signatures(made, {"relay": own, "collector": own}),
            attach_signatures(
                made,
                {"relay": bytes(64), "collector": signature(made, KEYS["collector"])},
            ),
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

    def test_a_backup_of_an_open_epoch_is_noticed(self, world, tmp_path_factory):
        """Once messages that came after it have their places: within seconds."""
        world.admit(*(world.upload(user) for user in range(6)))
        world.scatter()
        world.relay.store.close()
        backup = tmp_path_factory.mktemp("backup") / "relay"
        shutil.copytree(world.folder, backup)
        world.start()
        world.admit(*(world.upload(user) for user in range(6, 9)))
        world.scatter()
        world.relay.store.close()
        shutil.copytree(backup, world.folder, dirs_exist_ok=True)
        world.start()
        assert world.relay.status(world.manifest.round_id).state == "void"

    def test_destroyed_while_another_is_forwarded_nothing_is_left(self, world):
        """Somebody who reads keeps the log of writes; it is emptied afterwards."""
        kept = [world.upload(user) for user in range(6)]
        world.admit(*kept)
        seals = [seal for one in kept for seal in one.upload.sealed]
        with closing(world.relay.store.reading()) as file:
            file.execute("BEGIN")
            file.execute("SELECT * FROM epochs").fetchall()
            began = time.monotonic()
            world.relay.void(world.manifest.round_id)
            assert time.monotonic() - began < 10
        assert world.relay.store.settle()
        held = world.held()
        assert not any(seal in held for seal in seals)

    def test_after_a_backup_was_put_back_open_epochs_are_void(self, world):
        """What was acknowledged since the backup is not in it."""
        one = world.upload()
        world.admit(one)
        world.scatter()
        world.again(is_restored=True)
        assert world.relay.status(world.manifest.round_id).state == "void"
        assert world.admit(one) == [410]
        assert [*(world.folder / FOLDER_NAME).iterdir()] == []
        assert not any(world.rows(table) for table in OF_AN_EPOCH)

    def test_the_largest_upload_is_that_of_the_open_epochs(self, world):
        size = world.manifest.fields.body_bytes
        assert world.relay.largest == size
        larger = a_manifest(
            round=1, previous=world.manifest.round_id, reports_per_user=9
        )
        world.open(larger)
        assert world.relay.largest == larger.fields.body_bytes > size
        world.again()
        assert world.relay.largest == larger.fields.body_bytes
        world.relay.void(larger.round_id)
        assert world.relay.largest == size
        world.admit(*(world.upload(user) for user in range(6)))
        world.forwarded()  # who repeats an upload hears that it was kept
        assert world.relay.largest == size
        world.relay.void(world.manifest.round_id)
        assert world.relay.largest == 0

    def test_the_collector_hears_nothing_while_an_epoch_is_open(self, world):
        world.admit(*(world.upload(user) for user in range(8)))
        found = world.relay.status(world.manifest.round_id)
        assert (found.state, found.uploads) == ("open", None)
