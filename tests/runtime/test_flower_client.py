"""A node under Flower: bytes in, bytes out, and nothing in Flower's context."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

from dataclasses import replace

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from runtime.machines import Case

from tacit.errors import BadMessage
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.runtime.flower_client import (
    FAILED,
    MESSAGE_TYPE,
    answered,
    asked,
    carried,
    client_app,
)
from tacit.testing.contract import mixed_world
from tacit.transport.codec import encode_broadcast
from tacit.transport.node_answer import Share

CASE = Case(FederatedPopularity(max_votes=4), "secure_sum")


@pytest.fixture(autouse=True)
def _task():
    """Messages can be made within a task of Flower's only."""
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1


def context(**settings):
    return Context(
        run_id=1, node_id=2, node_config=settings, state=RecordDict(), run_config={}
    )


def test_a_message_is_answered_by_the_node_of_its_settings(tmp_path):
    alone = CASE.alone()
    question = encode_broadcast(alone.method.broadcast(alone.start().server))
    built = []

    def build(settings, run, head):
        built.append((settings["folder"], run, head))
        return CASE.node(tmp_path, Share(0, 3), run=run)

    app, where = client_app(build, unexpected), context(folder="here")
    message = Message(asked("films", "abc", question), 2, MESSAGE_TYPE)
    reply = app(message, where)
    assert built == [("here", "films", "abc")]
    expected = CASE.node(tmp_path, Share(0, 3), run="films").answer(question)
    assert carried(reply.content, "answer") == expected
    assert not where.state  # private state is in the node's own store


def unexpected(settings, error):
    raise AssertionError from error


def failing(message, build):
    """What the server and what the operator is told where a node fails."""
    noted = []
    app = client_app(build, lambda settings, error: noted.append((settings, error)))
    reply = app(message, context(folder="here"))
    assert reply.has_error()
    [(settings, error)] = noted
    assert settings["folder"] == "here"
    return reply.error.reason, error


def test_a_message_without_a_run_is_refused():
    odd = Message(RecordDict({"run": ConfigRecord({"name": "x"})}), 2, MESSAGE_TYPE)
    said, error = failing(odd, lambda *_: pytest.fail("nothing to build"))
    assert said == FAILED
    assert isinstance(error, BadMessage)


def test_what_goes_wrong_is_told_in_one_sentence(tmp_path):
    """Whatever the error says: a text, or a digest of the users' events."""
    node = CASE.node(tmp_path, Share(0, 3), run="films")
    node.store.join("films", node.terms, node._enrolled)
    world = mixed_world()
    turned = replace(world, shards=world.shards.take(np.arange(12, -1, -1)))
    other = replace(CASE, world=turned)
    node.store.close()
    message = Message(asked("films", "abc", b"?"), 2, MESSAGE_TYPE)
    told = []

    def changed(*_):
        return other.node(tmp_path, Share(0, 3), run="films")

    def broken(*_):
        raise ValueError("user 17 has no item 4")

    for build in (changed, broken):
        said, error = failing(message, build)
        told.append(said)
        assert str(error) not in said
    assert told == [FAILED, FAILED]


def test_bytes_come_back_as_they_were():
    for content in (b"", b"x", bytes(6 * 2**20)):
        assert carried(answered(content), "answer") == content


def record(dtype="uint8", shape=(3,), stype="tacit.bytes", data=b"abc", name="answer"):
    return RecordDict({name: ArrayRecord({"": Array(dtype, shape, stype, data)})})


LIES = {
    "10^11 floats": record(shape=(10**11,)),
    "another type": record(dtype="float64"),
    "an array of numpy's": record(stype="numpy.ndarray"),
    "two axes": record(shape=(1, 3)),
    "no axis": record(shape=()),
    "fewer than there are": record(shape=(2,)),
    "another name": record(name="other"),
    "no array": RecordDict({"answer": ConfigRecord({"a": 1})}),
    "two arrays": RecordDict(
        {"answer": ArrayRecord({"a": Array(np.ones(1)), "b": Array(np.ones(1))})}
    ),
    "nothing": RecordDict(),
}


@pytest.mark.parametrize("name", LIES)
def test_what_an_array_says_is_compared_with_its_bytes(name):
    with pytest.raises(BadMessage):
        carried(LIES[name], "answer")


def test_a_message_has_a_largest_size():
    with pytest.raises(BadMessage, match="100 bytes; no answer"):
        carried(answered(bytes(100)), "answer", most=99)
