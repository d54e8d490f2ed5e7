"""What attackers send instead of their own report.

    Scaled      their own update times a factor; flipped where it is negative
    Gaussian    normal draws, as long as `times` the median honest report
    Promote     a gradient that raises one item and nothing else, as long as that too
    EveryGroup  any of these, placed into every group at once (`aggregation.bucketed`)

A factored leaf is forged by its factors, since that is all that travels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit import check
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.tree import Array, Factored, Grouped, Leaf, Tree


class Attack(Protocol):
    """A frozen dataclass that forges reports."""

    def forge(self, own: Tree, *, honest: Tree, key: Key) -> Tree:
        """What clients send that honestly would have sent `own`; axis 0 is the client.

        `honest` is what everyone else sends in the round.
        """
        ...


@dataclass(frozen=True)
class Scaled:
    """Their own report times a factor."""

    factor: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.factor):
            raise BadValue(f"factor={self.factor} must be finite")

    def forge(self, own: Tree, *, honest: Tree, key: Key) -> Tree:
        """Every attacker's own report, times the factor."""
        return own.scale(self.factor)


@dataclass(frozen=True)
class Gaussian:
    """Normal draws instead of every number that travels."""

    times: float = 10.0  # of the median honest norm

    def __post_init__(self) -> None:
        check.positive(times=self.times)

    def forge(self, own: Tree, *, honest: Tree, key: Key) -> Tree:
        """Reports of noise, drawn anew for every attacker and round."""
        draws = key.generator()

        def drawn(stored: Array) -> Array:
            return draws.standard_normal(stored.shape).astype(stored.dtype)

        noise = _changed(own, lambda _, leaf: leaf.map(drawn))
        return _as_long_as(honest, noise, times=self.times)


@dataclass(frozen=True)
class Promote:
    """A gradient that raises the score of one item, and touches nothing else.

    `leaf` is the gradient of the output layer: one column per item. The attacker keeps
    the layer's input of its own report, so that whoever resembles it is shown the item.
    In rounds that have no such leaf attackers behave.
    """

    item: int
    leaf: str
    times: float = 1.0  # of the median honest norm; 1 is hard to tell from the others

    def __post_init__(self) -> None:
        check.at_least(0, item=self.item)
        check.positive(times=self.times)

    def forge(self, own: Tree, *, honest: Tree, key: Key) -> Tree:
        """Reports whose one non-zero column raises the item's score."""
        if self.leaf not in own.leaves:
            return own
        return _as_long_as(honest, _changed(own, self._aimed), times=self.times)

    def _aimed(self, name: str, leaf: Leaf) -> Leaf:
        if name != self.leaf:
            return leaf.map(np.zeros_like)
        if not isinstance(leaf, Factored):
            raise BadValue(f"leaf '{name}' is a {type(leaf).__name__}, not Factored")
        if self.item >= leaf.shape[1]:
            raise BadValue(f"item={self.item} must be < {leaf.shape[1]}, the columns")
        right = np.zeros_like(leaf.right)
        right[:, 0, self.item] = -1.0  # the server steps against a gradient
        return Factored(leaf.left, right)


@dataclass(frozen=True)
class EveryGroup:
    """The same in all groups: a client that does not draw one, but claims them all."""

    attack: Attack

    def forge(self, own: Tree, *, honest: Tree, key: Key) -> Tree:
        """What the inner attack forges, claimed for all groups at once."""
        forged = self.attack.forge(own, honest=honest, key=key)
        return Tree({name: _everywhere(leaf) for name, leaf in forged.leaves.items()})


def _everywhere(leaf: Leaf) -> Leaf:
    if isinstance(leaf, Grouped):
        return Grouped(leaf.inner, np.ones_like(leaf.shares))
    return leaf


def _changed(tree: Tree, change: Callable[[str, Leaf], Leaf]) -> Tree:
    """Every leaf changed; a grouped leaf keeps its group and changes inside it."""

    def changed(name: str, leaf: Leaf) -> Leaf:
        if not isinstance(leaf, Grouped):
            return change(name, leaf)
        inner = change(name, leaf.inner)
        assert not isinstance(inner, Grouped)
        return Grouped(inner, leaf.shares)

    return Tree({name: changed(name, leaf) for name, leaf in tree.leaves.items()})


def _as_long_as(honest: Tree, forged: Tree, *, times: float) -> Tree:
    """Every forged report with `times` the median norm of honest ones."""
    # A typical norm, so that a defense by length alone does not see the forgery.
    length = times * float(np.median(honest.norms()))
    return forged.scale(length / np.maximum(forged.norms(), np.finfo(float).tiny))
