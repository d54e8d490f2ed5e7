"""A relay's way to its collector: what is due goes there, batch by batch.

Whatever happens in between, the same batches are sent under the same ids: the collector
keeps each once. When it has all of them, the relay forgets the epoch. Every epoch has
one try at a time, so that one which is stuck holds up no other.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import ClassVar, TypeVar

from tacit.errors import Refused, Unanswered
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.http import LOG
from tacit.service.relay.relay import Relay

_LATER = 1.0  # seconds until the collector is tried again
T = TypeVar("T")


class CollectorClient(OperatorClient):
    """One collector, reached at its private address with the secret of the pair."""

    greeted: ClassVar[str] = "/v1/epochs"

    def put(self, batch: bytes, body: bytes) -> None:
        """Hand over a batch of shuffled messages; it is on the collector's disk."""
        self._asked("PUT", f"/v1/batches/{batch.hex()}", body, allowed=(200, 201))

    def close_epoch(self, epoch: bytes, closing: bytes) -> None:
        """Say that all of an epoch was handed over."""
        self._asked("POST", f"/v1/epochs/{epoch.hex()}/closing", closing)


class Forwarding:
    """Forwards or destroys what is due. `worker` is the thread that has the file."""

    def __init__(
        self,
        relay: Relay,
        collector: CollectorClient,
        worker: Executor,
        *,
        poll: float = 0.5,
    ) -> None:
        self.relay, self.collector, self.worker = relay, collector, worker
        self.poll = poll
        self.trouble = ""  # why nothing goes on, for the operator

    def play(self, *, stop: threading.Event) -> None:
        """Look for what is due, until somebody stops it."""
        while not stop.is_set():
            found = self.step(stop=stop)
            self.trouble = "; ".join(dict.fromkeys(found))
            stop.wait(_LATER if found else self.poll)

    def step(self, *, stop: threading.Event | None = None) -> list[str]:
        """Forward all that is due now, each epoch once; what went wrong."""
        stop, found = stop or threading.Event(), list[str]()
        with _noted(found):
            for epoch in self._work(self.relay.unscattered):
                with _noted(found):
                    self._work(self.relay.scatter, epoch)
            self._work(self.relay.store.settle)
        with _noted(found):
            for epoch in self._work(self.relay.decide):
                with _noted(found):
                    self._forward(epoch, stop)
        return found

    def _forward(self, epoch: bytes, stop: threading.Event) -> None:
        row, number = self._work(self.relay.forwarding, epoch), -1
        for number, (batch, body) in enumerate(self.relay.batches(row)):
            if stop.is_set():
                return
            if number < row.sent:
                continue
            self.relay.passing("before_put")
            self.collector.put(batch, body)
            self.relay.passing("after_put")
            self._work(self.relay.sent, epoch, number + 1)
        self._work(self.relay.sent, epoch, number + 1)  # refuses what was destroyed
        self.collector.close_epoch(epoch, self.relay.closing(row).document())
        self.relay.passing("told")
        self._work(self.relay.forwarded, epoch)

    def _work(self, work: Callable[..., T], *args: object) -> T:
        return self.worker.submit(work, *args).result()


@contextlib.contextmanager
def _noted(found: list[str]) -> Iterator[None]:
    """Note a failure for the operator, and go on with what is next."""
    try:
        yield
    except (Unanswered, Refused) as error:
        found.append(str(error))
    except Exception as error:  # the disk; its message may hold what was sent
        LOG.error("nothing could be forwarded: %s", type(error).__name__)
        found.append(f"a failure: {type(error).__name__}")
