"""A relay's way to its collector: one try per epoch, and an end to waiting."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from service.relay.places import a_manifest
from service.relay.test_relay import World

from tacit.errors import Unanswered
from tacit.service.relay.forwarding import Forwarding
from tacit.service.relay.relay import RelayLimits

LIMITS = RelayLimits(
    most_delay=0.0, most_wait=3600.0, free_bytes=0, needs_tickets=False
)


class PlayedCollector:
    """Takes every batch but those of epochs that it knows nothing of."""

    def __init__(self):
        self.stuck, self.closed = set(), []

    def put(self, batch, body):
        if body[:32] in self.stuck:
            raise Unanswered("the collector does not know that epoch")

    def close_epoch(self, epoch, closing):
        self.closed.append(epoch)


class Way:
    """Two epochs that are closed, and a collector that takes one of them."""

    def __init__(self, folder):
        self.world = World(folder, limits=LIMITS)
        self.first = self.world.manifest
        self._fill()
        self.world.manifest = self.second = a_manifest(
            round=1, previous=self.first.round_id, collector_key=bytes([3]) * 32
        )
        self.world.open(self.second)
        self._fill()
        self.world.now = self.second.closes + 1.0
        self.collector = PlayedCollector()
        self.collector.stuck.add(self.first.round_id)

    def _fill(self):
        self.world.admit(*(self.world.upload(user) for user in range(6)))

    def state(self, manifest):
        return self.world.relay.status(manifest.round_id).state


@pytest.fixture
def way(tmp_path):
    found = Way(tmp_path)
    with ThreadPoolExecutor(1) as worker:
        found.forwarding = Forwarding(found.world.relay, found.collector, worker)
        yield found
    found.world.relay.store.close()


def test_an_epoch_that_is_stuck_holds_up_no_other(way):
    assert way.forwarding.step() == ["the collector does not know that epoch"]
    assert way.collector.closed == [way.second.round_id]
    assert (way.state(way.first), way.state(way.second)) == ("forwarding", "forwarded")


def test_what_nobody_takes_is_destroyed_in_the_end(way):
    way.forwarding.step()
    way.world.now = way.first.closes + 3599.0
    assert way.forwarding.step()
    assert way.state(way.first) == "forwarding"
    way.world.now = way.first.closes + 3600.0
    assert way.forwarding.step() == []
    assert way.state(way.first) == "destroyed"
    assert way.world.rows("scattered") == []


def test_what_was_destroyed_meanwhile_is_not_closed(way):
    """The batches of a destroyed epoch are of no use without the closing."""
    way.collector.stuck.clear()
    epoch = way.first.round_id
    put = way.collector.put

    def put_and_destroy(batch, body):
        put(batch, body)
        if body[:32] == epoch:
            way.forwarding._work(way.world.relay.void, epoch)

    way.collector.put = put_and_destroy
    assert way.forwarding.step() == ["an epoch was destroyed while it was forwarded"]
    assert way.collector.closed == [way.second.round_id]


def test_a_failure_of_any_kind_is_told_by_its_type(way, caplog):
    def put(batch, body):
        raise ValueError("canary 4711")

    way.collector.put = put
    assert way.forwarding.step() == ["a failure: ValueError"] * 2
    assert "4711" not in caplog.text
