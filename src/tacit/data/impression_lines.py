"""Impressions from a table with a line for each item that was shown.

Lines of one user with the same slate are one impression, in the order of the file. Its
time is the earliest of its lines. The history of an impression is what its user had
clicked in the impressions before it, at most the last hundred clicks.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int64

from tacit.data.impressions import Impressions
from tacit.data.ragged import Ragged, offsets_of

MOST_READ = 100  # of a history: memory grows with slates and not with their squares

Lines = Int64[np.ndarray, "lines"]
Each = Int64[np.ndarray, "slates"]


def impressions_of_lines(
    users: Lines,
    items: Lines,
    slates: Lines,
    *,
    clicked: Bool[np.ndarray, "lines"],
    times: Lines | None = None,
    n_users: int,
    n_items: int,
) -> Impressions:
    """The impressions of these lines; those of one slate share a user and a number."""
    pairs = users * (int(slates.max(initial=0)) + 1) + slates
    _, first, slate = np.unique(pairs, return_index=True, return_inverse=True)
    began = first if times is None else _earliest(times, slate, len(first))
    rank = _ranks(users[first], began, first)  # by user, then by time
    lines = np.argsort(rank[slate], kind="stable")  # ties keep the order of the file
    by_rank = np.argsort(rank)
    lengths = np.bincount(rank[slate], minlength=len(first))
    owners = users[first][by_rank]
    return Impressions.of_columns(
        owners,
        Ragged.of_lengths(lengths, items[lines].astype(np.int32)),
        clicked=clicked[lines],
        histories=_histories(owners, lengths, items[lines], clicked[lines]),
        history_of=np.arange(len(first)),
        times=None if times is None else began[by_rank],
        n_users=n_users,
        n_items=n_items,
    )


def _earliest(times: Lines, slate: Lines, n: int) -> Each:
    earliest = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(earliest, slate, times)
    return earliest


def _ranks(users: Each, began: Each, first: Each) -> Each:
    """The place of each slate among all, by user, time and place in the file."""
    rank = np.empty(len(users), np.int64)
    rank[np.lexsort((first, began, users))] = np.arange(len(users))
    return rank


def _histories(
    users: Each, lengths: Each, items: Lines, clicked: Bool[np.ndarray, "lines"]
) -> Ragged:
    """For slates in the order of users and time: the last clicks before each."""
    owner = np.repeat(np.arange(len(users)), lengths)[clicked]
    per_slate = np.bincount(owner, minlength=len(users))
    before = offsets_of(per_slate)[:-1]  # clicks of all slates before this one
    is_new = np.ones(len(users), bool)
    is_new[1:] = np.diff(users) != 0
    base = np.maximum.accumulate(np.where(is_new, before, 0))  # the user's first click
    start = np.maximum(base, before - MOST_READ)
    read = before - start
    places = np.arange(read.sum()) + np.repeat(start - offsets_of(read)[:-1], read)
    return Ragged.of_lengths(read, items[clicked][places].astype(np.int32))
