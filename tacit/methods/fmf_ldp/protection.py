"""What a device sends of its gradient: all of it, a few bits, or one noisy vector.

    Bare     the gradient as it is                          float64, items × factors
    Votes    k votes ±(coordinate + 1), a randomised bit each           int32, k
    Whole    PrivUnitG of the gradient                       float32, items · factors

A vote of 0 says nothing, so a report of zeros is no report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64

from tacit.data.shards import Shards
from tacit.errors import Refused
from tacit.keys import Keys
from tacit.mechanisms.one_bit import randomized_bits
from tacit.mechanisms.priv_unit import PrivUnit
from tacit.mechanisms.published.fmf_ldp import PublishedBits
from tacit.mechanisms.spread_bits import SpreadBits
from tacit.models.implicit_factors import ImplicitFactors
from tacit.plan import Plan
from tacit.release import Cells, shuffled, unprotected
from tacit.transport.channels import Delivery, Each, Sum, Unlinked, bare_sum
from tacit.transport.messages import Layout, Slot
from tacit.tree import Array, Tree, add

_COMPILED_FROM = 200_000  # votes

Total = Float64[np.ndarray, "items factors"]


@dataclass(frozen=True)
class Reader:
    """Adds up what was delivered; who said it does not matter."""

    accepts: tuple[type[Delivery], ...]
    is_plain_sum: bool = True


@dataclass(frozen=True)
class Bare:
    """The gradient as it is: federated collaborative filtering."""

    n_items: int
    factors: int
    what = "gradient of each device"
    reader = Reader((Each, Unlinked, Sum))

    def layout(self) -> Layout:
        """A number for each item and factor."""
        return Layout({"gradient": Slot("float64", (self.n_items, self.factors))})

    def update(self, model: ImplicitFactors, shards: Shards, keys: Keys) -> Tree:
        """The whole gradient."""
        return Tree.dense(gradient=model.gradients(shards))

    def report(self, update: Tree, keys: Keys) -> Tree:
        """Unchanged."""
        return update

    def total(self, delivery: Delivery) -> Total:
        """The sum of the gradients."""
        return _summed(delivery, self.layout())["gradient"]

    def cells(self, plan: Plan) -> Cells:
        """No promise."""
        return unprotected("gradients are sent as they are; no mechanism protects them")


@dataclass(frozen=True)
class Votes:
    """A few coordinates, one randomised bit each; `bits` says which and what for."""

    bits: SpreadBits | PublishedBits
    n_items: int
    factors: int
    clip: float
    what = "randomised bits of each device's gradient"
    reader = Reader((Each, Unlinked))

    def layout(self) -> Layout:
        """One number a vote; a relay may cut between them."""
        slot = Slot("int32", (self.bits.count,))
        return Layout({"votes": slot}, split_axis=0)

    def update(self, model: ImplicitFactors, shards: Shards, keys: Keys) -> Tree:
        """The gradient at coordinates that were drawn without looking at anything."""
        at = self.bits.coordinates(keys)
        return Tree.dense(coordinates=at, values=model.gradients_at(shards, at))

    def report(self, update: Tree, keys: Keys) -> Tree:
        """Algorithm 1, lines 3 and 5 to 10."""
        epsilon, values = self.bits.epsilon, update["values"]
        said = randomized_bits(values, keys, epsilon=epsilon, bound=self.clip)
        signs = said.view(np.int8) * np.int8(2) - np.int8(1)
        return Tree.dense(votes=signs * (update["coordinates"] + np.int32(1)))

    def total(self, delivery: Delivery) -> Total:
        """Votes counted in whole numbers, then scaled: the sum of gradients, estimated.

        A vote for no coordinate counts as none.
        """
        size = self.bits.dimension
        counted = np.zeros(size, np.int64)
        for tree in _trees(delivery):
            counted += tally(tree["votes"], size)
        total = self.clip * self.bits.scales * counted
        return total.reshape(self.n_items, self.factors)

    def cells(self, plan: Plan) -> Cells:
        """Pure local privacy, a message a vote; amplified where a relay mixes."""
        reason = "Theorem 3 of Minto et al. 2021, composed over votes and rounds"
        epsilon, votes = self.bits.epsilon, self.bits.count
        return shuffled(plan, epsilon, messages=votes, reason=reason)


@dataclass(frozen=True)
class Whole:
    """One PrivUnitG report of the whole gradient, longer ones cut to `radius`."""

    mechanism: PrivUnit
    n_items: int
    factors: int
    what = "randomised gradient of each device"
    reader = Reader((Each, Unlinked, Sum))

    def layout(self) -> Layout:
        """A number for each item and factor."""
        return Layout({"gradient": Slot("float32", (self.mechanism.dimension,))})

    def update(self, model: ImplicitFactors, shards: Shards, keys: Keys) -> Tree:
        """The whole gradient."""
        whole = model.gradients(shards)
        return Tree.dense(gradient=whole.reshape(len(whole), -1))

    def report(self, update: Tree, keys: Keys) -> Tree:
        """Randomised on the device."""
        said = self.mechanism.privatize(update["gradient"], keys)
        return Tree.dense(gradient=said)

    def total(self, delivery: Delivery) -> Total:
        """The sum of the reports, which is right on average."""
        total = _summed(delivery, self.layout())["gradient"]
        return total.reshape(self.n_items, self.factors)

    def cells(self, plan: Plan) -> Cells:
        """Pure local privacy, a message a report; amplified where a relay mixes."""
        reason = "PrivUnitG, pure local privacy"
        return shuffled(plan, self.mechanism.epsilon, messages=1, reason=reason)


Protection = Bare | Votes | Whole


def tally(
    votes: Int32[np.ndarray, "..."], dimension: int
) -> Int64[np.ndarray, "dimension"]:
    """For each coordinate, the votes for 1 less the votes for 0."""
    flat = votes.reshape(-1)
    counted = _tally_plain if flat.size < _COMPILED_FROM else _tally_compiled()
    counts = counted(flat, dimension)
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
    from tacit.kernels.bits import tally  # loads numba

    return tally


def _summed(delivery: Delivery, layout: Layout) -> dict[str, Array]:
    if isinstance(delivery, Sum):
        return add([layout.zeros(), delivery.total])
    return bare_sum(_trees(delivery), layout)


def _trees(delivery: Delivery) -> Iterator[Tree]:
    if isinstance(delivery, Each):
        yield from (chunk.tree for chunk in delivery.chunks if len(chunk))
    elif isinstance(delivery, Unlinked):
        yield delivery.messages
    else:
        raise Refused("votes cannot be read from a sum; use 'direct' or 'shuffle'")
