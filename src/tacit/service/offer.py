"""All that a server gives away: a model, its candidates, and lists for queries.

An offer is complete before the first request: the content of every resource is there as
bytes, and the kernels that rank are compiled. Nothing in it depends on who asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int32

from tacit.service.http import BINARY


class RankedItems(Protocol):
    """The best items, the best first."""

    @property
    def items(self) -> Int32[np.ndarray, "places"]:
        """Places in the catalog, the best item first."""

    @property
    def scores(self) -> Float[np.ndarray, "places"]:
        """The score of each item."""


class RankedLists(Protocol):
    """One list per query, in the order of the queries."""

    def __getitem__(self, query: int, /) -> RankedItems:
        """The list of one query."""


class Ranker(Protocol):
    """Ranks the whole pool for the user vectors that queries stand for.

    It refuses queries with `BadMessage`, and those of another model with
    `OtherVersion`: all of them if one is refused.
    """

    def answers(self, messages: Sequence[bytes], count: int) -> RankedLists:
        """The best `count` items for each query; they depend on it and nothing else."""


@dataclass(frozen=True, eq=False)
class Resource:
    """Public bytes, the same for everybody."""

    content: bytes
    kind: str = BINARY

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the content, in hexadecimal."""
        return sha256(self.content).hexdigest()


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a server needs to answer queries."""

    ranker: Ranker
    version: bytes  # of the served model
    query_bytes: int  # of every query
    most: int  # items in an answer
    ids: tuple[str, ...]  # of the catalog, for answers that people read


@dataclass(frozen=True, eq=False)
class Offer:
    """The resources of a server; without a ranking every client ranks by itself."""

    model: Resource
    candidates: Resource
    basis: Resource | None = None
    ranking: Ranking | None = None
