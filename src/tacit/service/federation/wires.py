"""How a client speaks to the two operators of a run, by the channel of its invitation.

    two_servers   a report in two halves, in one request to the leader
    shuffle       sealed messages, in one upload to the relay

A client does the same in both cases: it reads a manifest that both operators signed,
compares it with what was agreed, seals, keeps and sends. Here is what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tacit.service.federation import accepted_round, manifest
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.rotation import SigningKeys
from tacit.service.relay import accepted_epoch
from tacit.service.relay import manifest as epoch_manifest
from tacit.service.relay.uploads import CONTENT_TYPE
from tacit.transport.messages import Broadcast, Reports
from tacit.tree import Tree

Rows = np.ndarray[Any, np.dtype[Any]]  # of several clients; axis 0 is the client


class AnyManifest(Protocol):
    """What a client reads of a manifest, whatever it is for."""

    @property
    def run(self) -> bytes: ...  # noqa: D102
    @property
    def round(self) -> int: ...  # noqa: D102
    @property
    def round_id(self) -> bytes: ...  # noqa: D102
    @property
    def opens(self) -> int: ...  # noqa: D102
    @property
    def closes(self) -> int: ...  # noqa: D102
    @property
    def broadcast(self) -> bytes: ...  # noqa: D102
    @property
    def previous(self) -> bytes: ...  # noqa: D102
    @property
    def send_to(self) -> str: ...  # noqa: D102


class Accepted(Protocol):
    """A round that a client has nothing against, and the envelope of its report."""

    @property
    def manifest(self) -> AnyManifest: ...  # noqa: D102
    @property
    def broadcast(self) -> Broadcast: ...  # noqa: D102
    @property
    def question(self) -> bytes: ...  # noqa: D102
    @property
    def numbers(self) -> int: ...  # noqa: D102

    def seal(self, broadcast: Broadcast, reports: Reports) -> bytes:
        """What one client keeps and sends."""
        ...

    def rows(self, tree: Tree) -> Rows:
        """The reports of several clients as they are before they are sealed."""
        ...

    def sealed(self, row: Rows) -> bytes:
        """What the client of a row sends."""
        ...


class Compare(Protocol):
    """The round of a manifest and a broadcast, if it is as agreed."""

    def __call__(  # noqa: D102
        self,
        invitation: Invitation,
        manifest: Any,
        message: bytes,
        *,
        now: int,
        known: Mapping[int, bytes],
        least: int | None = None,
    ) -> Accepted: ...


@dataclass(frozen=True)
class Wire:
    """The manifest and the way to send of one channel."""

    read_manifest: Callable[[bytes, SigningKeys], AnyManifest]
    read_document: Callable[[bytes], AnyManifest]
    accepted: Compare
    path: Callable[[bytes], str]  # of a round, by its id
    content_type: str
    taken: str  # what it means that a report was taken


def _of_two_servers(sent: bytes, keys: SigningKeys) -> AnyManifest:
    return manifest.read_manifest(sent, leader=keys.leader, helper=keys.helper)


def _of_a_relay(sent: bytes, keys: SigningKeys) -> AnyManifest:
    return epoch_manifest.read_manifest(sent, relay=keys.leader, collector=keys.helper)


TWO_SERVERS = Wire(
    _of_two_servers,
    manifest.read_document,
    accepted_round.accepted,
    lambda round_id: f"/v1/rounds/{round_id.hex()}/reports",
    "application/octet-stream",
    "the report was sent and is counted",
)
SHUFFLE = Wire(
    _of_a_relay,
    epoch_manifest.read_document,
    accepted_epoch.accepted,
    lambda _: "/v1/reports",
    CONTENT_TYPE,
    "the report was sent, and the relay keeps it; it counts if enough others come",
)


def wire_of(invitation: Invitation) -> Wire:
    """How clients of this invitation speak."""
    return SHUFFLE if invitation.is_shuffled else TWO_SERVERS
