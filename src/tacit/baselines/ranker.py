"""The protocol of every baseline: fit on histories, fold a user in, score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from tacit.data.catalog import Catalog
from tacit.data.shards import Shards
from tacit.keys import Key

Scores = Float[np.ndarray, "users items"]
Vectors = Float[np.ndarray, "users factors"]
ItemVectors = Float[np.ndarray, "items factors"]
Grid = Mapping[str, tuple[float, ...]]  # a field's name -> the values to try


class Fitted(Protocol):
    """A fitted ranker; users it never saw fold in by their history alone."""

    def score(self, history: Shards) -> Scores:
        """A score for every item of the catalog; larger is better."""
        ...


@runtime_checkable
class FactorFitted(Fitted, Protocol):
    """A fitted ranker whose score is an inner product; it can be ranked much faster."""

    @property
    def items(self) -> ItemVectors:
        """One vector per item of the catalog, in its order."""
        ...

    def represent(self, history: Shards) -> Vectors:
        """One vector per user; `represent(history) @ items.T` is the score."""
        ...


class Ranker(Protocol):
    """Hyper-parameters of a baseline; a frozen dataclass.

    `GRID` is what a search on validation users may try; empty if nothing is to choose.
    One that cannot be fitted without an optional module has a class attribute `EXTRAS`:
    the module and the extra that it comes with.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    GRID: ClassVar[Grid]

    def fit(self, train: Shards, *, key: Key) -> Fitted:
        """Learn from everybody's history."""
        ...


@runtime_checkable
class GridRanker(Ranker, Protocol):
    """A ranker whose fits for several settings share work."""

    def fit_each(
        self, train: Shards, settings: Sequence[Mapping[str, float]], *, key: Key
    ) -> Iterator[Fitted]:
        """The ranker fitted with each of the settings in turn, one at a time."""
        ...


@runtime_checkable
class SizedRanker(Protocol):
    """A ranker whose memory grows so fast that it is worth asking before it is fitted.

    More than `MOST_BYTES` it never takes.
    """

    MOST_BYTES: ClassVar[int]

    def memory_bytes(self, *, n_users: int, n_items: int) -> int:
        """The bytes that fitting takes beside the data."""
        ...


@runtime_checkable
class CatalogRanker(Protocol):
    """A ranker that reads what is publicly known of the items."""

    def reading(self, catalog: Catalog) -> Ranker:
        """The same ranker with what it needs of the catalog, ready to be fitted."""
        ...
