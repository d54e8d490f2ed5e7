"""Sensitive categories: a user marks some, and what is encoded and covered follows.

A user marks categories of items, such as health or politics, as sensitive. The catalog
and its categories are public; marks and history stay on the client. An item whose
category is not known counts as sensitive: nobody has said that it is not.

    protect all     (default) everything enters the encoder, and padding, if there is
                    any, may replace every interaction
    pad sensitive   everything enters, and padding may replace sensitive ones only: less
                    is lost of what is open
    leave out       sensitive items do not enter the encoder at all

A query of epsilon covers any two user vectors, so any two histories, always. Beyond it,
with padding p and item epsilon log(1 + (1 - p)(e^epsilon - 1)):

    protect all     one interaction is another one                 item epsilon
    pad sensitive   one sensitive interaction is another such one  item epsilon
                    one open interaction is another one            epsilon only
    leave out       any sensitive items, equal open ones           0
                    other open items                               epsilon only

docs/serving.md has the proofs. What the user marked is covered as the history is: two
users with other marks have two user vectors.

Source: Liu et al. 2022, section 3.1, who spend a budget on sensitive categories only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Bool

from tacit import check
from tacit.data.catalog import Catalog
from tacit.data.marked_items import check_labels, marked_items
from tacit.data.shards import Shards
from tacit.mechanisms.padding import Padding


class Protection(StrEnum):
    """What happens with the items of categories that a user marked."""

    ALL = "protect all"
    PAD_SENSITIVE = "pad sensitive"
    LEAVE_OUT = "leave out"


@dataclass(frozen=True)
class Covered:
    """Which pairs of histories a guarantee covers, and at which epsilon per query."""

    neighbours: str
    epsilon: float
    reason: str


_ANY = "the query covers any two user vectors"
_PADDED = "it is a public item instead with the probability of padding"


@dataclass(frozen=True)
class Marks:
    """The categories that one user marked as sensitive, and what follows.

    `feature` is a public category of the items.
    """

    feature: str
    sensitive: frozenset[str]
    protection: Protection = Protection.ALL

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        feature: str,
        sensitive: Collection[str],
        *,
        protection: Protection = Protection.ALL,
    ) -> Marks:
        """Marks on this catalog; an unknown feature or category is refused by name."""
        check_labels(catalog, feature, sensitive)
        return cls(feature, frozenset(sensitive), protection)

    def is_sensitive(self, catalog: Catalog) -> Bool[np.ndarray, "items"]:
        """Which items of the catalog the user wants protected."""
        return marked_items(catalog, self.feature, self.sensitive)

    def encoded(self, catalog: Catalog, history: Shards) -> Shards:
        """What enters the encoder: the whole history, or its open items only."""
        if self.protection is not Protection.LEAVE_OUT:
            return history
        return without(history, self.is_sensitive(catalog))

    def may_be_padded(self, catalog: Catalog) -> Bool[np.ndarray, "items"]:
        """Which items padding may replace."""
        if self.protection is Protection.PAD_SENSITIVE:
            return self.is_sensitive(catalog)
        return np.ones(len(catalog), bool)

    def covered(
        self, epsilon: float, padding: Padding | None = None
    ) -> tuple[Covered, ...]:
        """What a query of this pure epsilon covers, the widest pairs first."""
        check.positive(epsilon=epsilon)
        found = [Covered("any two histories", epsilon, _ANY)]
        if self.protection is Protection.LEAVE_OUT:
            reason = "sensitive items do not enter the encoder"
            same = "histories with equal open items and any sensitive ones"
            found.append(Covered(same, 0.0, reason))
        if padding is not None:
            kind = {
                Protection.ALL: "interaction for another one",
                Protection.PAD_SENSITIVE: "sensitive interaction for another such one",
                Protection.LEAVE_OUT: "open interaction for another such one",
            }[self.protection]
            item = padding.item_epsilon(epsilon)
            found.append(Covered(f"histories that exchange one {kind}", item, _PADDED))
        return tuple(found)

    def not_covered(self) -> str:
        """What no figure of `covered` improves on the epsilon of the query for."""
        if self.protection is Protection.PAD_SENSITIVE:
            return "one open interaction, or an exchange of an open for a sensitive one"
        if self.protection is Protection.LEAVE_OUT:
            return "open items: they are covered by the epsilon of the query alone"
        return "nothing is treated as less sensitive than the rest"


def without(history: Shards, is_left_out: Bool[np.ndarray, "items"]) -> Shards:
    """Histories without some items of the catalog, and without all impressions.

    An impression shows what was clicked, so it goes as well.
    """
    keeps = ~is_left_out[history.items]
    lengths = np.bincount(history.owners[keeps], minlength=len(history))
    return Shards(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        history.items[keeps],
        history.values[keeps],
        None if history.times is None else history.times[keeps],
        history.n_items,
    )
