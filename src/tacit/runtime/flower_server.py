"""The server under Flower: every round one message to each node, until a deadline.

    grid.push_messages   the same question to every node that is there
    grid.pull_messages   answers as they come, each node in a thread of its own

Nothing of a node can stop a round: a message that Flower cannot read, an error of the
node's process, an answer that is late or too large is one reply with a problem, and
`Federation` drops and names it. A slow upload makes nobody else late: nodes do not wait
for each other, and what is ready at the deadline is still taken. Flower's strategies
are not used.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

from tacit import check
from tacit.errors import BadMessage
from tacit.runtime.federation import Reply
from tacit.runtime.flower_client import MESSAGE_TYPE, asked, carried
from tacit.text import shown

POLL_SECONDS = 0.1  # between two looks for answers
AWAY_SECONDS = 30.0  # for a node to be back; Flower needs about ten after a failure
LAST_LOOK_SECONDS = 5.0  # after the deadline, for answers that are there already

Run = Callable[["GridNodes", Mapping[str, Any]], None]  # plays a run over the nodes


@dataclass(eq=False)
class GridNodes:
    """The nodes of a Flower grid; `deadline` is in seconds, for a whole round.

    A round waits for nodes to be there: half of the deadline for `min_nodes` of them,
    without whom it cannot be finished, and `AWAY_SECONDS` for the others. Whoever was
    waited for in vain is not waited for again, and is asked as soon as it is there.
    """

    grid: Grid
    shares: int
    deadline: float
    min_nodes: int | None = None  # None: all
    run: str = ""  # the run's name in the stores of nodes
    head: str = ""  # the digest of what nodes must have agreed to

    def __post_init__(self) -> None:
        check.positive(deadline=self.deadline)
        self._expected = self.shares  # how many nodes the next round waits for

    def of_run(self, run: str, *, head: str) -> GridNodes:
        """The same nodes, asked in this run."""
        return replace(self, run=run, head=head)

    def ask(self, question: bytes, *, round: int, most_bytes: int) -> Iterator[Reply]:
        """One reply per node that was asked, as they come."""
        ends = time.monotonic() + self.deadline
        there = self._there()
        left = ends - time.monotonic()
        messages = [
            Message(asked(self.run, self.head, question), node, MESSAGE_TYPE, ttl=left)
            for node in there
        ]
        ids = [*self.grid.push_messages(messages)]
        waiting = {node: one for one, node in zip(ids, there, strict=True) if one}
        for node in [n for one, n in zip(ids, there, strict=True) if not one]:
            yield Reply(_named(node), None, "could not be sent the question")
        for node, reply in self._answers(waiting, ends, most_bytes):
            del waiting[node]
            yield reply
        for node in waiting:
            yield Reply(_named(node), None, f"gave no answer in {self.deadline:g} s")

    def _there(self) -> list[int]:
        """The nodes that are connected, after a wait for those who are not."""
        began, half = time.monotonic(), self.deadline / 2
        while True:
            found = sorted(self.grid.get_node_ids())
            is_enough = len(found) >= (self.min_nodes or self.shares)
            patience = min(AWAY_SECONDS, half) if is_enough else half
            is_all = is_enough and len(found) >= self._expected
            if is_all or time.monotonic() - began >= patience:
                self._expected = len(found)
                return found
            time.sleep(POLL_SECONDS)

    def _answers(
        self, waiting: Mapping[int, str], ends: float, most_bytes: int
    ) -> Iterator[tuple[int, Reply]]:
        """Replies until the deadline, and then those that are there already.

        A thread that hangs in an upload is left behind, with what it will bring.
        """
        found: queue.SimpleQueue[tuple[int, Reply | Exception | None]]
        found = queue.SimpleQueue()

        def look(node: int, one: str) -> None:
            try:
                found.put((node, self._awaited(node, one, ends, most_bytes)))
            except Exception as error:  # raised again where the round is played
                found.put((node, error))

        for node, one in waiting.items():
            threading.Thread(target=look, args=(node, one), daemon=True).start()
        for _ in range(len(waiting)):
            left = ends + LAST_LOOK_SECONDS - time.monotonic()
            try:
                node, reply = found.get(timeout=max(left, 0.0))
            except queue.Empty:
                return
            if isinstance(reply, Exception):
                raise reply
            if reply is not None:
                yield node, reply

    def _awaited(
        self, node: int, one: str, ends: float, most_bytes: int
    ) -> Reply | None:
        """The reply of a node as soon as it is there; None if it is not at the end."""
        while True:
            is_last = time.monotonic() >= ends  # looked at before, so that it is whole
            reply = self._pulled(node, one, most_bytes)
            if reply is not None or is_last:
                return reply
            time.sleep(min(POLL_SECONDS, max(ends - time.monotonic(), 0.0)))

    def _pulled(self, node: int, one: str, most_bytes: int) -> Reply | None:
        """The reply of a node, if it is there; one at a time, so that none can harm."""
        try:
            found = [*self.grid.pull_messages([one])]
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:  # of whatever kind: these bytes came from outside
            if type(error).__module__.startswith("httpx"):
                raise  # the SuperLink is gone, which is nobody's reply
            return Reply(_named(node), None, f"cannot be read: {error!r}"[:500])
        return _reply(node, found[0], most_bytes) if found else None


def server_app(play: Run) -> ServerApp:
    """The app that Flower loads at the server; `play` plays a run over the nodes."""

    def main(grid: Grid, context: Context) -> None:
        settings = context.run_config
        nodes = GridNodes(
            grid,
            shares=int(settings["shares"]),
            deadline=float(settings["deadline"]),
            min_nodes=int(settings["min-nodes"]) or None,
        )
        play(nodes, settings)

    app = ServerApp()
    app.main()(main)
    return app


def _reply(node: int, message: Message, most_bytes: int) -> Reply:
    name = _named(node)
    if message.has_error():
        return Reply(name, None, f"failed: {shown(message.error.reason)}")
    try:
        return Reply(name, carried(message.content, "answer", most=most_bytes))
    except BadMessage as error:
        return Reply(name, None, str(error))
    except Exception as error:  # a content of another kind
        return Reply(name, None, f"cannot be read: {error!r}"[:500])


def _named(node: int) -> str:
    return f"node {node}"
