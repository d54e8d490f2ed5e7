"""Tests of the server's side of a query."""

import numpy as np
import pytest

from tacit.errors import BadMessage, BadValue
from tacit.keys import Key
from tacit.method import ItemSpace
from tacit.serving.noisy_vector import NoisyVector
from tacit.serving.query import Mode, Query
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.query_server import QueryServer
from tacit.serving.served_model import ServedModel

from .worlds import ITEMS, interests, item_space, population

SERVER = QueryServer(ServedModel(item_space(), InterestResponse(60.0, interests())))


@pytest.mark.parametrize("count", [1, 5, ITEMS, 10 * ITEMS])
def test_the_list_is_that_of_an_exact_scan(count):
    [query] = SERVER.model.release(population()[:1], Key.from_seed(0).alone())
    scores = item_space().scores(SERVER.model.decode(query)[None])[0]
    best = SERVER.answer(query.encode(), count)
    assert best.items.tolist() == np.argsort(-scores)[:count].tolist()
    np.testing.assert_allclose(best.scores, scores[best.items], rtol=1e-5)


def test_bytes_that_are_no_query_are_refused():
    with pytest.raises(BadMessage):
        SERVER.answer(b"anything", 5)


def test_a_list_has_a_place_at_least():
    [query] = SERVER.model.release(population()[:1], Key.from_seed(0).alone())
    with pytest.raises(BadValue, match="count"):
        SERVER.answer(query, 0)


@pytest.mark.parametrize("count", [1, 5, 8, 9, ITEMS, 10 * ITEMS])
def test_lists_that_are_known_beforehand_are_those_of_a_full_sort(count):
    """With ties: every item has a twin, and the smaller place comes first."""
    space = item_space()
    twins = ItemSpace(np.tile(space.vectors, (2, 1)), np.tile(space.offsets, 2))
    model = ServedModel(twins, InterestResponse(1.0, interests()))
    prepared = QueryServer(model).prepared(8)
    assert prepared.known is not None
    queries = [
        Query(model.version, Mode.KRR, np.array([n], "<u2").tobytes())
        for n in (2, 0, 3, 1, 2)
    ]
    lists, plain = prepared.answers(queries, count), QueryServer(model)
    for n, query in enumerate(queries):
        user = np.append(model.decode(query), 1.0).astype(np.float32)
        items = np.column_stack([twins.vectors, twins.offsets]).astype(np.float32)
        scores = items.astype(np.float64) @ user.astype(np.float64)
        expected = np.argsort(-scores.round(9), kind="stable")[:count]
        assert lists[n].items.tolist() == expected.tolist()
        assert lists[n].items.tobytes() == plain.answer(query, count).items.tobytes()
        assert lists[n].scores.tobytes() == plain.answer(query, count).scores.tobytes()


def test_a_server_that_knows_its_lists_refuses_what_any_server_refuses():
    prepared = SERVER.prepared(5)
    with pytest.raises(BadMessage):
        prepared.answer(b"anything", 5)
    beyond = Query(SERVER.model.version, Mode.KRR, np.array([4], "<u2").tobytes())
    with pytest.raises(BadMessage, match="interest 4"):
        prepared.answer(beyond, 5)


def test_noisy_numbers_have_no_lists_beforehand():
    vector = NoisyVector.whole(1.0, population(), delta=0.0)
    assert QueryServer(ServedModel(item_space(), vector)).prepared(5).known is None
