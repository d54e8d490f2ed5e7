"""Tests of the bytes of a query."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadMessage, BadValue
from tacit.serving.query import HEADER_BYTES, Mode, Query

VERSION = bytes(range(16))


@given(payload=st.binary(max_size=64), mode=st.sampled_from([*Mode][1:]))
def test_a_query_comes_back_from_its_bytes(payload, mode):
    query = Query(VERSION, mode, payload)
    assert Query.decode(query.encode()) == query
    assert len(query.encode()) == HEADER_BYTES + len(payload)


@given(message=st.binary(max_size=40))
def test_other_bytes_are_refused_or_are_a_query(message):
    with contextlib.suppress(BadMessage):
        assert Query.decode(message).encode() == message


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"TQ",
        b"XX\x01\x01" + VERSION,
        b"TQ\x02\x01" + VERSION,
        b"TQ\x01\x09" + VERSION,
    ],
)
def test_what_is_no_query_is_refused(message):
    with pytest.raises(BadMessage):
        Query.decode(message)


def test_ranking_on_the_device_sends_no_query():
    with pytest.raises(BadValue, match="on_device"):
        Query(VERSION, Mode.ON_DEVICE, b"")


def test_a_version_has_sixteen_bytes():
    with pytest.raises(BadValue, match="16"):
        Query(b"short", Mode.KRR, b"")
