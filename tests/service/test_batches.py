"""Tests of queries that are ranked together."""

import asyncio

import pytest
from service.worlds import query, served_model

from tacit.errors import BadMessage, OtherVersion
from tacit.service.batches import Batches
from tacit.service.metrics import Metrics
from tacit.serving.query_server import QueryServer

SERVER = QueryServer(served_model())


class Counting:
    """A ranker that remembers how many queries came together."""

    def __init__(self):
        self.sizes = []

    def answers(self, messages, count):
        self.sizes.append((len(messages), count))
        return SERVER.answers(messages, count)


def ranked(ranker, asked):
    """What each of these queries gets that arrive together: a list or an error."""

    async def all_of_them():
        batches = Batches(ranker, Metrics())
        tasks = [batches.best(message, count) for message, count in asked]
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(all_of_them())


def test_those_that_arrive_together_are_ranked_together_by_their_count():
    ranker = Counting()
    asked = [(query(user=n).encode(), 3 + n % 2) for n in range(9)]
    found = ranked(ranker, asked)
    assert sorted(ranker.sizes) == [(4, 4), (5, 3)]
    for (message, count), one in zip(asked, found, strict=True):
        alone = SERVER.answer(message, count)
        assert one.items.tolist() == alone.items.tolist()
        assert one.scores.tolist() == alone.scores.tolist()


def test_one_that_is_refused_harms_no_other():
    good, wrong = query().encode(), query().encode()[:-2] + b"\xff\xff"
    other = query(served_model(3.0)).encode()
    found = ranked(Counting(), [(good, 3), (wrong, 3), (other, 3), (good, 3)])
    assert [type(one) for one in found[1:3]] == [BadMessage, OtherVersion]
    assert found[0].items.tolist() == found[3].items.tolist()


def test_a_bug_is_everybodys():
    class Broken:
        def answers(self, messages, count):
            raise ZeroDivisionError

    found = ranked(Broken(), [(b"", 1), (b"", 1)])
    assert [type(one) for one in found] == [ZeroDivisionError] * 2


def test_whoever_is_gone_is_left_out():
    async def one_goes():
        batches = Batches(Counting(), Metrics())
        going = asyncio.ensure_future(batches.best(query().encode(), 3))
        staying = asyncio.ensure_future(batches.best(query().encode(), 3))
        await asyncio.sleep(0)  # both have begun
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        return await staying

    assert len(asyncio.run(one_goes()).items) == 3
