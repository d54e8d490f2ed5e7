"""Room is taken by bytes that arrived, given back whatever happens, and is bounded."""

import asyncio

import pytest

from tacit.service.http import Failure, IncomingBody
from tacit.service.intake_room import IntakeRoom, refuse_early


class Upload:
    """A body of 100 bytes whose pieces a test sends; what became of it."""

    def __init__(self, room, owner=None, *, seconds=30.0):
        self.pieces = asyncio.Queue()
        self.body = IncomingBody(self._receive, 100, seconds=seconds, what="report")
        self.is_released = asyncio.Event()
        self.task = asyncio.create_task(self._take(room, owner))

    async def _receive(self):
        return await self.pieces.get()

    async def _take(self, room, owner):
        with room.hold(self.body, owner):
            await self.body.read()
            await self.is_released.wait()

    async def send(self, size):
        more = self.body.arrived + size < 100
        self.pieces.put_nowait({"type": "", "body": bytes(size), "more_body": more})
        await settle()

    async def is_late_by(self, seconds):
        await settle()
        self.body._began -= seconds

    async def refusal(self):
        with pytest.raises(Failure) as caught:
            await asyncio.wait_for(self.task, 5)
        return caught.value.status, caught.value.kind

    async def end(self):
        self.is_released.set()
        await asyncio.wait_for(self.task, 5)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def run(test):
    """The test as a coroutine, given a room for two bodies and 150 bytes."""

    def run_it():
        asyncio.run(test(IntakeRoom("reports", bytes=150, requests=2)))

    run_it.__name__, run_it.__doc__ = test.__name__, test.__doc__
    return run_it


@run
async def test_announced_bytes_take_no_room(room):
    one, two = Upload(room), Upload(room)
    await settle()
    assert (room.bytes, room.requests) == (0, 2)
    await one.send(60)
    assert room.bytes == 60
    await one.send(40)
    await one.end()
    await two.send(100)
    await two.end()
    assert (room.bytes, room.requests) == (0, 0)


@run
async def test_bodies_in_time_are_not_pushed_out(room):
    """Of equals, the one that needs room is refused, and one too many."""
    one, two = Upload(room), Upload(room)
    await one.send(90)
    third = Upload(room)
    assert await third.refusal() == (429, "Busy")
    await two.send(61)
    assert await two.refusal() == (503, "Queue")
    assert room.bytes == 90
    await one.send(10)
    await one.end()


@run
async def test_the_body_furthest_behind_gives_way_to_another_body(room):
    slow, slower = Upload(room), Upload(room)
    await slow.is_late_by(1.5)
    await slower.is_late_by(1.8)
    honest = Upload(room)
    assert await slower.refusal() == (503, "Queue")
    await honest.send(100)
    await honest.end()
    assert room.requests == 1
    slow.task.cancel()


@run
async def test_the_body_furthest_behind_gives_way_to_bytes(room):
    slow, honest = Upload(room), Upload(room)
    await slow.send(60)
    await slow.is_late_by(25)
    await honest.send(100)
    assert await slow.refusal() == (503, "Queue")
    assert room.bytes == 100
    await honest.end()


@run
async def test_the_last_piece_of_the_body_furthest_behind_is_refused(room):
    """By an answer: its task is not cancelled in the middle of what follows."""
    slow, waiting = Upload(room), Upload(room)
    await slow.send(50)
    await waiting.send(100)
    await slow.is_late_by(25)
    await slow.send(50)
    assert await slow.refusal() == (503, "Queue")
    assert room.bytes == 100
    await waiting.end()


@run
async def test_a_whole_body_gives_way_to_nobody(room):
    """However long it waits to be counted."""
    waiting = Upload(room)
    await waiting.send(100)
    await waiting.is_late_by(25)
    other = Upload(room)
    await other.send(60)
    assert await other.refusal() == (503, "Queue")
    await waiting.end()


@run
async def test_an_owner_has_one_body_on_its_way(room):
    first = Upload(room, "ticket")
    await first.send(10)
    second, other = Upload(room, "ticket"), Upload(room, "another ticket")
    assert await first.refusal() == (503, "Queue")
    await second.send(100)
    again = Upload(room, "ticket")  # the whole one before it goes on
    await again.send(50)
    await second.end()
    again.task.cancel()
    other.task.cancel()


def test_room_is_given_back_when_a_request_fails():
    async def fail(room):
        body = IncomingBody(None, 100, seconds=1, what="report")
        with pytest.raises(ZeroDivisionError), room.hold(body, "ticket"):
            raise ZeroDivisionError
        assert (room.bytes, room.requests, room._by_owner) == (0, 0, {})

    asyncio.run(fail(IntakeRoom("reports", bytes=100, requests=1)))


@pytest.mark.parametrize(("now", "wait"), [(99.5, 1), (90, 11), (0, 60)])
def test_what_comes_early_is_told_when_to_come_again(now, wait):
    with pytest.raises(Failure, match="the epoch is not open yet") as caught:
        refuse_early("epoch", 100, now)
    assert caught.value.headers["retry-after"] == str(wait)


def test_what_comes_in_time_or_late_is_not_early():
    refuse_early("epoch", 100, 100)
    refuse_early("epoch", 100, 1e9)
