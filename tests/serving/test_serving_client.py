"""Tests of the client's side of a query: one release per period, and its ledger."""

from datetime import timedelta

import numpy as np
import pytest

from tacit.errors import BadValue, Refused
from tacit.ledger.budget import Cap
from tacit.ledger.durable import ClientLedger
from tacit.release import Unit, View
from tacit.serving.query import Query
from tacit.serving.query_mechanism import InterestResponse
from tacit.serving.served_model import ServedModel
from tacit.serving.serving_client import ServingClient, Unasked

from .worlds import interests, item_space, population

DAY = 86_400.0
USER = (Unit.USER, View.SERVER)


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.seconds = 1000 * DAY

    def __call__(self):
        return self.seconds


def model(epsilon=2.0):
    return ServedModel(item_space(), InterestResponse(epsilon, interests()))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


def of(history):
    return lambda: history


def never():
    raise AssertionError("the history was read")


def test_one_release_per_period_and_the_same_bytes_in_between(path, clock):
    with ServingClient(path, model(), now=clock) as client:
        first = client.query(of(population()[0]))
        clock.seconds += DAY / 2
        assert client.query(never) == first
        assert len(client.ledger.entries()) == 1
        clock.seconds += DAY
        client.query(of(population()[0]))
        assert len(client.ledger.entries()) == 2
        assert client.ledger.spent(USER, delta=0.0).value == pytest.approx(4.0)


def test_a_clock_that_is_put_back_gets_the_old_query(path, clock):
    with ServingClient(path, model(), now=clock) as client:
        first = client.query(of(population()[0]))
        clock.seconds += DAY
        client.query(of(population()[1]))
        clock.seconds -= DAY
        assert client.query(never) == first


def test_the_query_outlives_the_process(path, clock):
    with ServingClient(path, model(), now=clock) as client:
        first = client.query(of(population()[0]))
    with ServingClient(path, model(), now=clock) as client:
        assert client.query(never) == first


def test_the_charge_is_on_the_disk_before_the_history_is_read(path, clock):
    def reads():
        with ClientLedger(path) as other:
            assert len(other.entries()) == 1
        return population()[0]

    with ServingClient(path, model(), now=clock) as client:
        assert isinstance(client.query(reads), Query)
        assert not client.failures


def test_a_cap_is_kept_and_said(path, clock):
    """Three releases of 2 pass a cap of 5: the third is not made."""
    with ServingClient(path, model(), now=clock) as client:
        client.ledger.set_cap(Cap(5.0))
        for _ in range(2):
            assert isinstance(client.query(of(population()[0])), Query)
            clock.seconds += DAY
        refused = client.query(never)
        assert isinstance(refused, Unasked)
        assert "cap" in refused.reason
        assert len(client.ledger.entries()) == 2


def test_no_more_is_released_than_was_agreed(path, clock):
    with ServingClient(path, model(), releases=1, now=clock) as client:
        client.query(of(population()[0]))
        clock.seconds += DAY
        assert isinstance(client.query(never), Unasked)


def test_a_failure_is_answered_from_public_numbers(path, clock):
    """The charge stands, a query leaves, and the owner can read why."""

    def fails():
        raise ValueError("no such item")

    certain = ServedModel(item_space(), InterestResponse(60.0, interests()))
    with ServingClient(path, certain, now=clock) as client:
        query = client.query(fails)
        nobody = interests().nearest(certain.mechanism.nobody[None])
        assert np.frombuffer(query.payload, "<u2").tolist() == nobody.tolist()
        assert list(client.failures) == ["ValueError: no such item"]


def test_after_a_crash_the_history_is_not_read_again(path, clock):
    """Killed between charge and release: a public query leaves, charged once."""

    class Killed(BaseException):
        pass

    def dies():
        raise Killed

    with ServingClient(path, model(), now=clock) as client, pytest.raises(Killed):
        client.query(dies)
    with ServingClient(path, model(), now=clock) as client:
        assert isinstance(client.query(never), Query)
        assert not client.failures
        assert len(client.ledger.entries()) == 1


def test_a_new_model_waits_for_the_next_period(path, clock):
    other = ServedModel(item_space(), InterestResponse(2.0, interests()))
    object.__setattr__(other, "version", bytes(16))
    with ServingClient(path, model(), now=clock) as client:
        client.query(of(population()[0]))
    with ServingClient(path, other, now=clock) as client:
        refused = client.query(never)
        assert isinstance(refused, Unasked)
        assert "earlier model" in refused.reason
        clock.seconds += DAY
        assert client.query(of(population()[0])).version == bytes(16)


def test_other_terms_need_another_name(path, clock):
    ServingClient(path, model(), now=clock).close()
    with pytest.raises(Refused, match="other terms"):
        ServingClient(path, model(3.0), now=clock)
    ServingClient(path, model(3.0), run="serving at 3", now=clock).close()


def test_what_arrived_is_noted(path, clock):
    with ServingClient(path, model(), now=clock) as client:
        query = client.query(of(population()[0]))
        assert client.ledger.waiting() == 1
        client.delivered(query)
        assert client.ledger.waiting() == 0


def test_a_period_is_longer_than_nothing(path):
    with pytest.raises(BadValue, match="refresh"):
        ServingClient(path, model(), refresh=timedelta(0))
