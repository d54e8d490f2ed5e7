"""Batches of sealed seeds and closings: one form each, and nothing counted twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadMessage, BadValue
from tacit.service.federation.seed_batches import (
    MOST_REPORTS,
    Closing,
    SeedBatch,
    reports_in,
)

IDS = st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=9, unique=True)


def named(n: int) -> bytes:
    return n.to_bytes(16, "big")


def batch(*ids: int) -> SeedBatch:
    return SeedBatch({named(i): bytes([i % 256]) * 80 for i in ids})


@given(IDS)
def test_a_batch_is_read_as_it_was_written(ids):
    one = SeedBatch({id_: bytes(64) + id_ for id_ in ids})
    assert len(one.body()) == 96 * len(ids)
    assert [*SeedBatch.read(one.body()).seeds.items()] == [*one.seeds.items()]


@given(IDS, st.data())
def test_an_answer_says_which_were_taken(ids, data):
    one = SeedBatch({id_: bytes(80) for id_ in ids})
    opened = data.draw(st.sets(st.sampled_from(ids)))
    assert one.taken(one.answer(opened)) == [id_ for id_ in ids if id_ in opened]


@pytest.mark.parametrize("answer", [b"", b"\1\1\1", b"\1\2"], ids=["0", "3", "a two"])
def test_another_answer_is_refused(answer):
    with pytest.raises(BadMessage, match="one byte for each"):
        batch(1, 2).taken(answer)


@pytest.mark.parametrize("n", [0, 95, 97, 96 * (MOST_REPORTS + 1)])
def test_a_body_of_another_length_is_refused(n):
    with pytest.raises(BadMessage, match=f"a batch of {n:,} bytes"):
        SeedBatch.read(bytes(n))


def test_a_report_is_in_a_batch_once():
    with pytest.raises(BadMessage, match="one report twice"):
        SeedBatch.read(2 * batch(1).body())


def test_a_report_is_in_one_batch():
    assert [*reports_in([batch(1, 2), batch(3)])] == [named(i) for i in (1, 2, 3)]
    with pytest.raises(BadMessage, match="would count twice"):
        reports_in([batch(1, 2), batch(3, 2)])


@pytest.mark.parametrize(
    "seeds",
    [
        {},
        {bytes(15): bytes(80)},
        {bytes(16): bytes(79)},
        {named(i): bytes(80) for i in range(MOST_REPORTS + 1)},
    ],
    ids=["none", "short id", "short seed", "too many"],
)
def test_a_batch_that_cannot_be_is_refused(seeds):
    with pytest.raises(BadValue):
        SeedBatch(seeds)


@given(IDS, st.integers(0, 5))
def test_a_closing_is_read_as_it_was_written(ids, numbers):
    one = Closing(tuple(sorted(ids)), bytes(range(4 * numbers)))
    assert Closing.read(one.body(), numbers=numbers) == one
    with pytest.raises(BadMessage, match="a closing of"):
        Closing.read(one.body(), numbers=numbers + 1)


def test_a_closing_counts_its_batches_lowest_byte_first():
    body = Closing((named(1), named(2)), b"abcd").body()
    assert body[:4] == b"\2\0\0\0"
    assert body[-4:] == b"abcd"


@pytest.mark.parametrize("ids", [(2, 1), (1, 1)], ids=["not sorted", "twice"])
def test_batches_of_a_closing_are_sorted_and_there_once(ids):
    with pytest.raises(BadValue, match="sorted"):
        Closing(tuple(named(i) for i in ids), b"")
    body = b"\2\0\0\0" + b"".join(named(i) for i in ids)
    with pytest.raises(BadMessage, match="sorted"):
        Closing.read(body, numbers=0)


@pytest.mark.parametrize("body", [b"", b"\1", b"\xff\xff\xff\xff"])
def test_bytes_that_are_no_closing_are_refused(body):
    with pytest.raises(BadMessage, match="a closing of"):
        Closing.read(body, numbers=1)
