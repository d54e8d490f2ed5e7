"""A channel in which some of every cohort lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from tacit import check
from tacit.attacks.poisoning.attacks import Attack
from tacit.errors import BadValue
from tacit.keys import Key
from tacit.transport.channels import (
    Carrier,
    Delivery,
    MaskedSum,
    RoundContext,
    TwoServers,
)
from tacit.transport.messages import Layout, Reports
from tacit.tree import Tree


@dataclass(frozen=True)
class Infiltrated:
    """Replaces a share of the reports by what attackers send, then carries all.

    Attackers are drawn anew in every round, exactly `share` of the cohort to the
    nearest client. They know all reports, so all are held at once, as factors. What
    they send must be as declared; nothing else about it is checked.
    """

    channel: Carrier
    attack: Attack
    share: float

    def __post_init__(self) -> None:
        check.fraction(share=self.share)
        if isinstance(self.channel, TwoServers | MaskedSum):
            # The twin bounds every report as its client would; a liar would not.
            raise BadValue(
                f"over '{self.channel.name}' nobody can bound the report of a client "
                "that lies, and the simulation does: attacks would look harmless; "
                "study them over 'secure_sum' or 'direct'"
            )

    @property
    def name(self) -> str:
        """The name of the channel inside."""
        return self.channel.name

    @property
    def delivers(self) -> type[Delivery]:
        """What the channel inside delivers."""
        return self.channel.delivers

    def carry(self, chunks: Iterable[Reports], context: RoundContext) -> Delivery:
        """The delivery of honest reports and forged ones together."""
        return self.channel.carry(self._mixed(chunks, context), context)

    def _mixed(
        self, chunks: Iterable[Reports], context: RoundContext
    ) -> Iterator[Reports]:
        trees = [chunk.tree for chunk in chunks if len(chunk)]
        if not trees:
            return
        key = context.key.at("poisoning", "attackers")  # not one that draws noise
        tree, _ = self.mixed(Tree.concatenate(trees), context.layout, key=key)
        yield Reports(tree)

    def mixed(
        self, tree: Tree, layout: Layout, *, key: Key
    ) -> tuple[Tree, Int64[np.ndarray, "liars"]]:
        """A cohort's reports with some of them forged, and the rows that are."""
        order = key.at("who").generator().permutation(len(tree))
        n = round(self.share * len(tree))  # exact, not a coin each: less to average
        liars, others = np.sort(order[:n]), np.sort(order[n:])
        if not n:
            return tree, liars
        forged = self.attack.forge(
            tree.select(liars), honest=tree.select(others), key=key.at("forge")
        )
        layout.check(Reports(forged))
        return tree.replace_rows(liars, forged), liars
