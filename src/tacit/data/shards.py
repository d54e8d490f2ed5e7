"""What a cohort of clients holds: each its own history and nothing of the others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.data import features
from tacit.data.features import Features
from tacit.data.interactions import Interactions
from tacit.data.ragged import Ragged, offsets_of
from tacit.errors import BadValue
from tacit.kernels import dispatch
from tacit.keys import Keys


@dataclass(frozen=True, eq=False)
class Shards:
    """Ragged histories; row i belongs to client i and is all that client i sees."""

    offsets: Int64[np.ndarray, "clients_and_one"]
    items: Int32[np.ndarray, "events"]
    values: Float32[np.ndarray, "events"]
    times: Int64[np.ndarray, "events"] | None
    n_items: int
    contexts: Features = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.log  # has the same invariants, and checks them

    @classmethod
    def of(cls, log: Interactions) -> Shards:
        """Each user's events, given to that user's client."""
        columns = (log.offsets, log.items, log.values, log.times)
        return cls(*columns, log.n_items, log.contexts)

    @classmethod
    def of_history(
        cls, items: ArrayLike, *, n_items: int, value: float = 1.0
    ) -> Shards:
        """One client that holds these items, all of the same value."""
        held = arrays.integers(items, "items", below=n_items)
        owner, values = np.zeros(len(held), np.int64), np.full(len(held), value)
        log = Interactions.of_columns(
            owner, held, values=values, n_users=1, n_items=n_items
        )
        return cls.of(log)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def log(self) -> Interactions:
        """The same events as one log; for those who may see everybody's."""
        columns = (self.offsets, self.items, self.values, self.times)
        return Interactions(*columns, self.n_items, self.contexts)

    @property
    def lengths(self) -> Int64[np.ndarray, "clients"]:
        """How many events each client holds."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Int64[np.ndarray, "events"]:
        """The client each event belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def histories(self) -> Ragged:
        """The items of each client, repeats included."""
        return Ragged(self.offsets, self.items)

    def take(self, rows: ArrayLike) -> Shards:
        """Some of the clients, in the order given."""
        chosen = arrays.rows(rows, len(self))
        if self.contexts:  # columns of any kind; the fast path copies plain arrays
            return self._pick(self.histories.places(chosen), self.lengths[chosen])
        timed = () if self.times is None else (self.times,)
        items, values, *times = self.histories.columns_of(
            chosen, self.items, self.values, *timed
        )
        offsets = offsets_of(self.lengths[chosen])
        return Shards(offsets, items, values, times[0] if times else None, self.n_items)

    def at_most(self, most: int, keys: Keys) -> Shards:
        """At most `most` distinct items per client, each equally likely to stay.

        Bounds what one user can contribute. Of an item's repeats the first is kept,
        and clients keep the order of their events.
        """
        if len(keys) != len(self):
            raise BadValue(f"{len(keys)} keys for {len(self)} clients; give one each")
        is_kept = self._is_first()
        counts = np.bincount(self.owners[is_kept], minlength=len(self))
        crowded = np.flatnonzero(counts > most)
        # A client's draws follow from its key alone: nobody else needs one, and its
        # choice tells of no other.
        if len(crowded):
            is_kept[self._beyond(most, keys, crowded, is_kept)] = False
        kept = np.flatnonzero(is_kept)
        return self._pick(kept, np.minimum(counts, most))

    def _is_first(self) -> Bool[np.ndarray, "events"]:
        """Whether each event is the first that its client has of its item."""
        if dispatch.pays("ragged.firsts", len(self.items)):
            from tacit.kernels.ragged import firsts  # loads numba

            return np.asarray(firsts(self.offsets, self.items, self.n_items))
        cells = self.owners * self.n_items + self.items
        order = np.argsort(cells, kind="stable")  # repeats keep their order
        cells = cells[order]
        is_first = np.ones(len(order), bool)
        is_first[order[1:][cells[1:] == cells[:-1]]] = False
        return is_first

    def _beyond(
        self,
        most: int,
        keys: Keys,
        rows: Int64[np.ndarray, "crowded"],
        is_first: Bool[np.ndarray, "events"],
    ) -> Int64[np.ndarray, "dropped"]:
        """The events of some clients whose draws are not among their `most` least."""
        events = self.histories.places(rows)
        distinct = is_first[events]
        draws = keys[rows].uniform_ragged(self.lengths[rows])[distinct]
        owners = np.repeat(np.arange(len(rows)), self.lengths[rows])[distinct]
        counts = np.bincount(owners)
        by_draw = events[distinct][np.lexsort((draws, owners))]
        rank = np.arange(len(by_draw)) - np.repeat(np.cumsum(counts) - counts, counts)
        return by_draw[rank >= most]

    def leaving_last_out(self) -> tuple[Shards, Int64[np.ndarray, "clients"]]:
        """The histories without each one's last item, and which item that is.

        The last event is the latest where there are times. An item is left out with all
        its repeats. Who has fewer than two distinct items keeps them, and has -1.
        """
        last, some = np.full(len(self), -1), self.lengths > 0
        last[some] = self.items[self.offsets[1:][some] - 1]
        others = self.owners[self.items != last[self.owners]]
        # Somebody with one distinct item would be left with nothing to learn from.
        held = np.where(np.bincount(others, minlength=len(self)) > 0, last, -1)
        kept = np.flatnonzero(self.items != held[self.owners])
        lengths = np.bincount(self.owners[kept], minlength=len(self))
        return self._pick(kept, lengths), held

    def _pick(
        self, places: Int64[np.ndarray, "kept"], lengths: Int64[np.ndarray, "clients"]
    ) -> Shards:
        return Shards(
            offsets_of(lengths),
            self.items[places],
            self.values[places],
            None if self.times is None else self.times[places],
            self.n_items,
            features.take(self.contexts, places),
        )
