"""Room is held for what is on its way, given back whatever happens, and is bounded."""

import pytest

from tacit.service.http import Failure
from tacit.service.intake_room import IntakeRoom, refuse_early


def refused(room, size):
    with pytest.raises(Failure) as caught, room.held(size):
        raise AssertionError("there was room")
    return caught.value.status


def test_requests_and_bytes_are_bounded():
    room = IntakeRoom("reports", bytes=100, requests=2)
    with room.held(60):
        assert refused(room, 41) == 503
        with room.held(40):
            assert (room.bytes, room.requests) == (100, 2)
            assert refused(room, 0) == 429
    assert (room.bytes, room.requests) == (0, 0)


def test_room_is_given_back_when_a_request_fails():
    room = IntakeRoom("reports", bytes=100, requests=1)
    with pytest.raises(ZeroDivisionError), room.held(100):
        raise ZeroDivisionError
    with room.held(100):
        assert refused(room, 1) == 429


@pytest.mark.parametrize(("now", "wait"), [(99.5, 1), (90, 11), (0, 60)])
def test_what_comes_early_is_told_when_to_come_again(now, wait):
    with pytest.raises(Failure, match="the epoch is not open yet") as caught:
        refuse_early("epoch", 100, now)
    assert caught.value.headers["retry-after"] == str(wait)


def test_what_comes_in_time_or_late_is_not_early():
    refuse_early("epoch", 100, 100)
    refuse_early("epoch", 100, 1e9)
