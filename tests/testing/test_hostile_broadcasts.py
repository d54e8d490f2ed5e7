"""Hostile broadcasts are what their names say: refused ones, and ones that fit."""

import numpy as np
import pytest

from tacit.data.catalog import Catalog
from tacit.errors import BadMessage
from tacit.keys import Key
from tacit.plans import Plan
from tacit.testing.hostile_broadcasts import not_agreed, within
from tacit.testing.toy import ToyFactors
from tacit.transport.messages import NO_PHASE

METHOD, PLAN = ToyFactors(), Plan(4, rounds=2)
CATALOG = Catalog.of_ids([f"item {i}" for i in range(6)])
AGREED = METHOD.agreement(PLAN, CATALOG)
HONEST = METHOD.broadcast(METHOD.start(PLAN, CATALOG, Key.from_seed(0)))


def test_the_honest_one_is_agreed():
    AGREED.check(HONEST)


def test_every_broadcast_outside_is_refused():
    # One of no phase is the finished model: it is agreed, and asks nobody anything.
    hostile = [b for b in not_agreed(HONEST) if b.phase != NO_PHASE]
    assert len(hostile) > 10
    for broadcast in hostile:
        with pytest.raises(BadMessage):
            AGREED.check(broadcast)


def test_every_broadcast_inside_passes_and_none_is_the_honest_one():
    layout = AGREED.broadcasts[HONEST.phase]
    inside = [*within(HONEST, layout)]
    assert len(inside) == 6
    for broadcast in inside:
        AGREED.check(broadcast)
        pairs = [(broadcast.weights[n], v) for n, v in HONEST.weights.items()]
        assert not all(np.array_equal(a, b) for a, b in pairs)
