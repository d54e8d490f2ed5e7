"""Held-out users made ready for ranking: checked, and in chunks that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from tacit.data import features
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.splits import Heldout
from tacit.errors import BadValue

_NUMBERS_AT_ONCE = 2**24  # scores in memory: 64 MiB of float32


def chunks(heldout: Heldout, *, width: int) -> Iterator[Heldout]:
    """The users, checked, as many at a time as keep `width` numbers each in bounds."""
    checked = _checked(heldout)
    size = max(1, _NUMBERS_AT_ONCE // max(1, width))
    for start in range(0, len(checked.users), size):
        rows = slice(start, min(start + size, len(checked.users)))
        yield Heldout(
            checked.users[rows],
            _cut(checked.history, rows),
            _cut(checked.targets, rows),
            None if checked.disliked is None else _cut(checked.disliked, rows),
        )


def refuse_users(
    heldout: Heldout,
    bad: Bool[np.ndarray, "users"],
    problem: str,
    *,
    error: type[BadValue] = BadValue,
) -> None:
    """Refuse if anybody is bad, and name the first."""
    if bad.any():
        user, count = int(heldout.users[bad][0]), int(bad.sum())
        others = f" (and {count - 1} more)" if count > 1 else ""
        raise error(f"user {user}{others} {problem}")


def _checked(heldout: Heldout) -> Heldout:
    """The same users with distinct targets, at least one per user."""
    n_items = heldout.history.n_items
    if not len(heldout.users):
        raise BadValue("nobody is held out; hold out at least one user")
    if heldout.targets.n_items != n_items:
        raise BadValue(
            f"histories speak of {n_items} items, targets of {heldout.targets.n_items}"
        )
    targets = _distinct(heldout.targets)  # a target counts once, however often
    refuse_users(heldout, targets.lengths == 0, "has no target; leave them out")
    return replace(heldout, targets=targets)


def _distinct(shards: Shards) -> Shards:
    """The same rows without repeats, items in ascending order."""
    rows = distinct(shards.histories, shards.n_items)
    items = np.asarray(rows.values, np.int32)
    ones = np.ones(len(items), np.float32)
    return Shards(rows.offsets, items, ones, None, shards.n_items)


def distinct(rows: Ragged, n_items: int) -> Ragged:
    """The same rows, each sorted and without repeats."""
    pairs = rows.owners * n_items + rows.values
    if (pairs[1:] > pairs[:-1]).all():  # sorted already, as most are: no copy
        return rows
    pairs = np.sort(pairs)  # np.unique hashes, which is ten times slower here
    is_first = np.ones(len(pairs), bool)
    is_first[1:] = pairs[1:] > pairs[:-1]
    owners, items = np.divmod(pairs[is_first], n_items)
    lengths = np.bincount(owners, minlength=len(rows))
    return Ragged.of_lengths(lengths, items.astype(np.int32))


def _cut(shards: Shards, rows: slice) -> Shards:
    """A run of rows, without copying their events (what else they hold is copied)."""
    offsets = shards.offsets[rows.start : rows.stop + 1]
    events = slice(offsets[0], offsets[-1])
    times = None if shards.times is None else shards.times[events]
    shown = shards.impressions
    return Shards(
        offsets - offsets[0],
        shards.items[events],
        shards.values[events],
        times,
        shards.n_items,
        features.take(shards.contexts, np.arange(events.start, events.stop)),
        None if shown is None else shown.take_users(np.arange(rows.start, rows.stop)),
    )
