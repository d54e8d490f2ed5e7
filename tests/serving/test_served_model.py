"""Tests of what client and server of a query share."""

import numpy as np
import pytest

from tacit.errors import BadMessage, OtherVersion
from tacit.keys import Key
from tacit.method import ItemSpace
from tacit.serving.query import Mode, Query
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.served_model import ServedModel

from .worlds import interests, item_space, population


def model(epsilon: float = 60.0) -> ServedModel:
    return ServedModel(item_space(), InterestResponse(epsilon, interests()))


def test_a_query_is_decoded_to_what_the_mechanism_decodes():
    [query] = model().release(population()[:1], Key.from_seed(0).alone())
    own = interests().nearest(population()[:1])
    np.testing.assert_allclose(model().decode(query), interests().means[own[0]])
    assert len(query.encode()) == model().query_bytes


def test_every_query_has_the_same_length():
    keys = Key.from_seed(0).each(np.arange(60))
    queries = model(1.0).release(population(), keys)
    assert {len(query.encode()) for query in queries} == {22}


def test_the_version_covers_items_and_noise():
    space = item_space()
    moved = ItemSpace(space.vectors + 1e-9, space.offsets)
    versions = {
        model().version,
        model(1.0).version,
        ServedModel(moved, model().mechanism).version,
    }
    assert len(versions) == 3
    assert model().version == model().version


def test_a_query_of_another_model_is_told_apart():
    [query] = model(1.0).release(population()[:1], Key.from_seed(0).alone())
    with pytest.raises(OtherVersion):
        model(2.0).decode(query)


@pytest.mark.parametrize(
    ("mode", "payload"),
    [(Mode.VDP, b"\0\0"), (Mode.KRR, b"\0"), (Mode.KRR, b""), (Mode.KRR, b"\4\0")],
)
def test_a_query_of_another_mode_size_or_range_is_refused(mode, payload):
    with pytest.raises(BadMessage):
        model().decode(Query(model().version, mode, payload))
