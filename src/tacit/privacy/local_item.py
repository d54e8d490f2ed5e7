"""Every client names one item, by randomised response over the catalog.

    client   1  draw one of the items that the report holds; of none, one of all
             2  send it, or with a known chance any other
    server   3  count; counts rank as unbiased estimates do, which are linear in them

It is weaker than `local`, which says something about all items at once, and stays here
for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import BadValue, Refused
from tacit.keys import Keys
from tacit.mechanisms.randomized_response import respond
from tacit.phase import Phase
from tacit.plans import Plan
from tacit.privacy.budgets import given
from tacit.privacy.guarantees import shuffled
from tacit.privacy.local_priv_unit import LocalPrivUnit
from tacit.privacy.privacy import Codes, Legal, Slots, release
from tacit.release import Release
from tacit.transport.messages import Layout, Slot
from tacit.tree import Arrays, Tree
from tacit.wire_names import register


@register("local_item")
@dataclass(frozen=True)
class LocalItem(LocalPrivUnit):
    """Reports one randomised item per participation, each of `epsilon`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clip is not None:
            raise BadValue(
                f"clip={self.clip} would change nothing: a client names one item, "
                "whatever the rest of its report; leave clip out"
            )

    def releases(
        self, plan: Plan, phases: Sequence[Phase], *, is_chosen: bool = False
    ) -> tuple[Release, ...]:
        """One release: a randomised item per participation."""
        reason = "k-ary randomised response over the whole catalog"
        epsilon = given(self.epsilon, "epsilon")
        cells = shuffled(plan, epsilon, messages=1, reason=reason)
        return (release(plan, "one item, randomised", cells),)

    def layout(self, phase: Phase, slots: Slots) -> Layout:
        """One number per item: a 1 at the reported item, else 0."""
        return Layout({n: Slot("uint8", slot.shape) for n, slot in slots.items()})

    def report(
        self, tree: Tree, phase: Phase, told: Arrays, *, codes: Codes, keys: Keys
    ) -> Tree:
        """Lines 1 and 2: a one-hot row with the randomised item of each client."""
        [(name, leaf)] = tree.leaves.items()
        held = leaf.dense().values > 0
        # An empty history draws among all items, so that every input is legal. How the
        # item is drawn may favour some: the response protects whichever it is.
        held = np.where(held.any(axis=1, keepdims=True), held, True)
        draws = keys.at("item").uniform(held.shape[1])
        item = np.where(held, draws, -1.0).argmax(axis=1)
        sizes = np.full(len(item), held.shape[1])
        epsilon = given(self.epsilon, "epsilon")
        said = respond(item, keys.at("response"), sizes=sizes, epsilon=epsilon)
        votes = np.zeros(held.shape, np.uint8)
        votes[np.arange(len(said)), said] = 1
        return Tree.dense(**{name: votes})

    def legal(self, messages: Tree, phase: Phase, *, slots: Slots) -> Legal:
        """Those that name one item, once."""
        [leaf] = messages.leaves.values()
        votes = leaf.dense().values.reshape(len(messages), -1)
        is_marked = votes == 1
        return (is_marked.sum(axis=1) == 1) & (is_marked | (votes == 0)).all(axis=1)

    def variance(self, phase: Phase, *, users: float, size: int) -> float:
        """Refused: counts of single items are not a sum of vectors with noise."""
        raise Refused("one randomised item has no noise of a sum; use 'local'")
