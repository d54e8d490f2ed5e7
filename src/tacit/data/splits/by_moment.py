"""A split of an event log at two moments that are the same for everyone.

Nothing that happened after the first moment is trained on, whoever did it, so that a
popularity or a relation of items that is learnt is one that a service would have had.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from tacit.data.dataset import Dataset
from tacit.data.interactions import Interactions
from tacit.data.parsing.timestamps import EXPECTED, second
from tacit.data.shards import Shards
from tacit.data.splits.pairs import times_of
from tacit.data.splits.split import Heldout, Split
from tacit.errors import BadValue

Moment = int | str  # seconds since 1970, or ISO 8601; without a zone it is UTC


def global_cut(
    dataset: Dataset, *, validation_from: Moment, test_from: Moment
) -> Split:
    """Train before one moment, validate until another, and test from there on.

    Who has an event before a moment and a new item from it on is ranked for: with all
    events before it as the history, and with the items that are new as targets. Those
    that the user had before are no targets, when they occur again. To validate, items
    count until `test_from`.
    """
    first, last = cuts(validation_from, test_from)
    times, log = times_of(dataset), dataset.interactions
    trained = log.keep(times < first)
    clients = np.flatnonzero(trained.per_user)
    if not len(clients):
        raise BadValue(
            f"nobody in {dataset.name} has an event before "
            f"validation_from={validation_from}; choose a later moment"
        )
    return Split(
        clients,
        Shards.of(trained.take_users(clients)),
        _heldout(dataset.name, trained, log.keep((times >= first) & (times < last))),
        _heldout(dataset.name, log.keep(times < last), log.keep(times >= last)),
        dataset.catalog,
        dataset.profiles,
    )


def cuts(validation_from: Moment, test_from: Moment) -> tuple[int, int]:
    """Both moments as seconds; refuses what is no moment, or in the wrong order."""
    first = _second(validation_from, "validation_from")
    last = _second(test_from, "test_from")
    if first >= last:
        raise BadValue(
            f"validation_from={validation_from} must be before test_from={test_from}"
        )
    return first, last


def _heldout(name: str, before: Interactions, after: Interactions) -> Heldout:
    """Everyone with a history and with something new after it."""
    fresh = after.keep(_is_new(before, after)).distinct()
    users = np.flatnonzero((before.per_user > 0) & (fresh.per_user > 0))
    if not len(users):
        raise BadValue(
            f"nobody in {name} has events before and new items after a moment of the "
            "split; choose other moments"
        )
    history, targets = (Shards.of(one.take_users(users)) for one in (before, fresh))
    return Heldout(users, history, targets)


def _is_new(before: Interactions, after: Interactions) -> Bool[np.ndarray, "events"]:
    """Which later events are of an item that their user had not had."""
    had, later = (
        log.users.astype(np.int64) * log.n_items + log.items for log in (before, after)
    )
    return ~np.isin(later, had)


def _second(moment: Moment, name: str) -> int:
    try:
        return second(str(moment))
    except ValueError:
        raise BadValue(f"{name}={moment!r} must be {EXPECTED}") from None
