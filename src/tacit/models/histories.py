"""Histories as rows of numbers: 1 per item, or weighted by value and age."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.models.onnx_graph import HISTORIES, Formula

Weighting = Literal["once", "values", "log"]
"""once: 1 for an item that is there; values: the sum of its values (stars, plays);
log: the logarithm of one plus that sum. Values below zero count as zero."""

ListFor = Literal["any", "session", "visit"]
"""any: what a user may like; session: what continues the session, so that an item
counts 1 / (1 + number of later items); visit: what a user takes on coming back, so that
it counts 2^(-days / 30). Ties in time weigh the same."""

_DAY = 86_400.0  # seconds, the unit of times
_VISIT_HALF_LIFE = 30.0  # days
_TINY = 1e-300  # a weight below it is none: of an event that is eighty years old


def rows(
    shards: Shards,
    *,
    items: Int64[np.ndarray, "columns"] | None = None,
    weighting: Weighting = "once",
    half_life: float | None = None,
    list_for: ListFor = "any",
) -> Float64[np.ndarray, "users columns"]:
    """One row per user over some items, in the order given, or over all of them.

    With a `half_life` in days an event counts 2^(-age / half_life); its age is the time
    to the user's own last event. Without times it changes nothing. What the list is for
    weighs events by `recency`, over the largest weight among these items.
    """
    columns = np.arange(shards.n_items) if items is None else items
    at = column_of(columns, n_items=shards.n_items)[shards.items]
    inside = at >= 0
    cells = shards.owners[inside] * len(columns) + at[inside]
    total = np.zeros((len(shards), len(columns)))
    flat = total.reshape(-1)
    if weighting == "once":
        flat[cells] = 1.0
    else:
        np.add.at(flat, cells, np.maximum(shards.values[inside], 0.0))
    if weighting == "log":
        np.log1p(total, out=total)
    if half_life is not None and shards.times is not None:
        aged = np.exp2(-_ages(shards)[inside] / (half_life * _DAY))
        flat *= _of_latest(cells, aged, n_cells=len(flat))
    if list_for != "any":
        found = _of_latest(cells, recency(shards, list_for)[inside], n_cells=len(flat))
        weights = found.reshape(total.shape)
        # Of items far older than the rest of a history the latest still weighs 1.
        total *= weights / np.maximum(weights.max(axis=1, initial=0.0), _TINY)[:, None]
    return total


def _of_latest(
    cells: Int64[np.ndarray, "events"],
    weights: Float64[np.ndarray, "events"],
    *,
    n_cells: int,
) -> Float64[np.ndarray, "cells"]:
    """The weight of each item's latest event: repeats do not make an item older."""
    latest = np.zeros(n_cells)
    np.maximum.at(latest, cells, weights)
    return latest


def recency(shards: Shards, list_for: ListFor) -> Float64[np.ndarray, "events"]:
    """How much each event counts in ranking; an item counts by its latest event.

    Without times the order of events is all that is known: a session needs no more, and
    a visit weighs all alike.
    """
    if list_for == "session":
        return 1.0 / (1.0 + _later_items(shards))
    if list_for == "visit" and shards.times is not None:
        return np.exp2(-_ages(shards) / (_VISIT_HALF_LIFE * _DAY))
    return np.ones(len(shards.items))


def latest_events(shards: Shards) -> Int64[np.ndarray, "pairs"]:
    """Where each user's latest event of each item stands, by user and then by item."""
    cells = shards.owners * shards.n_items + shards.items
    return len(cells) - 1 - np.unique(cells[::-1], return_index=True)[1]


def popular_factor(list_for: ListFor) -> float:
    """How much louder popularity is in a ranking: next visits are less personal."""
    return 2.0 if list_for == "visit" else 1.0


def _later_items(shards: Shards) -> Int64[np.ndarray, "events"]:
    """The number of distinct items whose last event is later than each event."""
    n, owners = len(shards.items), shards.owners
    if not n:
        return np.zeros(0, np.int64)
    is_last = np.zeros(n, bool)
    is_last[latest_events(shards)] = True
    ends = np.ones(n, bool)  # of a run of events of one user at one time
    if shards.times is not None:
        ends[:-1] = (np.diff(owners) != 0) | (np.diff(shards.times) != 0)
    done = np.cumsum(is_last)  # items whose last event is at or before a place
    through = done[ends][np.cumsum(ends) - ends]
    return done[shards.offsets[1:] - 1][owners] - through


def column_of(
    items: Int64[np.ndarray, "columns"], *, n_items: int
) -> Int64[np.ndarray, "items"]:
    """The place of every item of the catalog among some of them, or -1."""
    places = np.full(n_items, -1)
    places[items] = np.arange(len(items))
    return places


def rows_formula(weighting: Weighting, list_for: ListFor = "any") -> Formula:
    """`rows` over all items as a graph; its input has values and no times.

    For a session or a visit the input has the weights of the items in place of values.
    """
    if list_for != "any" and weighting != "once":
        raise Refused(
            f"a formula takes one number for each item: its weight for a {list_for}, "
            f"or what weighting={weighting!r} reads; write it for 'any', or train with "
            "weighting = 'once'"
        )
    if list_for != "any":
        return HISTORIES.maximum(0.0)
    if weighting == "once":
        return HISTORIES.held()
    values = HISTORIES.maximum(0.0)
    return values if weighting == "values" else (values + 1.0).log()


def _ages(shards: Shards) -> Float64[np.ndarray, "events"]:
    """Seconds from each event to its owner's last one; events are sorted by time."""
    assert shards.times is not None
    lengths = shards.lengths[shards.lengths > 0]
    last = shards.times[shards.offsets[1:][shards.lengths > 0] - 1]
    return (np.repeat(last, lengths) - shards.times).astype(np.float64)


def log_counts(
    counts: Float64[np.ndarray, "items"], *, floor: float
) -> Float64[np.ndarray, "items"]:
    """Log counts, floored at the noise level so that noise is never read as popularity.

    Counts below one are read as one.
    """
    logs: Float64[np.ndarray, "items"] = np.log(np.maximum(counts, max(1.0, floor)))
    return logs
