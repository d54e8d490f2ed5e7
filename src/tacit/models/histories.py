"""Histories as rows of numbers: 1 per item, or weighted by value and age."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64

from tacit.data.shards import Shards
from tacit.models.onnx_graph import HISTORIES, Formula

Weighting = Literal["once", "values", "log"]
"""once: 1 for an item that is there; values: the sum of its values (stars, plays);
log: the logarithm of one plus that sum. Values below zero count as zero."""

_DAY = 86_400.0  # seconds, the unit of times


def rows(
    shards: Shards,
    *,
    items: Int64[np.ndarray, "columns"] | None = None,
    weighting: Weighting = "once",
    half_life: float | None = None,
) -> Float64[np.ndarray, "users columns"]:
    """One row per user over some items, in the order given, or over all of them.

    With a `half_life` in days an event counts 2^(-age / half_life); its age is the time
    to the user's own last event. Without times it changes nothing.
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
        # An item counts by its latest event: repeats do not make it older.
        fresh = np.zeros_like(flat)
        aged = np.exp2(-_ages(shards)[inside] / (half_life * _DAY))
        np.maximum.at(fresh, cells, aged)
        flat *= fresh
    return total


def column_of(
    items: Int64[np.ndarray, "columns"], *, n_items: int
) -> Int64[np.ndarray, "items"]:
    """The place of every item of the catalog among some of them, or -1."""
    places = np.full(n_items, -1)
    places[items] = np.arange(len(items))
    return places


def rows_formula(weighting: Weighting) -> Formula:
    """`rows` over all items as a graph; its input has values and no times."""
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
