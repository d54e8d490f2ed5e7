"""Sorted digests: what is there is found, and the order says nothing."""

import os
import random

import pytest

from tacit.service.relay.digests import Digests


@pytest.mark.parametrize("width", [16, 32])
def test_what_was_added_is_found_and_nothing_else(width):
    known = [os.urandom(width) for _ in range(300)] + [bytes(width), b"\xff" * width]
    found = Digests(width)
    assert os.urandom(width) not in found
    for some in (known[:1], known[1:200], [], known[200:]):
        found = found.with_more(some)
    assert len(found) == len(known)
    assert all(one in found for one in known)
    assert not any(os.urandom(width) in found for _ in range(300))
    assert known[0][:-1] + bytes([known[0][-1] ^ 1]) not in found


def test_the_order_does_not_say_what_came_first():
    known = [os.urandom(16) for _ in range(50)]
    once = Digests(16).with_more(known[:20]).with_more(known[20:])
    random.shuffle(known)
    again = Digests(16).with_more(known)
    assert once == again
    assert once.content == b"".join(sorted(known))
