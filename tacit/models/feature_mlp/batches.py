"""What clients learn from, and which of it each takes in a step.

Of the table of embeddings a client has the rows that it reads: no other can move. The
rows of all clients stand end to end, so those of the first clients are a prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from jaxtyping import Bool, Float, Int64
from numpy.typing import ArrayLike

from tacit.data.ragged import Ragged, offsets_of
from tacit.keys import Keys
from tacit.models.feature_mlp.inputs import Encoded
from tacit.models.feature_mlp.network import Network, Side


@dataclass(frozen=True, eq=False)
class Examples:
    """What clients learn from: labelled items, end to end, each in a situation."""

    offsets: Int64[np.ndarray, "clients_and_one"]
    items: Int64[np.ndarray, "examples"]  # rows of `catalog`
    labels: Float[np.ndarray, "examples"]
    situations: Encoded  # one an example
    people: Encoded  # one a client
    catalog: Encoded

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64[np.ndarray, "clients"]:
        """How many examples each client has."""
        return np.diff(self.offsets)

    def take(self, clients: ArrayLike) -> Examples:
        """Some of the clients, in the order given."""
        rows = np.asarray(clients, np.int64)
        places = Ragged(self.offsets, self.items).places(rows)
        return Examples(
            offsets_of(self.lengths[rows]),
            self.items[places],
            self.labels[places],
            self.situations.take(places),
            self.people.take(rows),
            self.catalog,
        )


@dataclass(frozen=True, eq=False)
class Step:
    """One mini-batch of each client that has one left: clients × places."""

    examples: Int64[np.ndarray, "active width"]
    is_real: Bool[np.ndarray, "active width"]  # a client's last batch may be shorter
    held: Mapping[Side, Encoded]  # what they are, over the rows of active clients

    @property
    def active(self) -> int:
        """How many clients take it; the first ones."""
        return len(self.examples)


@dataclass(frozen=True, eq=False)
class Touched:
    """The rows of the table that clients read, and their inputs over those rows."""

    rows: Int64[np.ndarray, "touched"]  # of the table
    ends: Int64[np.ndarray, "clients_and_one"]  # where each client's rows begin
    inputs: Mapping[Side, Encoded]

    @classmethod
    def by(cls, examples: Examples, network: Network) -> Touched:
        """What these examples touch."""
        clients, n_rows = np.arange(len(examples)), network.n_rows
        owners = np.repeat(clients, examples.lengths)
        every = {
            "person": (examples.people, clients),
            "situation": (examples.situations, owners),
            "item": (examples.catalog.take(examples.items), owners),
        }
        sides = {side: every[side] for side in network.sides}
        pairs = {side: _pairs(e, who, n_rows) for side, (e, who) in sides.items()}
        is_touched = np.zeros(len(examples) * n_rows, bool)
        for held in pairs.values():
            is_touched[held] = True
        touched, place = np.flatnonzero(is_touched), np.cumsum(is_touched) - 1
        ends = np.searchsorted(touched, np.arange(len(examples) + 1) * n_rows)
        inputs = {
            side: _with_columns(e, place[pairs[side]], len(touched))
            for side, (e, _) in sides.items()
        }
        return cls(touched % n_rows, ends, inputs)

    @cached_property
    def owners(self) -> Int64[np.ndarray, "touched"]:
        """The client of each row."""
        return np.repeat(np.arange(len(self.ends) - 1), np.diff(self.ends))

    def steps(self, examples: Examples, batch: int, keys: Keys) -> Iterator[Step]:
        """One pass over everybody's examples, in an order of each client's own.

        Clients stand in order of size, the largest first.
        """
        lengths = examples.lengths
        owners = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((keys.bits_ragged(lengths), owners))
        batches = [*_batches(examples, batch, order)]
        taken = np.concatenate(
            [np.zeros(0, np.int64), *(b.ravel() for b, _ in batches)]
        )
        shown: dict[Side, Encoded] = {
            side: e.take(taken) for side, e in self.inputs.items() if side != "person"
        }
        first = 0
        for chosen, is_real in batches:
            some, n = slice(first, first + chosen.size), len(chosen)
            held = {side: self._cut(e, some, n) for side, e in shown.items()}
            yield Step(chosen, is_real, self._people(n) | held)
            first = some.stop

    def _people(self, active: int) -> dict[Side, Encoded]:
        if "person" not in self.inputs:
            return {}
        return {"person": self._cut(self.inputs["person"], slice(0, active), active)}

    def _cut(self, encoded: Encoded, things: slice, active: int) -> Encoded:
        """A run of things of active clients, which hold nothing beyond their rows."""
        held, fields = encoded.shares, encoded.n_fields
        ends = held.indptr[things.start * fields : things.stop * fields + 1]
        some = slice(ends[0], ends[-1])
        parts = held.data[some], held.indices[some], ends - ends[0]
        shape = (len(ends) - 1, int(self.ends[active]))
        return Encoded(
            sp.csr_array(parts, shape=shape), encoded.numbers[things], fields
        )


def _batches(
    examples: Examples, batch: int, order: Int64[np.ndarray, "examples"]
) -> Iterator[tuple[Int64[np.ndarray, "a w"], Bool[np.ndarray, "a w"]]]:
    """Which examples stand in each step, and which of them count."""
    lengths = examples.lengths
    longest = int(lengths.max(initial=0))
    for first in range(0, longest, batch):
        active = int(np.count_nonzero(lengths > first))
        places = np.arange(first, min(first + batch, longest))
        is_real = places < lengths[:active, None]
        inside = np.where(is_real, places, 0)  # any will do: it weighs nothing
        yield order[examples.offsets[:active, None] + inside], is_real


def _pairs(
    encoded: Encoded, owners: Int64[np.ndarray, "things"], n_rows: int
) -> Int64[np.ndarray, "held"]:
    """Client and row of everything held, as one number."""
    per_row = np.diff(encoded.shares.indptr)
    who = np.repeat(np.repeat(owners, encoded.n_fields), per_row)
    return who * n_rows + encoded.shares.indices


def _with_columns(
    encoded: Encoded, columns: Int64[np.ndarray, "held"], n: int
) -> Encoded:
    held = encoded.shares
    parts = held.data, columns.astype(np.int32), held.indptr.astype(np.int32)
    shares = sp.csr_array(parts, shape=(held.shape[0], n))
    return Encoded(shares, encoded.numbers, encoded.n_fields)
