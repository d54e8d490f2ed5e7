"""Broadcasts that a server should not send: outside what was agreed, and just inside.

A client refuses the first kind before it looks at its data. The second kind it cannot
tell from an honest one, so whatever it computes, it must answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.keys import Key
from tacit.transport.messages import NO_PHASE, Broadcast, BroadcastLayout, PublicSlot
from tacit.tree import Array


def not_agreed(broadcast: Broadcast) -> Iterator[Broadcast]:
    """Broadcasts with another agreement or phase, or with arrays that do not fit."""
    weights = dict(broadcast.weights)
    yield replace(broadcast, agreement=bytes(16))
    yield replace(broadcast, phase=NO_PHASE)
    yield replace(broadcast, phase=7)  # no method has so many
    yield replace(broadcast, weights={**weights, "more": np.zeros(3)})
    for name, value in weights.items():
        yield replace(
            broadcast, weights={n: v for n, v in weights.items() if n != name}
        )
        for changed in _misfits(value):
            yield replace(broadcast, weights={**weights, name: changed})


def _misfits(value: Array) -> Iterator[Array]:
    """The same array with another type, shape or range of values."""
    yield value.astype(np.float16)
    yield value[None]
    if value.ndim:
        # Large enough to be felt if it were copied before it is refused.
        yield np.zeros((*value.shape[:-1], value.shape[-1] + 10**6), value.dtype)
    if not value.size:
        return
    wrong = (np.nan, np.inf, 1e30) if value.dtype.kind == "f" else (-1, 2**31 - 1)
    for number in wrong:
        changed = value.copy()
        changed.flat[0] = number
        yield changed


def within(broadcast: Broadcast, layout: BroadcastLayout) -> Iterator[Broadcast]:
    """Broadcasts that fit the layout: ends of every range, zeros, and random values."""
    draws = Key.from_seed(11).generator()
    for least, most, share in (
        *((0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0)),  # all lowest, highest, 0
        *((0.0, 1.0, 0.0), (0.0, 1.0, 0.9)),  # from end to end; mostly nothing
    ):
        yield replace(
            broadcast,
            weights={
                name: _filled(slot, broadcast.weights[name], draws, least, most, share)
                for name, slot in layout.slots.items()
            },
        )
    # Factors of rank one, huge and nearly parallel: what makes a system singular.
    yield replace(
        broadcast,
        weights={
            name: _singular(slot, broadcast.weights[name])
            for name, slot in layout.slots.items()
        },
    )


def _filled(
    slot: PublicSlot,
    like: Array,
    draws: np.random.Generator,
    least: float,
    most: float,
    zeros: float,
) -> Array:
    """Values at these shares of the range; some of them 0, if 0 is in the range."""
    low, high = float(slot.least), float(slot.most)
    places = draws.uniform(least, most, like.shape)
    values = np.asarray(low * (1 - places) + high * places)
    if low <= 0 <= high:
        values[draws.uniform(size=like.shape) < zeros] = 0.0
    if like.dtype.kind != "f":
        values = np.rint(values)
    return np.clip(values.astype(like.dtype), low, high).astype(like.dtype)


def _singular(slot: PublicSlot, like: Array) -> Array:
    if like.dtype.kind != "f" or like.ndim != 2 or not like.size:
        return like
    value = np.zeros_like(like)
    # Squared, 2^66 and 2^12.5. What is added to 2^66 is lost in double precision if it
    # is below 2^13, so a ridge of 1 changes nothing: `V.T @ V` stays exactly singular.
    value[0, :2] = 2.0**33
    value[-1, -1] = 2.0**6.25
    return np.clip(value, slot.least, slot.most).astype(like.dtype)
