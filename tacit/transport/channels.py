"""How reports reach the server, and what it sees of them.

    direct       every report, with its sender            -> Each

`Each` is read once and lazily: a chunk of devices computes when the aggregator asks for
it, so the memory of a round is one chunk, whatever the size of the cohort.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tacit import check
from tacit.errors import BadValue
from tacit.transport.messages import Reports
from tacit.tree import Arrays, Tree


@dataclass(frozen=True)
class Each:
    """Every report as it was sent, in chunks stacked on the client axis; read once."""

    chunks: Iterable[Reports]


@dataclass(frozen=True)
class Unlinked:
    """Messages in random order, cut along the declared axis; senders are gone."""

    messages: Tree
    contributors: int


@dataclass(frozen=True)
class Sum:
    """The sum over the cohort and nothing else; dense."""

    total: Arrays
    contributors: int


Delivery = Each | Unlinked | Sum


class Channel(Protocol):
    """Carries one cohort's reports to the server."""

    @property
    def name(self) -> str:
        """The name it has in a plan."""
        ...

    @property
    def delivers(self) -> type[Delivery]:
        """What the server gets."""
        ...

    def carry(self, chunks: Iterable[Reports]) -> Delivery:
        """Deliver what the devices say."""
        ...


@dataclass(frozen=True)
class Direct:
    """Each device speaks to the server itself: the server sees every report."""

    name: str = "direct"
    delivers: type[Delivery] = Each

    def carry(self, chunks: Iterable[Reports]) -> Delivery:
        """Hand the reports over as they are."""
        return Each(chunks)


_CHANNELS: Mapping[str, Channel] = {"direct": Direct()}


def channel(name: str) -> Channel:
    """The channel of this name."""
    if name not in _CHANNELS:
        raise BadValue(f"channel {check.unknown(name, _CHANNELS)}")
    return _CHANNELS[name]
