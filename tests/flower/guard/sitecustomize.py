"""In every process of a loopback test: connections stay on this machine, or are noted.

Python imports this module at start when its folder is in PYTHONPATH. A connection or a
look-up of a name that is not this machine's is written to $TACIT_TEST_CONNECTIONS and
refused. $TACIT_TEST_HOSTILE makes a node answer what was not agreed: round by round.
$TACIT_TEST_HANGS names a file: the round that finds none makes it, and never ends.
"""

import os
import socket
import sys

_LOCAL = ("127.", "::1", "localhost", "0.0.0.0")


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect":
        family, address = arguments[0].family, arguments[1]  # type: ignore[attr-defined]
        if family not in (socket.AF_INET, socket.AF_INET6):
            return
        host = str(address[0])  # type: ignore[index]
    elif event == "socket.getaddrinfo":
        host = str(arguments[0])
        if host in ("None", "b''", ""):
            return
    else:
        return
    if host.startswith(_LOCAL) or host in ("::", socket.gethostname()):
        return
    with open(os.environ["TACIT_TEST_CONNECTIONS"], "a") as log:
        log.write(f"{event} {host} by {' '.join(sys.argv)}\n")
    raise ConnectionRefusedError(f"{host} is not this machine")


def _make_hostile() -> None:
    import numpy as np
    from flwr.app import Array, ArrayRecord, RecordDict

    from tacit.runtime import flower_client
    from tacit.runtime.node import Node
    from tacit.transport.codec import decode_broadcast, encode_partial
    from tacit.transport.messages import PartialSum
    from tacit.transport.node_answer import Kind, NodeAnswer

    honest, carried = Node.answer, flower_client.answered
    kinds = ("nan", "shape", "large", "claims", "version")

    def sealed(node, question, total):
        message = encode_partial(decode_broadcast(question), PartialSum(total))
        store = bytes.fromhex(node.store.id)
        made = NodeAnswer(Kind.PARTIAL_SUM, node.share, (message,), store=store)
        return made.encode()

    def answer(node, question):
        broadcast, n = decode_broadcast(question), len(node.simulation.catalog)
        kind = kinds[broadcast.round % len(kinds)]
        said = honest(node, question)
        if kind == "nan":
            return sealed(node, question, {"votes": np.full(n, np.nan)})
        if kind == "shape":
            return sealed(node, question, {"votes": np.zeros(n + 1)})
        if kind == "large":
            return sealed(node, question, {"votes": np.zeros(12_500_000)})
        if kind == "version":
            return said[:4] + bytes([0]) + said[5:]
        return b"claims"

    def answered(content):
        if content != b"claims":
            return carried(content)
        lie = Array("float64", (10**11,), "numpy.ndarray", b"x" * 100)
        return RecordDict({"answer": ArrayRecord({"": lie})})

    Node.answer, flower_client.answered = answer, answered


def _make_hang(began: str) -> None:
    import time

    from tacit.runtime.node import Node

    honest = Node._messages

    def messages(node, cohort, broadcast):
        if not os.path.exists(began):
            open(began, "w").close()
            time.sleep(600)
        yield from honest(node, cohort, broadcast)

    Node._messages = messages


if "TACIT_TEST_CONNECTIONS" in os.environ:
    sys.addaudithook(_watch)
if os.environ.get("TACIT_TEST_HOSTILE") and "flwr-clientapp" in sys.argv[0]:
    _make_hostile()
if os.environ.get("TACIT_TEST_HANGS") and "flwr-clientapp" in sys.argv[0]:
    _make_hang(os.environ["TACIT_TEST_HANGS"])
