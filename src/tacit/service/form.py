"""The bytes of one phase's reports over one channel, for clients and for the server.

    fields    what a manifest of the phase says of them; a client compares it
    rows      reports of several clients as they are before they are sealed
    seal      the body that one client sends, always of one length
    delivery  what the method learns from, of what the operators made of all bodies

A client and the server derive the same form from the invitation. An operator that takes
reports knows no invitation: it has the fields of the manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from tacit.method import Method
from tacit.plans import Plan
from tacit.service.manifest import AnyManifest, Fields
from tacit.transport.channels import Delivery
from tacit.transport.messages import Layout
from tacit.tree import Tree

Rows = np.ndarray[Any, np.dtype[Any]]  # of several clients; axis 0 is the client


class Form(Protocol):
    """The bytes of the reports of one phase."""

    kind: ClassVar[type[Fields]]
    path: ClassVar[str]  # to which a body is sent; {} stands for the round_id
    content_type: ClassVar[str]  # of a body
    taken: ClassVar[str]  # what it means that a body was taken
    one_machine: ClassVar[str]  # the code of one machine as all operators

    @classmethod
    def of(cls, method: Method, plan: Plan, layout: Layout, *, phase: int) -> Self:
        """The form of a phase whose reports have this layout; refuses what has none."""
        ...

    @staticmethod
    def check_plan(plan: Plan) -> None:
        """Refuse a plan whose rounds clients cannot be invited to."""
        ...

    @property
    def fields(self) -> Fields:
        """What a manifest of this phase says."""
        ...

    @property
    def row_size(self) -> int:
        """How many numbers one client's row has."""
        ...

    def rows(self, tree: Tree) -> Rows:
        """The reports of several clients before they are sealed."""
        ...

    def seal(self, row: Rows, manifest: AnyManifest) -> bytes:
        """The body that the client of a row sends, with fresh randomness.

        The bytes are kept and sent again as they are: sealed again, they would be
        another report.
        """
        ...

    def nothing(self) -> Delivery:
        """What arrived if no client has reported."""
        ...

    def delivery(self, parts: Sequence[Any], *, reports: int) -> Delivery:
        """What arrived, from the parts of all operators; refuses dishonest ones."""
        ...
