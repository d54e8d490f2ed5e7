"""What a cohort of clients holds: each its own events and nothing of the others.

A client may also hold its impressions: what it was shown and when, in which order, what
its user had read by then and what was clicked. They are as private as the events. A
method that learns from histories alone need not know of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.data import features
from tacit.data.features import Features
from tacit.data.impressions import Impressions
from tacit.data.interactions import Interactions
from tacit.data.ragged import Ragged, offsets_of
from tacit.errors import BadValue
from tacit.kernels import dispatch
from tacit.keys import Keys


@dataclass(frozen=True, eq=False)
class Shards:
    """Ragged histories; row i belongs to client i and is all that client i sees.

    User i of `impressions` is client i, too; None where nothing is known of what users
    were shown.
    """

    offsets: Int64[np.ndarray, "clients_and_one"]
    items: Int32[np.ndarray, "events"]
    values: Float32[np.ndarray, "events"]
    times: Int64[np.ndarray, "events"] | None
    n_items: int
    contexts: Features = field(default_factory=dict)
    impressions: Impressions | None = None

    def __post_init__(self) -> None:
        _ = self.log  # has the same invariants, and checks them
        if self.impressions is None:
            return
        slates = self.impressions.slates
        if (slates.n_users, slates.n_items) != (len(self), self.n_items):
            raise BadValue(
                f"impressions of {slates.n_users} users and {slates.n_items} items "
                f"for {len(self)} clients and {self.n_items} items; they must agree"
            )

    @classmethod
    def of(cls, log: Interactions, impressions: Impressions | None = None) -> Shards:
        """Each user's events and impressions, given to that user's client."""
        columns = (log.offsets, log.items, log.values, log.times)
        return cls(*columns, log.n_items, log.contexts, impressions)

    @classmethod
    def of_history(
        cls, items: ArrayLike, *, n_items: int, value: float = 1.0
    ) -> Shards:
        """One client that holds these items, all of the same value."""
        return cls.of_histories([items], n_items=n_items, value=value)

    @classmethod
    def of_histories(
        cls, histories: Sequence[ArrayLike], *, n_items: int, value: float = 1.0
    ) -> Shards:
        """One client per history, with items that all have the same value."""
        held = [arrays.integers(one, "items", below=n_items) for one in histories]
        owners = np.repeat(np.arange(len(held)), [len(one) for one in held])
        items = np.concatenate([np.zeros(0, np.int64), *held])
        values = np.full(len(items), value)
        log = Interactions.of_columns(
            owners, items, values=values, n_users=len(held), n_items=n_items
        )
        return cls.of(log)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def log(self) -> Interactions:
        """The events as one log, without impressions, for whoever may see them all."""
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

    @property
    def known_impressions(self) -> Impressions:
        """The impressions; none of anybody where nothing is known of them."""
        if self.impressions is None:
            return Impressions.none(len(self), self.n_items)
        return self.impressions

    def only_shown(self) -> Shards:
        """The same clients without histories and clicks: what they were shown, alone.

        It is as large whatever anybody holds, so it takes no longer to make.
        """
        none = np.zeros(0, np.int64)
        nothing = Interactions.of_columns(
            none, none, n_users=len(self), n_items=self.n_items
        )
        shown = self.impressions
        return Shards.of(nothing, None if shown is None else shown.without_answers())

    def take(self, rows: ArrayLike) -> Shards:
        """Some of the clients, in the order given, with their impressions."""
        chosen = arrays.rows(rows, len(self))
        found = self._take_events(chosen)
        if self.impressions is None:
            return found
        return replace(found, impressions=self.impressions.take_users(chosen))

    def _take_events(self, chosen: Int64[np.ndarray, "some"]) -> Shards:
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

        Bounds what one user can contribute by events. Of an item's repeats the first is
        kept, and clients keep the order of their events. Impressions stay whole: who
        learns from them bounds them.
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
        picked = self._pick(kept, np.minimum(counts, most))
        return replace(picked, impressions=self.impressions)

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
        its repeats, and with the impressions that it was clicked in or read before. Who
        has fewer than two distinct items keeps them, and has -1.
        """
        last, some = np.full(len(self), -1), self.lengths > 0
        last[some] = self.items[self.offsets[1:][some] - 1]
        others = self.owners[self.items != last[self.owners]]
        # Somebody with one distinct item would be left with nothing to learn from.
        held = np.where(np.bincount(others, minlength=len(self)) > 0, last, -1)
        kept = np.flatnonzero(self.items != held[self.owners])
        lengths = np.bincount(self.owners[kept], minlength=len(self))
        picked = self._pick(kept, lengths)
        if self.impressions is None:
            return picked, held
        shown = self.impressions.keep(~_tells(self.impressions, held))
        return replace(picked, impressions=shown), held

    def _pick(
        self, places: Int64[np.ndarray, "kept"], lengths: Int64[np.ndarray, "clients"]
    ) -> Shards:
        """Some of the events, without impressions."""
        return Shards(
            offsets_of(lengths),
            self.items[places],
            self.values[places],
            None if self.times is None else self.times[places],
            self.n_items,
            features.take(self.contexts, places),
        )


def _tells(
    impressions: Impressions, items: Int64[np.ndarray, "clients"]
) -> Bool[np.ndarray, "impressions"]:
    """Which impressions tell that their user has the user's item of `items`."""
    slates = impressions.slates
    own = items[slates.users]  # -1: no item at all
    is_clicked = impressions.clicked & (slates.shown.values == own[slates.shown.owners])
    read = slates.histories.take(slates.history_of)
    is_read = read.values == own[read.owners]
    found = np.zeros(len(slates), bool)
    found[slates.shown.owners[is_clicked]] = True
    found[read.owners[is_read]] = True
    return found
