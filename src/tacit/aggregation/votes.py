"""Votes ±(coordinate + 1), counted in whole numbers; a vote of 0 says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Int64

from tacit.errors import Refused
from tacit.kernels import dispatch
from tacit.transport.channels import Delivery, Each, RoundContext, Unlinked
from tacit.tree import Array, Tree

VOTES = "votes"  # the leaf of a report

Counts = Int64[np.ndarray, "dimension"]


@dataclass(frozen=True)
class Votes:
    """Counts votes about the coordinates of a vector; who cast them does not matter."""

    dimension: int
    accepts: tuple[type[Delivery], ...] = (Each, Unlinked)
    is_plain_sum: bool = True

    def total(self, delivery: Delivery, context: RoundContext) -> dict[str, Array]:
        """For each coordinate, the votes for 1 less the votes for 0."""
        counted = np.zeros(self.dimension, np.int64)
        for tree in _trees(delivery):
            counted += tally(tree[VOTES], self.dimension)
        return {VOTES: counted}


def tally(votes: Int32[np.ndarray, "..."], dimension: int) -> Counts:
    """For each coordinate, the votes for 1 less the votes for 0.

    A vote for no coordinate counts as none.
    """
    flat = votes.reshape(-1)
    is_large = dispatch.pays("one_bit.tally", flat.size)
    counted = _tally_compiled() if is_large else _tally_plain
    counts = counted(flat, dimension)
    # Index dimension + v counts vote v: +1 … +d on the right, -1 … -d mirrored.
    return counts[dimension + 1 :] - counts[:dimension][::-1]


def _tally_plain(
    votes: Int32[np.ndarray, "votes"], dimension: int
) -> Int64[np.ndarray, "both_signs"]:
    """How often each vote from -dimension to dimension was given."""
    legal = votes[(votes >= -dimension) & (votes <= dimension)]
    places = legal.astype(np.int64) + dimension
    return np.bincount(places, minlength=2 * dimension + 1)


def _tally_compiled() -> Callable[[Array, int], Array]:
    """The numba twin of `_tally_plain`."""
    from tacit.kernels.one_bit import tally  # loads numba

    return tally


def _trees(delivery: Delivery) -> Iterator[Tree]:
    if isinstance(delivery, Each):
        yield from (chunk.tree for chunk in delivery.chunks if len(chunk))
    elif isinstance(delivery, Unlinked):
        yield delivery.messages
    else:
        raise Refused("votes cannot be read from a sum; use 'direct' or 'shuffle'")
