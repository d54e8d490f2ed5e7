"""A node under Flower: one message in, one message out, and nothing kept by Flower.

Flower starts a process for every message. So the node's data, private state and answers
are in its own folder, never in Flower's context, which lives in memory for one run and
travels. Flower's own sampling, privacy wrappers and secure aggregation are not used.

    message   "run"       the name of the run for the node's store, and its head
              "question"  an encoded broadcast
    reply     "answer"    an encoded answer: `tacit.transport.node_answer`

Bytes travel as an array of Flower's, because it cuts those into chunks. What an array
says of itself is compared with its bytes before anything is made of it.

An error may say something of the node's users, in its text or in a digest. So whatever
goes wrong is told in one sentence that is always the same, and only the node's operator
is told more. Two refusals follow from what the operator agreed to and from no history.
Each has a sentence of its own, which is always the same as well: see `Declined`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    RecordDict,
)
from flwr.clientapp import ClientApp

from tacit.errors import BadMessage
from tacit.runtime.declined import Declined
from tacit.runtime.node import Node

MESSAGE_TYPE = "query.round"
_PLAIN = "tacit.bytes"  # how the bytes were made: they are what they are

# From the settings of the node, the name of the run, and the head that it must have.
Build = Callable[[Mapping[str, Any], str, str], Node]
# Tells the operator of the node with these settings what went wrong.
Note = Callable[[Mapping[str, Any], Exception], None]
FAILED = "the node could not answer; its operator finds the reason in node.log"
_CODE = 1  # of an error that is not Flower's own


def client_app(build: Build, note: Note) -> ClientApp:
    """The app that Flower loads on a node; `build` makes the node of its settings.

    What goes wrong goes to `note`, and a fixed sentence to the server: that of a
    `Declined`, or the one for everything else.
    """

    def answer(message: Message, context: Context) -> Message:
        settings = context.node_config
        try:
            run, head, question = _asked(message.content)
            node = build(settings, run, head)
            try:
                said = node.answer(question)
            finally:
                node.store.close()
        except Exception as error:  # of whatever kind: its text is the node's own
            note(settings, error)
            told = error.told if isinstance(error, Declined) else FAILED
            return Message(Error(_CODE, told), reply_to=message)
        return Message(answered(said), reply_to=message)

    app = ClientApp()
    app.query("round")(answer)
    return app


def asked(run: str, head: str, question: bytes) -> RecordDict:
    """The content of a message to a node."""
    named = ConfigRecord({"name": run, "head": head})
    return RecordDict({"run": named, "question": _carried(question)})


def answered(content: bytes) -> RecordDict:
    """The content of a node's reply."""
    return RecordDict({"answer": _carried(content)})


def _asked(content: RecordDict) -> tuple[str, str, bytes]:
    run = content.get("run")
    if not isinstance(run, ConfigRecord) or {*run} != {"name", "head"}:
        raise BadMessage("a message to a node says the name and the head of its run")
    return str(run["name"]), str(run["head"]), carried(content, "question")


def _carried(content: bytes) -> ArrayRecord:
    return ArrayRecord({"": Array("uint8", (len(content),), _PLAIN, content)})


def carried(content: RecordDict, name: str, *, most: int | None = None) -> bytes:
    """The bytes that a message carries under this name; refuses any other content."""
    record = content.get(name)
    if not isinstance(record, ArrayRecord) or [*record] != [""]:
        raise BadMessage(f"a message holds {sorted(content)}; needed is '{name}'")
    array = record[""]
    if (array.dtype, array.stype) != ("uint8", _PLAIN):
        raise BadMessage(f"'{name}' is {array.dtype} as {array.stype}; sent are bytes")
    # What it claims to hold is never allocated: only these bytes are.
    if array.shape != (len(array.data),):
        raise BadMessage(
            f"'{name}' claims the shape {[*array.shape]} and has {len(array.data):,} "
            "bytes"
        )
    if most is not None and len(array.data) > most:
        raise BadMessage(
            f"'{name}' has {len(array.data):,} bytes; no answer that was agreed has "
            f"more than {most:,}"
        )
    return bytes(array.data)
