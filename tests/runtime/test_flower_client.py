"""A node under Flower: bytes in, bytes out, and nothing in Flower's context."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is in .venv-flower: make test-flower")

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from runtime.machines import Case

from tacit.errors import BadMessage
from tacit.methods.federated_popularity import FederatedPopularity
from tacit.runtime.flower_client import (
    MESSAGE_TYPE,
    answered,
    asked,
    carried,
    client_app,
)
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

    app, where = client_app(build), context(folder="here")
    message = Message(asked("films", "abc", question), 2, MESSAGE_TYPE)
    reply = app(message, where)
    assert built == [("here", "films", "abc")]
    expected = CASE.node(tmp_path, Share(0, 3), run="films").answer(question)
    assert carried(reply.content, "answer") == expected
    assert not where.state  # private state is in the node's own store


def test_a_message_without_a_run_is_refused(tmp_path):
    app = client_app(lambda *_: pytest.fail("nothing to build"))
    odd = RecordDict({"run": ConfigRecord({"name": "x"})})
    with pytest.raises(BadMessage, match="name and the head"):
        app(Message(odd, 2, MESSAGE_TYPE), context())


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
