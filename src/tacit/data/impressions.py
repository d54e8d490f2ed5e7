"""Impressions: what was put before whom, what they had read by then, what they clicked.

Slates        whom, when, which candidates in which order, the history: all but the
              answer, so a ranker can be handed them
Impressions   slates and the clicks; private like the log, which `clicks` makes
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int32, Int64
from numpy.typing import ArrayLike

from tacit import arrays
from tacit.data.features import Category
from tacit.data.interactions import Interactions
from tacit.data.ragged import Ragged, offsets_of
from tacit.errors import BadValue


@dataclass(frozen=True, eq=False)
class Slates:
    """What was put before users, not what they chose of it.

    Grouped by user; a user's slates stand in order of time, or without times in that of
    the file. A history is kept once for all slates that share it.
    """

    users: Int32[np.ndarray, "slates"]
    shown: Ragged  # items, in the order shown
    histories: Ragged  # items, oldest first
    history_of: Int32[np.ndarray, "slates"]  # a row of `histories`
    times: Int64[np.ndarray, "slates"] | None
    n_users: int
    n_items: int

    def __post_init__(self) -> None:
        shown, read = self.shown.values, self.histories.values
        arrays.typed(np.int32, users=self.users, history_of=self.history_of)
        arrays.typed(np.int32, shown=shown, histories=read)
        arrays.integers(self.users, "users", below=self.n_users)
        arrays.integers(self.history_of, "history_of", below=len(self.histories))
        arrays.integers(shown, "shown", below=self.n_items)
        arrays.integers(read, "histories", below=self.n_items)
        if self.times is not None:
            arrays.typed(np.int64, times=self.times)
        columns = (self.users, self.shown, self.history_of, self.times)
        if len({len(column) for column in columns if column is not None}) > 1:
            raise BadValue("the columns of slates differ in length")
        if (np.diff(self.users) < 0).any():  # `take_users` counts on it
            raise BadValue("slates must be grouped by user; use Impressions.of_columns")

    def __len__(self) -> int:
        return len(self.users)

    @property
    def history_lengths(self) -> Int64[np.ndarray, "slates"]:
        """How many items stand in the history of each slate."""
        return self.histories.lengths[self.history_of]

    def pick(
        self,
        places: Int64[np.ndarray, "some"],
        *,
        users: Int32[np.ndarray, "some"],
        n_users: int,
    ) -> Slates:
        """Slates in the rows `places`, given to these users, with their histories."""
        # Histories that no slate left needs are dropped: they are private.
        rows, history_of = np.unique(self.history_of[places], return_inverse=True)
        return Slates(
            users,
            self.shown.take(places),
            self.histories.take(rows),
            history_of.astype(np.int32),
            None if self.times is None else self.times[places],
            n_users,
            self.n_items,
        )


@dataclass(frozen=True, eq=False)
class Impressions:
    """Slates and which of the candidates were clicked.

    `parts` names the published file each came from, if there are several: train, dev.
    """

    slates: Slates
    clicked: Bool[np.ndarray, "candidates"]
    parts: Category | None = None

    def __post_init__(self) -> None:
        arrays.typed(np.bool_, clicked=self.clicked)
        if len(self.clicked) != len(self.slates.shown.values):
            raise BadValue(
                f"{len(self.clicked)} clicks or none for "
                f"{len(self.slates.shown.values)} candidates; give one each"
            )
        if self.parts is not None and len(self.parts) != len(self):
            raise BadValue(f"{len(self.parts)} parts for {len(self)} impressions")

    @classmethod
    def of_columns(
        cls,
        users: ArrayLike,
        shown: Ragged,
        *,
        clicked: Bool[np.ndarray, "candidates"],
        histories: Ragged,
        history_of: ArrayLike,
        times: Int64[np.ndarray, "impressions"] | None = None,
        parts: Category | None = None,
        n_users: int,
        n_items: int,
    ) -> Impressions:
        """Group impressions by user and, where times are given, order them by time."""
        who = arrays.integers(users, "users", below=n_users)
        keys = (who,) if times is None else (times, who)
        order = np.lexsort(keys)  # stable: ties keep the order of the file
        rows = arrays.rows(history_of, len(histories))[order]
        first_use, place = _by_first_use(rows)
        slates = Slates(
            who[order].astype(np.int32),
            shown.take(order),
            histories.take(first_use),
            place.astype(np.int32),
            None if times is None else times[order],
            n_users,
            n_items,
        )
        picked = None if parts is None else parts.take(order)
        return cls(slates, clicked[shown.places(order)], picked)

    @classmethod
    def none(cls, n_users: int, n_items: int) -> Impressions:
        """No impression of anybody."""
        nothing = Ragged.of_lengths([], np.zeros(0, np.int32))
        nobody = np.zeros(0, np.int32)
        slates = Slates(nobody, nothing, nothing, nobody, None, n_users, n_items)
        return cls(slates, np.zeros(0, np.bool_))

    def __len__(self) -> int:
        return len(self.slates)

    @property
    def users(self) -> Int32[np.ndarray, "impressions"]:
        """The user of each impression."""
        return self.slates.users

    @property
    def per_user(self) -> Int64[np.ndarray, "users"]:
        """How many impressions each user has."""
        return np.bincount(self.users, minlength=self.slates.n_users)

    @property
    def n_clicked(self) -> Int64[np.ndarray, "impressions"]:
        """How many candidates of each impression were clicked."""
        owners = self.slates.shown.owners[self.clicked]
        return np.bincount(owners, minlength=len(self))

    def keep(self, mask: Bool[np.ndarray, "impressions"]) -> Impressions:
        """Only these impressions; users and items keep their numbers."""
        arrays.typed(np.bool_, mask=mask)
        places = arrays.rows(mask, len(self))
        return self._pick(places, self.users[places], self.slates.n_users)

    def without_answers(self) -> Impressions:
        """The same slates, of which nothing was clicked and before which nothing read.

        All but that counts as public: whoever has shown the slates knows it.
        """
        slates = replace(
            self.slates,
            histories=Ragged.of_lengths([0], np.zeros(0, np.int32)),
            history_of=np.zeros(len(self), np.int32),
        )
        return replace(self, slates=slates, clicked=np.zeros_like(self.clicked))

    def first(self, n: int) -> Impressions:
        """The impressions of the first `n` users who have any."""
        return self.keep(np.isin(self.users, np.unique(self.users)[:n]))

    def take_users(self, rows: ArrayLike) -> Impressions:
        """Only these users, in the order given; items keep their numbers."""
        chosen = arrays.rows(rows, self.slates.n_users)
        of_users = Ragged(offsets_of(self.per_user), self.users)
        taken = np.repeat(np.arange(len(chosen)), of_users.lengths[chosen])
        return self._pick(of_users.places(chosen), taken.astype(np.int32), len(chosen))

    def take_items(self, rows: ArrayLike) -> Impressions:
        """The same impressions with only these items, which must be all they name."""
        chosen = arrays.rows(rows, self.slates.n_items)
        renumbering = np.full(self.slates.n_items, -1, np.int32)
        renumbering[chosen] = np.arange(len(chosen), dtype=np.int32)
        return self.renumbered(renumbering, n_items=len(chosen))

    def renumbered(
        self, renumbering: Int32[np.ndarray, "items"], *, n_items: int
    ) -> Impressions:
        """The same impressions; item i of the catalog is now `renumbering[i]`."""
        shown, histories = (
            Ragged(rows.offsets, renumbering[rows.values])
            for rows in (self.slates.shown, self.slates.histories)
        )
        slates = replace(self.slates, shown=shown, histories=histories, n_items=n_items)
        return replace(self, slates=slates)

    def named_items(self) -> Bool[np.ndarray, "items"]:
        """Which items are shown or stand in a history."""
        named = np.zeros(self.slates.n_items, bool)
        named[self.slates.shown.values] = True
        named[self.slates.histories.values] = True
        return named

    def _pick(
        self,
        places: Int64[np.ndarray, "some"],
        users: Int32[np.ndarray, "some"],
        n_users: int,
    ) -> Impressions:
        return Impressions(
            self.slates.pick(places, users=users, n_users=n_users),
            self.clicked[self.slates.shown.places(places)],
            None if self.parts is None else self.parts.take(places),
        )


def clicks(impressions: Impressions) -> Interactions:
    """The log: what stands in a user's histories, then what they clicked when shown.

    The first history of a user counts as it is, repeats included; of later ones only
    what the log would otherwise lack. Nobody knows when history was read, so its times
    are …, -2, -1: they keep its order and come before everything that has a time.
    """
    slates = impressions.slates
    owners = slates.shown.owners[impressions.clicked]
    click_users = slates.users[owners].astype(np.int64)
    click_items = slates.shown.values[impressions.clicked]
    users, items = _history_clicks(slates, click_users * slates.n_items + click_items)
    times = None
    if slates.times is not None:
        ends = np.searchsorted(users, users, side="right")  # after each user's last
        times = np.concatenate([np.arange(len(users)) - ends, slates.times[owners]])
    return Interactions.of_columns(
        np.concatenate([users, click_users]),
        np.concatenate([items, click_items]),
        times=times,
        n_users=slates.n_users,
        n_items=slates.n_items,
    )


def _history_clicks(
    slates: Slates, clicked: Int64[np.ndarray, "clicks"]
) -> tuple[Int64[np.ndarray, "read"], Int32[np.ndarray, "read"]]:
    """Users and items of history, by user; pairs in `clicked` are in the log anyway."""
    # A pair of user and history as one number, so that `unique` finds first uses.
    pair = slates.users.astype(np.int64) * len(slates.histories) + slates.history_of
    uses = np.sort(np.unique(pair, return_index=True)[1])  # each user's, in order
    holders = slates.users[uses].astype(np.int64)
    is_first = np.ones(len(uses), bool)
    is_first[1:] = np.diff(holders) != 0
    read = slates.histories.take(slates.history_of[uses])
    users = holders[read.owners]
    code = users * slates.n_items + read.values
    kept = is_first[read.owners]
    later = np.flatnonzero(~kept)
    # Of later histories the first occurrence of each pair, unless it is known.
    new, where = np.unique(code[later], return_index=True)
    kept[later[where[~np.isin(new, np.concatenate([code[kept], clicked]))]]] = True
    return users[kept], read.values[kept]


def _by_first_use(
    rows: Int64[np.ndarray, "n"],
) -> tuple[Int64[np.ndarray, "distinct"], Int64[np.ndarray, "n"]]:
    """The distinct values in the order they come, and the index of each among them."""
    values, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return values[order], place[inverse]
