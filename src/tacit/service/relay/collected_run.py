"""What a collector computes: broadcasts, messages, the model. It holds no event.

    form(server)            what the messages of the next epoch look like
    legal(server)           tells those that an honest client may have sent
    next(server, rows)      the server one epoch later, from opened messages
    to_bytes, from_bytes    the server on the disk: then messages are deleted
    without_memory          what is left of it on the disk when the model is published

The method's own `aggregate` gets the messages as `Unlinked`, exactly what the simulated
channel `shuffle` delivers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from safetensors.numpy import load, save

from tacit.errors import BadMessage, Refused
from tacit.experiment.assemble import Assembled
from tacit.experiment.training import refuse_past_target, refuse_unproven
from tacit.method import Server
from tacit.privacy.privacy import Legal
from tacit.runtime.simulate import check_plan
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.invited_run import InvitedRun, refuse_unreached
from tacit.service.relay.messages import MessageForm, Rows
from tacit.transport.channels import Delivery
from tacit.tree import Array

_WEIGHTS, _MEMORY = "weights/", "memory/"


@dataclass(frozen=True, eq=False)
class CollectedRun(InvitedRun):
    """A run over a real relay, without anybody's data."""

    @classmethod
    def of(
        cls,
        assembled: Assembled,
        *,
        relay: bytes,
        collector: bytes,
        title: str = "",
        contact: str = "",
        edition: str = "",
        one_machine: bool = False,
    ) -> Self:
        """The run of an assembled experiment, with the operators' public signing keys.

        Refuses one whose reports are not protected by the clients themselves: a
        collector reads every message. Refuses a minimum that is never reached, too.
        """
        refuse_past_target(assembled)
        refuse_unproven(assembled)
        check_plan(assembled.method, assembled.plan)
        found = assembled.simulation.releases
        if not all(any(c.is_local for c in one.cells.values()) for one in found):
            raise Refused(
                f"{type(assembled.method).__name__} is not protected by its clients, "
                "and a collector reads every message; use a local mechanism"
            )
        refuse_unreached(assembled.plan)
        invitation = Invitation(
            assembled.experiment.method_name,
            assembled.method,
            assembled.plan,
            assembled.split.catalog,
            relay,
            collector,
            title,
            contact,
            edition,
            one_machine,
        )
        made = cls(assembled, invitation)
        for phase in range(len(invitation.agreement.reports)):
            size = made._message_form(phase).message_bytes
            made._legal(phase, np.zeros((1, size), np.uint8))  # refuses what it cannot
        return made

    # epochs

    def legal(self, server: Server) -> Callable[[Rows], Legal]:
        """Tells which messages an honest client may have sent in the next epoch."""
        return partial(self._legal, self._phase(server))

    def _legal(self, phase: int, rows: Rows) -> Legal:
        invited = self.invitation
        form = self._message_form(phase)
        fine = form.sound(rows)
        if fine.any():
            tree = form.tree(rows[fine])
            fine[fine] = invited.method.legal(
                tree, invited.plan, invited.catalog, phase=phase
            )
        return fine

    def next(self, server: Server, rows: Rows, *, uploads: int) -> Server:
        """The server one epoch later, from messages that are legal."""
        delivery = self.form(server).delivery([rows], reports=uploads)
        return self._aggregated(server, delivery)

    def _aggregated(self, server: Server, delivery: Delivery) -> Server:
        """Refuses to go on with a broadcast that no client would answer."""
        after = super()._aggregated(server, delivery)
        broadcast = self.invitation.method.broadcast(after)
        self.invitation.agreement.check(broadcast)
        return after

    def _message_form(self, phase: int) -> MessageForm:
        form = self.invitation.form(phase)
        assert isinstance(form, MessageForm)  # of the one channel with a relay
        return form

    # the disk

    def to_bytes(self, server: Server) -> bytes:
        """What the server has learnt, as it is kept on the disk."""
        named = {_WEIGHTS + name: value for name, value in server.weights.items()}
        named |= {_MEMORY + name: value for name, value in server.memory.items()}
        arrays = {name: value.copy(order="C") for name, value in named.items()}
        return bytes(save(arrays))

    def from_bytes(self, content: bytes, *, round: int) -> Server:
        """The server after so many epochs, from what was kept of it."""
        arrays = _read(content)
        return replace(
            self.start,
            round=round,
            weights=_under(_WEIGHTS, arrays),
            memory=_under(_MEMORY, arrays),
        )

    def without_memory(self, content: bytes) -> bytes:
        """The weights alone of what was kept: they are in the published model.

        A method may need all reports to learn from them at the end, and has kept them
        in its memory until then.
        """
        arrays = _read(content)
        return bytes(save({n: v for n, v in arrays.items() if n.startswith(_WEIGHTS)}))


def _read(content: bytes) -> dict[str, Array]:
    try:
        return load(content)
    except Exception as error:  # of whatever kind: the disk has lost something
        raise BadMessage(f"a kept model cannot be read: {error}") from error


def _under(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    return {
        name.removeprefix(prefix): value
        for name, value in arrays.items()
        if name.startswith(prefix)
    }
