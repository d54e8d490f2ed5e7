"""A relay's way to its collector: what is due goes there, batch by batch.

Whatever happens in between, the same batches are sent under the same ids: the collector
keeps each once. When it has all of them, the relay forgets the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from tacit.errors import Refused, Unanswered
from tacit.service.federation.operator_client import OperatorClient
from tacit.service.http import LOG
from tacit.service.relay.relay import Relay

_LATER = 1.0  # seconds until the collector is tried again
T = TypeVar("T")


class CollectorClient(OperatorClient):
    """One collector, reached at its private address with the secret of the pair."""

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
            wait = self.poll
            try:
                self._work(self.relay.store.settle)
                self.step(stop=stop)
                self.trouble = ""
            except (Unanswered, Refused) as error:
                self.trouble, wait = str(error), _LATER
            except Exception as error:  # the disk; its message may hold what was sent
                LOG.error("nothing could be forwarded: %s", type(error).__name__)
                self.trouble, wait = f"a failure: {type(error).__name__}", _LATER
            stop.wait(wait)

    def step(self, *, stop: threading.Event | None = None) -> None:
        """Forward all that is due now."""
        for epoch in self._work(self.relay.decide):
            self._forward(epoch, stop or threading.Event())

    def _forward(self, epoch: bytes, stop: threading.Event) -> None:
        row = self._work(self.relay.forwarding, epoch)
        for number, (batch, body) in enumerate(self.relay.batches(row)):
            if stop.is_set():
                return
            if number < row.sent:
                continue
            self.relay.passing("before_put")
            self.collector.put(batch, body)
            self.relay.passing("after_put")
            self._work(self.relay.sent, epoch, number + 1)
        self.collector.close_epoch(epoch, self.relay.closing(row).document())
        self.relay.passing("told")
        self._work(self.relay.forwarded, epoch)

    def _work(self, work: Callable[..., T], *args: object) -> T:
        return self.worker.submit(work, *args).result()
