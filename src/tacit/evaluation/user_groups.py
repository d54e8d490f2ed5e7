"""Groups of users by how much history a ranker sees of them, and by what follows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from tacit.data.splits import Heldout
from tacit.errors import BadValue
from tacit.results import Groups

_NAMES = ("few", "some", "many")
_GAPS = ("in the same second", "within an hour", "an hour or more later")
_HOUR = 3600  # seconds


def by_activity(
    lengths: Int64[np.ndarray, "users"], *, edges: Sequence[int] | None = None
) -> Groups:
    """Groups by history length; a group begins at each edge, by default at tertiles.

    Labels show the bounds. Equal lengths are never torn apart, so where many users
    have the same length there may be fewer than three groups.

    >>> by_activity(np.array([2, 9, 4, 30]), edges=(5, 20)).labels
    ('few (0-4)', 'some (5-19)', 'many (20+)')
    """
    begins = np.array(_tertiles(lengths) if edges is None else edges, np.int64)
    if (np.diff(begins) <= 0).any() or (begins <= 0).any():
        raise BadValue(f"edges={list(begins)} must be > 0 and rise")
    return Groups(_labels(begins.tolist()), np.searchsorted(begins, lengths, "right"))


def by_gap(heldout: Heldout) -> Groups:
    """Groups by the time from the last event of a history to the first target.

    A next item in the same second continues a list that was ticked off at once; one
    that comes later is what a returning user takes. Needs times.
    """
    history, targets = heldout.history, heldout.targets
    if history.times is None or targets.times is None:
        raise BadValue("groups by gap need times, and the held-out users have none")
    last = history.times[history.offsets[1:] - 1]
    first = targets.times[targets.offsets[:-1]]
    return Groups(_GAPS, np.searchsorted([1, _HOUR], first - last, side="right"))


def _tertiles(lengths: Int64[np.ndarray, "users"]) -> list[int]:
    """The smallest lengths that begin the second and the last third."""
    # "lower" gives a length that occurs; a group begins just above it.
    thirds = np.quantile(lengths, [1 / 3, 2 / 3], method="lower") + 1
    return [int(x) for x in np.unique(thirds) if x <= lengths.max()]


def _labels(begins: list[int]) -> tuple[str, ...]:
    closed = [f"{a}-{b - 1}" for a, b in zip([0, *begins], begins, strict=False)]
    bounds = [*closed, f"{begins[-1] if begins else 0}+"]
    if len(bounds) != len(_NAMES):  # words are for three groups, else bounds alone
        return tuple(bounds)
    return tuple(f"{n} ({b})" for n, b in zip(_NAMES, bounds, strict=True))
