"""A protected report, cut along its declared axis into messages of equal length.

The form of reports over a relay: every message is sealed by itself to the collector.

    report     what `participate` returned, as the layout of the round declares it
    message    a row of every leaf: little-endian numbers, leaf by leaf in the order of
               their names, zeros up to a multiple of 8 bytes

All clients have the same number of messages, and all messages the same length. A
message holds no id, no time and no version. `tree` is the other direction, for
messages that somebody sent: it refuses what no honest client sends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, UInt8

from tacit.errors import BadMessage, Refused
from tacit.method import Method
from tacit.plans import TICKETS, Plan
from tacit.sampling import Everyone, Once
from tacit.service.manifest import Fields
from tacit.service.relay.uploads import (
    CONTENT_TYPE,
    EpochManifest,
    MessageFields,
    upload,
)
from tacit.transport.channels import Unlinked, cut
from tacit.transport.messages import Layout, Reports
from tacit.tree import Array, Dense, Tree

_MULTIPLE = 8  # bytes: what lengths are rounded up to
_LEAST_MIXED = 2  # uploads, below which a relay mixes no two users
Rows = UInt8[np.ndarray, "messages bytes"]


@dataclass(frozen=True)
class MessageForm:
    """What every message of a round looks like, from the layout of its reports."""

    layout: Layout
    needs_tickets: bool = False  # an upload counts with a ticket of the relay alone

    kind: ClassVar[type[Fields]] = MessageFields
    path: ClassVar[str] = "/v1/reports"
    content_type: ClassVar[str] = CONTENT_TYPE
    taken: ClassVar[str] = (
        "the report was sent, and the relay keeps it; it counts if enough others come"
    )
    one_machine: ClassVar[str] = "one_machine_relay"

    def __post_init__(self) -> None:
        if not self.layout.slots or not self.content_bytes:
            raise Refused("the reports of this round hold nothing that could be sent")
        if len({*self._lengths}) > 1:
            raise Refused(
                f"the leaves of a report have {self._lengths} rows along the axis of "
                "messages; they must agree"
            )

    @classmethod
    def of(
        cls, method: Method, plan: Plan, layout: Layout, *, phase: int
    ) -> MessageForm:
        """The messages of a phase; they follow from the layout alone."""
        del method, phase
        return cls(layout, needs_tickets=plan.counted_by == TICKETS)

    @staticmethod
    def check_plan(plan: Plan) -> None:
        """Refuse a plan whose clients do not choose by themselves when to report."""
        if not isinstance(plan.sampler, (Everyone, Once)) or plan.before:
            raise Refused(
                "over a relay clients report in every round or in one that each draws "
                "by itself, and nothing is released before the first; use "
                "run.sampler.name = 'everyone' or 'once' and no selection of items"
            )
        if plan.min_contributors < _LEAST_MIXED:
            raise Refused(
                f"min_contributors={plan.min_contributors}: a relay that mixes "
                f"nobody's reports hides nobody; use {_LEAST_MIXED} at the least"
            )

    @property
    def fields(self) -> MessageFields:
        """The length and number of messages."""
        return MessageFields(self.message_bytes, self.count, self.needs_tickets)

    @property
    def row_size(self) -> int:
        """The bytes of all messages of one client."""
        return self.count * self.message_bytes

    @property
    def count(self) -> int:
        """The number of messages in every client's report."""
        return self._lengths[0] if self._lengths else 1

    @property
    def _lengths(self) -> list[int]:
        axis = self.layout.split_axis
        if axis is None:
            return []
        return [slot.shape[axis] for slot in self.layout.slots.values()]

    @cached_property
    def parts(self) -> dict[str, tuple[np.dtype[np.generic], tuple[int, ...]]]:
        """Dtype and shape of every array of a message, in the order of their names."""
        axis = self.layout.split_axis
        if axis is None:
            stored = self.layout.stored()
        else:  # written out, and without the axis of messages
            stored = {
                name: (slot.dtype, slot.shape[:axis] + slot.shape[axis + 1 :])
                for name, slot in self.layout.slots.items()
            }
        return {
            name: (np.dtype(dtype).newbyteorder("<"), shape)
            for name, (dtype, shape) in sorted(stored.items())
        }

    @property
    def content_bytes(self) -> int:
        """The bytes of the numbers of one message."""
        return sum(
            dtype.itemsize * math.prod(shape) for dtype, shape in self.parts.values()
        )

    @property
    def message_bytes(self) -> int:
        """The length of every message, with its padding."""
        return -(-self.content_bytes // _MULTIPLE) * _MULTIPLE

    # to bytes

    def rows(self, tree: Tree) -> UInt8[np.ndarray, "clients messages bytes"]:
        """The messages of several clients."""
        self.layout.check(Reports(tree))
        messages = cut(tree, self.layout)
        arrays = {
            name + suffix: part
            for name, leaf in messages.leaves.items()
            for suffix, part in leaf.parts.items()
        }
        found = np.zeros((len(messages), self.message_bytes), np.uint8)
        place = 0
        for name, (dtype, shape) in self.parts.items():
            size = dtype.itemsize * math.prod(shape)
            flat = np.ascontiguousarray(arrays[name], dtype)
            flat = flat.reshape(len(messages), -1)
            found[:, place : place + size] = flat.view(np.uint8)
            place += size
        return found.reshape(len(tree), self.count, self.message_bytes)

    def seal(self, row: Rows, manifest: EpochManifest) -> bytes:
        """One client's messages, each sealed by itself to the collector."""
        return upload([one.tobytes() for one in row], manifest)

    # from bytes

    def nothing(self) -> Unlinked:
        """The delivery of a round to which no upload came."""
        return self.delivery([np.zeros((0, self.message_bytes), np.uint8)], reports=0)

    def delivery(self, parts: Sequence[Rows], *, reports: int) -> Unlinked:
        """The messages that the collector has opened, of that many uploads."""
        [rows] = parts
        return Unlinked(self.tree(rows), reports)

    def sound(self, rows: Rows) -> Bool[np.ndarray, "messages"]:
        """Which messages an honest client may have sent: finite, and padded by zeros.

        A number that is not finite would spoil the sum of everybody else.
        """
        fine: Bool[np.ndarray, "messages"] = np.ones(len(rows), bool)
        fine &= ~rows[:, self.content_bytes :].any(axis=1)
        for values in self._arrays(rows).values():
            flat = values.reshape(len(rows), -1)
            if values.dtype.kind == "f":
                fine &= np.isfinite(flat).all(axis=1)
            elif values.dtype.kind == "b":  # a second way to say true
                fine &= (flat.view(np.uint8) <= 1).all(axis=1)
        return fine

    def tree(self, rows: Rows) -> Tree:
        """The messages as the channel `shuffle` delivers them, one row each."""
        if rows.ndim != 2 or rows.shape[1] != self.message_bytes:
            raise BadMessage(
                f"messages of {rows.shape[1:]} bytes; all of this round have "
                f"{self.message_bytes}"
            )
        found = self._arrays(rows)
        if self.layout.split_axis is not None:
            return Tree({name: Dense(found[name]) for name in self.layout.slots})
        return Tree(
            {
                name: slot.leaf({s: found[name + s] for s in slot.parts()})
                for name, slot in self.layout.slots.items()
            }
        )

    def _arrays(self, rows: Rows) -> dict[str, Array]:
        found: dict[str, Array] = {}
        place = 0
        for name, (dtype, shape) in self.parts.items():
            size = dtype.itemsize * math.prod(shape)
            # A view where the numbers lie at a multiple of their size, so that messages
            # on a disk stay there; their rows begin at a multiple of eight.
            part = rows[:, place : place + size]
            aligned = place % dtype.itemsize == 0 and part.strides[-1:] == (1,)
            flat = part.view(dtype) if aligned and size else _copied(part, dtype)
            found[name] = flat.reshape(len(rows), *shape)
            place += size
        return found


def _copied(part: Rows, dtype: np.dtype[np.generic]) -> Array:
    return np.ascontiguousarray(part).view(dtype)


def in_order(rows: Rows) -> Rows:
    """The messages sorted by their bytes: an order that says nothing but what they say.

    Sums of floats depend on the order in their last bits, so whoever has the same
    messages gets the same sum.
    """
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1])))
    return rows[np.argsort(whole[:, 0], kind="stable")]
