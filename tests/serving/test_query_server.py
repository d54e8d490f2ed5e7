"""Tests of the server's side of a query."""

import numpy as np
import pytest

from tacit.errors import BadMessage, BadValue
from tacit.keys import Key
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
